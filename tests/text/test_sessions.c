/* Sessions that continue, alone and together: random texts, with a draft or without, in memory and
 * streamed, are what the target alone writes; support/faults/company.h plays the first. */
#include <fenv.h>

#include "session/session.h"
#include "support/faults/company.h"

enum { N_CONTEXT = COMPANY_CONTEXT };
#ifdef TESTS_SANITIZED
enum { N_STEPS = 40 };
#else
enum { N_STEPS = 150 };
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

static drey_engine_options options_of(drey_drafter kind, drey_model *with)
{
    drey_engine_options o = plain_options(target, N_CONTEXT, 1);
    o.draft = kind == DREY_DRAFTER_MODEL ? with : NULL;
    o.drafter = kind;
    o.prompt_chunk = 9;
    o.read_bytes = 64 << 10;
    return o;
}

/* ---- Company ---- */

/* A company that reads from a faulty disk; share above 1: all in memory. */
static void open_company(company *c, int32_t n, drey_drafter kind, drey_model *with,
                         drey_policy policy, double share)
{
    drey_engine_options o = options_of(kind, with);
    const engine_hooks hooks = {
        .set_share = share <= 1, .share = share, .fault = company_read, .fault_user = c};
    o.policy = policy;
    o.n_sessions = n;
    o.n_threads = share == 0 ? 2 : 1;
    MUST(company_open, c, &o, &hooks);
}

TEST(test_company)
{
    static const int32_t sizes[] = {1, 2, 8};
    static const double shares[] = {2, 0.4, 0};
    static const drey_drafter kinds[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_LOOKUP,
                                         DREY_DRAFTER_MODEL};
    static company c;
    company_counts n = {0};
    const drey_engine_options o = options_of(DREY_DRAFTER_NONE, NULL);
    drey_session *alone = open_alone(&o, NULL);
    for (int at = 0; at < 36; at++) {
        int i = at % 3, j = at / 3 % 3, k = at / 9 < 3 ? at / 9 : 2;
        drey_policy policy = kinds[k] == DREY_DRAFTER_NONE ? DREY_POLICY_NONE
                             : (i + j + at / 27) % 2       ? DREY_POLICY_SEQUENCE
                                                           : DREY_POLICY_OPTIMAL;
        c = company_of(alone, (uint64_t)at + 1);
        c.cancel_of = at % 2 ? 50 : 0;
        open_company(&c, sizes[i], kinds[k], draft[at % N_DRAFTS], policy, shares[j]);
        for (int play = 0; play < N_STEPS; play++)
            company_play(&c);
        company_close(&c);
        company_counts_add(&n, &c.counts);
    }
    close_alone(&alone);
    print_message("%d texts, %d of them begun again in a step; %d shared passes, %d that failed, "
                  "%d that nobody wanted; %d cancels; ends: %d stop, %d length, %d cancelled, %d "
                  "error\n",
                  n.n_texts, n.n_again, n.n_shared, n.n_failed, n.n_left, n.n_cancelled,
                  n.n_ends[0], n.n_ends[1], n.n_ends[2], n.n_ends[3]);
    assert_true(n.n_texts > 3 * N_STEPS && n.n_shared > 6 * N_STEPS);
    assert_true(n.n_failed > 0 && n.n_cancelled > 9 && n.n_again > 0 && n.n_left > 0);
    assert_true(n.n_ends[DREY_FINISH_STOP] > 0 && n.n_ends[DREY_FINISH_LENGTH] > 0 &&
                n.n_ends[DREY_FINISH_INTERRUPTED] > 0 && n.n_ends[DREY_FINISH_ERROR] > 0);
}

/* What one session asks wrongly is nothing to the others, and no more sessions open than the plan
 * has memory for. */
