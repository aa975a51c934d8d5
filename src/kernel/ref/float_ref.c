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

/* scratch: the k floats of a row. */
static void dot_float(tensor_type type, fma_row row, float *y, int64_t ldy, const void *groups,
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

/* Set once with the tables, before any dot runs. */
static fma_row best_row;

#define DEFINE_DOT_FLOAT(TYPE, name, act, block_k, block_bytes)                                    \
    static void dot_##name##_float(float *y, int64_t ldy, const void *groups, int32_t n_groups,    \
                                   const void *acts, int32_t n, int64_t k, void *scratch)          \
    {                                                                                              \
        dot_float(TYPE_##TYPE, best_row, y, ldy, groups, n_groups, acts, n, k, scratch);           \
    }
KERNEL_TYPES(DEFINE_DOT_FLOAT)

void float_dots_set(kernel_table *table, fma_row row)
{
    best_row = row;
#define SET_TYPE(TYPE, name, act_, block_k, block_bytes)                                           \
    table->matmul[TYPE_##TYPE].act = ACT_F32;                                                      \
    table->matmul[TYPE_##TYPE].dot = dot_##name##_float;                                           \
    table->matmul[TYPE_##TYPE].tile = NULL;
    KERNEL_TYPES(SET_TYPE)
#undef SET_TYPE
}

void float_matmul_init(kernel_table *table)
{
    float_dots_set(table, fma_row_ref);
}
