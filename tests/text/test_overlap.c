/* Drafting while a verification waits for weights: every step leaves tree and caches in order, also
 * one that fails, and what was drafted ahead is kept where the text goes there.
 * test_matrix.c has texts with slow reads under each policy. */
#include "draft/model_drafter.h"
#include "session/session.h"
#include "state/cache.h"
#include "support/faults/disk.h"
#include "support/toy_models.h"
#include "support/writing.h"

#ifdef TESTS_SANITIZED
enum { N_TEXT = 16, SLOWER = 10 }; /* computing is slower by so much, and so are reads */
#else
enum { N_TEXT = 40, SLOWER = 1 };
#endif
enum { N_PROMPT = 9, MOST_SESSIONS = 3 };

static const int32_t prompt[N_PROMPT] = {72, 101, 108, 108, 111, 32, 116, 104, 101};

/* Faults, and the slowness of the disk. */
typedef struct trouble {
    disk disk;
    int32_t n_slices, n_failed;
} trouble;

/* ---- A drafter that counts its slices, and may fail in them ---- */

static trouble *present;
static bool was_ready = true; /* result of the last look at a pass */

bool __real_pass_ready(const model_pass *p);
bool __wrap_pass_ready(const model_pass *p);
bool __wrap_pass_ready(const model_pass *p)
{
    return was_ready = __real_pass_ready(p);
}

static int32_t fails_every;
static drey_engine *engine_under_test; /* engine whose session was opened last */

static drey_status counted_advance(drafter *d, token_tree *tree, int64_t until_ns, bool *done,
                                   drey_error *err)
{
    int32_t n = until_ns ? ++present->n_slices : 1;
    /* A slice begins after a look at the pass that could not continue: verification is not held up
     * by drafting for longer than one slice (EdgeLLM III-D). */
    assert_true(until_ns == 0 || !was_ready);
    if (fails_every && n % fails_every == 0) {
        d->class->steps->give_up(d);
        FAIL(err, DREY_ERR_IO, "the draft cannot be read");
    }
    return drafter_model_class.steps->advance(d, tree, until_ns, done, err);
}

/* Checks that the operands of any session's step do not change under it. */
static void settled_reroot(drafter *d, const token_tree *tree, const int32_t *path, int32_t n_path,
                           int32_t next, const int32_t *moved)
{
    for (int32_t i = 0; i < engine_under_test->n_sessions; i++)
        assert_int_equal(engine_under_test->sessions[i]->unfinished.n_nodes, 0);
    drafter_model_class.reroot(d, tree, path, n_path, next, moved);
}

static drafter_class counted;
static drafter_steps counted_steps;

static drey_session *open_session(drey_engine *e, trouble *t)
{
    drey_session *s;
    MUST(drey_session_open, &s, e);
    present = t;
    engine_under_test = e;
    counted = drafter_model_class;
    counted_steps = *counted.steps;
    counted_steps.advance = counted_advance;
    counted.steps = &counted_steps;
    counted.reroot = settled_reroot;
    s->drafter->class = &counted;
    return s;
}

/* ---- Writing ---- */

typedef struct setting {
    uint64_t without;
    int32_t n_threads, n_sessions;
    drey_policy policy;
    float ahead; /* 0: as is usual */
} setting;

/* The first calibrates, so that little is worth drafting ahead; the other finds much to do. */
static const drey_policy policies[] = {DREY_POLICY_OPTIMAL, DREY_POLICY_SPECINFER};
enum { N_POLICIES = sizeof policies / sizeof *policies };

/* A third is pinned, and the ring holds a few reads of the many that a pass has: it starves,
 * however slow the drafting before it was. */
static drey_engine *open_engine(const setting *s, trouble *t)
{
    drey_engine_options o = toys_options(DREY_DRAFTER_MODEL, N_PROMPT + N_TEXT + 1, s->n_threads);
    o.policy = s->policy;
    o.n_sessions = s->n_sessions;
    o.read_bytes = 64 << 10;
    o.io = DREY_IO_PREAD; /* each read is delayed by itself */
    const drey_research research = {.without = s->without, .ahead = s->ahead};
    o.research = &research;
    o.memory_bytes = smallest_budget(&o, NULL) + (4 << 20);
    const engine_hooks hooks = {
        .set_share = true, .share = 0.3, .fault = disk_read, .fault_user = &t->disk};
    drey_engine *e = NULL;
    MUST(engine_open, &e, &o, &hooks);
    return e;
}

