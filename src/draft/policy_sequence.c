/* The classic fixed-length guess: a chain of best candidates. */
#include "draft/policy.h"

static int32_t sequence_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                             int32_t *nodes)
{
    int32_t end = tree->n_nodes - 1;
    nodes[0] = end;
    return end < p->size && !tree->nodes[end].expanded && tree->nodes[end].depth < max_depth;
}

static void sequence_push(draft_policy *p, token_tree *tree, int32_t node)
{
    (void)p;
    const tree_node *end = &tree->nodes[node];
    if (end->n_guesses)
        tree_push(tree, node, end->guess[0].token, end->guess[0].confidence);
}

const policy_class policy_sequence = {.option = POLICY_DRAFT_TOKENS,
                                      .standard = 8,
                                      .bytes = sizeof(draft_policy),
                                      .next = sequence_next,
                                      .push = sequence_push};
