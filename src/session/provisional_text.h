/* Provisional text: what is to be seen of a text before it is verified. */
#ifndef DREY_SESSION_PROVISIONAL_TEXT_H
#define DREY_SESSION_PROVISIONAL_TEXT_H

#include "drey/drey.h"
#include "text/detokenizer.h"

typedef struct provisional_text {
    detokenizer detokenizer;          /* continues where the verified text's is */
    char shown[DREY_MAX_PROVISIONAL]; /* [n_shown]: as the caller knows it */
    size_t n_shown;
    int64_t show_at_ns; /* not again before */
} provisional_text;

/* This text joins the verified one. */
void provisional_text_verify(drey_session *s, const char *text, size_t n_bytes);
/* Reports how what the tree says has changed; unless `soon` only where the last report was not a
 * moment ago. */
void provisional_text_show(drey_session *s, bool soon);
/* Takes all of it back. */
void provisional_text_clear(drey_session *s);

#endif
