/* A session goes on: random turns with a draft, and streamed, write what the target alone writes.
 *
 * Each session plays a script of turns that end in every way there is: at a number of tokens, at
 * the end of text, at a stop text, because a callback refuses, because the context is full,
 * cancelled, or by reads that fail; then the next turn goes on from there. A plain session over
 * resident weights plays the same script, and must write the same ids turn by turn. */
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "session/session.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"

enum {
    N_CONTEXT = 120,
    MOST_IDS = 40,
    N_BROKEN = 12 /* attempts that fail in a row: more than are forgiven */
};
#ifdef TESTS_SANITIZED
enum { N_SESSIONS = 1, N_TURNS = 4 };
#else
enum { N_SESSIONS = 3, N_TURNS = 6 };
#endif

/* ---- Models ---- */

typedef enum draft_kind { EQUAL, SHORT, NOISY, N_DRAFTS } draft_kind;
static drey_model *target, *draft[N_DRAFTS];

/* Makes `id` the end of text, in the file's bytes. */
static void set_eos(gguf_writer *w, int32_t id)
{
    static const char key[] = "tokenizer.ggml.eos_token_id";
    for (size_t i = 0; i + sizeof key + 8 < w->n; i++)
        if (memcmp(w->bytes + i, key, sizeof key - 1) == 0) {
            writer_patch_u32(w, i + sizeof key - 1 + 4, (uint32_t)id);
            return;
        }
    fail_msg("no %s", key);
}

static drey_model *make_model(const char *name, const toy_options *toy, int32_t eos)
{
    gguf_writer w = {0};
    drey_model *m = NULL;
    toy_build(&w, toy, 0);
    if (eos >= 0)
        set_eos(&w, eos);
    assert_true(writer_save(&w, temp_path(name)));
    writer_free(&w);
    MUST(drey_model_open, &m, temp_path(name));
    return m;
}

/* ---- Playing a turn ---- */

typedef struct turn {
    int32_t ids[MOST_IDS], n;
    int32_t n_predict, refuse_at; /* 0: never */
    bool with_end;                /* the end of text counts */
    const char *stop;             /* NULL: none */
    drey_sampling sampling;
    int32_t cancel_at;  /* token after which it is cancelled; 0: never */
    int64_t break_read; /* read at which reading begins to fail; -1: never */
    bool cancel_read;   /* that read cancels instead */
    bool goes_on;       /* after an interruption, until its end */
    bool resets;        /* the session, before it */
    bool by_steps;      /* sync, begin and step; else drey_session_generate */
} turn;

typedef struct player {
    drey_session *session;
    const turn *t;
    int32_t ids[N_CONTEXT], n_ids; /* written in this turn */
    drey_finish finish;
    bool interrupted;
    /* For the thread that reads. */
    pthread_mutex_t lock;
    drey_session *cancellable;           /* under the lock */
    _Atomic int64_t n_reads, break_read; /* as in the turn */
    _Atomic bool cancel_read;
    _Atomic int32_t n_broken;
} player;
#define NEW_PLAYER                                                                                 \
    {                                                                                              \
        .lock = PTHREAD_MUTEX_INITIALIZER, .break_read = -1                                        \
    }

static int read_fault(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    player *p = user;
    bool now = atomic_fetch_add(&p->n_reads, 1) == atomic_load(&p->break_read);
    if (now && !atomic_load(&p->cancel_read))
        atomic_store(&p->n_broken, N_BROKEN);
    pthread_mutex_lock(&p->lock);
    if (now && p->cancellable && atomic_load(&p->cancel_read))
        drey_session_cancel(p->cancellable);
    pthread_mutex_unlock(&p->lock);
    if (atomic_load(&p->n_broken) > 0 && atomic_fetch_sub(&p->n_broken, 1) > 0)
        return EIO;
    return 0;
}

static void let_cancel(player *p, drey_session *session)
{
    pthread_mutex_lock(&p->lock);
    p->cancellable = session;
    pthread_mutex_unlock(&p->lock);
}

