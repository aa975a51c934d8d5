/* SpecInfer's expansion (si): a tree of one shape, whatever the draft's confidence. At each depth a
 * node has a fixed number of children, <1,1,3,1,1,1,1,1>: 20 nodes, three chains from depth 3 on. A
 * step expands one level. */
#include "common/num.h"
#include "policy/policy.h"

static const int32_t width[] = {1, 1, 3, 1, 1, 1, 1, 1};
enum { N_LEVELS = sizeof width / sizeof *width };

static int32_t specinfer_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                              int32_t *nodes)
{
    int32_t n = 0, level = min_i32(N_LEVELS, max_depth);
    if (tree->n_nodes - 1 >= p->size)
        return 0;
    for (int32_t i = 0; i < tree->n_nodes; i++)
        if (!tree->nodes[i].expanded)
            level = min_i32(level, tree->nodes[i].depth);
    if (level == min_i32(N_LEVELS, max_depth))
        return 0;
    for (int32_t i = 0; i < tree->n_nodes && n < policy_batch(p); i++)
        if (!tree->nodes[i].expanded && tree->nodes[i].depth == level)
            nodes[n++] = i;
    return n;
}

static void specinfer_push(draft_policy *p, token_tree *tree, int32_t node)
{
    int32_t depth = tree->nodes[node].depth;
    policy_push(p, tree, node, depth < N_LEVELS ? width[depth] : 1, 0);
}

const policy_class policy_specinfer = {.option = POLICY_TREE_NODES,
                                       .standard = 20,
                                       .step = 3,
                                       .bytes = sizeof(draft_policy),
                                       .next = specinfer_next,
                                       .push = specinfer_push};
