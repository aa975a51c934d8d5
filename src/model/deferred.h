/* Deferred rows: committed positions that left a pass before its last layer.
 *
 * Where a pass is stopped at a layer (pass_stop), its rows have no keys and values after it. Those
 * that count are committed all the same, and keep here what flowed between the layers, so that
 * later passes carry them on: a deferred row joins a pass at its layer, and from there on is a
 * row like any other, whose keys and values go to the slot of its position. So at every layer each
 * earlier position of a row has its keys and values in the cache or is in the same batch, and
 * nothing is an approximation: the bits are those of passes that were never stopped.
 *
 *   position  ... | n_committed - n .......... n_committed - 1 | pending
 *   layer 0       |####################################|########|
 *         ..      |####################################|##### <- next_layer of the last one
 *         ..      |####################|
 *   n_layers      |####|  <- next_layer of the first one
 *
 * Invariants (deferred_is_valid): (1) they are the last n committed positions, in order; (2)
 * next_layer is at least 1, and never rises from one to the next: a later position needs the
 * earlier ones' keys and values; (3) a pass that goes to its end leaves none. */
#pragma once

#include "base/arena.h"

typedef struct model_shape model_shape;

typedef struct deferred_rows {
    int32_t n, max;
    int32_t *next_layer; /* [max]: the first without keys and values; n_layers: only the head is
                            left */
    int32_t *token;      /* [max]: its token, where a layer reads more than x; else -1 */
    float *x;            /* [max][row_stride(W)]: the residual stream before it */
} deferred_rows;

size_t deferred_bytes(const model_shape *s, int32_t max);
/* Takes its memory from `a`, whose owner checks it. */
void deferred_init(deferred_rows *d, const model_shape *s, int32_t max, arena *a);
/* The cache forgets its last n_positions committed positions (cache_cut): so do these. */
void deferred_cut(deferred_rows *d, int32_t n_positions);
bool deferred_is_valid(const deferred_rows *d, int32_t n_committed);
