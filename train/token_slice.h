/* Which of the target's tokens its heads guess among: those that its texts hold most often. While
 * they are trained, tokens go by their places:
 *
 *      place   0 ............ n_ids ............ n_rows
 *              | guessed      | others of texts |          each rising by id */
#ifndef DREY_TRAIN_TOKEN_SLICE_H
#define DREY_TRAIN_TOKEN_SLICE_H

#include "base/arena.h"

typedef struct token_slice {
    int32_t n_vocab, n_ids, n_rows;
    int64_t *learnt; /* [n_vocab]: how often texts to learn from hold a token */
    bool *there;     /* [n_vocab]: any text does */
    int32_t *place;  /* [n_vocab], -1: none */
    int32_t *id;     /* [n_rows]: by place; room for n_vocab */
} token_slice;

/* Takes its memory from `a`, whose owner checks it; nothing is counted yet. */
size_t token_slice_bytes(int32_t n_vocab);
void token_slice_init(token_slice *s, int32_t n_vocab, arena *a);
/* By what was counted; of those that are equally frequent the lower ids. 1 <= n_ids <= n_vocab. */
void token_slice_choose(token_slice *s, int32_t n_ids);

#endif
