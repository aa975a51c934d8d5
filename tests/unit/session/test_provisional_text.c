/* Provisional text: a caller that follows the events has at any time the verified text, equal to
 * on_text's, and after it a provisional one; each byte of that is later taken back or verified. */
#include <unistd.h>

#include "session/session.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_TEXT = 60 };

typedef struct reader {
    seen_text seen;
    char text[16 * WRITING_MAX];
    size_t n_text;
    int32_t n_events[3];
    drey_session *session;
    int32_t cancel_at; /* event; 0: never */
} reader;

static void on_event(void *user, const drey_event *e)
{
    reader *r = user;
    r->n_events[e->kind]++;
    if (r->cancel_at && r->n_events[0] + r->n_events[1] + r->n_events[2] == r->cancel_at)
        drey_session_cancel(r->session);
    seen_text_take(&r->seen, e);
}

static bool on_text(void *user, const char *bytes, size_t n_bytes)
{
    reader *r = user;
    memcpy(r->text + r->n_text, bytes, n_bytes);
    r->n_text += n_bytes;
    assert_int_equal(r->n_text, r->seen.n_verified); /* the event came first */
    return true;
}

static drey_session *open_session(drey_policy policy, double share)
{
    drey_engine_options o =
        toys_options(policy == DREY_POLICY_NONE ? DREY_DRAFTER_NONE : DREY_DRAFTER_MODEL, 128, 1);
    o.policy = policy;
    engine_hooks hooks = {.set_share = share < 1, .share = share};
    return open_alone(&o, &hooks);
}

static void write_text(drey_session *s, const char *stop, reader *r)
{
    drey_error err = {0};
    const int32_t prompt[] = {84, 104, 101, 32, 113};
    drey_generate_options g = greedy(N_TEXT);
    g.stops = &stop;
    g.n_stops = stop ? 1 : 0;
    g.on_text = on_text;
    g.on_event = on_event;
    g.user = r;
    r->session = s;
    drey_session_reset(s);
    drey_status status = drey_session_generate(s, prompt, 5, &g, NULL, &err);
    if (status != (r->cancel_at ? DREY_ERR_CANCELLED : DREY_OK))
        fail_msg("%s", err.message);
    assert_int_equal(r->seen.n_shown, r->seen.n_verified);
    assert_int_equal(r->n_text, r->seen.n_verified);
    assert_memory_equal(r->text, r->seen.shown, r->n_text);
}

TEST(events_add_up)
{
    static reader plain, r;
    drey_session *s = open_session(DREY_POLICY_NONE, 1);
    plain = (reader){.n_text = 0};
    write_text(s, NULL, &plain);
    assert_int_equal(plain.n_events[DREY_EVENT_PROVISIONAL], 0);
    close_alone(&s);
    static const double shares[] = {1, 0.2};
    for (int i = 0; i < 2; i++) {
        s = open_session(DREY_POLICY_EDGELLM, shares[i]);
        r = (reader){.n_text = 0};
        write_text(s, NULL, &r);
        assert_int_equal(r.n_text, plain.n_text);
        assert_memory_equal(r.text, plain.text, r.n_text);
        assert_true(r.seen.n_stood > 10 && r.n_events[DREY_EVENT_TAKEN_BACK] > 0);
        /* A stop text in the middle: nothing after it stays, and it is held back in both texts. */
        char stop[4] = {0};
        memcpy(stop, plain.text + plain.n_text / 2, 3);
        r = (reader){.n_text = 0};
        write_text(s, stop, &r);
        assert_true(r.n_text <= plain.n_text / 2);
        assert_memory_equal(r.text, plain.text, r.n_text);
        for (int32_t at = 1; at < 40; at += 6) {
            r = (reader){.cancel_at = at};
            write_text(s, NULL, &r);
            assert_memory_equal(r.text, plain.text, r.n_text);
        }
        close_alone(&s);
    }
}

TEST_GROUP(toys_open, toys_close)
