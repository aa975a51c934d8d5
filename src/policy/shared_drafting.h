/* Trees that one pass of the target verifies, drafted together.
 *
 *   tree 1   o--o--o            steps of the draft hold nodes of several trees, and
 *   tree 2   o--o               one rule decides about steps and rows: whichever node
 *   tree 3   o--o--o--o         writes the most tokens for the time that it adds to
 *                               the turn of all, whosever it is
 *
 * A turn of all writes a token for each text and the sum of the submitted nodes' values, over the
 * time of the drafting and of the pass over all rows (cost.h). The best nodes of all trees are a
 * best subtree of each, as values fall along paths. Alone, a tree is grown as ever (policy.h). */
#ifndef DREY_POLICY_SHARED_DRAFTING_H
#define DREY_POLICY_SHARED_DRAFTING_H

#include "policy/policy.h"

typedef struct shared_tree {
    drafter *drafter;
    draft_policy *policy;
    token_tree *tree;
    int32_t max_depth;
    bool ready; /* shared_drafting_grow's own */
} shared_tree;

/* What trees have brought of late of what their submitted nodes promised: the sums of accepted
 * nodes and of values, the past fading. A draft that is wrong is seen within a turn or two, long
 * before calibrations follow. */
typedef struct drafting_trust {
    double came, promised;
} drafting_trust;

/* The policies are of one class, the drafters too, and so is what the policies know of costs. */
typedef struct shared_drafting {
    shared_tree *trees; /* [n], at least 1 */
    int32_t n;
    int32_t n_plain;             /* texts of the pass without a tree, which write a token each */
    const drafting_trust *trust; /* values are taken for that part of them; NULL: as they are */
    int32_t most;                /* drafted nodes that the pass has room for, of all trees */
} shared_drafting;

/* How much faster, as far as is known, all of them write if the best nodes are expanded: 0.1 is a
 * tenth, and not above 0 where it does not pay. Nothing is drafted then, and the pass is the
 * roots'; what is known of steps and guesses fades towards what is usual meanwhile, so that they
 * are tried again. Without costs to compare, and where steps are free: 1. */
double shared_drafting_promise(const shared_drafting *c);
/* Grows the trees. An error leaves them valid, and ends it. */
drey_status shared_drafting_grow(shared_drafting *c, drey_error *err);
/* Marks what the pass shall verify. */
void shared_drafting_submit(shared_drafting *c);

/* The target has accepted n_path of the tree's submitted nodes, before it is rerooted. */
void drafting_trust_learn(drafting_trust *t, const token_tree *tree, int32_t n_path);

#endif