static bool keep_id(void *user, int32_t id)
{
    player *p = user;
    assert_true(p->n_ids < N_CONTEXT);
    p->ids[p->n_ids++] = id;
    if (p->n_ids == p->t->cancel_at)
        drey_session_cancel(p->session);
    return p->n_ids != p->t->refuse_at;
}

static bool keep_text(void *user, const char *bytes, size_t n_bytes)
{
    return bytes && n_bytes > 0;
}

static drey_generate_options options_of(player *p)
{
    drey_generate_options g;
    drey_generate_options_init(&g);
    g.n_predict = p->t->n_predict - p->n_ids;
    g.ignore_eos = !p->t->with_end;
    g.stops = &p->t->stop;
    g.n_stops = p->t->stop ? 1 : 0;
    g.sampling = p->t->sampling;
    g.on_token = keep_id;
    g.on_text = keep_text;
    g.user = p;
    return g;
}

/* The ids join by naming all of the timeline. */
static drey_status sync_ids(drey_session *s, const turn *t, drey_error *err)
{
    int32_t all[2 * N_CONTEXT], n = s->n_timeline, n_before = s->target_kv.n_committed;
    size_t n_kept;
    memcpy(all, s->timeline, (size_t)n * sizeof *all);
    memcpy(all + n, t->ids, (size_t)t->n * sizeof *all);
    drey_status status = drey_session_sync(s, all, (size_t)(n + t->n), &n_kept, err);
    assert_int_equal(n_kept, n_before);
    return status;
}

/* A step that fails is tried again, or the text ended. */
static drey_status write_steps(player *p, bool first, drey_statistics *stats, drey_error *err)
{
    drey_generate_options g = options_of(p);
    if (first && sync_ids(p->session, p->t, err) != DREY_OK)
        return err->code;
    drey_status status = drey_session_begin(p->session, &g, stats, err);
    g = (drey_generate_options){0}; /* the session has its own */
    for (bool done = status != DREY_OK; !done;) {
        status = drey_session_step(p->session, &done, err);
        assert_true(session_is_valid(p->session));
        assert_true(done != drey_session_is_writing(p->session));
        atomic_store(&p->n_broken, 0);
        if (status == DREY_ERR_IO && !p->t->goes_on)
            break;
        p->interrupted = p->interrupted || status != DREY_OK;
    }
    drey_session_end(p->session);
    return status;
}

static drey_status write_on(player *p, bool first, drey_statistics *stats, drey_error *err)
{
    if (p->t->by_steps)
        return write_steps(p, first, stats, err);
    drey_generate_options g = options_of(p);
    return drey_session_generate(p->session, p->t->ids, first ? (size_t)p->t->n : 0, &g, stats,
                                 err);
}

/* Plays it to its end, or to an interruption behind which the turn does not go on (and then wrote
 * a token at least, so that the other session can be told to stop there). */
static void play(player *p, const turn *t)
{
    drey_error err = {0};
    drey_statistics stats;
    p->t = t;
    p->n_ids = 0;
    p->interrupted = false;
    atomic_store(&p->n_reads, 0);
    atomic_store(&p->cancel_read, t->cancel_read);
    atomic_store(&p->break_read, t->break_read);
    let_cancel(p, p->session);
    if (t->resets)
        drey_session_reset(p->session);
    for (int call = 0;; call++) {
        assert_true(call < 8);
        drey_status status = write_on(p, call == 0, &stats, &err);
        assert_true(session_is_valid(p->session));
        p->finish = stats.finish;
        atomic_store(&p->n_broken, 0);
        if (status == DREY_OK)
            return;
        if (status != DREY_ERR_CANCELLED && status != DREY_ERR_IO)
            fail_msg("%s", err.message);
        p->interrupted = true;
        if (p->n_ids && (!t->goes_on || p->n_ids == t->n_predict))
            return;
    }
}

