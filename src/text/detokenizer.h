/* Streaming text: tokens go in one by one, whole UTF-8 characters come out; nothing is held back at
 * the end. Also stop texts: what might be the beginning of one is held back until it is decided.
 * Fixed memory after init. */
#ifndef DREY_TEXT_DETOKENIZER_H
#define DREY_TEXT_DETOKENIZER_H

#include "text/tokenizer.h"

typedef struct detokenizer {
    const tokenizer *tokenizer; /* borrowed */
    const char *const *stops;   /* borrowed */
    size_t n_stops;
    char *held; /* bytes not yet given out */
    size_t n_held, capacity;
    bool special, started;
    bool stopped; /* a stop text was found; nothing more comes out */
} detokenizer;

/* Allocates for the longest token and stop text. */
drey_status detokenizer_init(detokenizer *d, const tokenizer *t, const char *const *stops,
                             size_t n_stops, bool special, drey_error *err);
void detokenizer_free(detokenizer *d);

/* Takes a token. *text, *n_bytes: what can be shown now, borrowed until the next call (n_bytes may
 * be 0). Bytes that can never become valid UTF-8 are passed on as they are. */
void detokenizer_push(detokenizer *d, int32_t id, const char **text, size_t *n_bytes);
/* What was held back, at the end of a text. */
void detokenizer_flush(detokenizer *d, const char **text, size_t *n_bytes);

#endif
