/* The walk along the target's own choices: see accept.h. */
#include "accept/accept.h"

void accept_path(accepted *out, const token_tree *tree, const int32_t *row_of, sampler *s,
                 const float *logits, int64_t ld, int64_t root_position)
{
    int32_t node = 0;
    out->n_path = 0;
    for (;;) {
        int64_t position = root_position + tree->nodes[node].depth + 1;
        int32_t token = sampler_choose(s, logits + row_of[node] * ld, position);
        int32_t child = tree_child(tree, node, token);
        if (child < 0 || row_of[child] < 0) {
            out->next = token;
            return;
        }
        out->path[out->n_path++] = child;
        node = child;
    }
}