/* What the plain session is to do: not to be disturbed, and to stop where the other one was. */
static turn undisturbed(const turn *t, const player *after)
{
    turn plain = *t;
    plain.cancel_at = 0;
    plain.break_read = -1;
    plain.by_steps = false;
    if (after->finish == DREY_FINISH_INTERRUPTED || after->finish == DREY_FINISH_ERROR)
        plain.refuse_at = after->n_ids;
    return plain;
}

static turn random_turn(rng *r, const drey_session *s, bool disturb)
{
    static const char *const stops[] = {"e", "a", "th", "\n", "o"};
    turn t = {.break_read = -1, .n_predict = 1 + rng_below(r, 30)};
    int32_t left = N_CONTEXT - s->n_timeline;
    t.resets = left < 2 || rng_below(r, 8) == 0;
    bool empty = t.resets || s->n_timeline == 0;
    left = empty ? N_CONTEXT : left;
    t.by_steps = rng_below(r, 2);
    int32_t kind = rng_below(r, 4);
    t.n = kind == 0 ? 0 : kind == 1 ? 1 : 2 + rng_below(r, MOST_IDS - 2);
    t.n = t.n < left ? t.n : left - 1;
    t.n = t.n || !empty ? t.n : 1;
    for (int32_t i = 0; i < t.n; i++)
        t.ids[i] = 1 + rng_below(r, 250);
    t.with_end = rng_below(r, 3) == 0;
    t.stop = rng_below(r, 3) == 0 ? stops[rng_below(r, 5)] : NULL;
    t.refuse_at = rng_below(r, 3) == 0 ? 1 + rng_below(r, 12) : 0;
    if (rng_below(r, 3) == 0)
        t.sampling = (drey_sampling){.temperature = 0.8f, .top_k = 40, .top_p = 0.95f, .seed = 7};
    else
        t.sampling = (drey_sampling){.top_p = 1};
    if (!disturb || rng_below(r, 2))
        return t;
    t.goes_on = rng_below(r, 2);
    t.stop = NULL; /* may begin in front of an interruption */
    int32_t how = rng_below(r, 3);
    if (how == 0) {
        t.cancel_at = 1 + rng_below(r, t.n_predict);
    } else {
        t.break_read = rng_below(r, 60);
        t.cancel_read = how == 1;
    }
    return t;
}

/* ---- Engines ---- */

static void open_engine(drey_engine **e, drey_model *with, drey_drafter kind, drey_policy policy,
                        double share, player *p)
{
    drey_engine_options o;
    drey_engine_options_init(&o);
    o.target = target;
    o.draft = with;
    o.drafter = kind;
    o.policy = policy;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = N_CONTEXT;
    o.n_threads = policy == DREY_POLICY_SEQUENCE && share == 0 ? 2 : 1; /* more only spin */
    o.prompt_chunk = 9;
    o.read_bytes = 64 << 10;
    engine_tuning tuning = {
        .set_share = share <= 1, .share = share, .fault = read_fault, .fault_user = p};
    MUST(engine_open, e, &o, &tuning);
}

typedef struct tally {
    int32_t n_turns, n_interrupted, n_ends[4];
} tally;

static void compare(drey_engine *e, player *p, player *plain, rng *r, tally *n)
{
    for (int s = 0; s < N_SESSIONS; s++) {
        MUST(drey_session_open, &p->session, e);
        drey_session_reset(plain->session);
        for (int i = 0; i < N_TURNS; i++) {
            turn t = random_turn(r, p->session, true);
            play(p, &t);
            turn same = undisturbed(&t, p);
            play(plain, &same);
            n->n_turns++;
            n->n_interrupted += p->interrupted;
            n->n_ends[p->finish]++;
            assert_int_equal(p->n_ids, plain->n_ids);
            assert_memory_equal(p->ids, plain->ids, (size_t)p->n_ids * sizeof *p->ids);
            assert_int_equal(p->session->n_timeline, plain->session->n_timeline);
        }
        let_cancel(p, NULL); /* the stream reads on */
        drey_session_close(&p->session);
    }
}

