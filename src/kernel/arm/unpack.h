/* The weights and scales of packed blocks on Arm (packing.h has the picture, decode_ref.c the same
 * in plain C). A register is a word of 4 rows: 4 rows x 4 weights; a group has eight of them.
 *
 * Weights come in runs of four words of a row, 16 k. They are unsigned where that saves the
 * subtraction of an offset: what it would have changed is a product of sums of activations
 * (weights_offset), which costs less. With pairs, two words are side by side for the 8-bit matrix
 * instructions: rows 0 and 1 with 8 k each in one register, rows 2 and 3 in the next one. Raw words
 * are zipped, before they fall apart into several weights each. */
#pragma once

#include <arm_neon.h>

#include "kernel/arm/tokens.h"
#include "kernel/decoded.h"

enum { GROUP_REGISTERS = 2 * HALF_REGISTERS };

/* Decoded steps in the place of blocks: of 256 with scales of 16 or 32 weights, or of 64. */
enum { DECODED_16 = TYPE_LIMIT, DECODED_32, DECODED_FINE };

INLINE bool is_decoded(tensor_type type)
{
    return (int)type >= DECODED_16;
}

/* Register r of a word of the file's block. */
INLINE uint8x16_t word_at(const uint8_t *block, int32_t part, int64_t word, int32_t r)
{
    return vld1q_u8(block + part + word * WORD_BYTES + r * 16);
}

/* Rows 4 r to 4 r + 3 of a 16-bit part. */
INLINE uint16x4_t halves_at(const uint8_t *block, int32_t part, int32_t r)
{
    return vreinterpret_u16_u8(vld1_u8(block + part + r * 8));
}

INLINE float32x4_t scale_at(const uint8_t *block, int32_t part, int32_t r)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(halves_at(block, part, r)));
}

/* Rows 4 r to 4 r + 3 of a part of exponents: e8m0_half of packing.h. */
INLINE float32x4_t exponents_at(const uint8_t *block, int32_t part, int32_t r)
{
    uint8x8_t bytes = vreinterpret_u8_u32(vdup_n_u32(load_u32(block + part + r * 4)));
    uint32x4_t e = vmovl_u16(vget_low_u16(vmovl_u8(bytes)));
    e = vmaxq_u32(vshlq_n_u32(e, 23), vdupq_n_u32(E8M0_LEAST));
    return vmulq_n_f32(vreinterpretq_f32_u32(e), 0.5f);
}

INLINE void words_zip(uint8x16_t w[2])
{
    uint32x4_t first = vreinterpretq_u32_u8(w[0]), second = vreinterpretq_u32_u8(w[1]);
    w[0] = vreinterpretq_u8_u32(vzip1q_u32(first, second));
    w[1] = vreinterpretq_u8_u32(vzip2q_u32(first, second));
}

/* n words (1, or an even number with pairs). */
INLINE void words_at(uint8x16_t *w, const uint8_t *block, int32_t part, int64_t word, int32_t n,
                     int32_t r, bool pairs)
{
    UNROLL
    for (int32_t i = 0; i < n; i++)
        w[i] = word_at(block, part, word + i, r);
    if (pairs) {
        UNROLL
        for (int32_t i = 0; i < n; i += 2)
            words_zip(w + i);
    }
}

/* Each byte shifted to the left, or to the right where n is negative. */
INLINE uint8x16_t shifted(uint8x16_t x, int64_t n)
{
    if (__builtin_constant_p(n))
        return n >= 0 ? x << (uint8_t)n : x >> (uint8_t)-n;
    return vshlq_u8(x, vdupq_n_s8((int8_t)n));
}

INLINE uint8x16_t masked(uint8x16_t x, int32_t mask)
{
    return vandq_u8(x, vdupq_n_u8((uint8_t)mask));
}

/* The bits of mask from high, the others from low. */
INLINE uint8x16_t joined(uint8x16_t low, uint8x16_t high, int32_t mask)
{
    return vbslq_u8(vdupq_n_u8((uint8_t)mask), high, low);
}

INLINE uint8x16_t nibble(uint8x16_t x, int32_t high)
{
    return high ? vshrq_n_u8(x, 4) : masked(x, 15);
}

