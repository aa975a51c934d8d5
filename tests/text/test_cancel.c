/* Cancelled in the middle of a pass, by another thread: those who go on write what they would have
 * written, and who was cancelled is free with the end of a layer, for a text that begins there. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "session/session.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "support/toy_models.h"

enum { N_CONTEXT = 120, N_SESSIONS = 3, N_TEXT = 20, N_PROMPT = 30 };
#ifdef TESTS_SANITIZED
enum { N_ROUNDS = 8 };
#else
enum { N_ROUNDS = 24 };
#endif

typedef struct text {
    int32_t ids[N_TEXT], n;
    drey_statistics stats;
} text;

typedef struct place place;
typedef struct writer { /* what callbacks get */
    text text;          /* first */
    place *place;
    int i;
    text *cut; /* the one before, which was cancelled while others went on; NULL: none yet */
} writer;

struct place {
    drey_engine *engine;
    drey_session *session[N_SESSIONS];
    writer writer[N_SESSIONS];
    text cut[N_SESSIONS];
    bool goes_on;      /* whoever is cancelled begins the same text anew, in the same step */
    bool takes_others; /* and cancels all others */
    /* Of the pass that loads: products so far, behind which one who_behind is cancelled, and behind
     * which it was first heard of a text's end. */
    int32_t n_products, cancel_behind, heard_behind, who_behind;
    /* Who is cancelled at which read, by the thread that reads; under the lock. */
    pthread_mutex_t lock;
    int64_t n_reads, cancel_at; /* cancel_at -1: nobody is */
    uint32_t who;               /* a bit each */
};

static int count_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    place *p = user;
    pthread_mutex_lock(&p->lock);
    if (p->n_reads++ == p->cancel_at)
        for (int i = 0; i < N_SESSIONS; i++)
            if (p->who >> i & 1)
                drey_session_cancel(p->session[i]);
    pthread_mutex_unlock(&p->lock);
    return 0;
}

/* From now on, and behind it nobody whom an earlier call named. Returns the reads since that
 * one. */
static int64_t cancel_at(place *p, uint32_t who, int64_t read)
{
    pthread_mutex_lock(&p->lock);
    int64_t n_reads = p->n_reads;
    p->who = who;
    p->n_reads = 0;
    p->cancel_at = read;
    pthread_mutex_unlock(&p->lock);
    return n_reads;
}

/* In the thread that takes the steps, behind each product of the pass that loads. */
static void count_product(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    place *p = user;
    if (what == DREY_PROGRESS_LOAD_TARGET && ++p->n_products == p->cancel_behind)
        drey_session_cancel(p->session[p->who_behind]);
}

static void open_place(place *p, double share, bool drafts)
{
    drey_engine_options o;
    drey_engine_options_init(&o);
    *p = (place){.lock = PTHREAD_MUTEX_INITIALIZER, .cancel_at = -1};
    o.target = target;
    o.draft = drafts ? draft : NULL;
    o.drafter = drafts ? DREY_DRAFTER_MODEL : DREY_DRAFTER_NONE;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = N_CONTEXT;
    o.n_sessions = N_SESSIONS;
    o.n_threads = 1;
    o.prompt_chunk = 16;
    o.read_bytes = 64 << 10;
    o.progress = count_product;
    o.progress_user = p;
    engine_tuning tuning = {
        .set_share = share <= 1, .share = share, .fault = count_read, .fault_user = p};
    MUST(engine_open, &p->engine, &o, &tuning);
    for (int i = 0; i < N_SESSIONS; i++)
        MUST(drey_session_open, &p->session[i], p->engine);
}

static void close_place(place *p)
{
    cancel_at(p, 0, -1); /* the stream reads on */
    for (int i = 0; i < N_SESSIONS; i++)
        drey_session_close(&p->session[i]);
    drey_engine_close(&p->engine);
}

static bool keep_id(void *user, int32_t id)
{
    text *t = user;
    t->ids[t->n++] = id;
    return true;
}

static void begin(place *p, int i);

static void begin_again(void *user)
{
    writer *w = user;
    place *p = w->place;
    if (p->heard_behind == 0)
        p->heard_behind = p->n_products;
    for (int i = 0; i < N_SESSIONS && p->takes_others; i++)
        drey_session_cancel(p->session[i]);
    if (!p->goes_on || w->cut || w->text.stats.finish != DREY_FINISH_INTERRUPTED)
        return;
    p->cut[w->i] = w->text;
    begin(p, w->i);
    w->cut = &p->cut[w->i];
}

static void begin(place *p, int i)
{
    int32_t prompt[N_PROMPT];
    rng r = rng_from((uint64_t)i + 1);
    writer *w = &p->writer[i];
    text *t = &w->text;
    for (int k = 0; k < N_PROMPT; k++)
        prompt[k] = 1 + rng_below(&r, 250);
    drey_generate_options g = greedy(N_TEXT);
    g.on_token = keep_id;
    g.on_end = begin_again;
    g.user = w;
    *w = (writer){.place = p, .i = i};
    MUST(drey_session_sync, p->session[i], prompt, N_PROMPT, NULL);
    MUST(drey_session_begin, p->session[i], &g, &t->stats);
}

