/* Acceptance against brute force over random trees with random logits. That no text changes is
 * tests/text's. */
#include "kernel/kernel.h"
#include "tree/accept.h"
#include "support/scene.h"

enum { V = 40, LD = 48 };

static sampler sampler_make(arena *a, drey_sampling settings)
{
    sampler s;
    MUST(arena_init, a, sampler_bytes(V), false);
    MUST(sampler_init, &s, &settings, V, kernel_select("ref"), a);
    return s;
}

/* Finds the deepest of all nodes whose every step from the root was the target's choice: looked for
 * node by node from the leaves up, without walking. */
static int32_t deepest_right_node(const token_tree *t, const int32_t *row_of, sampler *s,
                                  const float *logits, int64_t root_position)
{
    int32_t best = 0;
    for (int32_t leaf = 0; leaf < t->n_nodes; leaf++) {
        bool right = row_of[leaf] >= 0;
        for (int32_t i = leaf; right && i > 0; i = t->nodes[i].parent) {
            int32_t parent = t->nodes[i].parent;
            right &= t->nodes[i].token == sampler_choose(s, logits + row_of[parent] * LD,
                                                         root_position + t->nodes[i].depth);
        }
        if (right && t->nodes[leaf].depth > t->nodes[best].depth)
            best = leaf;
    }
    return best;
}

/* Rows of a pass in any order: of all nodes every other time, else of some. */
static void submit_some(const token_tree *t, rng *r, int32_t *row_of)
{
    int32_t least_of_ten = rng_below(r, 2) ? 0 : 2, n = 0, place[TREE_MAX_NODES];
    for (int32_t i = 0; i < t->n_nodes; i++) {
        bool there = i == 0 || row_of[t->nodes[i].parent] >= 0;
        row_of[i] = there && (i == 0 || rng_below(r, 10) >= least_of_ten) ? n++ : -1;
    }
    for (int32_t i = 0; i < n; i++) { /* shuffled */
        int32_t j = rng_below(r, i + 1);
        place[i] = place[j];
        place[j] = i;
    }
    for (int32_t i = 0; i < t->n_nodes; i++)
        row_of[i] = row_of[i] < 0 ? -1 : place[row_of[i]];
}

TEST(the_longest_right_branch)
{
    static float logits[TREE_MAX_NODES * LD];
    rng r = {21};
    int32_t accepted_total = 0;
    for (int round = 0; round < 400; round++) {
        arena a;
        sampler s = sampler_make(&a, (drey_sampling){.temperature = (float)(round % 3) * 0.6f,
                                                     .top_p = 1,
                                                     .seed = (uint64_t)round});
        token_tree t;
        tree_reset(&t, 0);
        int32_t n = 1 + rng_below(&r, 60);
        while (t.n_nodes < n)
            tree_push(&t, rng_below(&r, t.n_nodes), rng_below(&r, 3), 0.5f);
        for (int32_t i = 0; i < n * LD; i++)
            logits[i] = (float)rng_normal(&r) + (i % LD < 3 ? 4.0f : i % LD >= V ? 1000.0f : 0);
        int64_t root = rng_below(&r, 1000);
        accepted got;
        int32_t row_of[TREE_MAX_NODES];
        submit_some(&t, &r, row_of);
        accept_path(&got, &t, &(node_logits){logits, LD, row_of}, &s, root, 0);
        int32_t last = deepest_right_node(&t, row_of, &s, logits, root);
        assert_int_equal(got.n_path, t.nodes[last].depth);
        for (int32_t i = last, d = got.n_path; d > 0; i = t.nodes[i].parent)
            assert_int_equal(got.path[--d], i);
        int64_t after = root + t.nodes[last].depth + 1;
        assert_int_equal(got.next, sampler_choose(&s, logits + row_of[last] * LD, after));
        int32_t beyond = tree_child(&t, last, got.next);
        assert_true(beyond < 0 || row_of[beyond] < 0);
        accepted_total += got.n_path;
        arena_free(&a);
    }
    assert_true(accepted_total > 400);
}
