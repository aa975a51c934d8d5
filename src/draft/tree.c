/* The token tree's few operations: see tree.h.
 *
 * Trees have at most 129 nodes and are walked a handful of times per token of a model that takes
 * milliseconds, so children are found by looking at every node after the parent: no links to keep
 * right. */
#include "draft/tree.h"

#include <assert.h>
#include <float.h>

/* Whatever a drafter says (0, NaN, a sum of floats a hair above 1) becomes a probability that a
 * product survives. */
static float clamp_confidence(float c)
{
    if (!(c >= FLT_MIN))
        return FLT_MIN;
    return c > 1 ? 1 : c;
}

void tree_reset(token_tree *t, int32_t root_token)
{
    t->nodes[0] = (tree_node){.token = root_token, .parent = -1, .confidence = 1, .cumulative = 1};
    t->n_nodes = 1;
}

int32_t tree_push(token_tree *t, int32_t parent, int32_t token, float confidence)
{
    assert(parent >= 0 && parent < t->n_nodes);
    int32_t present = tree_child(t, parent, token);
    if (present >= 0)
        return present;
    assert(t->n_nodes < TREE_MAX_NODES);
    const tree_node *p = &t->nodes[parent];
    float c = clamp_confidence(confidence);
    t->nodes[t->n_nodes] = (tree_node){.token = token,
                                       .parent = parent,
                                       .depth = p->depth + 1,
                                       .confidence = c,
                                       .cumulative = p->cumulative * c};
    return t->n_nodes++;
}

int32_t tree_child(const token_tree *t, int32_t node, int32_t token)
{
    for (int32_t i = node + 1; i < t->n_nodes; i++) {
        if (t->nodes[i].parent == node && t->nodes[i].token == token)
            return i;
    }
    return -1;
}

int32_t tree_path(const token_tree *t, int32_t node, int32_t *out)
{
    int32_t depth = t->nodes[node].depth;
    for (int32_t d = depth; d > 0; d--) {
        out[d - 1] = t->nodes[node].token;
        node = t->nodes[node].parent;
    }
    return depth;
}
