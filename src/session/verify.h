/* Verification: one target pass over a token tree (EdgeLLM III-B, batched non-autoregressive
 * verification). The tree's nodes become rows, which may share the pass with other sessions'. */
#ifndef DREY_SESSION_VERIFY_H
#define DREY_SESSION_VERIFY_H

#include "tree/tree.h"
#include "model/pass.h"

/* Fills rows with the submitted nodes (at most TREE_MAX_ROWS; the root is one of them) and returns
 * how many, for a cache that has no row pending. row_of[node] becomes a node's row, which is its
 * pending index and the row of its logits; -1 for nodes that are not submitted, also for those that
 * the tree does not have yet. */
int32_t verify_rows(const token_tree *tree, int32_t row_of[TREE_MAX_NODES], pass_row *rows);

#endif