TEST(test_turns)
{
    static const double shares[] = {2, 0.5, 0}; /* above 1: all in memory */
    static const drey_policy policies[] = {DREY_POLICY_SEQUENCE, DREY_POLICY_OPTIMAL};
    rng r = rng_from(11);
    tally n = {0};
    drey_engine *alone = NULL;
    player plain = NEW_PLAYER;
    open_engine(&alone, NULL, DREY_DRAFTER_NONE, DREY_POLICY_NONE, 2, &plain);
    MUST(drey_session_open, &plain.session, alone);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 2; j++)
            for (int with = -1; with < N_DRAFTS; with++) {
                player p = NEW_PLAYER;
                drey_engine *e = NULL;
                open_engine(&e, with < 0 ? NULL : draft[with],
                            with < 0 ? DREY_DRAFTER_LOOKUP : DREY_DRAFTER_MODEL, policies[j],
                            shares[i], &p);
                compare(e, &p, &plain, &r, &n);
                drey_engine_close(&e);
            }
    drey_session_close(&plain.session);
    drey_engine_close(&alone);
    print_message("%d turns, %d interrupted; ends: %d stop, %d length, %d cancelled, %d error\n",
                  n.n_turns, n.n_interrupted, n.n_ends[0], n.n_ends[1], n.n_ends[2], n.n_ends[3]);
    assert_true(n.n_ends[DREY_FINISH_STOP] > 0 && n.n_ends[DREY_FINISH_LENGTH] > 0);
    assert_true(n.n_interrupted > 0);
}

/* ---- The timeline set, cut, and what may not be done ---- */

static int64_t prompt_rows(const drey_engine *e)
{
    trace_sums sums;
    trace_sum(&e->trace, &sums);
    return sums.arg[TRACE_PROMPT];
}

static void write_some(player *p, int32_t n)
{
    turn t = {.n_predict = n, .break_read = -1, .by_steps = true};
    play(p, &t);
    assert_int_equal(p->n_ids, n);
}

/* Lists that begin alike: what they share is not computed again, and the text is a fresh one's. */
TEST(test_sync)
{
    rng r = rng_from(3);
    drey_engine *e = NULL, *alone = NULL;
    player p = NEW_PLAYER, plain = NEW_PLAYER;
    open_engine(&e, draft[SHORT], DREY_DRAFTER_MODEL, DREY_POLICY_OPTIMAL, 0.5, &p);
    open_engine(&alone, NULL, DREY_DRAFTER_NONE, DREY_POLICY_NONE, 2, &plain);
    MUST(drey_session_open, &p.session, e);
    MUST(drey_session_open, &plain.session, alone);
    int32_t ids[N_CONTEXT], n_total_kept = 0;
    for (int i = 0; i < 20; i++) {
        int32_t n_before = p.session->n_timeline, same = rng_below(&r, n_before + 1);
        int32_t n = same + rng_below(&r, 20);
        n = n < N_CONTEXT - 25 ? n : N_CONTEXT - 25;
        n = n ? n : 1;
        same = same < n ? same : n;
        memcpy(ids, p.session->timeline, (size_t)same * sizeof *ids);
        for (int32_t j = same; j < n; j++)
            ids[j] = 1 + rng_below(&r, 250);
        while (same < n && same < n_before && ids[same] == p.session->timeline[same])
            same++;
        size_t n_kept;
        MUST(drey_session_sync, p.session, ids, (size_t)n, &n_kept);
        assert_int_equal(p.session->n_timeline, n);
        int32_t known = n_before ? n_before - 1 : 0;
        known = same < known ? same : known;
        assert_int_equal(n_kept, known < n ? known : n - 1);
        int64_t rows = prompt_rows(e);
        write_some(&p, 20);
        int32_t n_read = n - (int32_t)n_kept;
        if (i > 0) /* the first pass loads */
            assert_int_equal(prompt_rows(e) - rows, n_read > 1 ? n_read : 0);
        n_total_kept += (int32_t)n_kept;
        drey_session_reset(plain.session);
        MUST(drey_session_sync, plain.session, ids, (size_t)n, NULL);
        write_some(&plain, 20);
        assert_memory_equal(p.ids, plain.ids, 20 * sizeof *p.ids);
    }
    assert_true(n_total_kept > 100);
    drey_session_close(&plain.session);
    drey_session_close(&p.session);
    drey_engine_close(&alone);
    drey_engine_close(&e);
}

