/* Tile kernels of the quantised types for Arm (layout.h has the picture), as templates over one
 * step that the including file defines before, for its instruction set:
 *
 *   static inline int32x4_t dot_4x4(int32x4_t acc, int8x16_t w, int8x16_t x);
 *
 * adds to each lane the sum of its four byte products. A register is 4 rows x 4 weights; four of
 * them are a half group of 16 rows. One half at a time meets up to four tokens, so that the sums
 * stay in registers. Weights become signed bytes with their offset applied. */
#ifndef DREY_KERNEL_ARM_MATMUL_TILES_H
#define DREY_KERNEL_ARM_MATMUL_TILES_H

#include <arm_neon.h>

#include "kernel/arm/math_neon.h"
#include "kernel/dot.h"
#include "kernel/unroll.h"

enum { HALF_REGISTERS = 4, MAX_TOKENS = 4 };

/* One half group of a packed block. */
typedef struct half_block {
    const uint8_t *block;
    int32_t half; /* 0 or 1 */
} half_block;

/* Register r of a word of the file's block. */
INLINE uint8x16_t word_at(half_block b, int32_t part, int32_t word, int32_t r)
{
    return vld1q_u8(b.block + part + word * WORD_BYTES + b.half * HALF_BYTES + r * 16);
}

INLINE uint32x4_t word32_at(half_block b, int32_t part, int32_t word, int32_t r)
{
    return vreinterpretq_u32_u8(word_at(b, part, word, r));
}

/* Rows 4 r to 4 r + 3 of a 16-bit part. */
INLINE uint16x4_t halves_at(half_block b, int32_t part, int32_t r)
{
    return vreinterpret_u16_u8(vld1_u8(b.block + part + b.half * HALF_ROWS * 2 + r * 8));
}

INLINE float32x4_t scale_at(half_block b, int32_t part, int32_t r)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(halves_at(b, part, r)));
}

/* bits bits of each byte, from bit shift on. */
INLINE uint8x16_t field8(uint8x16_t x, int32_t shift, int32_t bits)
{
    return vandq_u8(vshlq_u8(x, vdupq_n_s8((int8_t)-shift)),
                    vdupq_n_u8((uint8_t)((1 << bits) - 1)));
}

INLINE uint32x4_t field32(uint32x4_t x, int32_t shift, int32_t bits)
{
    return vandq_u32(vshlq_u32(x, vdupq_n_s32(-shift)), vdupq_n_u32((1u << bits) - 1));
}

INLINE int8x16_t less(uint8x16_t x, int8_t offset)
{
    return vsubq_s8(vreinterpretq_s8_u8(x), vdupq_n_s8(offset));
}

/* Adds a bit above the low ones. */
INLINE uint8x16_t with_high(uint8x16_t low, uint8x16_t high, int bits)
{
    return vorrq_u8(low, vshlq_u8(high, vdupq_n_s8((int8_t)bits)));
}

INLINE int8x16_t iq4_level(uint8x16_t index)
{
    return vqtbl1q_s8(vld1q_s8(iq4_levels), index);
}

/* Weights 32 c + 4 j to 32 c + 4 j + 3 of the rows of register r (decode_ref.c in vectors). c is 0
 * for blocks of 32. */
