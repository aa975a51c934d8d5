/* Test vectors of attention, which a device must compute with the same bits before it takes
 * part. */
#pragma once

#include "unit/device.h"

/* Work to compute: pieces whose keys and values are in these two, of `bytes` each. */
typedef struct check_pieces {
    const uint8_t *keys, *values;
    size_t bytes;
    const device_piece *piece;
    int32_t n;
} check_pieces;
typedef drey_status check_attend_fn(void *user, const check_pieces *p, drey_error *err);

/* Has `run` compute attention over blocks of each format of the cache, and compares it with the
 * plain C kernels: pieces that fold and pieces that do not, scores far apart and close together,
 * values of all sizes; with values that are 1 in one place each, the exponentials themselves.
 * DREY_ERR_UNSUPPORTED: a bit differs. name: the device's, for the sentence. */
drey_status check_attention(check_attend_fn *run, void *user, const char *name, drey_error *err);

/* The same for one format and shape: the first `cut` of n_blocks blocks are folded, n_rows rows of
 * n_q query heads per key head, with `gap` numbers between the rows. */
enum { CHECK_ROWS = 16, CHECK_DIM = 128 }; /* the most */
typedef struct attention_shape {
    kv_format format;
    int32_t head_dim, n_rows, n_q, n_blocks, cut, gap;
} attention_shape;
drey_status check_attention_of(const attention_shape *shape, uint64_t *seed, check_attend_fn *run,
                               void *user, const char *name, drey_error *err);
