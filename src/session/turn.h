/* One turn: guess a tree, run the target over it once, keep the longest right branch. The target
 * alone decides the text; a bad guess costs time, never a token (LLMCad 3.1).
 *
 * It comes in two halves with a pass between them, because several sessions share a pass. */
#ifndef DREY_SESSION_TURN_H
#define DREY_SESSION_TURN_H

#include "session/session.h"

/* Offers the submitted nodes of the tree as rows[0 .. group->n), with logits for all. */
void turn_offer(drey_session *s, pass_row *rows, pass_group *group);
/* How deep a draft may go: what may still be written, and what the context still holds. */
int32_t turn_depth_left(const drey_session *s);
/* The pass is over: accepts along the target's choices, hands out the text, commits it, and makes
 * the target's next token the root. Where the pass was stopped, along those that it stopped for. */
void turn_take(drey_session *s, const model_pass *pass, pass_group *group);

/* Fills rows with the submitted nodes (at most TREE_MAX_ROWS; the root is one of them) and returns
 * how many, for a cache that has no row pending. row_of[node] becomes a node's row, which is its
 * pending index and the row of its logits; -1 for nodes that are not submitted, also for those that
 * the tree does not have yet. */
int32_t turn_rows(const token_tree *tree, int32_t row_of[TREE_MAX_NODES], pass_row *rows);

#endif
