/* The token tree against a plain restatement: every node as the list of its tokens. */
#include <float.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "draft/tree.h"
#include "support/rng.h"

static void a_small_tree(void **state)
{
    (void)state;
    token_tree t;
    tree_reset(&t, 7);
    assert_int_equal(t.n_nodes, 1);
    assert_int_equal(t.nodes[0].token, 7);
    assert_int_equal(t.nodes[0].parent, -1);
    int32_t a = tree_push(&t, 0, 10, 0.5f);
    int32_t b = tree_push(&t, 0, 11, 0.25f);
    int32_t c = tree_push(&t, a, 11, 0.5f);
    int32_t d = tree_push(&t, c, 10, 0.25f);
    assert_int_equal(t.n_nodes, 5);
    assert_int_equal(tree_child(&t, 0, 10), a);
    assert_int_equal(tree_child(&t, 0, 11), b);
    assert_int_equal(tree_child(&t, a, 11), c);
    assert_int_equal(tree_child(&t, a, 10), -1);
    assert_int_equal(tree_child(&t, b, 11), -1);
    int32_t path[TREE_MAX_NODES];
    assert_int_equal(tree_path(&t, 0, path), 0);
    assert_int_equal(tree_path(&t, d, path), 3);
    const int32_t expected[] = {10, 11, 10};
    assert_memory_equal(path, expected, sizeof expected);
    assert_true(t.nodes[d].cumulative == 0.0625f);
    assert_int_equal(t.nodes[d].depth, 3);
}

static void a_child_is_not_added_twice(void **state)
{
    (void)state;
    token_tree t;
    tree_reset(&t, 1);
    int32_t a = tree_push(&t, 0, 5, 0.5f);
    assert_int_equal(tree_push(&t, 0, 5, 0.9f), a);
    assert_int_equal(t.n_nodes, 2);
    assert_true(t.nodes[a].confidence == 0.5f);
    assert_int_equal(tree_push(&t, a, 5, 0.9f), 2);
}

static void confidence_is_a_probability(void **state)
{
    (void)state;
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

static void random_trees(void **state)
{
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_tree),
        cmocka_unit_test(a_child_is_not_added_twice),
        cmocka_unit_test(confidence_is_a_probability),
        cmocka_unit_test(random_trees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
