/* The fallback's threshold: see fallback.h. */
#include "policy/fallback.h"

#include <float.h>

#include "base/fmath.h"

float fallback_next(float alpha, float confidence, int32_t n_all, int32_t n_correct)
{
    double next = alpha * 0.5;
    double tc = confidence > FLT_MIN ? confidence : FLT_MIN;
    if (n_correct < n_all)
        next = alpha / pow_f64(tc, (double)(n_all - n_correct) / n_all);
    if (next < (double)fallback_least)
        return fallback_least;
    return next > (double)fallback_most ? fallback_most : (float)next;
}

static bool is_submitted_leaf(const token_tree *tree, int32_t node)
{
    if (!tree->nodes[node].submitted)
        return false;
    for (int32_t i = node + 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].parent == node && tree->nodes[i].submitted)
            return false;
    return true;
}

/* How many of the path's nodes are above `node`, itself included. */
static int32_t agreement(const token_tree *tree, int32_t node, const int32_t *path, int32_t n_path)
{
    for (; node > 0; node = tree->nodes[node].parent) {
        int32_t depth = tree->nodes[node].depth;
        if (depth <= n_path && path[depth - 1] == node)
            return depth;
    }
    return 0;
}

float fallback_learn(float alpha, const token_tree *tree, const int32_t *path, int32_t n_path)
{
    const tree_node *matching = NULL;
    float tc = 0;
    int32_t n_correct = 0;
    for (int32_t i = 1; i < tree->n_nodes; i++) {
        const tree_node *leaf = &tree->nodes[i];
        if (!is_submitted_leaf(tree, i))
            continue;
        int32_t n = agreement(tree, i, path, n_path);
        if (!matching || n > n_correct ||
            (n == n_correct && leaf->cumulative > matching->cumulative)) {
            matching = leaf;
            n_correct = n;
        }
        if (leaf->cumulative > tc)
            tc = leaf->cumulative;
    }
    return matching ? fallback_next(alpha, tc, matching->depth, n_correct) : alpha;
}