static void write_all(place *p)
{
    int32_t n_writing;
    do
        MUST(drey_engine_step, p->engine, &n_writing);
    while (n_writing);
}

static void make_right(text right[N_SESSIONS])
{
    place p;
    open_place(&p, 2, false);
    for (int i = 0; i < N_SESSIONS; i++) {
        begin(&p, i);
        write_all(&p);
        right[i] = p.writer[i].text;
        assert_int_equal(right[i].n, N_TEXT);
    }
    close_place(&p);
}

static void check_beginning(const text *got, const text *right)
{
    assert_memory_equal(got->ids, right->ids, (size_t)got->n * sizeof *got->ids);
}

TEST(test_company_goes_on)
{
    rng r = rng_from(4);
    text right[N_SESSIONS];
    place p;
    int n_interrupted = 0, n_again = 0;
    make_right(right);
    open_place(&p, 0.3, true);
    for (int i = 0; i < N_SESSIONS; i++)
        begin(&p, i);
    write_all(&p); /* the first pass loads */
    int64_t n_reads = cancel_at(&p, 0, -1);
    /* A read may be past before there is a text, or never come: some rounds cut nothing. */
    for (int round = 0;
         round < N_ROUNDS || ((n_interrupted == 0 || n_again == 0) && round < 50 * N_ROUNDS);
         round++) {
        cancel_at(&p, 0, -1);
        for (int i = 0; i < N_SESSIONS; i++) {
            drey_session_reset(p.session[i]);
            begin(&p, i);
        }
        uint32_t who = (uint32_t)rng_below(&r, (1 << N_SESSIONS) - 1);
        p.goes_on = round % 2;
        cancel_at(&p, who, rng_below(&r, (int32_t)n_reads));
        write_all(&p);
        for (int i = 0; i < N_SESSIONS; i++) {
            bool cut = p.writer[i].text.stats.finish == DREY_FINISH_INTERRUPTED;
            check_beginning(&p.writer[i].text, &right[i]);
            assert_true(cut ? who >> i & 1 : p.writer[i].text.n == N_TEXT);
            assert_true(session_is_valid(p.session[i]));
            n_interrupted += cut;
            if (!p.writer[i].cut)
                continue;
            check_beginning(p.writer[i].cut, &right[i]);
            assert_true(!cut && who >> i & 1);
            n_again++;
        }
    }
    assert_true(n_interrupted > 0 && n_again > 0);
    close_place(&p);
}

/* Behind each product of the pass that loads, which reads three prompts: four products are a layer,
 * and one stands before the first. Who is cancelled hears of it by the layer's end, and its next
 * text is right as are the others'. */
TEST(test_within_a_layer)
{
    text right[N_SESSIONS];
    make_right(right);
    for (int32_t n_products = 9, behind = 1; behind <= n_products; behind++) {
        place p;
        int i = behind % N_SESSIONS;
        open_place(&p, behind % 2 ? 0 : 0.5, behind % 3 == 0);
        p.goes_on = true;
        p.cancel_behind = behind;
        p.who_behind = i;
        for (int k = 0; k < N_SESSIONS; k++)
            begin(&p, k);
        write_all(&p);
        assert_int_equal(p.writer[i].cut->n, 0);
        assert_in_range(p.heard_behind, behind, behind + 4);
        for (int k = 0; k < N_SESSIONS; k++) {
            assert_int_equal(p.writer[k].text.n, N_TEXT);
            check_beginning(&p.writer[k].text, &right[k]);
        }
        n_products = p.n_products;
        close_place(&p);
    }
}

/* While one leaves in the middle of a pass all others are cancelled, too: at the next layer nobody
 * wants it any more. */
TEST(test_the_last_leave_together)
{
    text right[N_SESSIONS];
    make_right(right);
    for (int i = 0; i < N_SESSIONS; i++) {
        place p;
        open_place(&p, 2, false);
        p.takes_others = true;
        p.cancel_behind = 6;
        p.who_behind = i;
        for (int k = 0; k < N_SESSIONS; k++)
            begin(&p, k);
        write_all(&p);
        p.takes_others = false;
        for (int k = 0; k < N_SESSIONS; k++) {
            assert_int_equal(p.writer[k].text.stats.finish, DREY_FINISH_INTERRUPTED);
            assert_int_equal(p.writer[k].text.n, 0);
            assert_true(session_is_valid(p.session[k]));
            begin(&p, k);
        }
        write_all(&p);
        for (int k = 0; k < N_SESSIONS; k++) {
            assert_int_equal(p.writer[k].text.n, N_TEXT);
            check_beginning(&p.writer[k].text, &right[k]);
        }
        close_place(&p);
    }
}

static int64_t n_passes(const drey_engine *e)
{
    drey_counts c;
    drey_engine_count(e, &c);
    return c.passes + c.prompt_passes;
}

