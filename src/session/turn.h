/* One turn: guess a tree, run the target over it once, keep the longest right branch. Only the
 * target decides the text; a bad guess costs time, never a token (LLMCad 3.1).
 *
 * It has two halves with a pass between them, because several sessions share a pass. */
#pragma once

#include "session/session.h"

/* Walks from the root, the timeline's last token, along the target's choices: s->accepted. */
void turn_choose(drey_session *s, const pass_group *group);
/* Offers the submitted nodes of the tree as rows[0 .. group->n), with logits for all. */
void turn_offer(drey_session *s, pass_row *rows, pass_group *group);
/* The depth to which a draft may go: limited by the tokens that may still be written, and by the
 * room in the context. */
int32_t turn_depth_left(const drey_session *s);
/* The pass is over: accepts along the target's choices, delivers the text, commits it, and makes
 * the target's next token the root. If the pass was stopped, accepts the tokens for which it
 * stopped. */
void turn_take(drey_session *s, const model_pass *pass, pass_group *group);
