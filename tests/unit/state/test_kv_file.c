/* Keys and values that memory has no room for: whatever goes to the file, when, and how it comes
 * back, texts are those of a cache that has room for all. Of every architecture with a decoder
 * alone, with windows, softcaps and sinks, with drafts, in chunks, of several sessions, of texts
 * that are cut and continued; when reads fail and when the disk is full. */
#include "session/session.h"
#include "state/kv.h"
#include "support/faults/disk.h"
#include "support/logit_toys.h"
#include "support/toy_models.h"
#include "support/writing.h"

enum { N_CONTEXT = 1000, N_PROMPT = 700, N_TEXT = 60 };

static int32_t prompt[N_PROMPT];

/* Two words, over and over, with changes: something for lookup. */
static int make_prompt(void **state)
{
    rng r = rng_from(3);
    for (int i = 0; i < N_PROMPT; i++)
        prompt[i] = rng_below(&r, 6) && i > 40 ? prompt[i - 40] : rng_below(&r, 290);
    return toys_open(NULL);
}

/* ---- Engines with a file ---- */

/* The same options with the least window, or that of so many bytes. */
static drey_engine_options with_file(const drey_engine_options *o, uint64_t bytes)
{
    drey_engine_options away = *o;
    away.kv_folder = temp_path(".");
    away.kv_memory_bytes = bytes ? bytes : 1;
    return away;
}

static const engine_hooks usual = {.untimed = true, .kv_in_memory = true};

/* Something was written, and read again: otherwise a test would compare nothing. */
static void must_have_been_away(const drey_engine *e)
{
    stream_counters reads;
    kv_file_count(&e->target.kv_file, &reads);
    assert_true(e->plan.window > 0 && e->plan.window < N_PROMPT);
    assert_true(e->target.kv_file.written_bytes > 0 && reads.read_bytes > 0);
}

/* The text of these options is that of the plain ones. */
static void must_write_the_same(const drey_engine_options *o, const engine_hooks *hooks,
                                uint64_t bytes, const char *what)
{
    static writing want, got;
    drey_engine_options plain = *o, away = with_file(o, bytes);
    plain.drafter = DREY_DRAFTER_NONE;
    plain.draft = NULL;
    plain.prompt_chunk = 0;
    writing_run_tuned(&want, &plain, &usual, prompt, N_PROMPT, N_TEXT, NULL);
    assert_int_equal(want.status, DREY_OK);
    memset(&got, 0, sizeof got);
    engine_place p = place_open(&away, hooks);
    writing_continue(&got, p.session[0], prompt, N_PROMPT, N_TEXT, NULL);
    must_have_been_away(p.engine);
    place_close(&p);
    must_be_same(&want, &got, what);
}

/* ---- Texts ---- */

TEST(drafts_and_chunks)
{
    static const drey_drafter drafters[] = {DREY_DRAFTER_NONE, DREY_DRAFTER_LOOKUP,
                                            DREY_DRAFTER_MODEL};
    static const int32_t chunks[] = {0, 1, 61, 64, 250};
    for (size_t i = 0; i < 3 * sizeof chunks / sizeof *chunks; i++) {
        char what[80];
        if (chunks[i / 3] == 1 && i % 3 > 0) /* 700 passes */
            continue;
        drey_engine_options o = toys_options(drafters[i % 3], N_CONTEXT, 1 + (int32_t)(i % 2));
        o.prompt_chunk = chunks[i / 3];
        snprintf(what, sizeof what, "drafter %d, chunks of %d", drafters[i % 3], chunks[i / 3]);
        must_write_the_same(&o, &usual, i % 4 ? 0 : 150000, what);
    }
}

TEST(streamed_weights_and_kinds_of_reads)
{
    for (drey_io io = DREY_IO_AUTO; io <= DREY_IO_BUFFERED; io++) {
        disk slow = {.slow_of = 3, .slow_us = 300};
        const engine_hooks hooks = {.untimed = true,
                                    .kv_in_memory = true,
                                    .set_share = true,
                                    .share = 0.4,
                                    .fault = disk_read,
                                    .fault_user = &slow};
        drey_engine_options o = toys_options(DREY_DRAFTER_LOOKUP, N_CONTEXT, 2);
        if (io == DREY_IO_URING) /* which a kernel may refuse */
            continue;
        o.io = io;
        must_write_the_same(&o, &hooks, 0, drey_io_name(io));
    }
}

