/* The fallback's threshold: see fallback.h. */
#include "policy/fallback.h"

#include <float.h>

#include "base/fmath.h"
#include "tree/tree.h"

static float bounded(double alpha, float most)
{
    if (alpha < (double)fallback_least)
        return fallback_least;
    return alpha > (double)most ? most : (float)alpha;
}

static double above_0(float confidence)
{
    return confidence > FLT_MIN ? confidence : FLT_MIN;
}

float fallback_printed(const fallback_state *f, float confidence, int32_t n_all, int32_t n_correct)
{
    double next = (double)f->alpha * (double)f->step;
    if (n_correct < n_all)
        next = f->alpha / pow_f64(above_0(confidence), (double)(n_all - n_correct) / n_all);
    return bounded(next, f->most);
}

float fallback_mean(const fallback_state *f, float mean, int32_t n_all, int32_t n_correct)
{
    double alpha = f->alpha;
    return bounded(n_correct < n_all ? alpha / above_0(mean) : alpha * (double)f->step, f->most);
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

/* Returns how many of the path's nodes are above `node`, itself included. */
static int32_t agreement(const token_tree *tree, int32_t node, const int32_t *path, int32_t n_path)
{
    for (; node > 0; node = tree->nodes[node].parent) {
        int32_t depth = tree->nodes[node].depth;
        if (depth <= n_path && path[depth - 1] == node)
            return depth;
    }
    return 0;
}

/* Mean over the tokens that lead to `leaf` after the first wrong one, the n_correct + 1st. */
static float mean_after_wrong(const token_tree *tree, const tree_node *leaf, int32_t n_correct)
{
    double sum = 0;
    int32_t n = leaf->depth - n_correct - 1;
    const tree_node *at = leaf;
    for (; at->depth > n_correct + 1; at = &tree->nodes[at->parent])
        sum += at->cumulative;
    double mean = n > 0 ? sum / n : at->cumulative;
    return (float)(mean / above_0(tree->nodes[at->parent].cumulative));
}

void fallback_learn(fallback_state *f, const token_tree *tree, const int32_t *path, int32_t n_path)
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
    if (!matching)
        return;
    float mean = n_correct < matching->depth ? mean_after_wrong(tree, matching, n_correct) : 1;
    f->alpha = f->rule == DREY_FALLBACK_PRINTED
                   ? fallback_printed(f, tc, matching->depth, n_correct)
                   : fallback_mean(f, mean, matching->depth, n_correct);
}
