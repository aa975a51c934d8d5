/* Matrix kernels for every 64-bit Arm: byte products widen to 16 bits and add up in pairs. Two
 * products fit: 2 x 128 x 127 is below 2^15. */
#include "kernel/arm/arm.h"

#include <arm_neon.h>

static inline int32x4_t dot_4x4(int32x4_t acc, int8x16_t w, int8x16_t x)
{
    int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
    return vpadalq_s16(acc, vpaddq_s16(low, high));
}

#include "kernel/arm/matmul_tiles.h"

DEFINE_TILES(neon)

/* Rows 4 r to 4 r + 3 of a float type's weights for one k, in 16 rows. */
INLINE float32x4_t floats_at(tensor_type type, const uint8_t *weights, int32_t r)
{
    if (type == TYPE_F32)
        return vreinterpretq_f32_u8(vld1q_u8(weights + r * 16));
    uint16x4_t half = vreinterpret_u16_u8(vld1_u8(weights + r * 8));
    if (type == TYPE_F16)
        return vcvt_f32_f16(vreinterpret_f16_u16(half));
    return vreinterpretq_f32_u32(vshll_n_u16(half, 16));
}

/* 16 rows times n_tokens tokens over the whole span of k; bytes a weight. */
INLINE void half_float(float *sums, tensor_type type, int32_t bytes, const uint8_t *weights,
                       const uint8_t *acts, int32_t n_blocks, int32_t m, int32_t n_tokens)
{
    float32x4_t acc[MAX_TOKENS][HALF_REGISTERS];
    UNROLL
    for (int32_t t = 0; t < n_tokens; t++) {
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++)
            acc[t][r] = vld1q_f32(sums + t * GROUP_ROWS + r * 4);
    }
    for (int32_t k = 0; k < n_blocks; k++) {
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++) {
            float32x4_t w = floats_at(type, weights, r);
            UNROLL
            for (int32_t t = 0; t < n_tokens; t++)
                acc[t][r] = vfmaq_n_f32(acc[t][r], w, load_f32(acts + t * 4));
        }
        weights += bytes * GROUP_ROWS;
        acts += ACT_F32_BYTES * m;
    }
    UNROLL
    for (int32_t t = 0; t < n_tokens; t++) {
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++)
            vst1q_f32(sums + t * GROUP_ROWS + r * 4, acc[t][r]);
    }
}

INLINE void tile_float(float *sums, tensor_type type, int32_t bytes, const uint8_t *weights,
                       const uint8_t *acts, int32_t n_blocks, int32_t m)
{
    for (int32_t half = 0; half < 2; half++) {
        const uint8_t *w = weights + half * HALF_ROWS * bytes;
        float *out = sums + half * HALF_ROWS;
#define BODY(n) half_float(out + t0 * GROUP_ROWS, type, bytes, w, acts + t0 * 4, n_blocks, m, n)
        FOR_TOKENS(t0, m, BODY);
#undef BODY
    }
}

#define DEFINE_TILE_FLOAT(TYPE, name, bytes)                                                       \
    static void tile_##name##_neon(float *sums, const uint8_t *weights, const uint8_t *acts,       \
                                   int32_t n_blocks, int32_t m)                                    \
    {                                                                                              \
        tile_float(sums, TYPE_##TYPE, bytes, weights, acts, n_blocks, m);                          \
    }                                                                                              \
    DEFINE_DOT(TYPE, name, ACT_F32, neon)

DEFINE_TILE_FLOAT(F32, f32, 4)
DEFINE_TILE_FLOAT(F16, f16, 2)
DEFINE_TILE_FLOAT(BF16, bf16, 2)

void neon_matmul_init(kernel_table *table)
{
    limits_neon_set(table);
    pack_neon_set(table);
    SET_TILES(table, neon);
    table->matmul[TYPE_F32].dot = dot_f32_neon;
    table->matmul[TYPE_F16].dot = dot_f16_neon;
    table->matmul[TYPE_BF16].dot = dot_bf16_neon;
}
