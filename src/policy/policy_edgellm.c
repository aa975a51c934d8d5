/* EdgeLLM's pacer (III-B, Eq. 1-2): a branch's expected length is M * C. The next step extends the
 * branch that lacks most of it, which makes the tree's distance D smaller. */
#include "policy/pacer.h"

static int32_t edgellm_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                            int32_t *nodes)
{
    return pacer_next(p, tree, max_depth, false, nodes);
}

const policy_class policy_edgellm = {.option = POLICY_TREE_NODES,
                                     .standard = 32,
                                     .bytes = sizeof(draft_policy),
                                     .init = pacer_init,
                                     .next = edgellm_next,
                                     .push = pacer_push,
                                     .observe = pacer_observe};