TEST(test_wrong_company)
{
    static company c;
    drey_error err = {0};
    drey_session *third = NULL;
    int32_t n_writing = 0;
    const int32_t bad[] = {1, 2, 100000};
    const drey_engine_options o = options_of(DREY_DRAFTER_NONE, NULL);
    drey_session *alone = open_alone(&o, NULL);
    c = company_of(alone, 1);
    open_company(&c, 2, DREY_DRAFTER_LOOKUP, NULL, DREY_POLICY_OPTIMAL, 0.4);
    member *good = &c.member[0], *wrong = &c.member[1];
    MUST(drey_session_open, &good->session, c.at.engine);
    MUST(drey_session_open, &wrong->session, c.at.engine);
    good->company = &c;
    assert_int_equal(drey_session_open(&third, c.at.engine, &err), DREY_ERR_USAGE);
    MUST(drey_engine_step, c.at.engine, &n_writing); /* nobody writes */
    assert_int_equal(n_writing, 0);
    do
        company_begin(&c, good);
    while (good->n_predict < 12 || good->text.refuse_at || good->cancel_at || good->stop ||
           good->with_end);
    do {
        MUST(drey_engine_step, c.at.engine, &n_writing);
        drey_generate_options g = writing_into(&wrong->text, 3);
        assert_int_equal(drey_session_begin(wrong->session, &g, NULL, &err), DREY_ERR_USAGE);
        assert_int_equal(drey_session_sync(wrong->session, bad, 3, NULL, &err), DREY_ERR_USAGE);
        if (n_writing)
            assert_int_equal(drey_session_begin(good->session, &g, NULL, &err), DREY_ERR_USAGE);
    } while (n_writing);
    assert_int_equal(good->text.stats.finish, DREY_FINISH_LENGTH);
    company_close(&c);
    close_alone(&alone);
}

/* ---- The timeline set, cut, and what may not be done ---- */

static int64_t prompt_rows(const drey_engine *e)
{
    trace_sums sums;
    trace_sum(&e->trace, &sums);
    return sums.arg[TRACE_PROMPT];
}

/* Writes from where the session is, into *w. */
static void write_some(drey_session *s, int32_t n, writing *w)
{
    w->n_ids = 0;
    writing_continue(w, s, NULL, 0, n, NULL);
    assert_int_equal(w->n_ids, n);
}

/* Lists that begin alike: what they share is not computed again, and the text is a fresh one's. */
TEST(test_sync)
{
    rng r = rng_from(3);
    static writing got, want;
    drey_engine_options o = options_of(DREY_DRAFTER_MODEL, draft[SHORT]);
    engine_place p = place_open(&o, &(engine_hooks){.set_share = true, .share = 0.5});
    o = options_of(DREY_DRAFTER_NONE, NULL);
    engine_place plain = place_open(&o, NULL);
    drey_session *s = p.session[0];
    int32_t ids[N_CONTEXT], n_total_kept = 0;
    for (int i = 0; i < 20; i++) {
        int32_t n_before = s->n_timeline, same = rng_below(&r, n_before + 1);
        int32_t n = same + rng_below(&r, 20);
        n = n < N_CONTEXT - 25 ? n : N_CONTEXT - 25;
        n = n ? n : 1;
        same = same < n ? same : n;
        memcpy(ids, s->timeline, (size_t)same * sizeof *ids);
        for (int32_t j = same; j < n; j++)
            ids[j] = 1 + rng_below(&r, 250);
        while (same < n && same < n_before && ids[same] == s->timeline[same])
            same++;
        size_t n_kept;
        MUST(drey_session_sync, s, ids, (size_t)n, &n_kept);
        assert_int_equal(s->n_timeline, n);
        int32_t known = n_before ? n_before - 1 : 0;
        known = same < known ? same : known;
        known = known < n ? known : n - 1;
        known = known < toy_kept(n_before - 1) ? toy_kept(known) : known;
        assert_true((int32_t)n_kept == known ||
                    (toy_states_are_rare() && (int32_t)n_kept < known && n_kept % KV_GROUP == 0));
        int64_t rows = prompt_rows(p.engine);
        write_some(s, 20, &got);
        int32_t n_read = n - (int32_t)n_kept;
        if (i > 0) /* the first pass loads */
            assert_int_equal(prompt_rows(p.engine) - rows, n_read > 1 ? n_read : 0);
        n_total_kept += (int32_t)n_kept;
        drey_session_reset(plain.session[0]);
        MUST(drey_session_sync, plain.session[0], ids, (size_t)n, NULL);
        write_some(plain.session[0], 20, &want);
        must_be_same_ids(&want, &got, "synced");
    }
    assert_true(n_total_kept > 100);
    place_close(&plain);
    place_close(&p);
}

