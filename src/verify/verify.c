/* A tree's nodes are a pass's rows: see verify.h. */
#include "verify/verify.h"

#include <assert.h>

drey_status verify_tree(runner *target, const token_tree *tree, drey_error *err)
{
    assert(target->kv->n_pending == 0);
    forward_row rows[TREE_MAX_NODES];
    for (int32_t i = 0; i < tree->n_nodes; i++)
        rows[i] = (forward_row){.token = tree->nodes[i].token, .parent = tree->nodes[i].parent};
    return forward(target, rows, tree->n_nodes, HEAD_ALL, err);
}