INLINE uint8x16_t level(const int8_t levels[16], uint8x16_t index)
{
    return vreinterpretq_u8_s8(vqtbl1q_s8(vld1q_s8(levels), index));
}

/* The fifth bits of words j and j + 1, or of word j, at bit 4. */
INLINE uint8x16_t fifth_bits(uint8x16_t plane, int32_t j, bool pairs)
{
    if (!pairs)
        return shifted(plane, 4 - j);
    int8_t a = (int8_t)(4 - j), b = (int8_t)(3 - j);
    return vshlq_u8(plane, (int8x16_t){a, a, a, a, b, b, b, b, a, a, a, a, b, b, b, b});
}

/* Number to subtract from each weight. */
INLINE int32_t weights_offset(tensor_type type)
{
    switch (type) {
    case TYPE_Q4_0:
        return 8;
    case TYPE_Q5_0:
        return 16;
    case TYPE_Q3_K:
        return 4;
    case TYPE_Q6_K:
        return 32;
    default:
        return 0;
    }
}

/* Number of words whose products of one row fit into 16 bits, two sums together: 8 x 31 x 127, 4 x
 * 63 x 127; 1: not even those of two words. */
INLINE int32_t words_fitting(tensor_type type)
{
    if (is_decoded(type)) /* within +-62 */
        return 2;
    switch (type) {
    case TYPE_Q8_0:
    case TYPE_IQ4_NL:
    case TYPE_IQ4_XS:
        return 1;
    case TYPE_Q6_K:
        return 2;
    default:
        return 4;
    }
}

/* Words 4 run + j to 4 run + j + n - 1 of a block of 32 (run 0 or 1). */
INLINE void run_32(int8x16_t *w, tensor_type type, const uint8_t *block, int32_t run, int32_t j,
                   int32_t n, int32_t r, bool pairs)
{
    uint8x16_t raw[4], plane[2] = {vdupq_n_u8(0), vdupq_n_u8(0)};
    bool fifth = type == TYPE_Q5_0 || type == TYPE_Q5_1;
    int32_t part = type == TYPE_Q4_0    ? Q4_0_QS
                   : type == TYPE_Q4_1  ? Q4_1_QS
                   : type == TYPE_Q5_0  ? Q5_0_QS
                   : type == TYPE_Q5_1  ? Q5_1_QS
                   : type == TYPE_Q8_0  ? Q8_0_QS + run * 4 * WORD_BYTES
                   : type == TYPE_MXFP4 ? MXFP4_QS
                                        : IQ4_NL_QS;
    words_at(raw, block, part, j, n, r, pairs);
    if (fifth) {
        plane[0] = plane[1] = word_at(block, type == TYPE_Q5_0 ? Q5_0_QH : Q5_1_QH, 0, r);
        if (pairs)
            words_zip(plane);
    }
    UNROLL
    for (int32_t i = 0; i < n; i++) {
        uint8x16_t x = raw[i];
        if (type == TYPE_Q8_0)
            x = veorq_u8(x, vdupq_n_u8(0x80));
        else
            x = nibble(x, run);
        if (type == TYPE_IQ4_NL)
            x = level(iq4_levels, x);
        if (type == TYPE_MXFP4)
            x = level(mxfp4_levels, x);
        if (fifth)
            x = joined(
                x,
                fifth_bits(plane[pairs ? i % 2 : 0], 4 * run + j + (pairs ? i / 2 * 2 : i), pairs),
                16);
        w[i] = vreinterpretq_s8_u8(x);
    }
}

/* A block of 256 is read in four quarters of four runs each. */
typedef struct run_place {
    int64_t c, j; /* weights 32 c + 4 j to 32 c + 4 j + 15 */
} run_place;

INLINE bool subs_of_16(tensor_type type)
{
    return type == TYPE_Q2_K || type == TYPE_Q3_K || type == TYPE_Q6_K;
}

INLINE run_place run_at(tensor_type type, int64_t quarter, int32_t run)
{
    if (subs_of_16(type))
        return (run_place){quarter / 2 * 4 + run, quarter % 2 * 4};
    return (run_place){quarter * 2 + run / 2, run % 2 * 4};
}

