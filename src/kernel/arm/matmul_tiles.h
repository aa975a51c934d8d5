/* Tile kernels of the quantised types for Arm (packing.h has the picture), as templates over what
 * the including file defines before, for its instruction set:
 *
 *   enum { PAIRS = 0 or 1, STEP_TOKENS = the most tokens of a step, 4 or 8 };
 *   static inline void words_2(int32x4_t (*acc)[HALF_REGISTERS], int8x16_t (*w)[HALF_REGISTERS],
 *                              int32_t n_rows, const uint8_t *x, int32_t m, int32_t n_tokens,
 *                              bool narrow);
 *
 * words_2 adds the products of two words of weights, w[word][register], and of n_tokens tokens (x:
 * see tokens_at). A register is 4 rows x 4 weights; four of them are a half group of 16 rows.
 * Weights are signed bytes with their offset applied; narrow says that they have at most 6 bits.
 *
 * A step takes as many registers of rows as its sums leave room for: few where there are many
 * tokens, so that the weights are decoded once for all of them. acc[t][r] are the sums of token t
 * and register r, a lane a row. With PAIRS, more than one token's are 2 x 2 matrices instead:
 * acc[t] and acc[t + 1], t even, hold both tokens (lanes 0, 1 and 2, 3) of rows 0, 1 and of rows
 * 2, 3. */
#pragma once

#include <arm_neon.h>

#include "kernel/arm/tokens.h"
#include "kernel/dot.h"

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