TEST(test_truncate)
{
    rng r = rng_from(4);
    drey_engine *e = NULL;
    player p = NEW_PLAYER;
    int32_t ids[N_CONTEXT], text[10];
    open_engine(&e, NULL, DREY_DRAFTER_LOOKUP, DREY_POLICY_OPTIMAL, 2, &p);
    MUST(drey_session_open, &p.session, e);
    for (int i = 0; i < 40; i++)
        ids[i] = 1 + rng_below(&r, 250);
    for (int i = 0; i < 10; i++) {
        size_t n = 1 + (size_t)rng_below(&r, 40);
        MUST(drey_session_sync, p.session, ids, 40, NULL);
        write_some(&p, 10);
        MUST(drey_session_truncate, p.session, n);
        assert_int_equal(p.session->n_timeline, n);
        assert_int_equal(p.session->target_kv.n_committed, n - 1);
        write_some(&p, 10);
        memcpy(text, p.ids, sizeof text);
        drey_session_reset(p.session);
        MUST(drey_session_sync, p.session, ids, n, NULL);
        write_some(&p, 10);
        assert_memory_equal(text, p.ids, sizeof text);
    }
    drey_session_close(&p.session);
    drey_engine_close(&e);
}

static void refused(drey_status status, drey_status expected, const drey_error *err,
                    const char *words)
{
    assert_int_equal(status, expected);
    if (!strstr(err->message, words))
        fail_msg("\"%s\" is not in: %s", words, err->message);
}

