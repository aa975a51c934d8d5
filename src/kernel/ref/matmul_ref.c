/* Matrix kernels in plain C: the statement of what every tier computes (kernel.h), and what a
 * machine without SIMD runs. */
#include "kernel/tiers.h"

#include <math.h>

#include "kernel/dot.h"
#include "kernel/planes_join.h"
#include "kernel/ref/ref.h"
#include "kernel/unroll.h"
#include "os/cpu_tuning.h"

/* Sum of q * x over n weights from i0 on, of whole words, x in words m apart. */
static int32_t dot_int(const int8_t *q, const uint8_t *words, int32_t i0, int32_t n, int32_t m)
{
    int32_t sum = 0;
    for (int32_t i = i0; i < i0 + n; i += 4) {
        const int8_t *x = (const int8_t *)words + (ptrdiff_t)i * m;
        sum += q[i] * x[0] + q[i + 1] * x[1] + q[i + 2] * x[2] + q[i + 3] * x[3];
    }
    return sum;
}

/* One row's block of 32 times every row of the tile. */
INLINE void block_32_add(float *sums, const row_block *w, const uint8_t *acts, int32_t m,
                         bool has_m)
{
    for (int32_t t = 0; t < m; t++) {
        float d = load_f32(acts + ACT_32_D * m + t * 4);
        int32_t sum = (int32_t)load_u32(acts + ACT_32_SUM * m + t * 4);
        float acc = sums[t * GROUP_ROWS];
        acc = fmaf(w->d * d, (float)dot_int(w->q, acts + t * 4, 0, 32, m), acc);
        if (has_m)
            acc = fmaf(w->m * d, (float)sum, acc);
        sums[t * GROUP_ROWS] = acc;
    }
}

/* One row's block of 256 times every row of the tile. */
INLINE void block_256_add(float *sums, const row_block *w, const uint8_t *acts, int32_t m,
                          int32_t sub_k, bool has_min)
{
    for (int32_t t = 0; t < m; t++) {
        float d = load_f32(acts + ACT_256_D * m + t * 4);
        int32_t products = 0, minima = 0;
        for (int32_t s = 0; s < 256 / sub_k; s++)
            products += w->scale[s] * dot_int(w->q, acts + t * 4, s * sub_k, sub_k, m);
        float acc = fmaf(w->d * d, (float)products, sums[t * GROUP_ROWS]);
        if (has_min) {
            for (int32_t s = 0; s < 16; s++) {
                int32_t scaled = (int32_t)load_u32(acts + ACT_256_SUM16 * m + (s * m + t) * 4);
                minima += w->min[s * 16 / sub_k] * (scaled / -32);
            }
            acc = fmaf(-(w->m * d), (float)minima, acc);
        }
        sums[t * GROUP_ROWS] = acc;
    }
}

/* One row's block of 64, whose sub-blocks of 16 have scales of their own, times every row of the
 * tile's two blocks of 32. */
INLINE void block_64_add(float *sums, const row_block *w, const uint8_t *acts, int32_t m)
{
    for (int32_t t = 0; t < m; t++) {
        float acc = sums[t * GROUP_ROWS];
        for (int32_t s = 0; s < 4; s++) {
            const uint8_t *x = acts + s / 2 * ACT_Q8_32_BYTES * m;
            float d = load_f32(x + ACT_32_D * m + t * 4);
            int32_t sum = dot_int(w->q + s * 16, x + (s % 2 * 4 * m + t) * 4, 0, 16, m);
            acc = fmaf(w->fine[s] * d, (float)sum, acc);
        }
        sums[t * GROUP_ROWS] = acc;
    }
}

/* sub_k and has_m are constants: QUANTISED_TYPES and CODED_TYPES. */
INLINE void tile_ref(tensor_type type, const int32_t sub_k, const bool has_m, float *sums,
                     const uint8_t *weights, const uint8_t *acts, int32_t n_blocks, int32_t m)
{
    const int32_t weight_bytes = layout_find(type)->file_block_bytes * GROUP_ROWS;
    row_block w;
    for (int32_t b = 0; b < n_blocks; b++) {
        for (int32_t r = 0; r < GROUP_ROWS; r++) {
            decoders_ref[type].decode(&w, weights, r);
            if (sub_k == FLOAT_SUBS)
                block_64_add(sums + r, &w, acts, m);
            else if (sub_k)
                block_256_add(sums + r, &w, acts, m, sub_k, has_m);
            else
                block_32_add(sums + r, &w, acts, m, has_m);
        }
        weights += weight_bytes;
        acts += (sub_k == FLOAT_SUBS ? 2 * ACT_Q8_32_BYTES
                 : sub_k             ? ACT_Q8_256_BYTES
                                     : ACT_Q8_32_BYTES) *
                m;
    }
}

