/* Chooses the nodes that the draft expands while a verification waits for weights (EdgeLLM III-D).
 *
 * The tree continues to grow beyond what the target is verifying. A new node is worth the
 * probability that the text reaches it, its cumulative confidence. So the best eight are expanded
 * out of
 *
 *   (a) nodes that are not expanded, submitted or not;
 *   (b) guesses of expanded nodes that are not in the tree. They become nodes, provisional ones.
 *
 * (b) is where the text continues when it leaves the submitted tree: the target's next token is
 * then a guess for which the tree had no row. */
#pragma once

#include "draft/drafter.h"

typedef struct provisional_rules {
    int32_t max_depth; /* nodes of this depth are not expanded */
    int32_t batch;     /* nodes of a step, at most DRAFT_MAX_BATCH */
    int32_t ranks;     /* number of a node's best guesses that are considered */
    float least;       /* nor are nodes of a lower cumulative confidence */
    /* Returns the worth of the drafter's confidence in its guess number `rank` (0: the best) is
     * worth, in (0, 1]; NULL: the confidence itself. */
    float (*calibrate)(const void *user, int32_t rank, float confidence);
    const void *calibrate_user;
    /* Returns whether nothing follows this token. NULL: there is no such token. */
    bool (*is_end)(const void *user, int32_t token);
    const void *is_end_user;
} provisional_rules;

/* Returns n, with nodes[0..n) of the next step, the best first (among equals (a) before (b), the
 * oldest first); all have expanded parents. Guesses become nodes as long as the tree has room. 0:
 * nothing is worth a step, or the tree is full. */
int32_t provisional_next(const provisional_rules *rules, token_tree *tree,
                         int32_t nodes[DRAFT_MAX_BATCH]);
