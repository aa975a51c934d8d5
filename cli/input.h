/* Text that comes in, and its tokens. */
#ifndef DREY_CLI_INPUT_H
#define DREY_CLI_INPUT_H

#include "drey/drey.h"

/* The whole of a file, or of standard input where path is NULL, as it is. *out has n bytes and a
 * NUL behind them; the caller frees it. what names the text in messages and in the hint that a
 * person at a terminal gets: "the prompt". */
drey_status input_read(const char *path, const char *what, char **out, size_t *n_bytes,
                       drey_error *err);

/* The ids of a text; the caller frees *ids. flags as for drey_tokenize. */
drey_status input_tokens(const drey_model *model, const char *text, size_t n_bytes, int flags,
                         int32_t **ids, size_t *n_ids, drey_error *err);

#endif
