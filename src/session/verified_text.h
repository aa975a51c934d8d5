/* Verified text: tokens that the target has decided are added to the timeline and delivered. */
#pragma once

#include "drey/drey_session.h"

/* Adds the accepted tokens to the timeline and delivers them to the caller, until one of them ends
 * the text. Returns how many were added, at least 1; the last of them is the next root. logits: of
 * the pass, rows by row_of; NULL: it was stopped. */
int32_t verified_text_write(drey_session *s, const float *logits);
/* Adds all of them, unverified; the caller does not get them yet. */
int32_t verified_text_hold_back(drey_session *s);
/* Delivers the token at a position of the timeline. */
void verified_text_write_at(drey_session *s, int32_t position);
/* Delivers the bytes that were held back, at the text's end. */
void verified_text_flush(drey_session *s);
/* The text ends: forgets deferred rows and unverified tokens. */
void verified_text_drop(drey_session *s);
