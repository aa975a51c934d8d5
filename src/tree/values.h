/* The values of a pass's best nodes, and the best nodes for a step. The value of a node is the
 * probability that it is accepted. */
#pragma once

#include "tree/tree.h"

/* Values of the best `most` nodes, falling. */
typedef struct values {
    float value[TREE_MAX_DRAFTED];
    int32_t n;
} values;

/* most: TREE_MAX_DRAFTED at most. */
static inline void values_insert(values *v, float value, int32_t most)
{
    int32_t at = v->n < most ? v->n++ : most;
    for (; at > 0 && v->value[at - 1] < value; at--)
        if (at < most)
            v->value[at] = v->value[at - 1];
    if (at < most)
        v->value[at] = value;
}

/* Node of one of several trees. */
typedef struct ranked_node {
    float value;
    int32_t tree, node;
    int32_t guess; /* index of the guess that is meant instead of the node; -1: the node itself */
} ranked_node;

/* Nodes by falling value, equals as they came. */
typedef struct ranked_nodes {
    ranked_node best[TREE_MAX_STEP];
    int32_t n;
} ranked_nodes;

/* most: TREE_MAX_STEP at most. */
static inline void ranked_insert(ranked_nodes *r, ranked_node x, int32_t most)
{
    int32_t at = r->n < most ? r->n++ : most;
    for (; at > 0 && r->best[at - 1].value < x.value; at--)
        if (at < most)
            r->best[at] = r->best[at - 1];
    if (at < most)
        r->best[at] = x;
}
