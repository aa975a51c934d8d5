/* The token tree against a plain restatement: every node as the list of its tokens. */
#include <float.h>

#include "tree/tree.h"
#include "support/rng.h"
#include "support/test.h"
#include "support/tree_path.h"

TEST(a_child_is_not_added_twice)
{
    token_tree t;
    tree_reset(&t, 1);
    int32_t a = tree_push(&t, 0, 5, 0.5f);
    assert_int_equal(tree_push(&t, 0, 5, 0.9f), a);
    assert_int_equal(t.n_nodes, 2);
    assert_true(t.nodes[a].confidence == 0.5f);
    assert_int_equal(tree_push(&t, a, 5, 0.9f), 2);
}

TEST(confidence_is_a_probability)
{
    const float wild[] = {0, -1, NAN, INFINITY, 1.0001f, 1, 0.3f};
    const float tame[] = {FLT_MIN, FLT_MIN, FLT_MIN, 1, 1, 1, 0.3f};
    for (int i = 0; i < 7; i++) {
        token_tree t;
        tree_reset(&t, 1);
        tree_push(&t, 0, 5, wild[i]);
        assert_true(t.nodes[1].confidence == tame[i]);
        assert_true(t.nodes[1].cumulative == tame[i]);
    }
}

TEST(random_trees)
{
    static int32_t words[TREE_MAX_NODES][TREE_MAX_NODES];
    static float products[TREE_MAX_NODES];
    rng r = {42};
    for (int round = 0; round < 200; round++) {
        token_tree t;
        tree_reset(&t, 0);
        products[0] = 1;
        int32_t n = 1 + rng_below(&r, TREE_MAX_NODES);
        while (t.n_nodes < n) {
            int32_t parent = rng_below(&r, t.n_nodes), token = rng_below(&r, 200);
            int32_t length = t.nodes[parent].depth, before = t.n_nodes;
            float confidence = (float)rng_unit(&r);
            int32_t node = tree_push(&t, parent, token, confidence);
            if (node < before)
                continue; /* it was there */
            assert_int_equal(node, before);
            memcpy(words[node], words[parent], (size_t)length * sizeof(int32_t));
            words[node][length] = token;
            products[node] = products[parent] * confidence;
        }
        for (int32_t i = 0; i < n; i++) {
            int32_t path[TREE_MAX_NODES];
            assert_int_equal(tree_path(&t, i, path), t.nodes[i].depth);
            assert_memory_equal(path, words[i], (size_t)t.nodes[i].depth * sizeof(int32_t));
            assert_true(t.nodes[i].cumulative == products[i]);
            assert_true(t.nodes[i].parent < i);
            if (i > 0)
                assert_int_equal(tree_child(&t, t.nodes[i].parent, t.nodes[i].token), i);
        }
    }
}

static void push_at_random(token_tree *t, rng *r, int32_t n)
{
    while (t->n_nodes < n) {
        int32_t parent = rng_below(r, 3) ? t->n_nodes - 1 : rng_below(r, t->n_nodes);
        int32_t node = tree_push(t, parent, rng_below(r, 200), (float)rng_unit(r));
        if (node == t->n_nodes - 1 && rng_below(r, 2))
            tree_guess(t, node, &(candidate){.token = node, .confidence = 0.5f}, 1);
    }
}

static bool lies_below(const token_tree *t, int32_t node, int32_t ancestor)
{
    while (node > ancestor)
        node = t->nodes[node].parent;
    return node == ancestor;
}

static void same_node(const tree_node *a, const tree_node *b)
{
    assert_int_equal(a->token, b->token);
    assert_int_equal(a->parent, b->parent);
    assert_int_equal(a->depth, b->depth);
    assert_true(a->confidence == b->confidence && a->cumulative == b->cumulative);
    assert_true(a->expanded == b->expanded && a->submitted == b->submitted);
    assert_int_equal(a->n_guesses, b->n_guesses);
    assert_memory_equal(a->guess, b->guess, a->n_guesses * sizeof *a->guess);
}