/* Words first to first + n - 1 of a decoded step. */
INLINE void run_decoded(int8x16_t *w, const uint8_t *block, int64_t first, int32_t n, int32_t r,
                        bool pairs)
{
    const decoded_step *step = (const void *)block;
    uint8x16_t raw[4];
    UNROLL
    for (int32_t i = 0; i < n; i++)
        raw[i] = vld1q_u8(step->words[r / HALF_REGISTERS][first + i] + r % HALF_REGISTERS * 16);
    UNROLL
    for (int32_t i = 0; i < n; i += 2) {
        if (pairs)
            words_zip(raw + i);
    }
    UNROLL
    for (int32_t i = 0; i < n; i++)
        w[i] = vreinterpretq_s8_u8(raw[i]);
}

/* Words j to j + n - 1 of a run, j below 4. */
INLINE void run_256(int8x16_t *w, tensor_type type, const uint8_t *block, int64_t quarter,
                    int32_t run, int32_t j, int32_t n, int32_t r, bool pairs)
{
    uint8x16_t raw[4], high[4];
    const run_place at = run_at(type, quarter, run);
    if (is_decoded(type)) {
        run_decoded(w, block, at.c * 8 + at.j + j, n, r, pairs);
        return;
    }
    switch (type) {
    case TYPE_Q2_K:
        words_at(raw, block, Q2_K_QS, quarter * 4 + j, n, r, pairs);
        break;
    case TYPE_Q3_K:
        words_at(raw, block, Q3_K_QS, quarter * 4 + j, n, r, pairs);
        words_at(high, block, Q3_K_HMASK, at.j + j, n, r, pairs);
        break;
    case TYPE_Q4_K:
        words_at(raw, block, Q4_K_QS, quarter * 8 + at.j + j, n, r, pairs);
        break;
    case TYPE_Q5_K:
        words_at(raw, block, Q5_K_QS, quarter * 8 + at.j + j, n, r, pairs);
        words_at(high, block, Q5_K_QH, at.j + j, n, r, pairs);
        break;
    case TYPE_Q6_K:
        words_at(high, block, Q6_K_QUANTS, quarter * 12 + j, n, r, pairs);
        words_at(raw, block, Q6_K_QUANTS, quarter * 12 + 4 + run % 2 * 4 + j, n, r, pairs);
        break;
    default:
        words_at(raw, block, IQ4_XS_QS, at.c * 4 + j, n, r, pairs);
    }
    UNROLL
    for (int32_t i = 0; i < n; i++) {
        uint8x16_t x = raw[i];
        if (type == TYPE_Q2_K)
            x = run == 3 ? shifted(x, -6) : masked(shifted(x, -2 * run), 3);
        else if (type == TYPE_Q3_K)
            x = joined(run == 3 ? shifted(x, -6) : masked(shifted(x, -2 * run), 3),
                       shifted(shifted(high[i], -(quarter / 2 * 4)), 2 - run), 4);
        else if (type == TYPE_Q4_K)
            x = nibble(x, run / 2);
        else if (type == TYPE_Q5_K)
            x = joined(nibble(x, run / 2), shifted(high[i], 4 - at.c), 16);
        else if (type == TYPE_Q6_K)
            x = joined(nibble(x, run / 2), shifted(high[i], 4 - 2 * run), 48);
        else
            x = level(iq4_levels, nibble(x, run % 2));
        w[i] = vreinterpretq_s8_u8(x);
    }
}

/* Four scales of sub-blocks, or minima, as bytes: 4 word to 4 word + 3 of register r's rows. */
INLINE uint8x16_t k4_bytes(const uint8_t *block, int32_t part, int32_t word, int32_t r,
                           bool minimum)
{
    uint8x16_t first = word_at(block, part, minimum, r);
    if (word == 0)
        return masked(first, 63);
    return joined(nibble(word_at(block, part, 2, r), minimum), shifted(first, -2), 48);
}

INLINE uint8x16_t scale_bytes(tensor_type type, const uint8_t *block, int32_t word, int32_t r)
{
    uint8x16_t low;
    switch (type) {
    case TYPE_Q2_K:
        return masked(word_at(block, Q2_K_SCALES, word, r), 15);
    case TYPE_Q3_K:
        low = nibble(word_at(block, Q3_K_SCALES, word % 2, r), word / 2);
        low = joined(low, shifted(word_at(block, Q3_K_SCALES, 2, r), 4 - 2 * word), 48);
        return vsubq_u8(low, vdupq_n_u8(32));
    case TYPE_Q4_K:
        return k4_bytes(block, Q4_K_SCALES, word, r, false);
    case TYPE_Q5_K:
        return k4_bytes(block, Q5_K_SCALES, word, r, false);
    default:
        return word_at(block, Q6_K_SCALES, word, r);
    }
}

