/* Room for the state of any policy, for tests that make several; growing one
 * tree; and a cost that is made up. */
#pragma once

#include <stdalign.h>
#include <stddef.h>

#include "drey/tune.h"
#include "policy/cost.h"
#include "policy/policy.h"
#include "policy/shared_drafting.h"

typedef struct policy_memory {
    alignas(max_align_t) char bytes[1024];
} policy_memory;

/* Grows one tree, of which no other session's pass knows. */
static inline drey_status draft_grow(drafter *d, draft_policy *p, token_tree *tree,
                                     int32_t max_depth, drey_error *err)
{
    shared_tree only = {.drafter = d, .policy = p, .tree = tree, .max_depth = max_depth};
    shared_drafting alone = {.trees = &only, .n = 1, .most = p->size};
    return shared_drafting_grow(&alone, err);
}

/* A pass over up to 4 rows takes unit_s, each row beyond half of one more; a step a tenth. */
static inline turn_cost small_pass(double unit_s)
{
    turn_cost c = {.usual_pass = unit_s, .step = 0.1 * unit_s, .step_measured = true};
    for (int32_t n = 1; n <= DREY_PROFILE_ROWS; n++)
        c.shape[n - 1] = n <= 4 ? 1 : 1 + 0.5 * (n - 4);
    return c;
}
