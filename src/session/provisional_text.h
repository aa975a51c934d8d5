/* Provisional text: what is shown of a text before it is verified. */
#pragma once

#include "drey/drey_session.h"
#include "text/text.h"

typedef struct provisional_text {
    detokenizer detokenizer;          /* continues from the verified text's */
    char shown[DREY_MAX_PROVISIONAL]; /* [n_shown]: as reported to the caller */
    size_t n_shown;
    int64_t show_at_ns; /* earliest time of the next report */
} provisional_text;

/* This text has become verified. */
void provisional_text_verify(drey_session *s, const char *text, size_t n_bytes);
/* Reports the change of the tree's text; unless `soon`, only if the last report is not too
 * recent. */
void provisional_text_show(drey_session *s, bool soon);
/* Takes all of it back. */
void provisional_text_clear(drey_session *s);