/* A pass that nobody wants any more ends, and the next text is right. */
TEST(test_all_leave)
{
    text right[N_SESSIONS];
    place p;
    int32_t n_writing;
    int n_left = 0;
    make_right(right);
    open_place(&p, 0, false);
    for (int i = 0; i < N_SESSIONS; i++)
        begin(&p, i);
    write_all(&p);
    /* The read may come so late that another pass has been computed. */
    for (int round = 0; round < N_ROUNDS || (n_left == 0 && round < 50 * N_ROUNDS); round++) {
        cancel_at(&p, 0, -1);
        for (int i = 0; i < N_SESSIONS; i++) {
            drey_session_reset(p.session[i]);
            begin(&p, i);
        }
        for (int k = 0; k < round % 4; k++)
            MUST(drey_engine_step, p.engine, &n_writing);
        int64_t n_before = n_passes(p.engine);
        cancel_at(&p, (1 << N_SESSIONS) - 1, 2); /* of the ring's, ahead of this pass or in it */
        MUST(drey_engine_step, p.engine, &n_writing);
        bool left = n_writing == 0 && n_passes(p.engine) == n_before;
        n_left += left;
        if (n_writing)
            write_all(&p);
        for (int i = 0; i < N_SESSIONS; i++) {
            assert_int_equal(p.writer[i].text.stats.finish, DREY_FINISH_INTERRUPTED);
            check_beginning(&p.writer[i].text, &right[i]);
            assert_true(session_is_valid(p.session[i]));
        }
        cancel_at(&p, 0, -1);
        begin(&p, round % N_SESSIONS);
        write_all(&p);
        check_beginning(&p.writer[round % N_SESSIONS].text, &right[round % N_SESSIONS]);
        assert_int_equal(p.writer[round % N_SESSIONS].text.n, N_TEXT);
    }
    assert_true(n_left > 0);
    close_place(&p);
}

/* From a callback of another one's text. */
static drey_session *victim;

static bool cancel_other(void *user, int32_t id)
{
    keep_id(user, id);
    if (((text *)user)->n == 3)
        drey_session_cancel(victim);
    return true;
}

TEST(test_from_a_callback)
{
    text right[N_SESSIONS];
    place p;
    make_right(right);
    open_place(&p, 2, true);
    begin(&p, 0);
    drey_generate_options g = greedy(N_TEXT);
    g.on_token = cancel_other;
    g.user = &p.writer[1];
    begin(&p, 1);
    drey_session_end(p.session[1]);
    p.writer[1] = (writer){.place = &p, .i = 1};
    MUST(drey_session_begin, p.session[1], &g, &p.writer[1].text.stats);
    /* The victim comes last: its prompt takes two passes, by when the other has three tokens. How
     * many rows of a prompt join a pass is up to clocks. */
    for (int32_t n_writing; p.writer[1].text.n == 0;)
        MUST(drey_engine_step, p.engine, &n_writing);
    begin(&p, 2);
    victim = p.session[2];
    write_all(&p);
    for (int i = 0; i < N_SESSIONS; i++)
        check_beginning(&p.writer[i].text, &right[i]);
    assert_true(p.writer[0].text.n == N_TEXT && p.writer[1].text.n == N_TEXT);
    assert_int_equal(p.writer[2].text.stats.finish, DREY_FINISH_INTERRUPTED);
    assert_true(p.writer[2].text.n < N_TEXT);
    close_place(&p);
}

/* ---- */

static int make_models(void **state)
{
    toy_options toy = toy_usual();
    toy.n_embd = 128;
    toy.n_ff = 256;
    toys_open_pair(&toy);
    return 0;
}

/* Where nobody who stays wants logits, the head's bytes are given back: else the ring would be full
 * of them a few passes later, and the next one would wait for ever. */
TEST(test_nobody_wants_the_head)
{
    place p;
    text right[N_SESSIONS];
    make_right(right);
    open_place(&p, 0, false);
    begin(&p, 0);
    write_all(&p); /* the first pass loads */
    const int32_t n_layers = p.session[0]->target.layout->shape.n_layers;
    for (int32_t round = 0; round < 5 * n_layers; round++) {
        model_pass pass;
        const pass_row row = {.token = 5, .parent = -1};
        pass_group groups[2];
        for (int i = 0; i < 2; i++)
            groups[i] = (pass_group){.kv = &p.session[i]->target_kv,
                                     .rows = &row,
                                     .n = 1,
                                     .head = i == 0 ? HEAD_ALL : HEAD_NONE};
        MUST(pass_begin, &pass, &p.session[0]->target, groups, 2);
        for (pass_state at = PASS_GOES_ON; at != PASS_DONE;) {
            MUST(pass_step, &pass, 0, &at);
            if (at == PASS_STARVED)
                pass_wait(&pass);
            if (pass_at_layer(&pass) && pass_layers_done(&pass) == 1 + round % n_layers)
                pass_drop(&pass, 0);
        }
        MUST(pass_end, &pass);
        assert_int_equal(p.session[0]->target_kv.n_pending, 0);
        assert_int_equal(p.session[1]->target_kv.n_pending, 1);
        kv_truncate(&p.session[1]->target_kv, 0);
    }
    begin(&p, 1);
    write_all(&p);
    check_beginning(&p.writer[1].text, &right[1]);
    close_place(&p);
}

TEST_GROUP(make_models, toys_close)