/* Each node that is expanded has a row of the draft's cache, and no row is anybody else's. */
static void check_session(const drey_session *s)
{
    assert_true(session_is_valid(s));
    if (s->state != SESSION_DECODE)
        return;
    int32_t n_expanded = 0, chain = 0;
    for (int32_t i = 0; i < s->tree.n_nodes; i++) {
        const tree_node *node = &s->tree.nodes[i];
        assert_true(!node->submitted && !node->provisional);
        assert_int_equal(node->expanded, ((const model_drafter *)s->drafter)->row_of[i] >= 0);
        n_expanded += node->expanded;
    }
    assert_true(((const model_drafter *)s->drafter)->n_nodes == 0 &&
                cache_is_valid(&s->draft_cache));
    chain = n_expanded ? ((const model_drafter *)s->drafter)->row_of[0]
                       : cache_pending(&s->draft_cache);
    assert_int_equal(cache_pending(&s->draft_cache), n_expanded + chain);
}

/* The prompts differ in their first token. */
static const int32_t *prompt_of(int32_t session)
{
    static int32_t ids[N_PROMPT];
    memcpy(ids, prompt, sizeof ids);
    ids[0] += session;
    return ids;
}

/* Writes texts in shared passes until all have ended. */
static void write_texts(const setting *how, trouble *t, writing *texts)
{
    drey_engine *e = open_engine(how, t);
    drey_session *s[MOST_SESSIONS];
    drey_error err = {0};
    int32_t left = how->n_sessions;
    for (int32_t i = 0; i < how->n_sessions; i++) {
        texts[i] = (writing){.n_ids = 0};
        drey_generate_options g = writing_into(&texts[i], N_TEXT);
        s[i] = open_session(e, t);
        MUST(drey_session_sync, s[i], prompt_of(i), N_PROMPT, NULL);
        MUST(drey_session_begin, s[i], &g, &texts[i].stats);
    }
    for (int step = 0; left > 0; step++) {
        assert_true(step < 100 * N_TEXT);
        drey_status status = drey_engine_step(e, &left, &err);
        t->n_failed += status != DREY_OK;
        for (int32_t i = 0; i < how->n_sessions; i++)
            check_session(s[i]);
    }
    for (int32_t i = 0; i < how->n_sessions; i++) {
        drey_session_speculation(s[i], &texts[i].speculation);
        drey_session_close(&s[i]);
    }
    drey_engine_close(&e);
}

static void same_ids(const writing *got, const writing *want, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        must_be_same_ids(&want[i], &got[i], "drafted ahead");
}

/* Writes the texts of the target alone, in memory. */
static void plain(int32_t n, writing *texts)
{
    const drey_engine_options o = plain_options(target, N_PROMPT + N_TEXT + 1, 1);
    for (int32_t i = 0; i < n; i++)
        writing_run(&texts[i], &o, -1, prompt_of(i), N_PROMPT, N_TEXT, NULL);
}

/* ---- Tests ---- */

/* The draft's workspace is shared: each has a step, then the next one. */
TEST(sessions_in_turn)
{
    static writing want[MOST_SESSIONS], got[MOST_SESSIONS];
    int64_t kept = 0, lost = 0;
    plain(MOST_SESSIONS, want);
    /* What is drafted by the end of a pass depends on the machine's speed and load. */
    for (int round = 0; round < 20 * N_POLICIES && (round < N_POLICIES || kept == 0 || lost == 0);
         round++) {
        trouble slow = {.disk = {.slow_of = 1, .slow_us = 600 * SLOWER * (round / N_POLICIES + 1)}};
        const setting how = {0, 2, MOST_SESSIONS, policies[round % N_POLICIES], 0};
        write_texts(&how, &slow, got);
        same_ids(got, want, MOST_SESSIONS);
        for (int i = 0; i < MOST_SESSIONS; i++) {
            kept += got[i].speculation.provisional_kept;
            lost += got[i].speculation.provisional_lost;
            assert_true(got[i].speculation.hidden_share > 0);
        }
    }
    assert_true(kept > 0 && lost > 0);
}

