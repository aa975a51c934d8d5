/* Growth policies against a brute-force restatement of their rules.
 *
 * The scripted drafter's candidates are a function of the path alone, so the restatement, which
 * keeps branches as lists of tokens and no tree, can ask the same script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "draft/drafter.h"
#include "support/rng.h"
#include "support/tree_path.h"

enum { MAX_DEPTH = 32 };

typedef struct scripted {
    drafter base;
    uint64_t seed;
    int n_expanded;
    int fails_at; /* expansion that fails; 0: none */
} scripted;

/* What the script proposes after path[0..depth). */
static int32_t script(uint64_t seed, const int32_t *path, int32_t depth, candidate *out)
{
    rng r = {seed * 2 + 1};
    for (int32_t i = 0; i < depth; i++)
        r.state = (rng_next(&r) + (uint64_t)path[i] + 1) | 1;
    rng_next(&r);
    int32_t n = rng_below(&r, 12) == 0 ? 0 : 1 + rng_below(&r, 8);
    float left = 1;
    for (int32_t i = 0; i < n; i++) {
        left *= (float)(0.3 + 0.69 * rng_unit(&r));
        float confidence = i == 0 ? left : left * 0.8f;
        if (i > 0 && confidence > out[i - 1].confidence)
            confidence = out[i - 1].confidence;
        if (seed % 4 == 0) /* ties: the oldest branch goes first */
            confidence = i < 2 ? 0.5f : 0.0f;
        out[i] = (candidate){.token = rng_below(&r, 6), .confidence = confidence};
    }
    return n;
}

static drey_status scripted_expand(drafter *base, token_tree *tree, const int32_t *nodes, int32_t n,
                                   drey_error *err)
{
    scripted *s = (scripted *)base;
    if (++s->n_expanded == s->fails_at)
        FAIL(err, DREY_ERR_IO, "the draft cannot be read");
    for (int32_t i = 0; i < n; i++) {
        assert_false(tree->nodes[nodes[i]].expanded); /* nobody pays twice */
        int32_t parent = tree->nodes[nodes[i]].parent;
        assert_true(parent < 0 || tree->nodes[parent].expanded);
        int32_t path[TREE_MAX_NODES];
        candidate all[TREE_MAX_GUESSES];
        tree_guess(tree, nodes[i], all,
                   script(s->seed, path, tree_path(tree, nodes[i], path), all));
    }
    return DREY_OK;
}

static const drafter_class scripted_class = {.expand = scripted_expand};

/* ---- The rules once more ---- */

typedef struct branch {
    int32_t token[MAX_DEPTH];
    int32_t length;
    float confidence;
    bool grown; /* asked for continuations: no longer a branch's end */
} branch;

typedef struct forest {
    branch all[TREE_MAX_NODES]; /* [0] is the root, with no token */
    int32_t n;
} forest;

static bool same_words(const branch *a, const branch *b)
{
    return a->length == b->length &&
           memcmp(a->token, b->token, (size_t)a->length * sizeof(int32_t)) == 0;
}

static void add(forest *f, const branch *stem, candidate c)
{
    branch b = *stem;
    b.token[b.length++] = c.token;
    b.confidence *= c.confidence;
    b.grown = false;
    for (int32_t i = 0; i < f->n; i++)
        if (same_words(&f->all[i], &b))
            return;
    f->all[f->n++] = b;
}

static void restate_llmcad(forest *f, uint64_t seed, const draft_limits *limits)
{
    f->n = 1;
    f->all[0] = (branch){.confidence = 1};
    while (f->n - 1 < limits->max_nodes) {
        branch *ends[TREE_MAX_NODES];
        int n_ends = 0;
        float best = 0;
        for (int32_t i = 0; i < f->n; i++) {
            branch *b = &f->all[i];
            if (b->grown || b->length >= limits->max_depth)
                continue;
            ends[n_ends++] = b;
            best = b->confidence > best ? b->confidence : best;
        }
        if (n_ends == 0 || best < limits->alpha)
            return;
        /* The distance of each from its expected length M * C; the first of the largest. */
        branch *next = ends[0];
        for (int i = 1; i < n_ends; i++) {
            float m = (float)(f->n - 1);
            if (m * ends[i]->confidence - (float)ends[i]->length >
                m * next->confidence - (float)next->length)
                next = ends[i];
        }
        candidate c[8];
        int32_t n = script(seed, next->token, next->length, c);
        next->grown = true;
        for (int32_t i = 0; i < n && f->n - 1 < limits->max_nodes; i++)
            if (i == 0 || c[i].confidence >= limits->branch_confidence)
                add(f, next, c[i]);
    }
}

static void restate_sequence(forest *f, uint64_t seed, const draft_limits *limits)
{
    f->n = 1;
    f->all[0] = (branch){.confidence = 1};
    while (f->n - 1 < limits->sequence_tokens && f->n - 1 < limits->max_depth) {
        candidate c[8];
        branch *last = &f->all[f->n - 1];
        if (script(seed, last->token, last->length, c) == 0)
            return;
        add(f, last, c[0]);
    }
}

static void compare(const token_tree *t, const forest *f)
{
    assert_int_equal(t->n_nodes, f->n);
    for (int32_t i = 0; i < f->n; i++) {
        int32_t path[TREE_MAX_NODES];
        assert_int_equal(tree_path(t, i, path), f->all[i].length);
        assert_memory_equal(path, f->all[i].token, (size_t)f->all[i].length * sizeof(int32_t));
        assert_true(t->nodes[i].cumulative == f->all[i].confidence);
    }
}