TEST(test_misuse)
{
    drey_error err = {0};
    drey_engine *e = NULL;
    player p = NEW_PLAYER;
    turn t = {.n_predict = 8, .break_read = -1};
    bool done = false;
    int32_t ids[N_CONTEXT] = {5, 77, 140, -1};
    open_engine(&e, NULL, DREY_DRAFTER_NONE, DREY_POLICY_NONE, 2, &p);
    assert_int_equal(drey_session_open(&p.session, e, &err), DREY_OK);
    drey_session *s = p.session;
    p.t = &t;
    drey_generate_options g = options_of(&p);
    refused(drey_session_begin(s, &g, NULL, &err), DREY_ERR_USAGE, &err, "empty");
    assert_int_equal(drey_session_step(s, &done, &err), DREY_OK);
    assert_true(done);
    assert_int_equal(drey_session_sync(s, ids, 3, NULL, &err), DREY_OK);
    refused(drey_session_sync(s, ids, 4, NULL, &err), DREY_ERR_USAGE, &err, "-1 does not exist");
    refused(drey_session_sync(s, ids, N_CONTEXT, NULL, &err), DREY_ERR_USAGE, &err, "not exist");
    ids[3] = 0;
    refused(drey_session_sync(s, ids, N_CONTEXT, NULL, &err), DREY_ERR_CONTEXT, &err, "room");
    refused(drey_session_truncate(s, 4, &err), DREY_ERR_USAGE, &err, "has 3");
    g.n_predict = 0;
    refused(drey_session_begin(s, &g, NULL, &err), DREY_ERR_USAGE, &err, "one token");
    g.n_predict = 8;
    g.sampling.top_p = 7;
    refused(drey_session_begin(s, &g, NULL, &err), DREY_ERR_USAGE, &err, "top-p");
    g.sampling.top_p = 1;
    assert_int_equal(s->n_timeline, 3);
    /* Errors have changed nothing, and a text that is being written is not harmed by them. */
    drey_statistics stats = {0};
    assert_int_equal(drey_session_begin(s, &g, &stats, &err), DREY_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(drey_session_step(s, &done, &err), DREY_OK);
    refused(drey_session_begin(s, &g, NULL, &err), DREY_ERR_USAGE, &err, "already");
    refused(drey_session_generate(s, ids, 1, &g, NULL, &err), DREY_ERR_USAGE, &err, "already");
    refused(drey_session_truncate(s, 100, &err), DREY_ERR_USAGE, &err, "cannot be kept");
    while (!done)
        assert_int_equal(drey_session_step(s, &done, &err), DREY_OK);
    assert_int_equal(p.n_ids, 8);
    assert_int_equal(stats.finish, DREY_FINISH_LENGTH);
    assert_int_equal(stats.generated_tokens, 8);
    /* What cuts the timeline ends the text. */
    p.n_ids = 0;
    assert_int_equal(drey_session_begin(s, &g, &stats, &err), DREY_OK);
    assert_int_equal(drey_session_step(s, &done, &err), DREY_OK);
    assert_int_equal(drey_session_truncate(s, 2, &err), DREY_OK);
    assert_false(drey_session_is_writing(s));
    assert_int_equal(stats.finish, DREY_FINISH_INTERRUPTED);
    assert_int_equal(drey_session_begin(s, &g, NULL, &err), DREY_OK); /* and is closed with one */
    drey_session_close(&p.session);
    drey_engine_close(&e);
}

/* ---- Cancelling where nothing runs ---- */

TEST(test_cancel_between_calls)
{
    drey_engine *e = NULL;
    player p = NEW_PLAYER;
    turn t = {.ids = {5, 77, 140}, .n = 3, .n_predict = 5, .break_read = -1};
    float logprob[3];
    open_engine(&e, NULL, DREY_DRAFTER_LOOKUP, DREY_POLICY_OPTIMAL, 2, &p);
    MUST(drey_session_open, &p.session, e);
    for (int i = 0; i < 2; i++) {
        drey_session_cancel(p.session);
        play(&p, &t);
        assert_false(p.interrupted);
        assert_int_equal(p.n_ids, 5);
        drey_session_cancel(p.session);
        MUST(drey_session_score, p.session, t.ids, 3, logprob);
    }
    drey_session_close(&p.session);
    drey_engine_close(&e);
}

static drey_session *scored; /* and to be cancelled behind the last pass */
static float (*real_sum_exp)(const float *x, int64_t n, float top, float scale);

static float cancel_sum_exp(const float *x, int64_t n, float top, float scale)
{
    drey_session_cancel(scored);
    return real_sum_exp(x, n, top, scale);
}

/* Nobody asks any more, but the caller is told and can leave out the windows to come. */
TEST(test_cancel_at_the_end_of_a_window)
{
    drey_engine *e = NULL;
    drey_error err = {0};
    player p = NEW_PLAYER;
    const int32_t ids[] = {5, 77, 140};
    float logprob[3];
    open_engine(&e, NULL, DREY_DRAFTER_NONE, DREY_POLICY_NONE, 2, &p);
    kernel_table kernels = *e->kernels;
    real_sum_exp = kernels.sum_exp;
    kernels.sum_exp = cancel_sum_exp;
    assert_int_equal(drey_session_open(&scored, e, &err), DREY_OK);
    e->kernels = &kernels;
    assert_int_equal(drey_session_score(scored, ids, 3, logprob, &err), DREY_ERR_CANCELLED);
    drey_session_close(&scored);
    drey_engine_close(&e);
}

/* ---- The caller's floating-point environment ---- */

/* Rounding `before` opening, and `after`; writes ids and scores. */
static void write_rounding(int before, int after, int32_t n_threads, int32_t *ids, float *logprob)
{
    drey_engine *e = NULL;
    drey_engine_options o;
    player p = NEW_PLAYER;
    turn t = {.ids = {5, 77, 140, 9}, .n = 4, .n_predict = 30, .break_read = -1};
    t.sampling = (drey_sampling){.temperature = 1, .top_p = 0.9f, .seed = 3};
    assert_int_equal(fesetround(before), 0);
    drey_engine_options_init(&o);
    o.target = target;
    o.draft = draft[SHORT];
    o.drafter = DREY_DRAFTER_MODEL;
    o.memory_bytes = DREY_MEMORY_UNLIMITED;
    o.n_context = N_CONTEXT;
    o.n_threads = n_threads;
    MUST(drey_engine_open, &e, &o);
    assert_int_equal(fegetround(), before);
    MUST(drey_session_open, &p.session, e);
    assert_int_equal(fesetround(after), 0);
    play(&p, &t);
    assert_int_equal(p.n_ids, 30);
    memcpy(ids, p.ids, 30 * sizeof *ids);
    MUST(drey_session_score, p.session, p.ids, 30, logprob);
    assert_int_equal(fegetround(), after);
    drey_session_close(&p.session);
    drey_engine_close(&e);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
}

TEST(test_rounding_mode)
{
    int32_t right[30], ids[30];
    float right_logprob[29], logprob[29];
    write_rounding(FE_TONEAREST, FE_TONEAREST, 1, right, right_logprob);
    for (int32_t n_threads = 1; n_threads <= 3; n_threads += 2)
        for (int which = 1; which < 4; which++) {
            write_rounding(which & 1 ? FE_UPWARD : FE_TONEAREST,
                           which & 2 ? FE_UPWARD : FE_TONEAREST, n_threads, ids, logprob);
            assert_memory_equal(ids, right, sizeof right);
            assert_memory_equal(logprob, right_logprob, sizeof right_logprob);
        }
}

/* ---- */

/* The token that the target writes most often. */
static int32_t frequent_token(void)
{
    int32_t count[1024] = {0}, most = 0;
    rng r = rng_from(5);
    drey_engine *e = NULL;
    player p = NEW_PLAYER;
    open_engine(&e, NULL, DREY_DRAFTER_NONE, DREY_POLICY_NONE, 2, &p);
    MUST(drey_session_open, &p.session, e);
    for (int i = 0; i < 8; i++) {
        turn t = {.n = 9, .n_predict = 40, .break_read = -1, .resets = true};
        t.sampling = (drey_sampling){.temperature = 0.8f, .top_p = 1, .seed = (uint64_t)i};
        for (int32_t j = 0; j < t.n; j++)
            t.ids[j] = 1 + rng_below(&r, 250);
        play(&p, &t);
        for (int32_t j = 0; j < p.n_ids; j++)
            count[p.ids[j] & 1023]++;
    }
    for (int32_t i = 1; i < 1024; i++)
        most = count[i] > count[most] ? i : most;
    drey_session_close(&p.session);
    drey_engine_close(&e);
    return most;
}

static int make_models(void **state)
{
    temp_dir();
    toy_options toy = toy_usual();
    toy.n_embd = 128;
    toy.n_ff = 256;
    target = make_model("before.gguf", &toy, -1);
    int32_t eos = frequent_token();
    drey_model_close(&target);
    target = make_model("target.gguf", &toy, eos);
    draft[EQUAL] = make_model("equal.gguf", &toy, eos);
    toy.n_layers = 2;
    draft[SHORT] = make_model("short.gguf", &toy, eos);
    toy.n_layers = 3;
    toy.noise = 0.005f;
    toy.noise_seed = 3;
    draft[NOISY] = make_model("noisy.gguf", &toy, eos);
    return 0;
}

static int close_models(void **state)
{
    drey_model_close(&target);
    for (int i = 0; i < N_DRAFTS; i++)
        drey_model_close(&draft[i]);
    temp_dir_remove();
    return 0;
}

TEST_GROUP(make_models, close_models)
