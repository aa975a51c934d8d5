/* Verified text: tokens that the target has decided join the timeline and go to the caller. */
#ifndef DREY_SESSION_VERIFIED_TEXT_H
#define DREY_SESSION_VERIFIED_TEXT_H

#include "drey/drey.h"

/* The accepted tokens join the timeline and go to the caller, until one of them ends the text.
 * Returns how many joined, 1 at least; the last of them is the next root. logits: of the pass, rows
 * by row_of; NULL: it was stopped. */
int32_t verified_text_write(drey_session *s, const float *logits);
/* All of them join it, unverified, and the caller does not get them yet. */
int32_t verified_text_hold_back(drey_session *s);
/* The token at a place of the timeline goes to the caller. */
void verified_text_write_at(drey_session *s, int32_t position);
/* What was held back of the text's bytes, at its end. */
void verified_text_flush(drey_session *s);
/* The text ends: deferred rows are forgotten, and unverified tokens. */
void verified_text_drop(drey_session *s);

#endif
