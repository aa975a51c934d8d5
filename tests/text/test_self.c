/* A target that drafts for itself with the bits of its weights that are in memory: logits have the
 * same bits wherever planes lie, and where all bits are there every guess is right. Its texts are
 * in test_matrix.c. */
#include <unistd.h>

#include "session/session.h"
#include "state/cache.h"
#include "support/writing.h"

enum { N_TEXT = 24, N_CONTEXT = 128, MAX_VOCAB = 2048 };

static const int32_t prompt[] = {72, 101, 108, 108, 111, 32, 116, 104, 101, 114, 101};
enum { N_PROMPT = sizeof prompt / sizeof *prompt };

static drey_prepare_report prepare(const drey_model *m, bool planes, bool check)
{
    drey_prepare_options o;
    drey_prepare_report report;
    drey_prepare_options_init(&o);
    o.model = m;
    o.planes = planes;
    o.check = check;
    MUST(drey_prepare, &o, &report);
    return report;
}

static drey_model *make(const char *architecture, uint32_t type, bool tied)
{
    toy_options toy = toy_default();
    toy.architecture = architecture;
    toy.type = type;
    toy.tied = tied;
    toy.n_embd = 256;
    toy.n_ff = 3072;
    temp_dir();
    return toy_open("model.gguf", &toy);
}

static drey_engine_options options_of(const drey_model *m, drey_drafter which)
{
    drey_engine_options o = plain_options(m, N_CONTEXT, 2);
    o.drafter = which;
    return o;
}

/* ---- Where planes lie ---- */

/* Weights with the fewest bits get the next one: none has a bit more than the first plane's while
 * another lacks one of a lower number. */
static void check_order(const model_layout *l)
{
    int32_t most = 0, whole = 8;
    for (int32_t i = 0; i < l->n_matrices; i++) {
        const weight *m = &l->matrix[i];
        if (!m->form.planes || m->residency.n_planes[0] == 0)
            continue;
        int32_t n[N_PLANES] = {m->residency.n_groups, m->residency.n_planes[1],
                               m->residency.n_pinned};
        for (int p = 1; p < N_PLANES; p++) {
            most = n[p] > 0 && m->form.planes->bits + p > most ? m->form.planes->bits + p : most;
            whole = n[p] < m->residency.n_groups && m->form.planes->bits + p < whole
                        ? m->form.planes->bits + p
                        : whole;
        }
    }
    assert_true(most <= whole); /* the bit that is there in part may be both */
}

/* Logits after the prompt, from a first pass and again from a later one; used[]: how many groups of
 * each range there were. False: the budget does not suffice. */
static bool logits_of(const drey_engine_options *o, const engine_hooks *hooks, float *first,
                      float *later, int32_t *used)
{
    drey_engine *e;
    drey_session *s = NULL;
    drey_error err = {0};
    drey_status status = engine_open(&e, o, hooks, &err);
    if (status == DREY_ERR_MEMORY)
        return false;
    must(status, &err);
    MUST(drey_session_open, &s, e);
    float *const to[] = {first, later};
    for (int i = 0; i < 2; i++) {
        cache_clear(&s->target_cache);
        MUST(pass_prompt, &s->target, prompt, N_PROMPT, 8, HEAD_LAST, NULL, NULL);
        memcpy(to[i], e->target.ws.logits, sizeof(float) * (size_t)e->target.layout.n_logits);
    }
    for (int32_t i = 0; i < e->target.layout.n_matrices; i++)
        for (int r = 0; r < WEIGHT_RANGES; r++) {
            const weight *m = &e->target.layout.matrix[i];
            used[r] +=
                m->form.planes ? range_end(&m->residency, r) - range_begin(&m->residency, r) : 0;
        }
    check_order(&e->target.layout);
    drey_session_close(&s);
    drey_engine_close(&e);
    return true;
}

