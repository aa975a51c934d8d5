/* Verification: one target pass over a token tree (EdgeLLM III-B, batched non-autoregressive
 * verification). */
#ifndef DREY_VERIFY_VERIFY_H
#define DREY_VERIFY_VERIFY_H

#include "draft/tree.h"
#include "model/pass.h"

/* Computes the submitted nodes (at most TREE_MAX_ROWS; the root is one of them) as pending rows of
 * the target's cache, which has none pending before. row_of[node] becomes a node's pending index,
 * which is also the row of its logits in the workspace; -1 for nodes that are not submitted, also
 * for those that the tree does not have yet. */
drey_status verify_tree(runner *target, const token_tree *tree, int32_t row_of[TREE_MAX_NODES],
                        drey_error *err);

#endif
