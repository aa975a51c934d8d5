/* A tree that follows the draft's confidence, by the pacer of EdgeLLM III-B.
 *
 * A branch is a leaf that can still be extended: its expected length is M * C (M drafted tokens in
 * the tree, C its cumulative confidence), and the next step goes to the branch that is furthest
 * behind. A second guess opens a branch of its own when it is confident enough (LLMCad 3.2). The
 * tree is ready when even its best branch has become a poor guess (EdgeLLM III-C; its alpha adapts,
 * this one is constant). */
#include "draft/policy.h"

static const float branch_confidence = 0.30f; /* LLMCad's example */
static const float alpha = 0.01f;             /* where EdgeLLM begins */

/* The branch furthest behind its expectation (the oldest among equals), unless the most confident
 * one has fallen under alpha: Tc of EdgeLLM III-C. */
static int32_t tree_next(draft_policy *p, const token_tree *tree, int32_t max_depth, int32_t *nodes)
{
    float drafted = (float)(tree->n_nodes - 1);
    float tree_confidence = 0, most_behind = 0;
    int32_t chosen = -1;
    if (tree->n_nodes - 1 >= p->size)
        return 0;
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *leaf = &tree->nodes[i];
        if (leaf->expanded || leaf->depth >= max_depth)
            continue;
        float behind = drafted * leaf->cumulative - (float)leaf->depth;
        if (chosen < 0 || behind > most_behind) {
            chosen = i;
            most_behind = behind;
        }
        if (leaf->cumulative > tree_confidence)
            tree_confidence = leaf->cumulative;
    }
    nodes[0] = chosen;
    return chosen >= 0 && tree_confidence >= alpha;
}

static void tree_push_confident(draft_policy *p, token_tree *tree, int32_t node)
{
    const tree_node *parent = &tree->nodes[node];
    for (int32_t i = 0; i < parent->n_guesses && tree->n_nodes - 1 < p->size; i++)
        if (i == 0 || parent->guess[i].confidence >= branch_confidence)
            tree_push(tree, node, parent->guess[i].token, parent->guess[i].confidence);
}

const policy_class policy_tree = {.option = POLICY_TREE_NODES,
                                  .standard = 32,
                                  .bytes = sizeof(draft_policy),
                                  .next = tree_next,
                                  .push = tree_push_confident};
