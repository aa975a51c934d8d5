/* Verification: one target pass over a whole token tree (EdgeLLM III-B, batched non-autoregressive
 * verification). */
#ifndef DREY_VERIFY_VERIFY_H
#define DREY_VERIFY_VERIFY_H

#include "draft/tree.h"
#include "model/forward.h"

/* Computes every node as a pending row of the target's cache (which has none pending before): node
 * i becomes pending index i, and its logits row i of the workspace. */
drey_status verify_tree(runner *target, const token_tree *tree, drey_error *err);

#endif
