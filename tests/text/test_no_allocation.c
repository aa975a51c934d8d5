/* Decoding allocates nothing: every allocation between the second and the last
 * written token ends the program, naming the phase (the first comes with the prompt, before the
 * draft loads). The C library's allocator is wrapped for this program alone. */
#include <stdatomic.h>
#include <unistd.h>

#include "session/session.h"
#include "support/drafts/eagle_file.h"
#include "support/heads_file.h"
#include "support/toy_models.h"

static _Atomic bool decoding;
static bool with_sidecar;
static _Atomic int64_t n_allocations; /* in all, to see that the wrappers are in place */

static void note(const char *what)
{
    atomic_fetch_add(&n_allocations, 1);
    if (!atomic_load(&decoding))
        return;
    char line[96];
    int n = snprintf(line, sizeof line, "%s was called in the phase: decoding\n", what);
    if (write(STDERR_FILENO, line, (size_t)n) != n)
        _exit(3);
    abort();
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *p, size_t bytes);

void *malloc(size_t bytes)
{
    note("malloc");
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    note("calloc");
    return __libc_calloc(n, bytes);
}

void *realloc(void *p, size_t bytes)
{
    note("realloc");
    return __libc_realloc(p, bytes);
}

enum { N_TEXT = 40 };

static bool after_second(void *user, int32_t id)
{
    int32_t *left = user;
    --*left;
    atomic_store(&decoding, *left <= N_TEXT - 2 && *left > 0);
    return true;
}

static bool swallow(void *user, const char *bytes, size_t n_bytes)
{
    return bytes && n_bytes > 0;
}

static void swallow_event(void *user, const drey_event *event)
{
    assert_true(event->n_bytes > 0);
}

static bool exit_here(void *user, int32_t layer, int32_t position)
{
    return (layer + position) % 4 == 0;
}

static drey_model *layer; /* layer for the target */

static void make_layer(const toy_options *toy)
{
    eagle_file e;
    eagle_file_init(&e, toy, target->file, &target->shape);
    e.taps.n_ids = 200;
    eagle_file_write(temp_path("layer.gguf"), &e);
    MUST(drey_model_open, &layer, temp_path("layer.gguf"));
}

static void check(drey_drafter kind, drey_policy policy, double share, float temperature)
{
    drey_engine_options o = toys_options(kind, 160, 2);
    o.policy = policy;
    o.draft = kind == DREY_DRAFTER_EAGLE ? layer : o.draft;
    o.trace_spans = 200; /* few: the rings go round */
    bool blends =
        kind == DREY_DRAFTER_MODEL || kind == DREY_DRAFTER_SELF || kind == DREY_DRAFTER_EAGLE;
    o.research = blends ? &looked_up : NULL;
    static int32_t n_checks; /* exits take turns: off, fast, exact */
    static int32_t n_grammars;
    bool mixture = target->shape.experts.router.n_experts > 0;
    if ((mixture || target->shape.arch->layers) && kind == DREY_DRAFTER_SELF)
        return; /* which is refused; of a mixture exits as well */
    if (!mixture && kind != DREY_DRAFTER_SELF && kind != DREY_DRAFTER_MEDUSA &&
        kind != DREY_DRAFTER_EAGLE)
        o.exit = (drey_exit)(n_checks++ % 3);
    engine_hooks hooks = {
        .set_share = share <= 1, .share = share, .untimed = true, .exit_here = exit_here};
    int32_t left = N_TEXT, prompt[] = {65, 66, 67, 68, 65, 66, 67};
    drey_generate_options g = greedy(left);
    g.sampling = (drey_sampling){.temperature = temperature, .top_k = 50, .top_p = 0.9f, .seed = 4};
    g.on_token = after_second;
    g.on_text = swallow;
    g.on_event = swallow_event;
    g.user = &left;
    drey_grammar *grammar = NULL; /* every second text, where passes go to their end */
    if (o.exit == DREY_EXIT_OFF && n_grammars++ % 2 == 0) {
        const char *text = "root ::= ([a-z ] | \"return\"){1000}";
        MUST(drey_grammar_open, &grammar, target, DREY_GRAMMAR_GBNF, text, strlen(text));
        g.ignore_eos = false;
        g.grammar = grammar;
    }
    drey_statistics stats;
    engine_place p = place_open(&o, &hooks);
    drey_session *s = p.session[0];
    MUST(drey_session_sync, s, prompt, 7, NULL);
    MUST(drey_session_begin, s, &g, &stats);
    for (bool done = false; !done;)
        MUST(drey_session_step, s, &done);
    assert_int_equal(left, 0);
    assert_true((stats.streamed_bytes_per_pass > 0) == hooks.set_share);
    assert_true(stats.sidecar == with_sidecar);
    place_close(&p);
    drey_grammar_close(&grammar);
}

TEST(test_no_allocation)
{
    toy_options toy = toy_asked();
    toys_open_pair(&toy);
    assert_true(atomic_load(&n_allocations) > 10);
    heads_file heads;
    heads_file_init(&heads, target->file, &target->shape);
    heads.shape.n_ids = 64; /* rows of other roots are looked up */
    heads_file_write(temp_path("target.gguf.drey-medusa"), &heads);
    make_layer(&toy);
    for (int turn = 0; turn < 3; turn++) {
        double share = turn ? 0 : 2;
        with_sidecar = turn == 2;
        if (with_sidecar)
            toy_prepare(target, NULL, false);
        check(DREY_DRAFTER_NONE, DREY_POLICY_NONE, share, 0);
        check(DREY_DRAFTER_LOOKUP, DREY_POLICY_OPTIMAL, share, 0);
        check(DREY_DRAFTER_MEDUSA, DREY_POLICY_OPTIMAL, share, 0);
        check(DREY_DRAFTER_EAGLE, DREY_POLICY_OPTIMAL, share, 0.7f);
        check(DREY_DRAFTER_MODEL, DREY_POLICY_SEQUENCE, share, 0.7f);
        check(DREY_DRAFTER_MODEL, DREY_POLICY_OPTIMAL, share, 0.7f);
    }
    drey_model_close(&layer);
    drey_model_close(&target);
    toy.type = TYPE_Q4_0;
    target = toy_open("split.gguf", &toy);
    toy_prepare(target, NULL, true);
    check(DREY_DRAFTER_SELF, DREY_POLICY_OPTIMAL, 0, 0.7f);
    toys_close(NULL);
}
