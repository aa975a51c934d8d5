/* Chains of best candidates: of a fixed length (sp), or for as long as the draft is sure (bld: Big
 * Little Decoder, arXiv:2302.07863). */
#include "draft/policy.h"

#include "base/num.h"

/* Of bld: below it the draft hands over (EdgeLLM compares with about that); and what the target lets
 * pass, a share of 0.14 and more. */
static const float fallback = 0.6f;
#define ROLLBACK 2

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

static void bld_push(draft_policy *p, token_tree *tree, int32_t node)
{
    const tree_node *end = &tree->nodes[node];
    if (end->n_guesses && end->guess[0].confidence >= fallback)
        sequence_push(p, tree, node);
}

/* The chain up to where the draft was unsure: others may have gone on from there. */
static void bld_submit(draft_policy *p, token_tree *tree, int32_t most)
{
    int32_t sure = 0, end = 0;
    for (int32_t i = 1; i < tree->n_nodes; i++)
        if (tree->nodes[i].parent == end) {
            if (tree->nodes[i].confidence < fallback)
                break;
            end = i;
            sure++;
        }
    sequence_submit(p, tree, min_i32(most, sure));
}

const policy_class policy_bld = {.option = POLICY_DRAFT_TOKENS,
                                 .standard = 32,
                                 .bytes = sizeof(draft_policy),
                                 .rollback = ROLLBACK,
                                 .next = sequence_next,
                                 .push = bld_push,
                                 .submit = bld_submit};
