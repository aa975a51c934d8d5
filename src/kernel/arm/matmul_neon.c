/* Matrix kernels for every 64-bit Arm: byte products widen to 16 bits and add up there, as many as
 * fit (words_fitting), before pairs of them are added to 32 bits. */
#include "kernel/arm/arm.h"

#include "kernel/arm/tokens.h"

enum {
    PAIRS = 0,
    STEP_TOKENS_32 = 4,
    STEP_TOKENS_256 = 8,
    MOST_ROWS_256 = 2,
    ROW_WORDS = 4,
    ROW_SUMS = 8
};

typedef int16x8_t sum_pair[2]; /* sums of rows 0, 1 and of rows 2, 3 */

/* to (+)= the products of a word of 4 rows and one token's. */
INLINE void word_products(sum_pair to, int8x16_t w, int8x16_t x, bool first)
{
    if (first) {
        to[0] = vmull_s8(vget_low_s8(w), vget_low_s8(x));
        to[1] = vmull_high_s8(w, x);
    } else {
        to[0] = vmlal_s8(to[0], vget_low_s8(w), vget_low_s8(x));
        to[1] = vmlal_high_s8(to[1], w, x);
    }
}

/* acc += the products of n_words words (2 or 4) of n_rows registers and one token's words, m apart
 * in memory. */
INLINE void token_dot(int32x4_t (*acc)[TOKEN_TILE], int8x16_t (*w)[4], int32_t n_rows,
                      int32_t n_words, const uint8_t *x, int32_t m, int32_t t, int32_t fitting)
{
    const int32_t most = fitting == 1 ? 2 : fitting; /* words in a sum of 16 bits */
    sum_pair sum[HALF_REGISTERS];
    int32x4_t wide[HALF_REGISTERS][2];
    UNROLL
    for (int32_t i = 0; i < n_words; i++) {
        int8x16_t v = tokens_load(x + (i * m + t) * 4, 1);
        const bool last = i % most == most - 1 || i == n_words - 1;
        UNROLL
        for (int32_t r = 0; r < n_rows; r++) {
            word_products(sum[r], w[r][i], v, i % most == 0);
            if (!last)
                continue;
            if (fitting > 1) {
                acc[r][t] = vpadalq_s16(acc[r][t], vpaddq_s16(sum[r][0], sum[r][1]));
            } else if (i < 2) {
                wide[r][0] = vpaddlq_s16(sum[r][0]);
                wide[r][1] = vpaddlq_s16(sum[r][1]);
            } else {
                wide[r][0] = vpadalq_s16(wide[r][0], sum[r][0]);
                wide[r][1] = vpadalq_s16(wide[r][1], sum[r][1]);
            }
        }
    }
    if (fitting > 1)
        return;
    UNROLL
    for (int32_t r = 0; r < n_rows; r++)
        acc[r][t] = vaddq_s32(acc[r][t], vpaddq_s32(wide[r][0], wide[r][1]));
}

INLINE void words_dot(int32x4_t (*acc)[TOKEN_TILE], int8x16_t (*w)[4], int32_t n_rows,
                      int32_t n_words, const uint8_t *x, int32_t m, int32_t n_tokens,
                      int32_t fitting)
{
    UNROLL
    for (int32_t t = 0; t < n_tokens; t++)
        token_dot(acc, w, n_rows, n_words, x, m, t, fitting);
}

INLINE void one_dot(int32x4_t *acc, int8x16_t (*w)[4], const uint8_t *x, int32_t j, int32_t fitting)
{
    token_dot((int32x4_t(*)[TOKEN_TILE])acc, w, 1, ROW_WORDS, x + j * 4, 1, 0, fitting);
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