#define DEFINE_TILE(TYPE, name, sub_k, has_m)                                                      \
    static void tile_##name##_ref(float *sums, const uint8_t *weights, const uint8_t *acts,        \
                                  int32_t n_blocks, int32_t m)                                     \
    {                                                                                              \
        tile_ref(TYPE_##TYPE, sub_k, has_m, sums, weights, acts, n_blocks, m);                     \
    }

QUANTISED_TYPES(DEFINE_TILE)
#define DEFINE_CODED(X, TYPE, name, act, block_k, block_bytes, sub_k, ...)                         \
    DEFINE_TILE(TYPE, name, sub_k, false)
CODED_TYPES(DEFINE_CODED, )

/* Float weights: a block is one k. */
#define DEFINE_TILE_FLOAT(name, bytes)                                                             \
    static void tile_##name##_ref(float *sums, const uint8_t *weights, const uint8_t *acts,        \
                                  int32_t n_blocks, int32_t m)                                     \
    {                                                                                              \
        for (int32_t b = 0; b < n_blocks; b++) {                                                   \
            for (int32_t r = 0; r < GROUP_ROWS; r++) {                                             \
                float w = decode_##name##_ref(weights, r);                                         \
                for (int32_t t = 0; t < m; t++)                                                    \
                    sums[t * GROUP_ROWS + r] =                                                     \
                        fmaf(w, load_f32(acts + t * 4), sums[t * GROUP_ROWS + r]);                 \
            }                                                                                      \
            weights += (bytes)*GROUP_ROWS;                                                         \
            acts += ACT_F32_BYTES * m;                                                             \
        }                                                                                          \
    }

DEFINE_TILE_FLOAT(f32, 4)
DEFINE_TILE_FLOAT(f16, 2)
DEFINE_TILE_FLOAT(bf16, 2)

#define DEFINE_TYPE(TYPE, name, act, block_k, block_bytes)                                         \
    static size_t group_bytes_##name(int64_t k)                                                    \
    {                                                                                              \
        return (size_t)(k / (block_k)) * (block_bytes)*GROUP_ROWS;                                 \
    }                                                                                              \
    static bool pack_##name##_ref(void *group, const void *rows, int64_t row_bytes,                \
                                  int32_t n_rows, int64_t k)                                       \
    {                                                                                              \
        return pack_ref(TYPE_##TYPE, group, rows, row_bytes, n_rows, k);                           \
    }                                                                                              \
    static void unpack_row_##name##_ref(float *out, const void *group, int32_t r, int64_t k)       \
    {                                                                                              \
        unpack_row_ref(TYPE_##TYPE, out, group, r, k);                                             \
    }                                                                                              \
    DEFINE_DOT(TYPE, name, act, ref)                                                               \
    DEFINE_DOT_SHAPE(TYPE, name, act, even_ref, tile_##name##_ref, true)
KERNEL_TYPES(DEFINE_TYPE)

DEFINE_PLANE_JOIN(ref)

void ref_matmul_init(kernel_table *table)
{
    const bool even = table->shape & SHAPE_LINES;
    limits_ref_set(table);
#define SET_TYPE(TYPE, name, act, block_k, block_bytes)                                            \
    table->matmul[TYPE_##TYPE] = (matmul_kernel){act,                                              \
                                                 group_bytes_##name,                               \
                                                 pack_##name##_ref,                                \
                                                 unpack_row_##name##_ref,                          \
                                                 even ? dot_##name##_even_ref : dot_##name##_ref,  \
                                                 tile_##name##_ref,                                \
                                                 even,                                             \
                                                 NULL,                                             \
                                                 NULL,                                             \
                                                 0,                                                \
                                                 0};
    KERNEL_TYPES(SET_TYPE)
#undef SET_TYPE
    table->plane_join = plane_join_ref;
    quantise_ref_set(table);
}
