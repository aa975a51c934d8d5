/* The float tier: activations stay float and weights are dequantised, so that what 8-bit
 * activations cost in accuracy can be measured. It is a judge, not a runner: a row is dequantised
 * once a call and meets all activation rows. */
#include "kernel/tiers.h"

#include <math.h>

#include "kernel/ref/ref.h"

static void fma_row_ref(float *y, int64_t ldy, const float *weights, const float *acts, int32_t n,
                        int64_t k)
{
    for (int32_t first = 0; first < n; first += TOKEN_TILE) {
        int32_t m = tile_rows(first, n);
        const float *tile = acts + first * k;
        float sums[TOKEN_TILE] = {0};
        for (int64_t i = 0; i < k; i++)
            for (int32_t t = 0; t < m; t++)
                sums[t] = fmaf(weights[i], tile[i * m + t], sums[t]);
        for (int32_t t = 0; t < m; t++)
            y[(first + t) * ldy] = sums[t];
    }
}

void dot_float(tensor_type type, fma_row *row, float *y, int64_t ldy, const void *groups,
               int32_t n_groups, const void *acts, int32_t n, int64_t k, void *scratch)
{
    const type_layout *layout = layout_find(type);
    size_t group_bytes =
        (size_t)(k / layout->block_k) * (size_t)layout->file_block_bytes * GROUP_ROWS;
    for (int32_t g = 0; g < n_groups; g++)
        for (int32_t r = 0; r < GROUP_ROWS; r++) {
            unpack_row_ref(type, scratch, (const uint8_t *)groups + (size_t)g * group_bytes, r, k);
            row(y + (int64_t)g * GROUP_ROWS + r, ldy, scratch, acts, n, k);
        }
}

#define DEFINE_DOT_REF(TYPE, name, act, block_k, block_bytes)                                      \
    DEFINE_FLOAT_DOT(TYPE, name, fma_row_ref)
KERNEL_TYPES(DEFINE_DOT_REF)

void float_matmul_init(kernel_table *table)
{
    KERNEL_TYPES(SET_FLOAT_DOT)
}
