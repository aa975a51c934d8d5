/* A session's text is the same in any company: sessions of one engine begin, end, join and leave at
 * random between the steps that they share, and each writes what a session alone writes. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "session/session.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/toy_models.h"

enum { N_CONTEXT = 90, MOST_NEW = 20, MOST_TEXT = 24, N_BROKEN = 12 };
#ifdef TESTS_SANITIZED
enum { N_STEPS = 40 };
#else
enum { N_STEPS = 150 };
#endif

/* One of the company, and the text that it writes. */
typedef struct member {
    drey_session *session;
    int32_t before[N_CONTEXT], n_before; /* the timeline behind which it began */
    int32_t ids[MOST_TEXT], n_ids;
    int32_t n_predict, refuse_at; /* 0: never */
    drey_sampling sampling;
    drey_statistics stats;
    bool writing;
} member;

typedef struct company {
    drey_engine *engine, *alone;
    drey_session *plain; /* the one alone */
    member member[8];
    int32_t n;
    rng r;
    _Atomic int32_t n_broken;
    int32_t n_texts, n_shared, n_failed, n_cancelled;
} company;

static int read_fault(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    company *c = user;
    return atomic_load(&c->n_broken) > 0 && atomic_fetch_sub(&c->n_broken, 1) > 0 ? EIO : 0;
}

static drey_engine *open_engine(company *c, int32_t n_sessions, drey_drafter kind,
                                drey_policy policy, double share)
{
    drey_engine *e = NULL;
    drey_engine_options o;
    drey_engine_options_init(&o);
    o.target = target;
    o.draft = kind == DREY_DRAFTER_MODEL ? draft : NULL;
    o.drafter = kind;
    o.policy = policy;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = N_CONTEXT;
    o.n_sessions = n_sessions;
    o.n_threads = share == 0 ? 2 : 1;
    o.prompt_chunk = 7;
    o.read_bytes = 64 << 10;
    engine_tuning tuning = {
        .set_share = share <= 1, .share = share, .fault = read_fault, .fault_user = c};
    MUST(engine_open, &e, &o, &tuning);
    return e;
}

/* ---- A text ---- */

static bool keep_id(void *user, int32_t id)
{
    member *m = user;
    assert_true(m->n_ids < MOST_TEXT);
    m->ids[m->n_ids++] = id;
    return m->n_ids != m->refuse_at;
}

static drey_generate_options options_of(member *m, int32_t n_predict)
{
    drey_generate_options g = greedy(n_predict);
    g.sampling = m->sampling;
    g.on_token = keep_id;
    g.user = m;
    return g;
}

/* The timeline grows by some ids, after a part of it was cut off, or begins anew. */
static void begin(company *c, member *m)
{
    rng *r = &c->r;
    drey_session *s = m->session;
    int32_t n = s->n_timeline;
    if (rng_below(r, 4) == 0)
        n = rng_below(r, n + 1);
    if (n > N_CONTEXT - MOST_NEW - MOST_TEXT - 1)
        n = rng_below(r, 10);
    memcpy(m->before, s->timeline, (size_t)n * sizeof *m->before);
    for (int32_t more = rng_below(r, 2) ? rng_below(r, 3) : rng_below(r, MOST_NEW); more > 0;
         more--)
        m->before[n++] = 1 + rng_below(r, 250);
    if (n == 0)
        m->before[n++] = 1 + rng_below(r, 250);
    m->n_before = n;
    m->n_ids = 0;
    m->n_predict = 1 + rng_below(r, MOST_TEXT);
    m->refuse_at = rng_below(r, 4) ? 0 : 1 + rng_below(r, MOST_TEXT);
    m->sampling = (drey_sampling){.top_p = 1, .temperature = rng_below(r, 2) ? 0.8f : 0, .seed = 5};
    drey_generate_options g = options_of(m, m->n_predict);
    MUST(drey_session_sync, s, m->before, (size_t)n, NULL);
    MUST(drey_session_begin, s, &g, &m->stats);
    m->writing = true;
}

