/* LLMCad's pacer (3.2, Eq. 1-2): a branch's expected length is its share of all branches'
 * cumulative confidence. The paper prints the branch with the least f = M * C / sum(C) - T as the
 * next one, which is the one that is furthest ahead. Max-min fairness, which it means, takes the
 * greatest. */
#include "policy/pacer.h"

static int32_t llmcad_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                           int32_t *nodes)
{
    return pacer_next(p, tree, max_depth, true, nodes);
}

const policy_class policy_llmcad = {.option = POLICY_TREE_NODES,
                                    .standard = 32,
                                    .bytes = sizeof(draft_policy),
                                    .init = pacer_init,
                                    .next = llmcad_next,
                                    .push = pacer_push,
                                    .observe = pacer_observe};
