/* Acceptance: walks the tree along the target's own choices (EdgeLLM III-B). Pure. */
#pragma once

#include "tree/tree.h"

typedef struct accepted {
    int32_t path[TREE_MAX_DRAFTED]; /* nodes the target agreed with, below the root downwards */
    int32_t n_path;
    int32_t next; /* the target's token after them: the rectified or bonus token */
} accepted;

/* The target's outputs at the nodes of a tree. */
typedef struct node_logits {
    const float *logits; /* [n_rows][ld] */
    int64_t ld;
    const int32_t *row_of; /* node -> row; -1: it has none, and the walk ends before it. The root
                              has one. */
} node_logits;

/* root_position: the root's position in the timeline (the token after node i is at root_position +
 * depth(i) + 1). rollback above 0: the target also accepts what it finds likely (Big Little
 * Decoder): where no child is its choice, the oldest child is taken whose token has a probability
 * above exp(-rollback) by the target, before sampling. Returns how many were taken this way. */
int32_t accept_path(accepted *out, const token_tree *tree, const node_logits *at, sampler *s,
                    int64_t root_position, float rollback);
