/* LLMCad's and EdgeLLM's pacers. A branch is a leaf that can still be extended; each step extends
 * the one that lacks most of its expected length; drafting ends by self-adaptive fallback.
 *
 * EdgeLLM (III-B, Eq. 1-2): a branch's expected length is M * C, M tokens in the tree, C its
 * cumulative confidence. Extending the branch that lacks most of it makes the tree's distance D
 * smaller.
 *
 * LLMCad (3.2, Eq. 1-2): it is the branch's share of all branches' cumulative confidence. The paper
 * prints the branch with the least f = M * C / sum(C) - T as the next one, which is the one that is
 * furthest ahead. Max-min fairness, which it means, takes the greatest. */
#include "policy/policy.h"

/* Other guesses than the best open a branch from here on: LLMCad's example (3.2). EdgeLLM gives no
 * number; 0.10 writes more tokens per pass than 0.30 (docs/lab). */
static const float llmcad_branch = 0.30f, edgellm_branch = 0.10f;

static void pacer_init(draft_policy *p)
{
    p->fallback.alpha = fallback_first;
}

static bool is_branch(const tree_node *node, int32_t max_depth)
{
    return !node->expanded && node->depth < max_depth;
}

static float sum_of_branches(const token_tree *tree, int32_t max_depth)
{
    float sum = 0;
    for (int32_t i = 0; i < tree->n_nodes; i++)
        if (is_branch(&tree->nodes[i], max_depth))
            sum += tree->nodes[i].cumulative;
    return sum;
}

/* The oldest among equals; none if the most confident branch is below alpha. */
static int32_t pacer_next(draft_policy *p, const token_tree *tree, int32_t max_depth,
                          int32_t *nodes)
{
    float m = (float)(tree->n_nodes - 1), tree_confidence = 0, most_missing = 0;
    int32_t chosen = -1;
    if (tree->n_nodes - 1 >= p->size)
        return 0;
    float sum = p->class == &policy_llmcad ? sum_of_branches(tree, max_depth) : 1;
    for (int32_t i = 0; i < tree->n_nodes; i++) {
        const tree_node *branch = &tree->nodes[i];
        if (!is_branch(branch, max_depth))
            continue;
        float share = sum > 0 ? branch->cumulative / sum : 0;
        float missing = m * share - (float)branch->depth;
        if (chosen < 0 || missing > most_missing) {
            chosen = i;
            most_missing = missing;
        }
        if (branch->cumulative > tree_confidence)
            tree_confidence = branch->cumulative;
    }
    nodes[0] = chosen;
    return chosen >= 0 && tree_confidence >= p->fallback.alpha;
}

static void pacer_push(draft_policy *p, token_tree *tree, int32_t node)
{
    policy_push(p, tree, node, TREE_MAX_GUESSES,
                p->class == &policy_llmcad ? llmcad_branch : edgellm_branch);
}

static void pacer_observe(draft_policy *p, const token_tree *tree, const int32_t *path,
                          int32_t n_path, int32_t next)
{
    (void)next;
    if (policy_has(p, DREY_PART_FALLBACK))
        fallback_learn(&p->fallback, tree, path, n_path);
}

#define PACER(to_the_letter)                                                                       \
    {                                                                                              \
        .literal = (to_the_letter), .option = POLICY_TREE_NODES, .standard = 32,                   \
        .bytes = sizeof(draft_policy), .init = pacer_init, .next = pacer_next, .push = pacer_push, \
        .observe = pacer_observe                                                                   \
    }
const policy_class policy_edgellm = PACER(false), policy_llmcad = PACER(true);
