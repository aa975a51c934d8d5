/* Drafting together the trees that one pass of the target verifies.
 *
 *   tree 1   o--o--o            steps of the draft hold nodes of several trees, and
 *   tree 2   o--o               one rule decides about steps and rows: the node that
 *   tree 3   o--o--o--o         writes the most tokens for the time that it adds to
 *                               the turn of all comes first, whichever tree it is in
 *
 * A turn of all writes one token per text plus the sum of the submitted nodes' values, in the time
 * of the drafting and of the pass over all rows (cost.h). Values fall along paths, so the best
 * nodes of all trees are a best subtree of each. A single tree is grown as in policy.h. */
#pragma once

#include "drey/drey_model.h"

typedef struct draft_policy draft_policy;
typedef struct drafter drafter;
typedef struct token_tree token_tree;

typedef struct shared_tree {
    drafter *drafter;
    draft_policy *policy;
    token_tree *tree;
    int32_t max_depth;
    bool ready; /* shared_drafting_grow's own */
} shared_tree;

/* Recent share of the promised nodes that were accepted: the sums of accepted nodes and of
 * submitted nodes' values, in which old turns fade. It shows a bad draft after a turn or two, long
 * before calibrations follow. */
typedef struct drafting_trust {
    double came, promised;
} drafting_trust;

/* All policies are of one class, all drafters as well, and the policies share what is known of
 * costs. */
typedef struct shared_drafting {
    shared_tree *trees; /* [n], at least 1 */
    int32_t n;
    int32_t n_plain;             /* texts of the pass without a tree; each writes one token */
    const drafting_trust *trust; /* values are scaled by it; NULL: they are not */
    int32_t most;                /* drafted nodes that the pass has room for, of all trees */
} shared_drafting;

/* Returns how much faster, as far as is known, all of them write if the best nodes are expanded:
 * 0.1 is a tenth; at most 0 where drafting does not pay. Then nothing is drafted and the pass has
 * only the roots; what is known of steps and guesses fades towards the usual, so that they are
 * tried again. 1 if costs are not known or steps are free. */
double shared_drafting_promise(const shared_drafting *c);
/* Grows the trees until the policies find them ready. It ends at an error, which leaves them
 * valid. */
drey_status shared_drafting_grow(shared_drafting *c, drey_error *err);
/* Marks the nodes that the pass verifies. */
void shared_drafting_submit(shared_drafting *c);

/* The target has accepted n_path of the tree's submitted nodes, before it is rerooted. */
void drafting_trust_learn(drafting_trust *t, const token_tree *tree, int32_t n_path);
