/* The values of a pass's best nodes. The value of a node is the probability that it is accepted. */
#ifndef DREY_TREE_VALUES_H
#define DREY_TREE_VALUES_H

#include "tree/tree.h"

/* Of the best `most` nodes, falling. */
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

#endif
