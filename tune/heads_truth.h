/* Counts how often heads are right about a text that was written: for each place where a turn
 * began, which guess of each head was the token that came.
 *
 * A head guesses what follows a token, so it is asked after the tokens that came, not after the
 * guesses of the heads before it:
 *
 *      text         the   cat   sat   on
 *      place         ^ h
 *      asked after the:  "dog", "cat", ...    rank 1
 *                         cat: "sat", ...     rank 0
 *                               sat: "in", ...    none */
#pragma once

#include "tree/static_tree.h"

typedef struct arena arena;
typedef struct drafter drafter;
typedef struct medusa_drafter medusa_drafter;
typedef struct token_tree token_tree;

typedef struct heads_places {
    int32_t n, most, n_embd;
    int32_t *root;       /* [most]: index in the timeline */
    float *hidden;       /* [most][n_embd]: of the row that chose it */
    const int32_t *text; /* [n_text]: the timeline, borrowed; set before heads_ranks */
    int32_t n_text;
} heads_places;

/* Bytes of an arena, for a text of at most n positions. */
size_t heads_places_bytes(int32_t n, int32_t n_embd);
/* Takes its memory from `a`, whose owner checks it. */
void heads_places_init(heads_places *p, int32_t n, int32_t n_embd, arena *a);
/* The next turn begins at this root. Nothing is kept if the drafter has not seen its row. */
void heads_places_keep(heads_places *p, const medusa_drafter *d, int32_t root);

typedef struct heads_answer {
    int8_t rank[STATIC_DEPTHS]; /* [n] */
    int32_t n;
} heads_answer;

/* rank[depth]: of the token text[root + 1 + depth] among what the drafter guesses after the one
 * before it; -1: it is not among them, and nothing follows. n: how many; 0 if the text ends before
 * that or the last head. The drafter has to begin again afterwards; tree is overwritten. */
drey_status heads_ranks(drafter *d, const heads_places *p, int32_t place, token_tree *tree,
                        heads_answer *out, drey_error *err);