static void check_toy(const char *name, const toy_options *toy, drey_kv kv)
{
    char path[64];
    snprintf(path, sizeof path, "%s.gguf", name);
    drey_model *m = toy_open(path, toy);
    drey_engine_options o = plain_options(m, N_CONTEXT, 2);
    o.drafter = DREY_DRAFTER_LOOKUP;
    o.kv = kv;
    must_write_the_same(&o, &usual, 0, name);
    drey_model_close(&m);
}

/* Their windows are shorter than what stays in memory; next to the layers that see all. */
TEST(architectures)
{
    for (int i = 0; i < FIRST_T5_TOY; i++) {
        toy_options toy;
        const char *name = arch_toy(i, &toy);
        bool local = !strcmp(name, "toy-mistral") || strstr(name, "local") || strstr(name, "phi3");
        toy.n_context = N_CONTEXT;
        if (!local && !strstr(name, "gpt2")) /* whose positions end */
            check_toy(name, &toy, DREY_KV_F16);
    }
}

/* Attention's keys and values are in the file, the other layers' states in memory. */
TEST(states_next_to_the_file)
{
    toy_options toy;
    const char *name = family_toy(N_FAMILY_TOYS - 1, &toy);
    toy.n_context = N_CONTEXT;
    check_toy(name, &toy, DREY_KV_F16);
}

/* Windows that begin in the file. */
TEST(windows_in_the_file)
{
    static const toy_key keys[] = {{"attention.sliding_window", GGUF_U32, 300, NULL}, {0}};
    static const char *const names[] = {"llama", "gemma2", "gemma3", "phi3", "gpt-oss"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        toy_options toy = toy_default();
        toy.architecture = names[i];
        toy.keys = keys;
        toy.head_dim = 32;
        toy.type = TYPE_F16;
        toy.tied = i == 1;
        if (i == 4)
            toy.experts = (toy_experts){.n = 8, .n_used = 3, .n_ff = 64};
        check_toy(names[i], &toy, i % 2 ? DREY_KV_Q8_0 : DREY_KV_F16);
    }
}

/* ---- Sessions ---- */

enum { N_SESSIONS = 3 };

static void write_together(engine_place *p, writing *texts)
{
    for (int i = 0; i < N_SESSIONS; i++) {
        drey_generate_options g = writing_into(&texts[i], N_TEXT + i);
        MUST(drey_session_sync, p->session[i], prompt + i, (size_t)(N_PROMPT - 90 * i), NULL);
        MUST(drey_session_begin, p->session[i], &g, NULL);
    }
    for (int32_t n_writing = 1; n_writing > 0;)
        MUST(drey_engine_step, p->engine, &n_writing);
}

TEST(sessions_share_passes)
{
    static writing want[N_SESSIONS], got[N_SESSIONS];
    drey_engine_options o = toys_options(DREY_DRAFTER_LOOKUP, N_CONTEXT, 2);
    o.n_sessions = N_SESSIONS;
    drey_engine_options away = with_file(&o, 0);
    engine_place plain = place_open(&o, &usual), p = place_open(&away, &usual);
    for (int round = 0; round < 2; round++) {
        memset(want, 0, sizeof want);
        memset(got, 0, sizeof got);
        write_together(&plain, want);
        write_together(&p, got);
        for (int i = 0; i < N_SESSIONS; i++)
            must_be_same(&want[i], &got[i], "a session among others");
    }
    must_have_been_away(p.engine);
    place_close(&plain);
    place_close(&p);
}

/* Cancels a session in the middle of a pass: at a read of the file. */
typedef struct canceller {
    _Atomic(drey_session *) session; /* NULL: not yet */
    _Atomic int32_t left;            /* reads until then */
} canceller;

static int cancel_at_a_read(void *user, int32_t part, uint64_t offset, uint32_t n_bytes)
{
    canceller *c = user;
    drey_session *s = c->session;
    if (s && atomic_fetch_sub(&c->left, 1) == 1)
        drey_session_cancel(s);
    return disk_read(&(disk){.slow_of = 2, .slow_us = 200}, part, offset, n_bytes);
}

