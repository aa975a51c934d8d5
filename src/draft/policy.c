/* How a tree grows: a policy decides which node the drafter expands next and when to stop.
 *
 * `sequence` is the classic fixed-length guess: a chain of best candidates.
 *
 * `llmcad` lets the draft's confidence shape the tree (EdgeLLM III-B and III-C, LLMCad 3.2 and
 * 3.3). A branch is a leaf that can still be extended: its expected length is M * C (M drafted
 * tokens in the tree, C its cumulative confidence), and the next step goes to the branch that is
 * furthest behind. A second candidate opens a branch of its own when it is confident enough. The
 * tree is handed to the target when even its best branch has become a poor guess. */
#include "draft/drafter.h"

#include <assert.h>

static int32_t least(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

static drey_status grow_sequence(drafter *d, token_tree *tree, const draft_limits *limits,
                                 drey_error *err)
{
    int32_t length = least(limits->sequence_tokens, limits->max_depth);
    length = least(length, TREE_MAX_ROWS - tree->n_nodes);
    for (int32_t node = 0, i = 0; i < length; i++) {
        TRY(d->class->expand(d, tree, &node, 1, err));
        const tree_node *last = &tree->nodes[node];
        if (last->n_guesses == 0)
            break;
        node = tree_push(tree, node, last->guess[0].token, last->guess[0].confidence);
    }
    return DREY_OK;
}

/* The branch furthest behind its expectation (the oldest among equals); -1 when no branch can be
 * extended, or when the most confident of them has fallen under alpha: Tc of EdgeLLM III-C. */
static int32_t next_branch(const token_tree *tree, const draft_limits *limits)
{
    float drafted = (float)(tree->n_nodes - 1);
    float tree_confidence = 0, most_behind = 0;
    int32_t chosen = -1;
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *leaf = &tree->nodes[i];
        if (leaf->expanded || leaf->depth >= limits->max_depth)
            continue;
        float behind = drafted * leaf->cumulative - (float)leaf->depth;
        if (chosen < 0 || behind > most_behind) {
            chosen = i;
            most_behind = behind;
        }
        if (leaf->cumulative > tree_confidence)
            tree_confidence = leaf->cumulative;
    }
    return tree_confidence < limits->alpha ? -1 : chosen;
}

static drey_status grow_llmcad(drafter *d, token_tree *tree, const draft_limits *limits,
                               drey_error *err)
{
    int32_t most_nodes = least(limits->max_nodes, TREE_MAX_DRAFTED) + 1;
    while (tree->n_nodes < most_nodes) {
        int32_t node = next_branch(tree, limits);
        if (node < 0)
            break;
        TRY(d->class->expand(d, tree, &node, 1, err));
        const tree_node *parent = &tree->nodes[node];
        assert(parent->expanded);
        for (int32_t i = 0; i < parent->n_guesses && tree->n_nodes < most_nodes; i++) {
            if (i == 0 || parent->guess[i].confidence >= limits->branch_confidence)
                tree_push(tree, node, parent->guess[i].token, parent->guess[i].confidence);
        }
    }
    return DREY_OK;
}

drey_status draft_grow(drafter *d, token_tree *tree, const draft_limits *limits, drey_error *err)
{
    switch (limits->policy) {
    case DREY_POLICY_SEQUENCE:
        return grow_sequence(d, tree, limits, err);
    case DREY_POLICY_LLMCAD:
        return grow_llmcad(d, tree, limits, err);
    case DREY_POLICY_AUTO: /* the engine has made its choice before */
    case DREY_POLICY_NONE:
        break;
    }
    return DREY_OK;
}
