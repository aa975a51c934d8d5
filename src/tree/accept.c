/* The walk along the target's own choices: see accept.h. */
#include "tree/accept.h"

#include "base/fmath.h"
#include "kernel/kernel.h"

/* Minus the logarithm of the token's probability. */
static double distance(const sampler *s, const float *logits, int32_t token)
{
    float top = logits[s->kernels->arg_max(logits, s->n_vocab)];
    double sum = (double)s->kernels->sum_exp(logits, s->n_vocab, top, 1.0f);
    return (double)top + log_f64(sum) - (double)logits[token];
}

/* The oldest one that has a row and is likely enough. */
static int32_t near_child(const token_tree *tree, int32_t node, const int32_t *row_of,
                          const sampler *s, const float *logits, float rollback)
{
    for (int32_t i = node + 1; rollback > 0 && i < tree->n_nodes; i++)
        if (tree->nodes[i].parent == node && row_of[i] >= 0 &&
            distance(s, logits, tree->nodes[i].token) < (double)rollback)
            return i;
    return -1;
}

int32_t accept_path(accepted *out, const token_tree *tree, const node_logits *at, sampler *s,
                    int64_t root_position, float rollback)
{
    int32_t node = 0, n_differed = 0, tokens[TREE_MAX_NODES];
    out->n_path = 0;
    for (;;) {
        const float *here = at->logits + at->row_of[node] * at->ld;
        const sampler_context place = tree_sampled(tree, node, root_position, tokens);
        int32_t token = sampler_choose_at(s, here, &place);
        int32_t child = tree_child(tree, node, token);
        if (child < 0 || at->row_of[child] < 0) {
            child = near_child(tree, node, at->row_of, s, here, rollback);
            n_differed += child >= 0;
        }
        if (child < 0) {
            out->next = token;
            return n_differed;
        }
        out->path[out->n_path++] = child;
        node = child;
    }
}
