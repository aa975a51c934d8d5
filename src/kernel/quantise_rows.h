/* Quantising of activations into tiles (packing.h), on every tier: the loop over rows and blocks,
 * around a tier's function for one block. */
#pragma once

#include <float.h>

#include "kernel/packing.h"

/* d and its inverse; both 0 when the block is too small to have an inverse. */
static inline float inverse_or_zero(float *d, float inverse)
{
    if (*d == 0 || !(inverse <= FLT_MAX)) {
        *d = 0;
        return 0;
    }
    return inverse;
}

/* The scale of a block of 256, row t of m, and its sums: sum16 of each 16 quantised numbers, and
 * those of 32 in pairs. */
static inline void scale_and_sums_store(uint8_t *block, float d, const int32_t sum16[16], int32_t t,
                                        int32_t m)
{
    memcpy(block + ACT_256_D * m + t * 4, &d, 4);
    for (int s = 0; s < 16; s++) {
        int32_t scaled = sum16[s] * -32;
        memcpy(block + ACT_256_SUM16 * m + (s * m + t) * 4, &scaled, 4);
    }
    for (int p = 0; p < 4; p++) { /* pairs (0, 2), (1, 3), (4, 6), (5, 7) */
        const int32_t *sum = sum16 + (p / 2 * 4 + p % 2) * 2;
        uint32_t pair = (uint32_t)(sum[0] + sum[1]) & 0xffff;
        pair |= (uint32_t)(sum[4] + sum[5]) << 16;
        memcpy(block + ACT_256_PAIRS * m + (p * m + t) * 4, &pair, 4);
    }
}

/* Defines quantise_<name><suffix>, a kernel_table.quantise, on row_block(block, x, t, m): block_k
 * numbers into the block, as row t of m. */
#define DEFINE_QUANTISE(name, block_k, KIND, row_block, suffix, even)                              \
    static void quantise_##name##suffix(void *acts, const float *x, int64_t ldx, int32_t n_first,  \
                                        int32_t n_last, int32_t n, int64_t k)                      \
    {                                                                                              \
        const act_tiling tiling = act_tiling_of(n, even);                                          \
        for (int32_t row = n_first; row < n_last; row++) {                                         \
            const act_tile t = act_tile_at(&tiling, row);                                          \
            uint8_t *tile = (uint8_t *)acts + (size_t)t.first * act_row_bytes(ACT_##KIND, k);      \
            for (int64_t b = 0; b < k / (block_k); b++)                                            \
                row_block(tile + b * ACT_##KIND##_BYTES * t.rows, x + row * ldx + b * (block_k),   \
                          row - t.first, t.rows);                                                  \
        }                                                                                          \
    }