static void llmcad_follows_its_rules(void **state)
{
    (void)state;
    rng r = {7};
    static forest f;
    int branched = 0, full = 0, gave_up = 0;
    for (uint64_t seed = 1; seed < 3000; seed++) {
        draft_limits limits = {.policy = DREY_POLICY_LLMCAD,
                               .max_nodes = rng_below(&r, 48),
                               .max_depth = rng_below(&r, 4) == 0 ? rng_below(&r, 6) : MAX_DEPTH,
                               .branch_confidence = seed % 3 == 0 ? 0.1f : 0.3f,
                               .alpha = seed % 2 == 0 ? 0.01f : 0.1f};
        scripted s = {.base.class = &scripted_class, .seed = seed};
        token_tree t;
        tree_reset(&t, 99);
        assert_int_equal(draft_grow(&s.base, &t, &limits, NULL), DREY_OK);
        restate_llmcad(&f, seed, &limits);
        compare(&t, &f);
        full += limits.max_nodes > 0 && t.n_nodes - 1 == limits.max_nodes;
        gave_up += t.n_nodes - 1 < limits.max_nodes;
        branched += t.n_nodes > 2 && t.nodes[2].parent != 1;
    }
    assert_true(branched > 100 && full > 100 && gave_up > 100); /* all of it was exercised */
}

static void sequence_is_a_chain(void **state)
{
    (void)state;
    static forest f;
    for (uint64_t seed = 1; seed < 500; seed++) {
        draft_limits limits = {.policy = DREY_POLICY_SEQUENCE,
                               .sequence_tokens = (int32_t)(seed % 12),
                               .max_depth = seed % 5 == 0 ? 3 : MAX_DEPTH};
        scripted s = {.base.class = &scripted_class, .seed = seed};
        token_tree t;
        tree_reset(&t, 99);
        assert_int_equal(draft_grow(&s.base, &t, &limits, NULL), DREY_OK);
        restate_sequence(&f, seed, &limits);
        compare(&t, &f);
    }
}

/* A drafter that always says "1" at 0.9 and "2" at 0.5. */
static drey_status eager_expand(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                                drey_error *err)
{
    (void)d;
    (void)err;
    const candidate two[2] = {{1, 0.9f}, {2, 0.5f}};
    for (int32_t i = 0; i < n; i++)
        tree_guess(tree, nodes[i], two, 2);
    return DREY_OK;
}

/* By hand. Root gives A .9, B .5 (M = 2): A is 2 * .9 - 1 = .8 behind, B 0: A next, giving AA .81
 * and AB .45 (M = 4): B is 4 * .5 - 1 = 1 behind, AA 4 * .81 - 2 = 1.24, AB -.2: AA next (M = 6),
 * giving AAA .729 and AAB: B 2, AB .7, AAA 1.374, AAB -.57: B next. */
static void an_example_by_hand(void **state)
{
    (void)state;
    static const drafter_class eager = {.expand = eager_expand};
    drafter d = {&eager};
    const draft_limits limits = {.policy = DREY_POLICY_LLMCAD,
                                 .max_nodes = 8,
                                 .max_depth = 100,
                                 .branch_confidence = 0.3f,
                                 .alpha = 0.01f};
    token_tree t;
    tree_reset(&t, 0);
    assert_int_equal(draft_grow(&d, &t, &limits, NULL), DREY_OK);
    const int32_t parents[] = {-1, 0, 0, 1, 1, 3, 3, 2, 2};
    assert_int_equal(t.n_nodes, 9);
    for (int i = 0; i < 9; i++)
        assert_int_equal(t.nodes[i].parent, parents[i]);
}

static void the_tree_never_overflows(void **state)
{
    (void)state;
    static const drafter_class eager = {.expand = eager_expand};
    drafter d = {&eager};
    token_tree t;
    draft_limits limits = {.policy = DREY_POLICY_LLMCAD, .max_nodes = 100000, .max_depth = 100000};
    tree_reset(&t, 0);
    assert_int_equal(draft_grow(&d, &t, &limits, NULL), DREY_OK);
    assert_int_equal(t.n_nodes, TREE_MAX_ROWS);
    limits = (draft_limits){
        .policy = DREY_POLICY_SEQUENCE, .sequence_tokens = 100000, .max_depth = 100000};
    tree_reset(&t, 0);
    assert_int_equal(draft_grow(&d, &t, &limits, NULL), DREY_OK);
    assert_int_equal(t.n_nodes, TREE_MAX_ROWS);
}

static void none_grows_nothing_and_errors_pass(void **state)
{
    (void)state;
    token_tree t;
    tree_reset(&t, 1);
    draft_limits limits = {.policy = DREY_POLICY_NONE,
                           .max_nodes = 8,
                           .sequence_tokens = 8,
                           .max_depth = 8,
                           .branch_confidence = 0.3f,
                           .alpha = 1e-6f};
    assert_int_equal(draft_grow(NULL, &t, &limits, NULL), DREY_OK);
    assert_int_equal(t.n_nodes, 1);
    const drey_policy both[] = {DREY_POLICY_SEQUENCE, DREY_POLICY_LLMCAD};
    for (int i = 0; i < 2; i++) {
        limits.policy = both[i];
        scripted s = {.base.class = &scripted_class, .seed = 3, .fails_at = 2};
        drey_error err;
        tree_reset(&t, 1);
        assert_int_equal(draft_grow(&s.base, &t, &limits, &err), DREY_ERR_IO);
        assert_string_equal(err.message, "the draft cannot be read");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(llmcad_follows_its_rules),
        cmocka_unit_test(sequence_is_a_chain),
        cmocka_unit_test(an_example_by_hand),
        cmocka_unit_test(the_tree_never_overflows),
        cmocka_unit_test(none_grows_nothing_and_errors_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
