/* The tokens of the target that a drafter can guess: the most frequent ones of its texts. During
 * training, tokens are identified by their places:
 *
 *      place   0 ............ n_ids ............ n_rows
 *              | guessed      | others of texts |          each rising by id */
#pragma once

#include "base/arena.h"
#include "gguf/gguf.h"
#include "kernel/kernel.h"

typedef struct token_slice {
    int32_t n_vocab, n_ids, n_rows;
    int64_t *learnt; /* [n_vocab]: how often training texts have a token */
    bool *there;     /* [n_vocab]: some text has it */
    int32_t *place;  /* [n_vocab], -1: none */
    int32_t *id;     /* [n_rows]: by place; room for n_vocab */
} token_slice;

/* Takes its memory from `a`, whose owner checks it; nothing is counted yet. */
size_t token_slice_bytes(int32_t n_vocab);
void token_slice_init(token_slice *s, int32_t n_vocab, arena *a);
/* Chooses by the counts; among equally frequent tokens the lower ids. 1 <= n_ids <= n_vocab. */
void token_slice_choose(token_slice *s, int32_t n_ids);
/* Rows of a matrix of the target at these places, in half precision. out: [n_rows][dims[0]].
 * DREY_ERR_IO, DREY_ERR_FORMAT, DREY_ERR_MEMORY. */
drey_status token_slice_read(const token_slice *s, const gguf *g, const gguf_tensor *tensor,
                             const kernel_table *kernels, uint16_t *out, drey_error *err);
