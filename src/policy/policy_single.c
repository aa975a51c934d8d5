/* One token per pass: the drafter guesses what follows the root, and none of that is submitted. For
 * passes that are not worth a tree, but whose exits need to know which tokens are likely. */
#include "policy/policy.h"

static int32_t single_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                           int32_t *nodes)
{
    (void)p;
    nodes[0] = 0;
    return !tree->nodes[0].expanded && max_depth > 0;
}

/* The best guess is a node: it may become the root, and be expanded before it does. */
static void single_push(draft_policy *p, token_tree *tree, int32_t node)
{
    if (tree->nodes[node].n_guesses && tree->n_nodes < TREE_MAX_NODES)
        tree_push(tree, node, tree->nodes[node].guess[0].token,
                  tree->nodes[node].guess[0].confidence);
    (void)p;
}

static void single_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    (void)p;
    (void)most;
    tree->nodes[0].submitted = true;
}

const policy_class policy_single = {.option = POLICY_DRAFT_TOKENS,
                                    .standard = 1,
                                    .bytes = sizeof(draft_policy),
                                    .alone = true,
                                    .next = single_next,
                                    .push = single_push,
                                    .submit = single_submit};