/* What the text ought to be, whatever ended it. */
static void check_text(company *c, member *m)
{
    m->writing = false;
    c->n_texts++;
    assert_memory_equal(m->session->timeline, m->before, (size_t)m->n_before * sizeof *m->before);
    assert_int_equal(m->session->n_timeline, m->n_before + m->n_ids);
    if (m->stats.finish == DREY_FINISH_LENGTH)
        assert_int_equal(m->n_ids, m->n_predict);
    if (m->n_ids == 0)
        return;
    member plain = {.sampling = m->sampling};
    drey_generate_options g = options_of(&plain, m->n_ids);
    MUST(drey_session_sync, c->plain, m->before, (size_t)m->n_before, NULL);
    MUST(drey_session_generate, c->plain, NULL, 0, &g, NULL);
    assert_int_equal(plain.n_ids, m->n_ids);
    assert_memory_equal(plain.ids, m->ids, (size_t)m->n_ids * sizeof *m->ids);
}

/* ---- Between two steps ---- */

static void change(company *c, member *m)
{
    drey_error err = {0};
    int32_t what = rng_below(&c->r, 24);
    if (!m->session) {
        if (what < 8)
            must(drey_session_open(&m->session, c->engine, &err), &err);
    } else if (!m->writing) {
        if (what < 6)
            begin(c, m);
        else if (what == 6)
            drey_session_close(&m->session);
    } else if (what == 0) {
        drey_session_cancel(m->session);
        c->n_cancelled++;
    } else if (what == 1) { /* a step of its own */
        bool done;          /* a read of the step before may fail only now */
        drey_status status = drey_session_step(m->session, &done, &err);
        if (status == DREY_ERR_IO)
            c->n_failed++;
        else
            must(status, &err);
    } else if (what == 2) {
        drey_session_end(m->session);
    }
}

static void step(company *c)
{
    drey_error err = {0};
    trace_sums before, after;
    int32_t n_before = 0, n_writing;
    for (int32_t i = 0; i < c->n; i++)
        n_before += c->member[i].session && drey_session_is_writing(c->member[i].session);
    if (rng_below(&c->r, 12) == 0)
        atomic_store(&c->n_broken, N_BROKEN);
    trace_sum(&c->engine->trace, &before);
    drey_status status = drey_engine_step(c->engine, &n_writing, &err);
    trace_sum(&c->engine->trace, &after);
    atomic_store(&c->n_broken, 0);
    int64_t n_passes = 0;
    for (int what = 0; what < TRACE_KINDS; what++)
        if (what == TRACE_LOAD || what == TRACE_PROMPT || what == TRACE_VERIFY)
            n_passes += after.n[what] - before.n[what];
    assert_true(n_passes <= 1 && n_writing <= n_before);
    if (status == DREY_OK)
        c->n_shared += n_passes && n_before > 1;
    else if (status == DREY_ERR_IO)
        c->n_failed++;
    else
        fail_msg("%s", err.message);
    for (int32_t i = 0; i < c->n; i++)
        if (c->member[i].session)
            assert_true(session_is_valid(c->member[i].session));
}

static void keep_company(int32_t n, drey_drafter kind, drey_policy policy, double share,
                         uint64_t seed, company *total)
{
    company c = {.n = n, .r = rng_from(seed)};
    c.engine = open_engine(&c, n, kind, policy, share);
    c.alone = open_engine(&c, 1, DREY_DRAFTER_NONE, DREY_POLICY_NONE, 2);
    MUST(drey_session_open, &c.plain, c.alone);
    for (int i = 0; i < N_STEPS; i++) {
        for (int32_t j = 0; j < n; j++) {
            member *m = &c.member[j];
            change(&c, m);
            if (m->writing && !drey_session_is_writing(m->session))
                check_text(&c, m);
        }
        step(&c);
        for (int32_t j = 0; j < n; j++) {
            member *m = &c.member[j];
            if (m->writing && !drey_session_is_writing(m->session))
                check_text(&c, m);
        }
    }
    for (int32_t j = 0; j < n; j++)
        drey_session_close(&c.member[j].session);
    drey_session_close(&c.plain);
    drey_engine_close(&c.alone);
    drey_engine_close(&c.engine);
    total->n_texts += c.n_texts;
    total->n_shared += c.n_shared;
    total->n_failed += c.n_failed;
    total->n_cancelled += c.n_cancelled;
}

