/* Matrix kernels for every 64-bit Arm: byte products widen to 16 bits and add up in pairs there, as
 * many as fit: 2 x 128 x 127 is below 2^15, and so is 8 x 32 x 127. */
#include "kernel/arm/arm.h"

#include "kernel/arm/tokens.h"

enum { PAIRS = 0, STEP_TOKENS = 4 };

/* acc += products of two words of 4 rows and one token's two words. */
INLINE int32x4_t products_add(int32x4_t acc, int8x16_t w0, int8x16_t w1, int8x16_t x0, int8x16_t x1,
                              bool narrow)
{
    int16x8_t low = vmull_s8(vget_low_s8(w0), vget_low_s8(x0)), high = vmull_high_s8(w0, x0);
    if (narrow) {
        low = vmlal_s8(low, vget_low_s8(w1), vget_low_s8(x1));
        high = vmlal_high_s8(high, w1, x1);
        return vpadalq_s16(acc, vpaddq_s16(low, high));
    }
    acc = vpadalq_s16(acc, vpaddq_s16(low, high));
    low = vmull_s8(vget_low_s8(w1), vget_low_s8(x1)), high = vmull_high_s8(w1, x1);
    return vpadalq_s16(acc, vpaddq_s16(low, high));
}

INLINE void words_2(int32x4_t (*acc)[HALF_REGISTERS], int8x16_t (*w)[HALF_REGISTERS],
                    int32_t n_rows, const uint8_t *x, int32_t m, int32_t n_tokens, bool narrow)
{
    const int32_t lanes = n_tokens < 4 ? n_tokens : 4;
    UNROLL
    for (int32_t t = 0; t < n_tokens; t += 4) {
        int32x4_t v0 = vreinterpretq_s32_s8(tokens_load(x + t * 4, n_tokens));
        int32x4_t v1 = vreinterpretq_s32_s8(tokens_load(x + (m + t) * 4, n_tokens));
        UNROLL
        for (int32_t i = 0; i < lanes; i++) {
            int8x16_t x0 = vreinterpretq_s8_s32(vdupq_n_s32(v0[i]));
            int8x16_t x1 = vreinterpretq_s8_s32(vdupq_n_s32(v1[i]));
            UNROLL
            for (int32_t r = 0; r < n_rows; r++)
                acc[t + i][r] = products_add(acc[t + i][r], w[0][r], w[1][r], x0, x1, narrow);
        }
    }
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

/* A step over the whole span of k; bytes per weight. */
INLINE void step_float(float *sums, tensor_type type, int32_t bytes, const uint8_t *weights,
                       const uint8_t *acts, int32_t n_blocks, int32_t m, step s)
{
    float32x4_t acc[TOKEN_TILE][HALF_REGISTERS];
    sums += s.t * GROUP_ROWS + s.r * 4;
    acts += s.t * 4;
    UNROLL
    for (int32_t t = 0; t < s.n_tokens; t++) {
        UNROLL
        for (int32_t r = 0; r < s.n_rows; r++)
            acc[t][r] = vld1q_f32(sums + t * GROUP_ROWS + r * 4);
    }
    for (int32_t k = 0; k < n_blocks; k++) {
        UNROLL
        for (int32_t r = 0; r < s.n_rows; r++) {
            float32x4_t w = floats_at(type, weights, s.r + r);
            UNROLL
            for (int32_t t = 0; t < s.n_tokens; t++)
                acc[t][r] = vfmaq_n_f32(acc[t][r], w, load_f32(acts + t * 4));
        }
        weights += bytes * GROUP_ROWS;
        acts += ACT_F32_BYTES * m;
    }
    UNROLL
    for (int32_t t = 0; t < s.n_tokens; t++) {
        UNROLL
        for (int32_t r = 0; r < s.n_rows; r++)
            vst1q_f32(sums + t * GROUP_ROWS + r * 4, acc[t][r]);
    }
}

INLINE void tile_float(float *sums, tensor_type type, int32_t bytes, const uint8_t *weights,
                       const uint8_t *acts, int32_t n_blocks, int32_t m)
{
    for (int32_t half = 0; half < 2; half++) {
        const uint8_t *w = weights + half * HALF_ROWS * bytes;
        float *out = sums + half * HALF_ROWS;
#define BODY(t, n, rows)                                                                           \
    for (int32_t r = 0; r < HALF_REGISTERS; r += rows)                                             \
    step_float(out, type, bytes, w, acts, n_blocks, m, (step){r, rows, t, n})
        FOR_TOKENS(m, TOKEN_TILE, 16, BODY);
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
    quantise_neon_set(table);
    SET_TILES(table, neon);
    table->matmul[TYPE_F32].dot = dot_f32_neon;
    table->matmul[TYPE_F16].dot = dot_f16_neon;
    table->matmul[TYPE_BF16].dot = dot_bf16_neon;
}