/* Its rows leave the pass between two layers, and what was asked for is asked for again. */
TEST(a_session_leaves_a_pass)
{
    static writing want[N_SESSIONS], got[N_SESSIONS];
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, N_CONTEXT, 2);
    o.n_sessions = N_SESSIONS;
    drey_engine_options away = with_file(&o, 0);
    for (int32_t at = 1; at < 40; at += 6) {
        canceller c = {.left = at};
        engine_hooks hooks = usual;
        hooks.fault = cancel_at_a_read;
        hooks.fault_user = &c;
        engine_place plain = place_open(&o, &usual), p = place_open(&away, &hooks);
        memset(want, 0, sizeof want);
        memset(got, 0, sizeof got);
        write_together(&plain, want);
        for (int i = 0; i < N_SESSIONS; i++) {
            drey_generate_options g = writing_into(&got[i], N_TEXT + i);
            MUST(drey_session_sync, p.session[i], prompt + i, (size_t)(N_PROMPT - 90 * i), NULL);
            MUST(drey_session_begin, p.session[i], &g, NULL);
        }
        int32_t n_writing = N_SESSIONS, gone = at / 6 % N_SESSIONS;
        for (int step = 0; n_writing > 0; step++) {
            if (step == 7)
                c.session = p.session[gone];
            MUST(drey_engine_step, p.engine, &n_writing);
        }
        assert_true(got[gone].n_ids < want[gone].n_ids);
        for (int i = 0; i < N_SESSIONS; i++)
            if (i != gone)
                must_be_same(&want[i], &got[i], "next to one that left");
        must_have_been_away(p.engine);
        place_close(&plain);
        place_close(&p);
    }
}

/* A session that is closed leaves its place to the next one. */
TEST(a_place_is_used_again)
{
    static writing want, got;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, N_CONTEXT, 1);
    drey_engine_options away = with_file(&o, 0);
    engine_place plain = place_open(&o, &usual), p = place_open(&away, &usual);
    for (int i = 0; i < 3; i++) {
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        writing_continue(&want, plain.session[0], prompt + i, 400, 9, NULL);
        writing_continue(&got, p.session[0], prompt + i, 400, 9, NULL);
        must_be_same(&want, &got, "a new session");
        drey_session_close(&plain.session[0]);
        drey_session_close(&p.session[0]);
        MUST(drey_session_open, &plain.session[0], plain.engine);
        MUST(drey_session_open, &p.session[0], p.engine);
    }
    place_close(&plain);
    place_close(&p);
}

/* Cuts both at the same place, which may be far in the file, adds ids, and writes. */
TEST(texts_are_cut_and_continued)
{
    static writing want, got;
    rng r = rng_from(11);
    drey_engine_options o = toys_options(DREY_DRAFTER_LOOKUP, N_CONTEXT, 2);
    drey_engine_options away = with_file(&o, 0);
    engine_place plain = place_open(&o, &usual), p = place_open(&away, &usual);
    int n_far = 0, n_back = 0;
    for (int i = 0; i < 60; i++) {
        drey_session *a = plain.session[0], *b = p.session[0];
        int32_t n = a->n_timeline, keep = n ? rng_below(&r, n + 1) : 0, most = N_CONTEXT - keep;
        if (i % 3 == 0)
            keep = n - rng_below(&r, n < 140 ? n + 1 : 140);
        if (i % 5 == 4 && keep > 0) { /* twice, before anything is read again */
            MUST(drey_session_truncate, b, (size_t)keep);
            keep = rng_below(&r, keep + 1);
        }
        most = N_CONTEXT - keep - N_TEXT;
        n_far += keep < kv_of(&b->target_cache)->n_disk;
        MUST(drey_session_truncate, a, (size_t)keep);
        MUST(drey_session_truncate, b, (size_t)keep);
        n_back += kv_of(&b->target_cache)->n_back > kv_of(&b->target_cache)->n_disk;
        int32_t n_more = most <= 1 ? 0 : rng_below(&r, most < 400 ? most : 400);
        if (keep + n_more == 0)
            continue;
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        writing_continue(&want, a, prompt + i, (size_t)n_more, 1 + rng_below(&r, 20), NULL);
        writing_continue(&got, b, prompt + i, (size_t)n_more, want.n_ids, NULL);
        must_be_same(&want, &got, "a text that was cut");
        assert_true(session_is_valid(b));
    }
    print_message("%d cuts in the file, %d times something was read back\n", n_far, n_back);
    assert_true(n_far > 5 && n_back > 5);
    must_have_been_away(p.engine);
    place_close(&plain);
    place_close(&p);
}