INLINE int8x16_t weights_at(tensor_type type, half_block b, int32_t c, int32_t j, int32_t r)
{
    switch (type) {
    case TYPE_Q4_0:
        return less(field8(word_at(b, Q4_0_QS, j % 4, r), j / 4 * 4, 4), 8);
    case TYPE_Q4_1:
        return less(field8(word_at(b, Q4_1_QS, j % 4, r), j / 4 * 4, 4), 0);
    case TYPE_Q5_0:
        return less(with_high(field8(word_at(b, Q5_0_QS, j % 4, r), j / 4 * 4, 4),
                              field8(word_at(b, Q5_0_QH, 0, r), j, 1), 4),
                    16);
    case TYPE_Q5_1:
        return less(with_high(field8(word_at(b, Q5_1_QS, j % 4, r), j / 4 * 4, 4),
                              field8(word_at(b, Q5_1_QH, 0, r), j, 1), 4),
                    0);
    case TYPE_Q8_0:
        return vreinterpretq_s8_u8(veorq_u8(word_at(b, Q8_0_QS, j, r), vdupq_n_u8(0x80)));
    case TYPE_IQ4_NL:
        return iq4_level(field8(word_at(b, IQ4_NL_QS, j % 4, r), j / 4 * 4, 4));
    case TYPE_Q2_K:
        return less(field8(word_at(b, Q2_K_QS, c / 4 * 8 + j, r), c % 4 * 2, 2), 0);
    case TYPE_Q3_K:
        return less(with_high(field8(word_at(b, Q3_K_QS, c / 4 * 8 + j, r), c % 4 * 2, 2),
                              field8(word_at(b, Q3_K_HMASK, j, r), c, 1), 2),
                    4);
    case TYPE_Q4_K:
        return less(field8(word_at(b, Q4_K_QS, c / 2 * 8 + j, r), c % 2 * 4, 4), 0);
    case TYPE_Q5_K:
        return less(with_high(field8(word_at(b, Q5_K_QS, c / 2 * 8 + j, r), c % 2 * 4, 4),
                              field8(word_at(b, Q5_K_QH, j, r), c, 1), 4),
                    0);
    case TYPE_Q6_K: {
        int32_t quarter = (c / 4 * 2 + j / 4) * 12 + j % 4; /* its first word: four of high bits */
        return less(
            with_high(field8(word_at(b, Q6_K_QUANTS, quarter + 4 + c % 2 * 4, r), c % 4 / 2 * 4, 4),
                      field8(word_at(b, Q6_K_QUANTS, quarter, r), c % 4 * 2, 2), 4),
            32);
    }
    case TYPE_IQ4_XS:
        return iq4_level(field8(word_at(b, IQ4_XS_QS, c * 4 + j % 4, r), j / 4 * 4, 4));
    default:
        return vdupq_n_s8(0);
    }
}

/* Six-bit scales and minima of Q4_K and Q5_K: s under 4 in the low bits of byte s, the others in
 * the last four bytes and the upper bits of the first eight. */
INLINE uint32x4_t scale_k4_at(half_block b, int32_t part, int32_t s, int32_t r, bool minimum)
{
    uint32x4_t first = word32_at(b, part, minimum ? 1 : 0, r);
    if (s < 4)
        return field32(first, 8 * s, 6);
    int32_t at = 8 * (s - 4);
    uint32x4_t low = field32(word32_at(b, part, 2, r), at + (minimum ? 4 : 0), 4);
    return vorrq_u32(low, vshlq_n_u32(field32(first, at + 6, 2), 4));
}

/* Integer scale of sub-block s (of 32 weights, or 16 for Q2_K, Q3_K, Q6_K). */
INLINE int32x4_t sub_scale_at(tensor_type type, half_block b, int32_t s, int32_t r)
{
    uint32x4_t low, high;
    switch (type) {
    case TYPE_Q2_K:
        low = field32(word32_at(b, Q2_K_SCALES, s / 4, r), s % 4 * 8, 4);
        return vreinterpretq_s32_u32(low);
    case TYPE_Q3_K:
        low = field32(word32_at(b, Q3_K_SCALES, s % 8 / 4, r), s % 4 * 8 + s / 8 * 4, 4);
        high = field32(word32_at(b, Q3_K_SCALES, 2, r), s % 4 * 8 + s / 4 * 2, 2);
        low = vorrq_u32(low, vshlq_n_u32(high, 4));
        return vsubq_s32(vreinterpretq_s32_u32(low), vdupq_n_s32(32));
    case TYPE_Q4_K:
        return vreinterpretq_s32_u32(scale_k4_at(b, Q4_K_SCALES, s, r, false));
    case TYPE_Q5_K:
        return vreinterpretq_s32_u32(scale_k4_at(b, Q5_K_SCALES, s, r, false));
    case TYPE_Q6_K:
        low = vshlq_u32(word32_at(b, Q6_K_SCALES, s / 4, r), vdupq_n_s32(24 - s % 4 * 8));
        return vshrq_n_s32(vreinterpretq_s32_u32(low), 24);
    case TYPE_IQ4_XS:
        low = field32(word32_at(b, IQ4_XS_SCALES_L, 0, r), 4 * s, 4);
        high = field32(vmovl_u16(halves_at(b, IQ4_XS_SCALES_H, r)), 2 * s, 2);
        low = vorrq_u32(low, vshlq_n_u32(high, 4));
        return vsubq_s32(vreinterpretq_s32_u32(low), vdupq_n_s32(32));
    default:
        return vdupq_n_s32(0);
    }
}

