/* Which nodes the draft expands while a verification waits for weights (EdgeLLM III-D).
 *
 * The tree goes on growing beyond what the target is verifying. What that is worth is the
 * probability that the text comes by there, which a node's cumulative confidence is: so the best
 * eight are expanded, whatever stands in the tree so far, out of
 *
 *   (a) nodes that nobody has expanded, submitted or not;
 *   (b) guesses of expanded nodes that are not in the tree. They become nodes, provisional ones.
 *
 * (b) is where the text goes on when it leaves the submitted tree: the target's next token is then
 * a guess that the tree had no row for. */
#ifndef DREY_POLICY_PROVISIONAL_H
#define DREY_POLICY_PROVISIONAL_H

#include "draft/drafter.h"

typedef struct provisional_rules {
    int32_t max_depth; /* nodes of this depth are not expanded */
    int32_t batch;     /* nodes of a step, at most DRAFT_MAX_BATCH */
    int32_t ranks;     /* guesses of a node that count, from the best on */
    float least;       /* nor are those with a cumulative confidence below this one */
    /* What the drafter's confidence in its guess number `rank` (0: the best) is worth, in (0, 1];
     * NULL: what it says. */
    float (*calibrate)(const void *user, int32_t rank, float confidence);
    const void *calibrate_user;
    /* Nothing follows this token. NULL: there is none such. */
    bool (*is_end)(const void *user, int32_t token);
    const void *is_end_user;
} provisional_rules;

/* nodes[0..n) of the next step, the best first (among equals (a) before (b), the oldest first), all
 * with expanded parents. Guesses become nodes as long as the tree has room. 0: nothing is worth a
 * step, or the tree is full. */
int32_t provisional_next(const provisional_rules *rules, token_tree *tree,
                         int32_t nodes[DRAFT_MAX_BATCH]);

#endif