/* Compared with a new tree into which the nodes that stay are pushed. */
TEST(reroot_equals_rebuilding)
{
    static token_tree t, built;
    rng r = {43};
    int n_kept = 0, n_reset = 0;
    for (int round = 0; round < 1000; round++) {
        int32_t path[TREE_MAX_NODES], moved[TREE_MAX_NODES], n = 0;
        tree_reset(&t, 9);
        push_at_random(&t, &r, 1 + rng_below(&r, round % 10 ? 40 : TREE_MAX_NODES));
        int32_t last = rng_below(&r, t.n_nodes), n_path = tree_nodes_to(&t, last, path);
        int32_t next = rng_below(&r, 200);
        for (int32_t i = last + 1; i < t.n_nodes; i++)
            if (t.nodes[i].parent == last && rng_below(&r, 4))
                next = t.nodes[i].token;
        if (t.n_nodes <= TREE_MAX_ROWS)
            tree_submit(&t, t.n_nodes - 1);
        int32_t root = tree_child(&t, last, next);
        tree_reset(&built, next);
        for (int32_t i = 0; i < t.n_nodes; i++) {
            if (root < 0 || !lies_below(&t, i, root))
                continue;
            if (i > root)
                n += tree_push(&built, moved[t.nodes[i].parent], t.nodes[i].token,
                               t.nodes[i].confidence) > 0;
            moved[i] = n;
            built.nodes[n].expanded = t.nodes[i].n_guesses > 0; /* not: in vain */
            built.nodes[n].n_guesses = t.nodes[i].n_guesses;
            built.nodes[n].guess[0] = t.nodes[i].guess[0];
        }
        int32_t got[TREE_MAX_NODES];
        assert_int_equal(tree_moves(&t, path, n_path, next, got), root >= 0);
        for (int32_t i = 0; i < t.n_nodes; i++)
            assert_int_equal(got[i], root >= 0 && lies_below(&t, i, root) ? moved[i] : -1);
        tree_reroot(&t, next, got);
        assert_true(tree_is_valid(&t));
        assert_int_equal(t.n_nodes, built.n_nodes);
        for (int32_t i = 0; i < t.n_nodes; i++)
            same_node(&t.nodes[i], &built.nodes[i]);
        n_kept += t.n_nodes > 1;
        n_reset += root < 0;
    }
    assert_true(n_kept > 200 && n_reset > 200);
}

/* Each invariant, broken alone. */
TEST(what_is_not_valid)
{
    token_tree good, t;
    tree_reset(&good, 1);
    tree_push(&good, 0, 2, 0.5f);
    tree_push(&good, 0, 3, 0.25f);
    tree_push(&good, 1, 3, 0.5f);
    assert_true(tree_is_valid(&good));
#define BROKEN_BY(change) t = good, change, assert_false(tree_is_valid(&t))
    BROKEN_BY(t.n_nodes = 0);
    BROKEN_BY(t.nodes[0].depth = 1);
    BROKEN_BY(t.nodes[0].parent = 0);
    BROKEN_BY(t.nodes[0].cumulative = 0.5f);
    BROKEN_BY(t.nodes[1].parent = 2);
    BROKEN_BY(t.nodes[3].depth = 1);
    BROKEN_BY(t.nodes[3].cumulative = 0.5f);
    BROKEN_BY(t.nodes[2].token = 2);
    BROKEN_BY(t.nodes[3].submitted = true);
    BROKEN_BY(t.nodes[1].n_guesses = 1);
#undef BROKEN_BY
}

/* The most likely ones, and ancestors first where they are equals. */
TEST(a_part_is_submitted)
{
    static token_tree t;
    tree_reset(&t, 1);
    for (int32_t i = 0; i < 5; i++)
        tree_push(&t, i, 2, 1); /* a chain of certainties */
    int32_t other = tree_push(&t, 0, 3, 0.5f);
    for (int32_t most = 0; most <= 6; most++) {
        tree_submit(&t, most);
        assert_true(tree_is_valid(&t));
        assert_int_equal(tree_n_submitted(&t), most);
        assert_int_equal(t.nodes[other].submitted, most == 6);
    }
    rng r = {5};
    for (int round = 0; round < 200; round++) {
        tree_reset(&t, 9);
        push_at_random(&t, &r, 1 + rng_below(&r, 60));
        int32_t most = rng_below(&r, TREE_MAX_DRAFTED);
        tree_submit(&t, most);
        assert_int_equal(tree_n_submitted(&t), most < t.n_nodes - 1 ? most : t.n_nodes - 1);
        for (int32_t i = 0; i < t.n_nodes; i++)
            for (int32_t j = 0; j < t.n_nodes && t.nodes[i].submitted; j++)
                assert_true(t.nodes[j].submitted || t.nodes[j].cumulative <= t.nodes[i].cumulative);
    }
}