INLINE int32x4_t sub_min_at(tensor_type type, half_block b, int32_t s, int32_t r)
{
    switch (type) {
    case TYPE_Q2_K:
        return vreinterpretq_s32_u32(
            field32(word32_at(b, Q2_K_SCALES, s / 4, r), s % 4 * 8 + 4, 4));
    case TYPE_Q4_K:
        return vreinterpretq_s32_u32(scale_k4_at(b, Q4_K_SCALES, s, r, true));
    case TYPE_Q5_K:
        return vreinterpretq_s32_u32(scale_k4_at(b, Q5_K_SCALES, s, r, true));
    default:
        return vdupq_n_s32(0);
    }
}

/* Four activations of one token in every lane. */
INLINE int8x16_t token_word(const uint8_t *x)
{
    return vreinterpretq_s8_u32(vdupq_n_u32(load_u32(x)));
}

/* acc[t][r] += weights 32 c + 4 j .. of words first .. last - 1, x being the tile's words of this
 * 32-block. */
INLINE void words_dot(int32x4_t (*acc)[HALF_REGISTERS], tensor_type type, half_block b, int32_t c,
                      int32_t first, int32_t last, const uint8_t *x, int32_t m, int32_t n_tokens)
{
    for (int32_t j = first; j < last; j++) { /* rolled: unrolled, gcc spills half of it */
        int8x16_t w[HALF_REGISTERS];
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++)
            w[r] = weights_at(type, b, c, j, r);
        UNROLL
        for (int32_t t = 0; t < n_tokens; t++) {
            int8x16_t v = token_word(x + (j * m + t) * 4);
            UNROLL
            for (int32_t r = 0; r < HALF_REGISTERS; r++)
                acc[t][r] = dot_4x4(acc[t][r], w[r], v);
        }
    }
}

INLINE void sums_zero(int32x4_t (*acc)[HALF_REGISTERS], int32_t n_tokens)
{
    UNROLL
    for (int32_t t = 0; t < n_tokens; t++) {
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++)
            acc[t][r] = vdupq_n_s32(0);
    }
}

/* sums += d_w * d_x * integer. */
INLINE void scaled_add(float *sums, float32x4_t d_w, float d_x, int32x4_t integer)
{
    float32x4_t acc = vld1q_f32(sums);
    vst1q_f32(sums, vfmaq_f32(acc, vmulq_n_f32(d_w, d_x), vcvtq_f32_s32(integer)));
}

/* Blocks of 32: one half group, n_tokens tokens from acts on. d, m_part: offsets of the scale and
 * of what is added (negative: nothing). */
INLINE void half_32(float *sums, tensor_type type, half_block b, int32_t d, int32_t m_part,
                    const uint8_t *acts, int32_t m, int32_t t0, int32_t n_tokens)
{
    int32x4_t acc[MAX_TOKENS][HALF_REGISTERS];
    sums_zero(acc, n_tokens);
    words_dot(acc, type, b, 0, 0, 8, acts + t0 * 4, m, n_tokens);
    UNROLL
    for (int32_t t = 0; t < n_tokens; t++) {
        float d_x = load_f32(acts + ACT_32_D * m + (t0 + t) * 4);
        int32_t sum_x = (int32_t)load_u32(acts + ACT_32_SUM * m + (t0 + t) * 4);
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++) {
            float *out = sums + (t0 + t) * GROUP_ROWS + r * 4;
            scaled_add(out, scale_at(b, d, r), d_x, acc[t][r]);
            if (m_part >= 0)
                scaled_add(out, scale_at(b, m_part, r), d_x, vdupq_n_s32(sum_x));
        }
    }
}

/* Scales and minima of a half block as integers. */
typedef struct sub_scales {
    int32x4_t scale[16][HALF_REGISTERS], min[16][HALF_REGISTERS];
} sub_scales;

INLINE void scales_read(sub_scales *out, tensor_type type, half_block b, int32_t n_sub,
                        bool has_min)
{
    for (int32_t s = 0; s < n_sub; s++) {
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++) {
            out->scale[s][r] = sub_scale_at(type, b, s, r);
            if (has_min)
                out->min[s][r] = sub_min_at(type, b, s, r);
        }
    }
}

/* total += scale * acc, for the tokens of a tile. */
INLINE void scale_add(int32x4_t (*total)[HALF_REGISTERS], const int32x4_t (*acc)[HALF_REGISTERS],
                      const int32x4_t scale[HALF_REGISTERS], int32_t n_tokens)
{
    UNROLL
    for (int32_t t = 0; t < n_tokens; t++) {
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++)
            total[t][r] = vmlaq_s32(total[t][r], acc[t][r], scale[r]);
    }
}

