/* Room for the state of any policy, for tests that make several; and growing one tree. */
#ifndef DREY_TESTS_POLICY_MEMORY_H
#define DREY_TESTS_POLICY_MEMORY_H

#include <stdalign.h>
#include <stddef.h>

#include "policy/policy.h"

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

#endif