/* ---- Faults ---- */

/* Fault from a token on, or during the prompt (0), until the failure was seen. */
typedef struct fault_case {
    writing text; /* first: what callbacks get */
    int32_t fail_at;
    bool full;
    disk *disk;
} fault_case;

static void break_it(fault_case *c, bool breaks)
{
    if (c->full)
        disk_set_full(breaks);
    else
        atomic_store(&c->disk->n_broken, breaks ? INT32_MAX : 0);
}

static bool keep_id(void *user, int32_t id)
{
    fault_case *c = user;
    bool goes_on = writing_keep_id(&c->text, id);
    if (c->text.n_ids == c->fail_at)
        break_it(c, true);
    return goes_on;
}

static void check_fault(bool full, int32_t fail_at)
{
    static writing want;
    static fault_case c;
    static disk d;
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, N_CONTEXT, 2), away = with_file(&o, 0);
    o.io = away.io = DREY_IO_PREAD;
    memset(&d, 0, sizeof d);
    c = (fault_case){.fail_at = fail_at, .full = full, .disk = &d};
    writing_run_tuned(&want, &o, &usual, prompt, N_PROMPT, 300, NULL);
    engine_hooks hooks = usual;
    hooks.fault = disk_read;
    hooks.fault_user = &d;
    engine_place p = place_open(&away, &hooks);
    drey_session *s = p.session[0];
    drey_generate_options g = writing_into(&c.text, 300);
    drey_error err = {0};
    bool done = false;
    int n_failed = 0;
    g.on_token = keep_id;
    MUST(drey_session_sync, s, prompt, N_PROMPT, NULL);
    MUST(drey_session_begin, s, &g, NULL);
    MUST(drey_session_step, s, &done); /* the weights are there */
    if (fail_at == 0)
        break_it(&c, true);
    while (!done) {
        if (drey_session_step(s, &done, &err) == DREY_OK)
            continue;
        assert_int_equal(err.code, DREY_ERR_IO);
        assert_non_null(strstr(err.message, full ? "cannot be written" : "cannot be read back"));
        assert_non_null(strstr(err.message, "folder"));
        assert_true(session_is_valid(s));
        if (n_failed++ == 1) /* it stays broken for a step */
            break_it(&c, false);
    }
    break_it(&c, false);
    assert_true(n_failed == 2);
    must_have_been_away(p.engine);
    place_close(&p);
    must_be_same(&want, &c.text, full ? "a full disk" : "reads that failed");
}

TEST(reads_fail)
{
    check_fault(false, 0);
    check_fault(false, 20);
}

TEST(the_disk_is_full)
{
    check_fault(true, 0);
    check_fault(true, 20);
}

/* ---- What cannot be ---- */

TEST(refusals)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_NONE, N_CONTEXT, 1), away = with_file(&o, 0);
    must_refuse_engine(&(drey_engine_options){.target = o.target,
                                              .n_context = N_CONTEXT,
                                              .drafter = DREY_DRAFTER_SELF,
                                              .memory_bytes = o.memory_bytes,
                                              .kv_folder = away.kv_folder,
                                              .kv_memory_bytes = 1},
                       &usual, DREY_ERR_USAGE, "needs all keys and values in memory");
    away.drafter = DREY_DRAFTER_LOOKUP;
    away.exit = DREY_EXIT_EXACT;
    must_refuse_engine(&away, &usual, DREY_ERR_USAGE, "early exits need all keys and values");
    away = with_file(&o, 0);
    away.kv_folder = "/proc";
    must_refuse_engine(&away, NULL, DREY_ERR_IO, "cannot make a file in /proc");
    away.kv_folder = temp_path("nowhere");
    must_refuse_engine(&away, NULL, DREY_ERR_IO, "check its name and permissions");
    away = with_file(&o, 0);
    engine_place p = place_open(&away, &usual);
    REFUSED(DREY_ERR_UNSUPPORTED, "in a file cannot be saved", drey_session_save, p.session[0],
            temp_path("saved"), NULL, 0);
    place_close(&p);
}

TEST_GROUP(make_prompt, toys_close)
