/* The classic fixed-length guess (sp): a chain of best candidates. */
#include "draft/policy.h"

/* The end of the chain of first children. */
static int32_t end_of_chain(const token_tree *tree)
{
    int32_t end = 0;
    for (int32_t i = 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].parent == end)
            end = i;
    return end;
}

static int32_t sequence_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                             int32_t *nodes)
{
    nodes[0] = end_of_chain(tree);
    const tree_node *end = &tree->nodes[nodes[0]];
    return end->depth < p->size && !end->expanded && end->depth < max_depth;
}

static void sequence_push(draft_policy *p, token_tree *tree, int32_t node)
{
    (void)p;
    const tree_node *end = &tree->nodes[node];
    if (end->n_guesses && tree->n_nodes < TREE_MAX_NODES)
        tree_push(tree, node, end->guess[0].token, end->guess[0].confidence);
}

/* The chain alone, whatever else the tree holds. */
static void sequence_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    (void)p;
    int32_t end = 0;
    tree->nodes[0].submitted = true;
    for (int32_t i = 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].parent == end && tree->nodes[i].depth <= most) {
            tree->nodes[i].submitted = true;
            end = i;
        }
}

const policy_class policy_sequence = {.option = POLICY_DRAFT_TOKENS,
                                      .standard = 8,
                                      .bytes = sizeof(draft_policy),
                                      .next = sequence_next,
                                      .push = sequence_push,
                                      .submit = sequence_submit};
