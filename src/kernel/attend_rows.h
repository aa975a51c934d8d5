/* What every vector attention shares: where the rows of a block of positions lie. */
#ifndef DREY_KERNEL_ATTEND_ROWS_H
#define DREY_KERNEL_ATTEND_ROWS_H

#include "kernel/kernel.h"

/* Fills row[ATTEND_BLOCK] with the first number of each position's row in a cache of head_dim wide
 * rows, for positions start .. start + count - 1; the rest repeat the last, so that a kernel may
 * compute whole tiles of keys and forget the surplus. Returns count. */
static inline int32_t attend_rows(int64_t row[ATTEND_BLOCK], int32_t start, int32_t n_prefix,
                                  const int32_t *path, int32_t n_path, int32_t head_dim)
{
    int32_t rest = n_prefix + n_path - start, count = rest < ATTEND_BLOCK ? rest : ATTEND_BLOCK;
    int32_t j = 0;
    for (; j < count; j++) {
        int32_t p = start + j;
        row[j] = (int64_t)(p < n_prefix ? p : path[p - n_prefix]) * head_dim;
    }
    for (; j < ATTEND_BLOCK; j++)
        row[j] = row[count - 1];
    return count;
}

#endif