INLINE uint8x16_t nibble(uint8x16_t x, bool high)
{
    return high ? vshrq_n_u8(x, 4) : vandq_u8(x, vdupq_n_u8(15));
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
        return less(nibble(word_at(b, Q4_0_QS, j % 4, r), j / 4), 8);
    case TYPE_Q4_1:
        return less(nibble(word_at(b, Q4_1_QS, j % 4, r), j / 4), 0);
    case TYPE_Q5_0:
        return less(with_high(nibble(word_at(b, Q5_0_QS, j % 4, r), j / 4),
                              field8(word_at(b, Q5_0_QH, 0, r), j, 1), 4),
                    16);
    case TYPE_Q5_1:
        return less(with_high(nibble(word_at(b, Q5_1_QS, j % 4, r), j / 4),
                              field8(word_at(b, Q5_1_QH, 0, r), j, 1), 4),
                    0);
    case TYPE_Q8_0:
        return vreinterpretq_s8_u8(veorq_u8(word_at(b, Q8_0_QS, j, r), vdupq_n_u8(0x80)));
    case TYPE_IQ4_NL:
        return iq4_level(nibble(word_at(b, IQ4_NL_QS, j % 4, r), j / 4));
    case TYPE_Q2_K:
        return less(field8(word_at(b, Q2_K_QS, c / 4 * 8 + j, r), c % 4 * 2, 2), 0);
    case TYPE_Q3_K:
        return less(with_high(field8(word_at(b, Q3_K_QS, c / 4 * 8 + j, r), c % 4 * 2, 2),
                              field8(word_at(b, Q3_K_HMASK, j, r), c, 1), 2),
                    4);
    case TYPE_Q4_K:
        return less(nibble(word_at(b, Q4_K_QS, c / 2 * 8 + j, r), c % 2), 0);
    case TYPE_Q5_K:
        return less(with_high(nibble(word_at(b, Q5_K_QS, c / 2 * 8 + j, r), c % 2),
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
        return iq4_level(nibble(word_at(b, IQ4_XS_QS, c * 4 + j % 4, r), j / 4));
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

/* Weights of at most 6 bits: four products of theirs fit into 16 bits. */
INLINE bool is_narrow(tensor_type type)
{
    return type != TYPE_Q8_0 && type != TYPE_IQ4_NL && type != TYPE_IQ4_XS;
}

/* One block of a tile of activations: as it is and, with PAIRS, also with two words of two tokens
 * side by side: [n words / 2][m / 2][2 tokens][8 bytes]. */
typedef struct tile_acts {
    const uint8_t *block, *pairs;
    int32_t m;
} tile_acts;

/* Fills pairs (TOKEN_TILE * k bytes) where they serve. */
INLINE tile_acts acts_prepare(const uint8_t *block, int32_t m, int32_t k, uint8_t *pairs)
{
    tile_acts a = {block, pairs, m};
    if (!PAIRS)
        return a;
    for (int32_t j = 0; j < k / 4; j += 2, block += 2 * m * 4)
        for (int32_t t = 0; t + 2 <= m; t += 4) {
            int32_t n = m - t < 4 ? 2 : 4;
            int32x4_t first = vreinterpretq_s32_s8(tokens_load(block + t * 4, n));
            int32x4_t second = vreinterpretq_s32_s8(tokens_load(block + (m + t) * 4, n));
            vst1q_s32((int32_t *)(void *)pairs, vzip1q_s32(first, second));
            if (n == 4)
                vst1q_s32((int32_t *)(void *)(pairs + 16), vzip2q_s32(first, second));
            pairs += n * 8;
        }
    return a;
}

/* What part of a half block meets what tokens: n_rows registers from r on, n_tokens tokens from t
 * on. The counts are constants. */
typedef struct step {
    int32_t r, n_rows, t, n_tokens;
} step;

/* The tile's m, a constant where the step takes all of a full tile. */
INLINE int32_t tile_m(const tile_acts *a, step s)
{
    return s.n_tokens == TOKEN_TILE ? TOKEN_TILE : a->m;
}

/* Words j and j + 1 of the step's tokens: words m apart, or pairs. */
INLINE const uint8_t *tokens_at(const tile_acts *a, int32_t j, step s)
{
    if (PAIRS && s.n_tokens > 1)
        return a->pairs + (j / 2 * (tile_m(a, s) / 2) + s.t / 2) * 16;
    return a->block + (j * tile_m(a, s) + s.t) * 4;
}

/* acc += the products of words first .. last - 1 of 32-block c. */
INLINE void words_dot(int32x4_t (*acc)[HALF_REGISTERS], tensor_type type, half_block b, int32_t c,
                      int32_t first, int32_t last, const tile_acts *a, step s)
{
    UNROLL
    for (int32_t j = first; j < last; j += 2) {
        int8x16_t w[2][HALF_REGISTERS];
        UNROLL
        for (int32_t i = 0; i < 2; i++) {
            UNROLL
            for (int32_t r = 0; r < s.n_rows; r++)
                w[i][r] = weights_at(type, b, c, j + i, s.r + r);
        }
        words_2(acc, w, s.n_rows, tokens_at(a, c * 8 + j, s), tile_m(a, s), s.n_tokens,
                is_narrow(type));
    }
}

INLINE void sums_zero(int32x4_t (*acc)[HALF_REGISTERS], step s)
{
    UNROLL
    for (int32_t t = 0; t < s.n_tokens; t++) {
        UNROLL
        for (int32_t r = 0; r < s.n_rows; r++)
            acc[t][r] = vdupq_n_s32(0);
    }
}

/* From pairs to one token's rows per register. */
INLINE void pairs_part(int32x4_t (*acc)[HALF_REGISTERS], step s)
{
    if (!PAIRS)
        return;
    UNROLL
    for (int32_t t = 0; t + 2 <= s.n_tokens; t += 2) {
        UNROLL
        for (int32_t r = 0; r < s.n_rows; r++) {
            int64x2_t low = vreinterpretq_s64_s32(acc[t][r]);
            int64x2_t high = vreinterpretq_s64_s32(acc[t + 1][r]);
            acc[t][r] = vreinterpretq_s32_s64(vzip1q_s64(low, high));
            acc[t + 1][r] = vreinterpretq_s32_s64(vzip2q_s64(low, high));
        }
    }
}

/* Blocks of 32: d, m_part: offsets of the scale and of what is added (negative: nothing). */
INLINE void step_32(float *sums, tensor_type type, half_block b, int32_t d, int32_t m_part,
                    const tile_acts *a, step s)
{
    int32x4_t acc[TOKEN_TILE][HALF_REGISTERS];
    sums_zero(acc, s);
    words_dot(acc, type, b, 0, 0, 8, a, s);
    pairs_part(acc, s);
    UNROLL
    for (int32_t t = 0; t < s.n_tokens; t++) {
        float d_x = load_f32(a->block + ACT_32_D * tile_m(a, s) + (s.t + t) * 4);
        float sum_x =
            (float)(int32_t)load_u32(a->block + ACT_32_SUM * tile_m(a, s) + (s.t + t) * 4);
        UNROLL
        for (int32_t r = 0; r < s.n_rows; r++) {
            float *out = sums + (s.t + t) * GROUP_ROWS + (s.r + r) * 4;
            float32x4_t sum = vld1q_f32(out), d_w = scale_at(b, d, s.r + r);
            sum = vfmaq_f32(sum, vmulq_n_f32(d_w, d_x), vcvtq_f32_s32(acc[t][r]));
            if (m_part >= 0)
                sum = vfmaq_n_f32(sum, vmulq_n_f32(scale_at(b, m_part, s.r + r), d_x), sum_x);
            vst1q_f32(out, sum);
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

/* total += scale * acc. */
INLINE void scale_add(int32x4_t (*total)[HALF_REGISTERS], const int32x4_t (*acc)[HALF_REGISTERS],
                      const int32x4_t scale[HALF_REGISTERS], step s)
{
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        int32x4_t all = scale[s.r + r];
        int64x2_t two = vreinterpretq_s64_s32(all);
        int32x4_t half[2] = {vreinterpretq_s32_s64(vdupq_laneq_s64(two, 0)),
                             vreinterpretq_s32_s64(vdupq_laneq_s64(two, 1))};
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++) {
            int32x4_t factor = PAIRS && s.n_tokens > 1 ? half[t % 2] : all;
            total[t][r] = vmlaq_s32(total[t][r], acc[t][r], factor);
        }
    }
}

/* out = 32 * the sum over sub-blocks of minimum * sum(x): the activations carry -32 * sum over
 * 16. */
INLINE void minima(int32x4_t (*out)[HALF_REGISTERS], const sub_scales *scales, const tile_acts *a,
                   int32_t n_sub, step s)
{
    const int32_t m = tile_m(a, s);
    const uint8_t *x = a->block + ACT_256_SUM16 * m + s.t * 4;
    const int32_t lanes = s.n_tokens < 4 ? s.n_tokens : 4;
    sums_zero(out, s);
    for (int32_t i = 0; i < n_sub; i++) {
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t += 4) {
            const uint8_t *first = x + (i * (16 / n_sub) * m + t) * 4;
            int32x4_t sum = vreinterpretq_s32_s8(tokens_load(first, s.n_tokens));
            if (n_sub == 8)
                sum = vaddq_s32(sum, vreinterpretq_s32_s8(tokens_load(first + m * 4, s.n_tokens)));
            UNROLL
            for (int32_t u = 0; u < lanes; u++) {
                UNROLL
                for (int32_t r = 0; r < s.n_rows; r++)
                    out[t + u][r] = vmlsq_n_s32(out[t + u][r], scales->min[i][s.r + r], sum[u]);
            }
        }
    }
}

/* Blocks of 256: n_sub sub-blocks; dmin: offset of the minima's scale (negative: none). */
INLINE void step_256(float *sums, tensor_type type, half_block b, const sub_scales *scales,
                     int32_t n_sub, int32_t d, int32_t dmin, const tile_acts *a, step s)
{
    int32x4_t total[TOKEN_TILE][HALF_REGISTERS], acc[TOKEN_TILE][HALF_REGISTERS];
    sums_zero(total, s);
    for (int32_t pair = 0; pair < 4; pair++) {
        UNROLL
        for (int32_t i = 0; i < 2 * n_sub / 8; i++) { /* the sub-blocks of two 32-blocks */
            int32_t c = pair * 2 + i * 8 / n_sub, first = n_sub == 16 ? i % 2 * 4 : 0;
            sums_zero(acc, s);
            words_dot(acc, type, b, c, first, first + 64 / n_sub, a, s);
            scale_add(total, (const int32x4_t(*)[HALF_REGISTERS])acc,
                      scales->scale[pair * (n_sub / 4) + i], s);
        }
    }
    pairs_part(total, s);
    if (dmin >= 0)
        minima(acc, scales, a, n_sub, s);
    UNROLL
    for (int32_t t = 0; t < s.n_tokens; t++) {
        float d_x = load_f32(a->block + ACT_256_D * tile_m(a, s) + (s.t + t) * 4);
        UNROLL
        for (int32_t r = 0; r < s.n_rows; r++) {
            float *out = sums + (s.t + t) * GROUP_ROWS + (s.r + r) * 4;
            float32x4_t sum = vld1q_f32(out), d_w = scale_at(b, d, s.r + r);
            sum = vfmaq_f32(sum, vmulq_n_f32(d_w, d_x), vcvtq_f32_s32(total[t][r]));
            if (dmin >= 0) /* the conversion divides by 32 */
                sum = vfmsq_f32(sum, vmulq_n_f32(scale_at(b, dmin, s.r + r), d_x),
                                vcvtq_n_f32_s32(acc[t][r], 5));
            vst1q_f32(out, sum);
        }
    }
}

INLINE void tile_32(float *sums, tensor_type type, int32_t block_bytes, int32_t d, int32_t m_part,
                    const uint8_t *weights, const uint8_t *acts, int32_t n_blocks, int32_t m)
{
    uint8_t pairs[TOKEN_TILE * 32];
    for (int32_t i = 0; i < n_blocks; i++) {
        tile_acts a = m == TOKEN_TILE ? acts_prepare(acts, TOKEN_TILE, 32, pairs)
                                      : acts_prepare(acts, m, 32, pairs);
        for (int32_t half = 0; half < 2; half++) {
            half_block b = {weights, half};
            float *out = sums + half * HALF_ROWS;
#define BODY(t, n, rows)                                                                           \
    for (int32_t r = 0; r < HALF_REGISTERS; r += rows)                                             \
    step_32(out, type, b, d, m_part, &a, (step){r, rows, t, n})
            FOR_TOKENS(m, STEP_TOKENS, 16, BODY);
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
    uint8_t pairs[TOKEN_TILE * 256];
    for (int32_t i = 0; i < n_blocks; i++) {
        tile_acts a = m == TOKEN_TILE ? acts_prepare(acts, TOKEN_TILE, 256, pairs)
                                      : acts_prepare(acts, m, 256, pairs);
        for (int32_t half = 0; half < 2; half++) {
            half_block b = {weights, half};
            float *out = sums + half * HALF_ROWS;
            sub_scales scales;
            scales_read(&scales, type, b, n_sub, dmin >= 0);
#define BODY(t, n, rows)                                                                           \
    for (int32_t r = 0; r < HALF_REGISTERS; r += rows)                                             \
    step_256(out, type, b, &scales, n_sub, d, dmin, &a, (step){r, rows, t, n})
            FOR_TOKENS(m, STEP_TOKENS, 8, BODY);
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
#define SET_TILE(table, TYPE, name, tier)                                                          \
    (table)->matmul[TYPE].dot = dot_##name##_##tier;                                               \
    (table)->matmul[TYPE].tile = tile_##name##_##tier
#define SET_TILES(table, tier)                                                                     \
    do {                                                                                           \
        SET_TILE(table, TYPE_Q4_0, q4_0, tier);                                                    \
        SET_TILE(table, TYPE_Q4_1, q4_1, tier);                                                    \
        SET_TILE(table, TYPE_Q5_0, q5_0, tier);                                                    \
        SET_TILE(table, TYPE_Q5_1, q5_1, tier);                                                    \
        SET_TILE(table, TYPE_Q8_0, q8_0, tier);                                                    \
        SET_TILE(table, TYPE_IQ4_NL, iq4_nl, tier);                                                \
        SET_TILE(table, TYPE_Q2_K, q2_k, tier);                                                    \
        SET_TILE(table, TYPE_Q3_K, q3_k, tier);                                                    \
        SET_TILE(table, TYPE_Q4_K, q4_k, tier);                                                    \
        SET_TILE(table, TYPE_Q5_K, q5_k, tier);                                                    \
        SET_TILE(table, TYPE_Q6_K, q6_k, tier);                                                    \
        SET_TILE(table, TYPE_IQ4_XS, iq4_xs, tier);                                                \
    } while (0)
