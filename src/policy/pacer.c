/* The papers' pacer: see pacer.h. */
#include "policy/pacer.h"

static const float branch_confidence = 0.30f;

void pacer_init(draft_policy *p)
{
    p->alpha = fallback_first;
}

static bool is_branch(const tree_node *node, int32_t max_depth)
{
    return !node->expanded && node->depth < max_depth;
}

static float sum_of_branches(const token_tree *tree, int32_t max_depth)
{
    float sum = 0;
    for (int32_t i = 0; i < tree->n_nodes; i++)
        if (is_branch(&tree->nodes[i], max_depth))
            sum += tree->nodes[i].cumulative;
    return sum;
}

int32_t pacer_next(draft_policy *p, const token_tree *tree, int32_t max_depth, bool normalised,
                   int32_t *nodes)
{
    float m = (float)(tree->n_nodes - 1), tree_confidence = 0, most_behind = 0;
    int32_t chosen = -1;
    if (tree->n_nodes - 1 >= p->size)
        return 0;
    float sum = normalised ? sum_of_branches(tree, max_depth) : 1;
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *branch = &tree->nodes[i];
        if (!is_branch(branch, max_depth))
            continue;
        float share = sum > 0 ? branch->cumulative / sum : 0;
        float behind = m * share - (float)branch->depth;
        if (chosen < 0 || behind > most_behind) {
            chosen = i;
            most_behind = behind;
        }
        if (branch->cumulative > tree_confidence)
            tree_confidence = branch->cumulative;
    }
    nodes[0] = chosen;
    return chosen >= 0 && tree_confidence >= p->alpha;
}

void pacer_push(draft_policy *p, token_tree *tree, int32_t node)
{
    policy_push(p, tree, node, TREE_MAX_GUESSES, branch_confidence);
}

void pacer_observe(draft_policy *p, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next)
{
    (void)next;
    if (policy_has(p, DREY_PART_FALLBACK))
        p->alpha = fallback_learn(p->alpha, tree, path, n_path);
}