TEST(test_company)
{
    static const int32_t sizes[] = {1, 2, 8};
    static const double shares[] = {2, 0.4, 0};
    static const drey_drafter kinds[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_LOOKUP,
                                         DREY_DRAFTER_MODEL};
    company total = {.n = 0};
    uint64_t seed = 1;
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 3; k++) {
                drey_policy policy = kinds[k] == DREY_DRAFTER_NONE ? DREY_POLICY_NONE
                                     : (i + j) % 2                 ? DREY_POLICY_SEQUENCE
                                                                   : DREY_POLICY_OPTIMAL;
                keep_company(sizes[i], kinds[k], policy, shares[j], seed++, &total);
            }
    print_message("%d texts, %d shared passes, %d that failed, %d cancels\n", total.n_texts,
                  total.n_shared, total.n_failed, total.n_cancelled);
    assert_true(total.n_texts > 3 * N_STEPS && total.n_shared > 6 * N_STEPS);
    assert_true(total.n_failed > 0 && total.n_cancelled > 9);
}

/* What one session asks wrongly is nothing to the others, and no more sessions open than the plan
 * has memory for. */
TEST(test_wrong_company)
{
    company c = {.n = 2, .r = rng_from(1)};
    drey_error err = {0};
    drey_session *third = NULL;
    int32_t n_writing = 0;
    const int32_t bad[] = {1, 2, 100000};
    c.engine = open_engine(&c, 2, DREY_DRAFTER_LOOKUP, DREY_POLICY_OPTIMAL, 0.4);
    c.alone = open_engine(&c, 1, DREY_DRAFTER_NONE, DREY_POLICY_NONE, 2);
    must(drey_session_open(&c.plain, c.alone, &err), &err);
    must(drey_session_open(&c.member[0].session, c.engine, &err), &err);
    must(drey_session_open(&c.member[1].session, c.engine, &err), &err);
    assert_int_equal(drey_session_open(&third, c.engine, &err), DREY_ERR_USAGE);
    must(drey_engine_step(c.engine, &n_writing, &err), &err); /* nobody writes */
    assert_int_equal(n_writing, 0);
    member *good = &c.member[0], *wrong = &c.member[1];
    do
        begin(&c, good);
    while (good->n_predict < 12 || good->refuse_at);
    do {
        must(drey_engine_step(c.engine, &n_writing, &err), &err);
        drey_generate_options g = options_of(wrong, 3);
        assert_int_equal(drey_session_begin(wrong->session, &g, NULL, &err), DREY_ERR_USAGE);
        assert_int_equal(drey_session_sync(wrong->session, bad, 3, NULL, &err), DREY_ERR_USAGE);
        if (n_writing)
            assert_int_equal(drey_session_begin(good->session, &g, NULL, &err), DREY_ERR_USAGE);
    } while (n_writing);
    check_text(&c, good);
    assert_int_equal(good->stats.finish, DREY_FINISH_LENGTH);
    for (int i = 0; i < 2; i++)
        drey_session_close(&c.member[i].session);
    drey_session_close(&c.plain);
    drey_engine_close(&c.alone);
    drey_engine_close(&c.engine);
}

static int make_models(void **state)
{
    toy_options toy = toy_usual();
    toy.n_embd = 128;
    toy.n_ff = 256;
    toys_open_pair(&toy);
    return 0;
}

TEST_GROUP(make_models, toys_close)
