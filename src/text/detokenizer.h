/* Streaming text: tokens go in one by one, whole UTF-8 characters come out. What might be the
 * beginning of a stop text is held back until that is decided. The output depends only on the
 * bytes, not on how tokens divide them: the stop text that is complete first ends the text (the
 * longest one if there are several). No allocation after init.
 *
 *   held:  | given out by the last call | held back |  room for the next token  |
 *          0                            n_given     n_held                      capacity */
#pragma once

#include "drey/drey_model.h"

typedef struct tokenizer tokenizer;

typedef struct detokenizer {
    const tokenizer *tokenizer; /* borrowed */
    const char *const *stops;   /* borrowed */
    size_t n_stops;
    char *held;
    size_t n_given, n_held, capacity;
    bool special;
    /* something was written: SentencePiece drops no more blanks. Set it after init if the text
     * continues another one. */
    bool started;
    bool stopped; /* a stop text was found, stops[stop]; there is no more output */
    size_t stop;
} detokenizer;

/* Allocates for the longest token and stop text. Empty stop texts are ignored. DREY_ERR_MEMORY. */
drey_status detokenizer_init(detokenizer *d, const tokenizer *t, const char *const *stops,
                             size_t n_stops, bool special, drey_error *err);
void detokenizer_free(detokenizer *d);

/* Copies the state of `other` to d, which was initialised with the same tokenizer and stop
 * texts. */
void detokenizer_follow(detokenizer *d, const detokenizer *other);
/* Takes a token. *text, *n_bytes: what can be shown now, borrowed until the next call (n_bytes may
 * be 0). Bytes that can never become valid UTF-8 are passed on unchanged. */
void detokenizer_push(detokenizer *d, int32_t id, const char **text, size_t *n_bytes);
/* Returns what was held back, at the end of a text. cut_off: more tokens might have followed, so
 * the first bytes of a character are left out; otherwise the model wrote no more of it, and they
 * are given out as they are. */
void detokenizer_flush(detokenizer *d, bool cut_off, const char **text, size_t *n_bytes);