/* Sum over sub-blocks of minimum * sum(x): the activations carry -32 * sum over 16. */
INLINE int32x4_t minima(const sub_scales *scales, const uint8_t *acts, int32_t m, int32_t token,
                        int32_t n_sub, int32_t r)
{
    int32x4_t sum = vdupq_n_s32(0);
    for (int32_t i = 0; i < 16; i++) {
        int32_t x = (int32_t)load_u32(acts + ACT_256_SUM16 * m + (i * m + token) * 4);
        sum = vmlaq_n_s32(sum, scales->min[i * n_sub / 16][r], x);
    }
    return vnegq_s32(vshrq_n_s32(sum, 5)); /* exact: a multiple of 32 */
}

/* Blocks of 256: one half group, n_tokens tokens. dmin: offset of the minima's scale (negative:
 * none). */
INLINE void half_256(float *sums, tensor_type type, half_block b, const sub_scales *scales,
                     int32_t n_sub, int32_t d, int32_t dmin, const uint8_t *acts, int32_t m,
                     int32_t t0, int32_t n_tokens)
{
    int32x4_t total[MAX_TOKENS][HALF_REGISTERS], acc[MAX_TOKENS][HALF_REGISTERS];
    sums_zero(total, n_tokens);
    for (int32_t c = 0; c < 8; c++) {
        const uint8_t *x = acts + (c * 8 * m + t0) * 4;
        sums_zero(acc, n_tokens);
        if (n_sub == 8) {
            words_dot(acc, type, b, c, 0, 8, x, m, n_tokens);
            scale_add(total, acc, scales->scale[c], n_tokens);
            continue;
        }
        words_dot(acc, type, b, c, 0, 4, x, m, n_tokens);
        scale_add(total, acc, scales->scale[2 * c], n_tokens);
        sums_zero(acc, n_tokens);
        words_dot(acc, type, b, c, 4, 8, x, m, n_tokens);
        scale_add(total, acc, scales->scale[2 * c + 1], n_tokens);
    }
    UNROLL
    for (int32_t t = 0; t < n_tokens; t++) {
        float d_x = load_f32(acts + ACT_256_D * m + (t0 + t) * 4);
        UNROLL
        for (int32_t r = 0; r < HALF_REGISTERS; r++) {
            float *out = sums + (t0 + t) * GROUP_ROWS + r * 4;
            scaled_add(out, scale_at(b, d, r), d_x, total[t][r]);
            if (dmin >= 0) {
                int32x4_t j = minima(scales, acts, m, t0 + t, n_sub, r);
                float32x4_t scale = vmulq_n_f32(scale_at(b, dmin, r), d_x);
                vst1q_f32(out, vfmsq_f32(vld1q_f32(out), scale, vcvtq_f32_s32(j)));
            }
        }
    }
}

/* Calls body with constant token counts that add up to m; t0 is the first token. */
#define FOR_TOKENS(t0, m, body)                                                                    \
    do {                                                                                           \
        int32_t t0 = 0;                                                                            \
        for (; t0 + 4 <= (m); t0 += 4)                                                             \
            body(4);                                                                               \
        for (; t0 + 2 <= (m); t0 += 2)                                                             \
            body(2);                                                                               \
        if (t0 < (m))                                                                              \
            body(1);                                                                               \
    } while (0)

INLINE void tile_32(float *sums, tensor_type type, int32_t block_bytes, int32_t d, int32_t m_part,
                    const uint8_t *weights, const uint8_t *acts, int32_t n_blocks, int32_t m)
{
    for (int32_t i = 0; i < n_blocks; i++) {
        for (int32_t half = 0; half < 2; half++) {
            half_block b = {weights, half};
            float *out = sums + half * HALF_ROWS;
#define BODY(n) half_32(out, type, b, d, m_part, acts, m, t0, n)
            FOR_TOKENS(t0, m, BODY);
#undef BODY
        }
        weights += block_bytes * GROUP_ROWS;
        acts += ACT_Q8_32_BYTES * m;
    }
}

INLINE void tile_256(float *sums, tensor_type type, int32_t block_bytes, int32_t n_sub, int32_t d,
                     int32_t dmin, const uint8_t *weights, const uint8_t *acts, int32_t n_blocks,
                     int32_t m)
{
    for (int32_t i = 0; i < n_blocks; i++) {
        for (int32_t half = 0; half < 2; half++) {
            half_block b = {weights, half};
            float *out = sums + half * HALF_ROWS;
            sub_scales scales;
            scales_read(&scales, type, b, n_sub, dmin >= 0);
#define BODY(n) half_256(out, type, b, &scales, n_sub, d, dmin, acts, m, t0, n)
            FOR_TOKENS(t0, m, BODY);
#undef BODY
        }
        weights += block_bytes * GROUP_ROWS;
        acts += ACT_Q8_256_BYTES * m;
    }
}

