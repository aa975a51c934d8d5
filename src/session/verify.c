/* A tree's submitted nodes are a pass's rows: see verify.h. */
#include "session/verify.h"

#include <assert.h>

int32_t verify_rows(const token_tree *tree, int32_t row_of[TREE_MAX_NODES], pass_row *rows)
{
    assert(tree->nodes[0].submitted);
    int32_t n = 0;
    for (int32_t i = 0; i < TREE_MAX_NODES; i++) {
        row_of[i] = -1;
        if (i >= tree->n_nodes || !tree->nodes[i].submitted)
            continue;
        assert(n < TREE_MAX_ROWS);
        int32_t parent = tree->nodes[i].parent;
        rows[n] =
            (pass_row){.token = tree->nodes[i].token, .parent = parent < 0 ? -1 : row_of[parent]};
        row_of[i] = n++;
    }
    return n;
}
