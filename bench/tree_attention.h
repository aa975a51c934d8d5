/* Attention of a token tree, where a row sees its ancestors and itself: ours, and the ways with
 * which drey bench kernels compares it. */
#pragma once

#include "bench/bench.h"
#include "kernel/kernel.h"

enum { TREE_NODES = 64 };

/* Pairs (node, ancestor); the last ancestor of a node is itself. Node i has n_path[i] pairs, at
 * path + i * TREE_NODES. */
typedef struct tree_pairs {
    int32_t n_nodes;
    int32_t n_path[TREE_NODES], path[TREE_NODES * TREE_NODES];
} tree_pairs;

/* A tree like those of drafts: the n - 1 continuations that are most likely accepted, where a
 * guess's probability falls with its rank and depth. n: 1 .. TREE_NODES. */
void tree_pairs_make(tree_pairs *t, int32_t n);

/* One key head and the n_q query heads that share it, in floats: q and out
 * [n_nodes][n_q][head_dim], keys and values [n_nodes][head_dim]. */
typedef struct tree_operands {
    int32_t n_q, head_dim;
    float scale;
    const float *q, *keys, *values;
    float *out;
} tree_operands;

/* The naive way (Ghidorah, section IV-D): pair by pair in coordinate format, element by element,
 * and each number of the output from a column of the values. scores: [n_q][TREE_NODES]. */
void tree_attend_naive(const tree_pairs *t, const tree_operands *o, float *scores);

/* Times trees of 16, 32 and 64 nodes on one thread, in the caches: attention as in a pass; the
 * naive way, with keys and values as floats; and the dense way, which computes every node with
 * every other one in the same kernels as a prompt's rows (without the masking). DREY_ERR_MEMORY. */
drey_status bench_tree_attention(const kernel_table *kernels, drey_kernel_fn *visit, void *user,
                                 drey_error *err);
