/* Best-first: the tree of nodes that are most likely to be accepted.
 *
 * A node is accepted when all guesses on its path are right, and given the draft's confidences those
 * are as good as independent: its value is the product along the path, which the tree keeps as
 * cumulative confidence. The best tree of n nodes is the n nodes of the greatest values; values fall
 * along paths, so ancestors come with them. A step expands the best nodes that have not been, up to
 * a batch of them, whose children could still be among the best. */
#include "draft/policy.h"

/* Worth no row of any pass. */
static const float least_value = 0.002f;

typedef struct best_nodes {
    int32_t node[TREE_MAX_NODES]; /* by falling value, the older one first among equals */
    int32_t n;
} best_nodes;

static void best_insert(best_nodes *b, const token_tree *tree, int32_t node, int32_t most)
{
    int32_t at = b->n < most ? b->n++ : most;
    for (; at > 0; at--) {
        if (tree->nodes[b->node[at - 1]].cumulative >= tree->nodes[node].cumulative)
            break;
        if (at < most)
            b->node[at] = b->node[at - 1];
    }
    if (at < most)
        b->node[at] = node;
}

/* The least value with which a node is among the tree's best. */
static float value_to_enter(const draft_policy *p, const token_tree *tree)
{
    best_nodes best = {.n = 0};
    for (int32_t i = 1; i < tree->n_nodes; i++)
        best_insert(&best, tree, i, p->size);
    float least = best.n < p->size ? 0 : tree->nodes[best.node[best.n - 1]].cumulative;
    return least > least_value ? least : least_value;
}

static int32_t optimal_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                            int32_t *nodes)
{
    best_nodes best = {.n = 0};
    if (p->size == 0)
        return 0;
    float least = value_to_enter(p, tree);
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *node = &tree->nodes[i];
        if (!node->expanded && node->depth < max_depth && node->cumulative > least)
            best_insert(&best, tree, i, policy_batch(p));
    }
    for (int32_t i = 0; i < best.n; i++)
        nodes[i] = best.node[i];
    return best.n;
}

static void optimal_push(draft_policy *p, token_tree *tree, int32_t node)
{
    const tree_node *parent = &tree->nodes[node];
    float least = value_to_enter(p, tree);
    int32_t n = policy_has(p, DREY_PART_TREE) ? parent->n_guesses : parent->n_guesses > 0;
    for (int32_t i = 0; i < n && tree->n_nodes < TREE_MAX_NODES; i++)
        if (parent->cumulative * parent->guess[i].confidence > least)
            tree_push(tree, node, parent->guess[i].token, parent->guess[i].confidence);
}

const policy_class policy_optimal = {.option = POLICY_TREE_NODES,
                                     .standard = 32,
                                     .bytes = sizeof(draft_policy),
                                     .next = optimal_next,
                                     .push = optimal_push};