/* tile_<name>_<tier> and dot_<name>_<tier> of every quantised type. */
#define DEFINE_TILE_32(tier, TYPE, name, bytes, d, m_part)                                         \
    static void tile_##name##_##tier(float *sums, const uint8_t *weights, const uint8_t *acts,     \
                                     int32_t n_blocks, int32_t m)                                  \
    {                                                                                              \
        tile_32(sums, TYPE_##TYPE, bytes, d, m_part, weights, acts, n_blocks, m);                  \
    }                                                                                              \
    DEFINE_DOT(TYPE, name, ACT_Q8_32, tier)
#define DEFINE_TILE_256(tier, TYPE, name, bytes, n_sub, d, dmin)                                   \
    static void tile_##name##_##tier(float *sums, const uint8_t *weights, const uint8_t *acts,     \
                                     int32_t n_blocks, int32_t m)                                  \
    {                                                                                              \
        tile_256(sums, TYPE_##TYPE, bytes, n_sub, d, dmin, weights, acts, n_blocks, m);            \
    }                                                                                              \
    DEFINE_DOT(TYPE, name, ACT_Q8_256, tier)
#define DEFINE_TILES(tier)                                                                         \
    DEFINE_TILE_32(tier, Q4_0, q4_0, 18, Q4_0_D, -1)                                               \
    DEFINE_TILE_32(tier, Q4_1, q4_1, 20, Q4_1_D, Q4_1_M)                                           \
    DEFINE_TILE_32(tier, Q5_0, q5_0, 22, Q5_0_D, -1)                                               \
    DEFINE_TILE_32(tier, Q5_1, q5_1, 24, Q5_1_D, Q5_1_M)                                           \
    DEFINE_TILE_32(tier, Q8_0, q8_0, 34, Q8_0_D, -1)                                               \
    DEFINE_TILE_32(tier, IQ4_NL, iq4_nl, 18, IQ4_NL_D, -1)                                         \
    DEFINE_TILE_256(tier, Q2_K, q2_k, 84, 16, Q2_K_D, Q2_K_DMIN)                                   \
    DEFINE_TILE_256(tier, Q3_K, q3_k, 110, 16, Q3_K_D, -1)                                         \
    DEFINE_TILE_256(tier, Q4_K, q4_k, 144, 8, Q4_K_D, Q4_K_DMIN)                                   \
    DEFINE_TILE_256(tier, Q5_K, q5_k, 176, 8, Q5_K_D, Q5_K_DMIN)                                   \
    DEFINE_TILE_256(tier, Q6_K, q6_k, 210, 16, Q6_K_D, -1)                                         \
    DEFINE_TILE_256(tier, IQ4_XS, iq4_xs, 136, 8, IQ4_XS_D, -1)

/* Sets dot of the quantised types in a table. */
#define SET_TILES(table, tier)                                                                     \
    do {                                                                                           \
        (table)->matmul[TYPE_Q4_0].dot = dot_q4_0_##tier;                                          \
        (table)->matmul[TYPE_Q4_1].dot = dot_q4_1_##tier;                                          \
        (table)->matmul[TYPE_Q5_0].dot = dot_q5_0_##tier;                                          \
        (table)->matmul[TYPE_Q5_1].dot = dot_q5_1_##tier;                                          \
        (table)->matmul[TYPE_Q8_0].dot = dot_q8_0_##tier;                                          \
        (table)->matmul[TYPE_IQ4_NL].dot = dot_iq4_nl_##tier;                                      \
        (table)->matmul[TYPE_Q2_K].dot = dot_q2_k_##tier;                                          \
        (table)->matmul[TYPE_Q3_K].dot = dot_q3_k_##tier;                                          \
        (table)->matmul[TYPE_Q4_K].dot = dot_q4_k_##tier;                                          \
        (table)->matmul[TYPE_Q5_K].dot = dot_q5_k_##tier;                                          \
        (table)->matmul[TYPE_Q6_K].dot = dot_q6_k_##tier;                                          \
        (table)->matmul[TYPE_IQ4_XS].dot = dot_iq4_xs_##tier;                                      \
    } while (0)

#endif