INLINE uint8x16_t min_bytes(tensor_type type, const uint8_t *block, int32_t word, int32_t r)
{
    if (type == TYPE_Q2_K)
        return nibble(word_at(block, Q2_K_SCALES, word, r), 1);
    return k4_bytes(block, type == TYPE_Q4_K ? Q4_K_SCALES : Q5_K_SCALES, word, r, true);
}

/* The eight scales of a block of IQ4_XS. */
INLINE void iq4_xs_scales(int32x4_t *out, const uint8_t *block, int32_t r)
{
    uint32x4_t low = vreinterpretq_u32_u8(word_at(block, IQ4_XS_SCALES_L, 0, r));
    uint32x4_t high = vshll_n_u16(halves_at(block, IQ4_XS_SCALES_H, r), 4);
    UNROLL
    for (int32_t s = 0; s < 8; s++) {
        uint32x4_t scale = vbslq_u32(vdupq_n_u32(48), high >> (uint32_t)(2 * s),
                                     vandq_u32(low >> (uint32_t)(4 * s), vdupq_n_u32(15)));
        out[s] = vsubq_s32(vreinterpretq_s32_u32(scale), vdupq_n_s32(32));
    }
}

/* A block's scales, for all of the group's registers.
 *
 * scale: of the n-th sub-block in the order in which runs end them, less that of the sub-block
 * `chain` further on. Products of a chain are never set back to zero: their sum after sub-block s
 * is P(s), and the sum of scale(s) * (P(s) - P(s - chain)) is that of P(s) * (scale(s) - scale(s +
 * chain)), with fewer instructions.
 *
 * bytes: what is multiplied with sums of activations: minima, or scales where weights have an
 * offset; four sub-blocks per word. */
typedef struct block_scales {
    int32x4_t scale[16][GROUP_REGISTERS];
    int8x16_t bytes[4][GROUP_REGISTERS];
} block_scales;

INLINE int32_t subs_of(tensor_type type)
{
    return subs_of_16(type) || (int)type == DECODED_16 ? 16 : 8;
}

/* Scales of type's block in the order in which runs end them, and bytes. */
INLINE void row_scales(int32x4_t *scale, block_scales *out, tensor_type type, const uint8_t *block,
                       int32_t r)
{
    const int32_t n = subs_of(type);
    UNROLL
    for (int32_t word = 0; word < n / 4; word++) {
        uint8x16_t bytes = scale_bytes(type, block, word, r);
        out->bytes[word][r] =
            vreinterpretq_s8_u8(weights_offset(type) ? bytes : min_bytes(type, block, word, r));
        UNROLL
        for (int32_t i = 0; i < 4; i++) {
            const int32_t s = word * 4 + i, c = s / 2; /* run_at's order, backwards */
            const int32_t at = n == 16 ? (c / 4 * 2 + s % 2) * 4 + c % 4 : s;
            int32x4_t top = vreinterpretq_s32_u8(bytes) << (24 - 8 * i);
            scale[at] = vshrq_n_s32(top, 24);
        }
    }
}

INLINE void scales_read(block_scales *out, tensor_type type, const uint8_t *block, int32_t chain)
{
    const int32_t n = subs_of(type);
    ROLLED
    for (int32_t r = 0; r < GROUP_REGISTERS; r++) {
        int32x4_t scale[16];
        if (is_decoded(type)) {
            const decoded_step *step = (const void *)block;
            UNROLL
            for (int32_t s = 0; s < n; s++)
                scale[s] = vld1q_s32(step->scale[s] + r * 4);
        } else if (type == TYPE_IQ4_XS)
            iq4_xs_scales(scale, block, r);
        else
            row_scales(scale, out, type, block, r);
        UNROLL
        for (int32_t s = 0; s < n; s++)
            out->scale[s][r] = s + chain < n ? vsubq_s32(scale[s], scale[s + chain]) : scale[s];
    }
}