static void check_logits(const char *architecture, uint32_t type, bool tied)
{
    static float want[MAX_VOCAB], first[MAX_VOCAB], later[MAX_VOCAB];
    drey_model *m = make(architecture, type, tied);
    drey_engine_options o = options_of(m, DREY_DRAFTER_NONE);
    int32_t used[WEIGHT_RANGES] = {0};
    assert_true(logits_of(&o, NULL, want, later, used));
    size_t bytes = sizeof(float) * (size_t)m->shape.n_vocab;
    assert_true(m->shape.n_vocab <= MAX_VOCAB);
    prepare(m, true, false);
    assert_false(prepare(m, true, true).written);
    for (int i = 0; i < 3; i++) { /* whole groups alone */
        engine_hooks hooks = {.set_share = true, .share = 0.5 * i};
        assert_true(logits_of(&o, &hooks, first, later, used));
        assert_memory_equal(first, want, bytes);
        assert_memory_equal(later, want, bytes);
    }
    assert_true(used[0] > 0 && used[1] == 0 && used[2] == 0 && used[3] > 0);
    o = options_of(m, DREY_DRAFTER_SELF);
    for (int i = 0; i < 24; i++) {
        /* The named least budget is rounded up: planes are missing below it already. It is asked
         * for each time, as the process may have grown. */
        o.memory_bytes = DREY_MEMORY_UNLIMITED;
        uint64_t budget = smallest_budget(&o, NULL) - (3 << 19) + (uint64_t)i * (96 << 10);
        o.memory_bytes = i < 23 ? budget : DREY_MEMORY_UNLIMITED;
        if (!logits_of(&o, NULL, first, later, used))
            continue;
        assert_memory_equal(first, want, bytes);
        assert_memory_equal(later, want, bytes);
    }
    assert_true(used[1] > 0 && used[2] > 0);
    drey_model_close(&m);
    temp_dir_remove();
}

TEST(logits_do_not_depend_on_planes)
{
    check_logits("qwen2", TYPE_Q4_K, false);
    check_logits("llama", TYPE_Q6_K, true);
    check_logits("llama", TOY_TYPE_MIXED, false);
}

/* ---- Texts ---- */

static void write_text(writing *w, const drey_engine_options *o)
{
    writing_run(w, o, -1, prompt, N_PROMPT, N_TEXT, NULL);
}

/* With all bits in memory a draft is the target over the target's own keys and values. */
TEST(all_bits_guess_all)
{
    static writing want, got;
    drey_model *m = make("qwen2", TYPE_Q4_K, false);
    drey_engine_options o = options_of(m, DREY_DRAFTER_NONE);
    write_text(&want, &o);
    prepare(m, true, false);
    o = options_of(m, DREY_DRAFTER_SELF);
    o.policy = DREY_POLICY_SEQUENCE;
    o.draft_tokens = 5;
    write_text(&got, &o);
    must_be_same(&want, &got, "with all bits");
    assert_true(got.stats.drafted > 0);
    assert_int_equal(got.stats.accepted, got.stats.drafted);
    assert_true(got.stats.n_passes <= N_TEXT / 6 + 1);
    drey_model_close(&m);
}

/* The ring ends within a run of planes: reading and computing in turns must not wait for each
 * other. */
TEST(std_reads_planes)
{
    static writing want, got;
    drey_model *m = make("llama", TYPE_Q4_0, false);
    drey_engine_options o = options_of(m, DREY_DRAFTER_NONE);
    write_text(&want, &o);
    prepare(m, true, false);
    o.policy = DREY_POLICY_STD;
    o.read_bytes = DREY_MIN_READ_BYTES;
    o.memory_bytes = smallest_budget(&o, NULL);
    alarm(600); /* instead of waiting for ever */
    write_text(&got, &o);
    alarm(0);
    must_be_same(&want, &got, "std");
    drey_model_close(&m);
}

/* ---- What is refused ---- */

TEST(not_without_planes)
{
    drey_model *m = make("llama", TYPE_Q4_0, false);
    drey_engine_options o = options_of(m, DREY_DRAFTER_SELF);
    drey_plan plan;
    drey_error err = {0};
    assert_int_equal(drey_plan_make(&o, NULL, &plan, &err), DREY_ERR_USAGE);
    assert_int_equal(err.hint, DREY_HINT_PLANES);
    assert_true(prepare(m, false, false).written);
    assert_int_equal(drey_plan_make(&o, NULL, &plan, &err), DREY_ERR_USAGE);
    assert_true(prepare(m, true, false).written); /* a good one, but of the other kind */
    assert_false(prepare(m, true, false).written);
    assert_int_equal(drey_plan_make(&o, NULL, &plan, &err), DREY_OK);
    assert_false(prepare(m, false, false).written); /* one with planes is good without as well */
    drey_model_close(&m);
}

TEST(not_of_other_types)
{
    drey_model *m = make("llama", TYPE_Q8_0, false);
    drey_prepare_options o;
    drey_prepare_options_init(&o);
    o.model = m;
    o.planes = true;
    REFUSED(DREY_ERR_UNSUPPORTED, "Q4_K", drey_prepare, &o, NULL);
    drey_model_close(&m);
}
