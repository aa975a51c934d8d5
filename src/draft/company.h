/* Trees that one pass of the target verifies, drafted together.
 *
 *   tree 1   o--o--o            steps of the draft hold nodes of several trees, and
 *   tree 2   o--o               one rule decides about steps and rows: whichever node
 *   tree 3   o--o--o--o         writes the most tokens for the time that it adds to
 *                               the turn of all, whosever it is
 *
 * A turn of all writes a token for each tree and the sum of the submitted nodes' values, over the
 * time of the drafting and of the pass over all rows (cost.h). The best nodes of all trees are a
 * best subtree of each, as values fall along paths. Alone, a tree is grown as ever (policy.h). */
#ifndef DREY_DRAFT_COMPANY_H
#define DREY_DRAFT_COMPANY_H

#include "draft/policy.h"

typedef struct company_tree {
    drafter *drafter;
    draft_policy *policy;
    token_tree *tree;
    int32_t max_depth;
    bool ready; /* company_grow's own */
} company_tree;

/* The policies are of one class, the drafters too, and so is what the policies know of costs. */
typedef struct draft_company {
    company_tree *trees; /* [n], at least 1 */
    int32_t n;
    int32_t most; /* drafted nodes that the pass has room for, of all trees */
} draft_company;

/* Grows the trees. An error leaves them valid, and ends it. */
drey_status company_grow(draft_company *c, drey_error *err);
/* Marks what the pass shall verify. */
void company_submit(draft_company *c);

#endif