TEST(failing_reads)
{
    static writing want, got;
    plain(1, &want);
    for (int i = 0; i < N_POLICIES; i++) {
        const setting how = {0, 1, 1, policies[i], 0};
        trouble fails = {.disk = {.slow_of = 1, .slow_us = 300 * SLOWER, .fail_of = 499}};
        write_texts(&how, &fails, &got);
        same_ids(&got, &want, 1);
        assert_true(fails.n_failed > 0);
    }
}

/* A draft that fails in the gaps costs no token, and no error. */
TEST(a_failing_draft)
{
    static writing want, got;
    trouble slow = {.disk = {.slow_of = 1, .slow_us = 600 * SLOWER}};
    const setting how = {0, 1, 1, DREY_POLICY_SPECINFER, 0};
    plain(1, &want);
    fails_every = 7;
    write_texts(&how, &slow, &got);
    fails_every = 0;
    same_ids(&got, &want, 1);
    assert_true(slow.n_slices > 2 * 7 && slow.n_failed == 0);
}

/* What the text may hardly reach is drafted if asked for, and what is not certain is left if asked
 * for. The papers' own policy asks for the first. */
TEST(as_far_ahead_as_asked)
{
    static const struct {
        drey_policy policy;
        float ahead;
        bool drafts;
    } cases[] = {{DREY_POLICY_EDGELLM, 0.001f, true},
                 {DREY_POLICY_LLMCAD, 0, true},
                 {DREY_POLICY_LLMCAD, 1, false},
                 {DREY_POLICY_SPECINFER, 1, false}};
    static writing want, got;
    plain(1, &want);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ahead = 0;
        for (int round = 1; round <= 20 && (round == 1 || (ahead == 0 && cases[i].drafts));
             round++) {
            trouble slow = {.disk = {.slow_of = 1, .slow_us = 600 * SLOWER * round}};
            const setting how = {0, 1, 1, cases[i].policy, cases[i].ahead};
            write_texts(&how, &slow, &got);
            same_ids(&got, &want, 1);
            ahead += got.speculation.provisional_kept + got.speculation.provisional_lost;
        }
        assert_int_equal(ahead > 0, cases[i].drafts);
    }
}

/* The draft reads the prompt while the target waits for weights to read it. */
TEST(the_prompt)
{
    enum { N_LONG = N_TEXT + 4 };
    for (int without = 0; without < 2; without++) {
        trouble slow = {.disk = {.slow_of = 1, .slow_us = 600 * SLOWER}};
        static writing t;
        const setting how = {without ? DREY_WITHOUT(DREY_PART_PROVISIONAL) : 0, 1 + without, 1,
                             DREY_POLICY_OPTIMAL, 0};
        drey_engine *e = open_engine(&how, &slow);
        drey_session *s = open_session(e, &slow);
        int32_t ids[N_LONG];
        for (int32_t i = 0; i < N_LONG; i++)
            ids[i] = prompt[i % N_PROMPT];
        t.n_ids = 0;
        drey_generate_options g = writing_into(&t, 4);
        MUST(drey_session_sync, s, ids, N_LONG, NULL);
        MUST(drey_session_begin, s, &g, NULL);
        bool done;
        MUST(drey_session_step, s, &done);
        assert_int_equal(s->state, SESSION_PROMPT);
        assert_false(s->unfinished.reading);
        assert_int_equal(cache_end(&s->draft_cache) > 0, !without);
        while (!done)
            MUST(drey_session_step, s, &done);
        drey_session_close(&s);
        drey_engine_close(&e);
    }
}

static int open_models(void **state)
{
    toy_options toy = toy_default();
    toy.architecture = "qwen2";
    toy.n_embd = 256;
    toy.n_ff = 2048;
    temp_dir();
    target = toy_open("target.gguf", &toy);
    toy.n_ff = 256; /* shares attention with the target: often right, often not */
    draft = toy_open("draft.gguf", &toy);
    return 0;
}

TEST_GROUP(open_models, toys_close)
