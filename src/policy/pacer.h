/* The common part of LLMCad's and EdgeLLM's pacers. A branch is a leaf that can still be extended;
 * each step extends one; drafting ends by self-adaptive fallback. The pacers differ in the expected
 * length of a branch. */
#ifndef DREY_POLICY_PACER_H
#define DREY_POLICY_PACER_H

#include "policy/fallback.h"
#include "policy/policy.h"

void pacer_init(draft_policy *p);
/* The branch that lacks most of its expected length, the oldest among equals; none if the most
 * confident one is below alpha. A branch's expected length is M * C (M tokens in the tree, C its
 * cumulative confidence); if `normalised`, M * C over the sum of C of all branches. */
int32_t pacer_next(draft_policy *p, const token_tree *tree, int32_t max_depth, bool normalised,
                   int32_t *nodes);
/* Pushes the best guess, and those others that are confident enough to open a branch: at least
 * 0.30, LLMCad's example (3.2); EdgeLLM gives no number. */
void pacer_push(draft_policy *p, token_tree *tree, int32_t node);
void pacer_observe(draft_policy *p, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next);

#endif
