/* Attention of trees, as drey bench kernels measures it: the tree is the likeliest one, and the
 * naive way computes what ours does. */
#include "bench/tree_attention.h"
#include "support/test.h"

static void assert_path(const tree_pairs *t, int32_t node, const int32_t *path, int32_t n)
{
    assert_int_equal(t->n_path[node], n);
    assert_memory_equal(t->path + node * TREE_NODES, path, (size_t)n * sizeof *path);
}

/* A guess is right with 0.65 / (rank + 1)^2 (1 - 0.06 depth): the root's first two children have
 * 0.65 and 0.1625; the chain below the first 0.65 x 0.611 = 0.397, then x 0.572 = 0.227, then x
 * 0.533 = 0.121, which comes after the root's second child. */
TEST(test_likeliest_tree)
{
    tree_pairs t;
    tree_pairs_make(&t, 6);
    assert_int_equal(t.n_nodes, 6);
    assert_path(&t, 0, (int32_t[]){0}, 1);
    assert_path(&t, 1, (int32_t[]){0, 1}, 2);
    assert_path(&t, 2, (int32_t[]){0, 1, 2}, 3);
    assert_path(&t, 3, (int32_t[]){0, 1, 2, 3}, 4);
    assert_path(&t, 4, (int32_t[]){0, 4}, 2);
    assert_path(&t, 5, (int32_t[]){0, 1, 2, 3, 5}, 5);
}

static float number(int32_t i)
{
    return (float)(i * 37 % 101 - 50) * 0.02f;
}

/* The two round differently: 64 numbers of at most 1, so at most a thousandth. */
TEST(test_naive_is_the_same)
{
    enum { NODES = 40, N_Q = 3, DIM = 64 };
    static float q[NODES * N_Q * DIM], keys[NODES * DIM], values[NODES * DIM];
    static float naive[NODES * N_Q * DIM], ours[NODES * N_Q * DIM], scores[N_Q * TREE_NODES];
    static _Alignas(64) uint8_t cache[2][48 * DIM * 4], scratch[1 << 19];
    const kernel_table *t = kernel_select(NULL);
    tree_pairs tree;
    tree_pairs_make(&tree, NODES);
    for (int32_t i = 0; i < NODES * N_Q * DIM; i++)
        q[i] = number(i);
    for (int32_t i = 0; i < NODES * DIM; i++) {
        keys[i] = number(3 * i + 1);
        values[i] = number(5 * i + 2);
    }
    assert_true(attend_scratch_bytes(DIM, DIM, false) <= sizeof scratch);
    assert_true(kv_head_bytes(KV_F32, NODES, DIM) <= sizeof cache[0]);
    for (int32_t i = 0; i < NODES; i++) {
        kv_store_key(t, KV_F32, cache[0], i, keys + i * DIM, DIM, scratch);
        kv_store_value(t, KV_F32, cache[1], i, values + i * DIM, DIM, scratch);
    }
    tree_attend_naive(&tree,
                      &(tree_operands){.n_q = N_Q,
                                       .head_dim = DIM,
                                       .scale = 0.1f,
                                       .q = q,
                                       .keys = keys,
                                       .values = values,
                                       .out = naive},
                      scores);
    attend(&(attention){.kernels = t,
                        .format = KV_F32,
                        .k_dim = DIM,
                        .v_dim = DIM,
                        .n_q = N_Q,
                        .n_rows = NODES,
                        .scale = 0.1f,
                        .keys = cache[0],
                        .values = cache[1],
                        .n_prefix = (int32_t[NODES]){0},
                        .n_path = tree.n_path,
                        .path = tree.path,
                        .path_ld = TREE_NODES,
                        .q = q,
                        .out = ours,
                        .q_ld = N_Q * DIM,
                        .out_ld = N_Q * DIM},
           0, NODES * N_Q, scratch);
    for (int32_t i = 0; i < NODES * N_Q * DIM; i++)
        if (!(fabsf(ours[i] - naive[i]) <= 1e-3f))
            fail_msg("number %d of node %d: %g, not %g", i % DIM, i / DIM / N_Q, (double)ours[i],
                     (double)naive[i]);
    /* And it is no mean of values that would hide what scores are: heads differ. */
    assert_true(fabsf(naive[(5 * N_Q + 1) * DIM] - naive[5 * N_Q * DIM]) > 1e-2f);
}
