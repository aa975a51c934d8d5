/* Chains of best candidates: of a fixed length (sp), as long as the draft is sure (bld: Big Little
 * Decoder, arXiv:2302.07863), or only a guess at what follows the root (single). */
#include "policy/policy.h"
#include "base/usual.h"

/* The chain's next node: the drafter's best guess, whatever else was drafted below the node. */
static int32_t next_of_chain(const token_tree *tree, int32_t node)
{
    const tree_node *n = &tree->nodes[node];
    return n->n_guesses ? tree_child(tree, node, n->guess[0].token) : -1;
}

/* The last node of the chain as far as all have this confidence. */
static int32_t end_of_chain(const token_tree *tree, float confidence)
{
    int32_t end = 0;
    for (int32_t i; (i = next_of_chain(tree, end)) >= 0 && tree->nodes[i].confidence >= confidence;)
        end = i;
    return end;
}

static int32_t extend_chain(const draft_policy *p, const token_tree *tree, int32_t end,
                            int32_t max_depth, int32_t *nodes)
{
    const tree_node *node = &tree->nodes[end];
    nodes[0] = end;
    return node->depth < p->size && !node->expanded && node->depth < max_depth;
}

static int32_t sequence_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                             int32_t *nodes)
{
    return extend_chain(p, tree, end_of_chain(tree, 0), max_depth, nodes);
}

static void sequence_push(draft_policy *p, token_tree *tree, int32_t node)
{
    (void)p;
    const tree_node *end = &tree->nodes[node];
    if (end->n_guesses && tree->n_nodes < TREE_MAX_NODES)
        tree_push(tree, node, end->guess[0].token, end->guess[0].confidence);
}

/* Submits the path from the root down to `end`, at most to the depth `most`. */
static void submit_path(token_tree *tree, int32_t end, int32_t most)
{
    for (; end >= 0; end = tree->nodes[end].parent)
        tree->nodes[end].submitted = tree->nodes[end].depth <= most;
}

/* Only the chain, whatever else is in the tree. */
static void sequence_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    (void)p;
    submit_path(tree, end_of_chain(tree, 0), most);
}

const policy_class policy_sequence = {.option = POLICY_DRAFT_TOKENS,
                                      .standard = 8,
                                      .bytes = sizeof(draft_policy),
                                      .next = sequence_next,
                                      .push = sequence_push,
                                      .submit = sequence_submit};

/* Up to where the draft was unsure: other chains may have continued from there. */
static int32_t bld_next(draft_policy *p, const token_tree *tree, int32_t max_depth, int32_t *nodes)
{
    return extend_chain(p, tree, end_of_chain(tree, p->sure), max_depth, nodes);
}

static void bld_push(draft_policy *p, token_tree *tree, int32_t node)
{
    const tree_node *end = &tree->nodes[node];
    if (end->n_guesses && end->guess[0].confidence >= p->sure)
        sequence_push(p, tree, node);
}

static void bld_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    submit_path(tree, end_of_chain(tree, p->sure), most);
}

const policy_class policy_bld = {.option = POLICY_DRAFT_TOKENS,
                                 .standard = 32,
                                 .bytes = sizeof(draft_policy),
                                 .rollback = USUAL_BLD_ROLLBACK,
                                 .next = bld_next,
                                 .push = bld_push,
                                 .submit = bld_submit};

/* One token per pass: what is guessed is not submitted. For passes that are not worth a tree, but
 * whose exits need to know which tokens are likely. The best guess is a node: it may become the
 * root, and be expanded before it does. */
static int32_t single_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                           int32_t *nodes)
{
    (void)p;
    nodes[0] = 0;
    return !tree->nodes[0].expanded && max_depth > 0;
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
                                    .push = sequence_push,
                                    .submit = single_submit};
