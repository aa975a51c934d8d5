/* Growth policies against a brute-force restatement of their rules.
 *
 * The scripted drafter's candidates are a function of the path alone, so the restatement, which
 * keeps branches as lists of tokens and no tree, can ask the same script. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "draft/policy.h"
#include "support/policy_memory.h"
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

/* True: it ended because no branch was a good guess any more. */
static bool restate_tree(forest *f, uint64_t seed, int32_t size, int32_t max_depth)
{
    f->n = 1;
    f->all[0] = (branch){.confidence = 1};
    while (f->n - 1 < size) {
        branch *ends[TREE_MAX_NODES];
        int n_ends = 0;
        float best = 0;
        for (int32_t i = 0; i < f->n; i++) {
            branch *b = &f->all[i];
            if (b->grown || b->length >= max_depth)
                continue;
            ends[n_ends++] = b;
            best = b->confidence > best ? b->confidence : best;
        }
        if (n_ends == 0 || best < 0.01f)
            return n_ends > 0;
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
        for (int32_t i = 0; i < n && f->n - 1 < size; i++)
            if (i == 0 || c[i].confidence >= 0.3f)
                add(f, next, c[i]);
    }
    return false;
}

static void restate_sequence(forest *f, uint64_t seed, int32_t size, int32_t max_depth)
{
    f->n = 1;
    f->all[0] = (branch){.confidence = 1};
    while (f->n - 1 < size && f->n - 1 < max_depth) {
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

/* Grows a tree from nothing with the policy of this name. */
static drey_status grow(drafter *d, const char *name, int32_t size, int32_t max_depth,
                        token_tree *t, drey_error *err)
{
    drey_policy which;
    policy_memory memory;
    assert_true(drey_policy_parse(name, &which));
    draft_policy *p = policy_init(&memory, policy_class_of(which), size);
    tree_reset(t, 99);
    return draft_grow(d, p, t, max_depth, err);
}

static void tree_follows_its_rules(void **state)
{
    (void)state;
    rng r = {7};
    static forest f;
    int branched = 0, full = 0, gave_up = 0;
    for (uint64_t seed = 1; seed < 3000; seed++) {
        int32_t size = rng_below(&r, 48);
        int32_t max_depth = rng_below(&r, 4) == 0 ? rng_below(&r, 6) : MAX_DEPTH;
        scripted s = {.base.class = &scripted_class, .seed = seed};
        static token_tree t;
        assert_int_equal(grow(&s.base, "tree", size, max_depth, &t, NULL), DREY_OK);
        gave_up += restate_tree(&f, seed, size, max_depth);
        compare(&t, &f);
        full += size > 0 && t.n_nodes - 1 == size;
        branched += t.n_nodes > 2 && t.nodes[2].parent != 1;
    }
    assert_true(branched > 100 && full > 100 && gave_up > 100); /* the script is not a bore */
}

static void sequence_is_a_chain(void **state)
{
    (void)state;
    static forest f;
    for (uint64_t seed = 1; seed < 500; seed++) {
        int32_t size = (int32_t)(seed % 12), max_depth = seed % 5 == 0 ? 3 : MAX_DEPTH;
        scripted s = {.base.class = &scripted_class, .seed = seed};
        static token_tree t;
        assert_int_equal(grow(&s.base, "sequence", size, max_depth, &t, NULL), DREY_OK);
        restate_sequence(&f, seed, size, max_depth);
        compare(&t, &f);
    }
}

/* What a policy begins with may have been drafted in the turn before: it goes on from there, and a
 * tree grown in two goes is one grown at once. */
static void a_tree_goes_on_growing(void **state)
{
    (void)state;
    const char *const names[] = {"sequence", "tree"};
    rng r = {11};
    for (uint64_t seed = 1; seed < 600; seed++) {
        static token_tree once, twice;
        const char *name = names[seed % 2];
        int32_t size = 1 + rng_below(&r, 40);
        scripted s = {.base.class = &scripted_class, .seed = seed};
        assert_int_equal(grow(&s.base, name, size, MAX_DEPTH, &once, NULL), DREY_OK);
        drey_policy which;
        policy_memory memory;
        assert_true(drey_policy_parse(name, &which));
        draft_policy *p = policy_init(&memory, policy_class_of(which), size);
        scripted again = {.base.class = &scripted_class, .seed = seed};
        again.fails_at = 1 + rng_below(&r, 20);
        tree_reset(&twice, 99);
        drey_status status = draft_grow(&again.base, p, &twice, MAX_DEPTH, NULL);
        assert_true(tree_is_valid(&twice));
        if (status != DREY_OK)
            status = draft_grow(&again.base, p, &twice, MAX_DEPTH, NULL);
        assert_int_equal(status, DREY_OK);
        assert_int_equal(twice.n_nodes, once.n_nodes);
        for (int32_t i = 0; i < once.n_nodes; i++) {
            assert_int_equal(twice.nodes[i].parent, once.nodes[i].parent);
            assert_int_equal(twice.nodes[i].token, once.nodes[i].token);
        }
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
    static token_tree t;
    assert_int_equal(grow(&d, "tree", 8, 100, &t, NULL), DREY_OK);
    const int32_t parents[] = {-1, 0, 0, 1, 1, 3, 3, 2, 2};
    assert_int_equal(t.n_nodes, 9);
    for (int i = 0; i < 9; i++)
        assert_int_equal(t.nodes[i].parent, parents[i]);
}

static void the_tree_never_overflows(void **state)
{
    (void)state;
    static const drafter_class eager = {.expand = eager_expand};
    const char *const names[] = {"sequence", "tree"};
    drafter d = {&eager};
    for (int i = 0; i < 2; i++) {
        static token_tree t;
        assert_int_equal(grow(&d, names[i], 100000, 100000, &t, NULL), DREY_OK);
        assert_int_equal(t.n_nodes, TREE_MAX_ROWS);
    }
}

static void errors_pass(void **state)
{
    (void)state;
    const char *const names[] = {"sequence", "tree"};
    for (int i = 0; i < 2; i++) {
        static token_tree t;
        scripted s = {.base.class = &scripted_class, .seed = 3, .fails_at = 2};
        drey_error err;
        assert_int_equal(grow(&s.base, names[i], 8, 8, &t, &err), DREY_ERR_IO);
        assert_string_equal(err.message, "the draft cannot be read");
    }
}

/* A policy that opens a step of several nodes, and counts what it hears. */
typedef struct counting {
    draft_policy base;
    int n_steps, n_observed;
    int32_t path[TREE_MAX_DRAFTED], n_path, next;
} counting;

static void counting_init(draft_policy *p)
{
    ((counting *)p)->n_steps = 7;
}

static int32_t counting_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                             int32_t *nodes)
{
    int32_t n = 0;
    for (int32_t i = 0; i < tree->n_nodes && n < 4; i++)
        if (!tree->nodes[i].expanded && tree->nodes[i].depth < max_depth)
            nodes[n++] = i;
    ((counting *)p)->n_steps += n > 0;
    return n;
}

static void counting_push(draft_policy *p, token_tree *tree, int32_t node)
{
    for (int32_t i = 0; i < 2 && tree->n_nodes <= p->size; i++)
        tree_push(tree, node, tree->nodes[node].guess[i].token, 0.5f);
}

static void counting_observe(draft_policy *p, const token_tree *tree, const int32_t *path,
                             int32_t n_path, int32_t next)
{
    counting *c = (counting *)p;
    assert_int_equal(tree->n_nodes, 15); /* as it was drafted */
    memcpy(c->path, path, (size_t)n_path * sizeof *path);
    c->n_path = n_path;
    c->next = next;
    c->n_observed++;
}

static void a_policy_has_state_steps_and_feedback(void **state)
{
    (void)state;
    static const drafter_class eager = {.expand = eager_expand};
    const policy_class class = {.bytes = sizeof(counting),
                                .init = counting_init,
                                .next = counting_next,
                                .push = counting_push,
                                .observe = counting_observe};
    drafter d = {&eager};
    counting c;
    draft_policy *p = policy_init(&c, &class, 100);
    token_tree t;
    tree_reset(&t, 0);
    assert_int_equal(draft_grow(&d, p, &t, 3, NULL), DREY_OK);
    assert_int_equal(t.n_nodes, 15); /* all of three levels: in steps of 1, 2 and 4 nodes */
    assert_int_equal(c.n_steps, 7 + 3);
    const int32_t path[] = {2, 5};
    draft_observe(p, &t, path, 2, 77);
    assert_int_equal(c.n_observed, 1);
    assert_int_equal(c.n_path, 2);
    assert_memory_equal(c.path, path, sizeof path);
    assert_int_equal(c.next, 77);
}

static void names_and_bounds(void **state)
{
    (void)state;
    int n = 0, n_drafting = 0;
    for (; drey_policy_name((drey_policy)n); n++) {
        drey_policy found = DREY_POLICY_AUTO;
        int32_t least, most, standard;
        assert_true(drey_policy_parse(drey_policy_name((drey_policy)n), &found));
        assert_int_equal(found, n);
        bool drafts = drey_policy_bounds(found, &least, &most, &standard);
        drey_engine_options o = {.policy = found};
        assert_int_equal(policy_size(&o), standard);
        assert_int_equal(drafts, policy_class_of(found) != NULL);
        assert_true(drafts ? least == 1 && least <= standard && standard <= most
                           : least == 0 && most == 0 && standard == 0);
        assert_true(most <= TREE_MAX_DRAFTED);
        n_drafting += drafts;
    }
    assert_int_equal(n, DREY_POLICY_TREE + 1);
    assert_int_equal(n_drafting, 2);
    drey_policy found = DREY_POLICY_TREE;
    assert_false(drey_policy_parse("llmcad", &found));
    assert_int_equal(found, DREY_POLICY_TREE);
    drey_engine_options o = {.policy = DREY_POLICY_SEQUENCE, .draft_tokens = 5, .tree_nodes = 9};
    assert_int_equal(policy_size(&o), 5);
    o.policy = DREY_POLICY_TREE;
    assert_int_equal(policy_size(&o), 9);
    for (int i = 0; i <= DREY_DRAFTER_NGRAM; i++)
        assert_non_null(drey_drafter_name((drey_drafter)i));
    assert_null(drey_drafter_name(DREY_DRAFTER_NGRAM + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tree_follows_its_rules),
        cmocka_unit_test(sequence_is_a_chain),
        cmocka_unit_test(an_example_by_hand),
        cmocka_unit_test(the_tree_never_overflows),
        cmocka_unit_test(errors_pass),
        cmocka_unit_test(a_tree_goes_on_growing),
        cmocka_unit_test(a_policy_has_state_steps_and_feedback),
        cmocka_unit_test(names_and_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