TEST(test_truncate)
{
    static writing cut, fresh;
    rng r = rng_from(4);
    int32_t ids[40];
    drey_engine_options o = options_of(DREY_DRAFTER_LOOKUP, NULL);
    engine_place p = place_open(&o, NULL);
    drey_session *s = p.session[0];
    for (int i = 0; i < 40; i++)
        ids[i] = 1 + rng_below(&r, 250);
    for (int i = 0; i < 10; i++) {
        size_t n = 1 + (size_t)rng_below(&r, 40);
        MUST(drey_session_sync, s, ids, 40, NULL);
        write_some(s, 10, &cut);
        MUST(drey_session_truncate, s, n);
        assert_int_equal(s->n_timeline, n);
        assert_int_equal(cache_end(&s->target_cache), toy_kept((int32_t)n - 1));
        write_some(s, 10, &cut);
        drey_session_reset(s);
        MUST(drey_session_sync, s, ids, n, NULL);
        write_some(s, 10, &fresh);
        must_be_same_ids(&fresh, &cut, "cut");
    }
    place_close(&p);
}

TEST(test_misuse)
{
    drey_error err = {0};
    static writing w;
    bool done = false;
    int32_t ids[N_CONTEXT] = {5, 77, 140, -1};
    drey_engine_options o = options_of(DREY_DRAFTER_NONE, NULL);
    engine_place p = place_open(&o, NULL);
    drey_session *s = p.session[0];
    drey_generate_options g = writing_into(&w, 8);
    REFUSED(DREY_ERR_USAGE, "empty", drey_session_begin, s, &g, NULL);
    assert_int_equal(drey_session_step(s, &done, &err), DREY_OK);
    assert_true(done);
    assert_int_equal(drey_session_sync(s, ids, 3, NULL, &err), DREY_OK);
    REFUSED(DREY_ERR_USAGE, "-1 does not exist", drey_session_sync, s, ids, 4, NULL);
    REFUSED(DREY_ERR_USAGE, "not exist", drey_session_sync, s, ids, N_CONTEXT, NULL);
    ids[3] = 0;
    REFUSED(DREY_ERR_CONTEXT, "room", drey_session_sync, s, ids, N_CONTEXT, NULL);
    REFUSED(DREY_ERR_USAGE, "has 3", drey_session_truncate, s, 4);
    g.n_predict = 0;
    REFUSED(DREY_ERR_USAGE, "one token", drey_session_begin, s, &g, NULL);
    g.n_predict = 8;
    g.sampling.top_p = 7;
    REFUSED(DREY_ERR_USAGE, "top-p", drey_session_begin, s, &g, NULL);
    g.sampling.top_p = 1;
    assert_int_equal(s->n_timeline, 3);
    /* Errors have changed nothing, and a text that is being written is not harmed by them. */
    drey_statistics stats = {0};
    assert_int_equal(drey_session_begin(s, &g, &stats, &err), DREY_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(drey_session_step(s, &done, &err), DREY_OK);
    REFUSED(DREY_ERR_USAGE, "already", drey_session_begin, s, &g, NULL);
    REFUSED(DREY_ERR_USAGE, "already", drey_session_generate, s, ids, 1, &g, NULL);
    REFUSED(DREY_ERR_USAGE, "cannot be kept", drey_session_truncate, s, 100);
    while (!done)
        assert_int_equal(drey_session_step(s, &done, &err), DREY_OK);
    assert_int_equal(w.n_ids, 8);
    assert_int_equal(stats.finish, DREY_FINISH_LENGTH);
    assert_int_equal(stats.generated_tokens, 8);
    /* What cuts the timeline ends the text. */
    w.n_ids = 0;
    assert_int_equal(drey_session_begin(s, &g, &stats, &err), DREY_OK);
    assert_int_equal(drey_session_step(s, &done, &err), DREY_OK);
    assert_int_equal(drey_session_truncate(s, 2, &err), DREY_OK);
    assert_false(drey_session_is_writing(s));
    assert_int_equal(stats.finish, DREY_FINISH_INTERRUPTED);
    assert_int_equal(drey_session_begin(s, &g, NULL, &err), DREY_OK); /* and is closed with one */
    place_close(&p);
}

/* ---- Cancelling where nothing runs ---- */

TEST(test_cancel_between_calls)
{
    static writing w;
    const int32_t ids[] = {5, 77, 140};
    float logprob[3];
    drey_engine_options o = options_of(DREY_DRAFTER_LOOKUP, NULL);
    engine_place p = place_open(&o, NULL);
    for (int i = 0; i < 2; i++) {
        drey_session_cancel(p.session[0]);
        w.n_ids = 0;
        writing_continue(&w, p.session[0], ids, 3, 5, NULL);
        assert_int_equal(w.n_ids, 5);
        drey_session_cancel(p.session[0]);
        MUST(drey_session_score, p.session[0], ids, 3, logprob);
    }
    place_close(&p);
}

static drey_session *scored; /* it is cancelled after its last pass */
static float (*real_sum_exp)(const float *x, int64_t n, float top, float scale);

static float cancel_sum_exp(const float *x, int64_t n, float top, float scale)
{
    drey_session_cancel(scored);
    return real_sum_exp(x, n, top, scale);
}

/* Scoring is complete by then; the error still lets the caller leave out the windows to come. */
TEST(test_cancel_at_the_end_of_a_window)
{
    drey_error err = {0};
    const int32_t ids[] = {5, 77, 140};
    float logprob[3];
    drey_engine_options o = options_of(DREY_DRAFTER_NONE, NULL);
    engine_place p = place_open(&o, NULL);
    kernel_table kernels = *p.engine->kernels;
    real_sum_exp = kernels.sum_exp;
    kernels.sum_exp = cancel_sum_exp;
    scored = p.session[0];
    p.engine->kernels = &kernels;
    assert_int_equal(drey_session_score(scored, ids, 3, logprob, &err), DREY_ERR_CANCELLED);
    place_close(&p);
}

/* ---- The caller's floating-point environment ---- */

/* Rounding `before` opening, and `after`; writes ids and scores. */
static void write_rounding(int before, int after, int32_t n_threads, int32_t *ids, float *logprob)
{
    static writing w;
    const int32_t prompt[] = {5, 77, 140, 9};
    const drey_sampling sampling = {.temperature = 1, .top_p = 0.9f, .seed = 3};
    drey_engine_options o = options_of(DREY_DRAFTER_MODEL, draft[SHORT]);
    o.n_threads = n_threads;
    engine_place p = {.engine = NULL};
    assert_int_equal(fesetround(before), 0);
    MUST(drey_engine_open, &p.engine, &o);
    assert_int_equal(fegetround(), before);
    MUST(drey_session_open, &p.session[0], p.engine);
    assert_int_equal(fesetround(after), 0);
    w.n_ids = 0;
    writing_continue(&w, p.session[0], prompt, 4, 30, &sampling);
    assert_int_equal(w.n_ids, 30);
    memcpy(ids, w.ids, 30 * sizeof *ids);
    MUST(drey_session_score, p.session[0], w.ids, 30, logprob);
    assert_int_equal(fegetround(), after);
    place_close(&p);
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
    drey_engine_options o = options_of(DREY_DRAFTER_NONE, NULL);
    for (int i = 0; i < 8; i++) {
        static writing w;
        int32_t ids[9];
        const drey_sampling sampling = {.temperature = 0.8f, .top_p = 1, .seed = (uint64_t)i};
        for (int32_t j = 0; j < 9; j++)
            ids[j] = 1 + rng_below(&r, 250);
        writing_run(&w, &o, -1, ids, 9, 40, &sampling);
        for (int32_t j = 0; j < w.n_ids; j++)
            count[w.ids[j] & 1023]++;
    }
    for (int32_t i = 1; i < 1024; i++)
        most = count[i] > count[most] ? i : most;
    return most;
}

static int make_models(void **state)
{
    temp_dir();
    toy_options toy = toy_asked();
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
