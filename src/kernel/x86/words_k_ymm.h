/* The weights of blocks of 256 as bytes, 8 rows at a time, and their sub-blocks' scales and minima,
 * for the 8-lane x86 tiers (words_8_ymm.h has the weights of 8 bits). */
#pragma once

#include "kernel/x86/ymm.h"

/* Byte s % 4 of each 32-bit lane of words. */
INLINE __m256i byte_of(__m256i words, int s)
{
    __m256i v = _mm256_srl_epi32(words, _mm_cvtsi32_si128(8 * (s % 4)));
    return _mm256_and_si256(v, _mm256_set1_epi32(255));
}

INLINE __m256i signed_byte_of(__m256i words, int s)
{
    __m256i v = _mm256_sll_epi32(words, _mm_cvtsi32_si128(24 - 8 * (s % 4)));
    return _mm256_srai_epi32(v, 24);
}

/* ---- Sub-blocks of 32 ---- */

/* Scales of sub-blocks 0..3 and 4..7, a byte each, and the same of minima (Q4_K and Q5_K). */
typedef struct scales_32 {
    __m256i scale[2], min[2];
} scales_32;

INLINE scales_32 scales_k4(const uint8_t *scales, int slice)
{
    __m256i a = load_slice(scales, slice), b = load_slice(scales + WORD_BYTES, slice);
    __m256i c = load_slice(scales + 2 * WORD_BYTES, slice);
    scales_32 k;
    k.scale[0] = field(a, 0, 6);
    k.scale[1] = _mm256_or_si256(field(c, 0, 4), _mm256_slli_epi16(field(a, 6, 2), 4));
    k.min[0] = field(b, 0, 6);
    k.min[1] = _mm256_or_si256(field(c, 4, 4), _mm256_slli_epi16(field(b, 6, 2), 4));
    return k;
}

INLINE scales_32 scales_q4_k(const uint8_t *block, int slice)
{
    return scales_k4(block + Q4_K_SCALES, slice);
}

INLINE scales_32 scales_q5_k(const uint8_t *block, int slice)
{
    return scales_k4(block + Q5_K_SCALES, slice);
}

INLINE scales_32 scales_iq4_xs(const uint8_t *block, int slice)
{
    __m256i low = load_slice(block + IQ4_XS_SCALES_L, slice);
    __m256i high = _mm256_cvtepu16_epi32(_mm_loadu_si128(
        (const __m128i *)(const void *)(block + IQ4_XS_SCALES_H + slice * SLICE_ROWS * 2)));
    scales_32 k;
    UNROLL
    for (int w = 0; w < 2; w++) {
        __m256i bytes = _mm256_setzero_si256();
        UNROLL
        for (int s = 0; s < 4; s++) {
            __m256i l =
                _mm256_and_si256(_mm256_srli_epi32(low, 16 * w + 4 * s), _mm256_set1_epi32(15));
            __m256i h =
                _mm256_and_si256(_mm256_srli_epi32(high, 8 * w + 2 * s), _mm256_set1_epi32(3));
            __m256i v = _mm256_or_si256(l, _mm256_slli_epi32(h, 4));
            bytes = _mm256_or_si256(bytes, _mm256_slli_epi32(v, 8 * s));
        }
        k.scale[w] = _mm256_sub_epi8(bytes, _mm256_set1_epi8(32));
        k.min[w] = _mm256_setzero_si256();
    }
    return k;
}

/* Word c of sub-block s. */
INLINE __m256i word_q4_k(const uint8_t *block, int s, int c, int slice)
{
    __m256i v = load_slice(block + Q4_K_QS + (s / 2 * 8 + c) * WORD_BYTES, slice);
    v = _mm256_srl_epi16(v, _mm_cvtsi32_si128(s % 2 * 4));
    return field(v, 0, 4);
}

INLINE __m256i word_q5_k(const uint8_t *block, int s, int c, int slice)
{
    __m256i v = load_slice(block + Q5_K_QS + (s / 2 * 8 + c) * WORD_BYTES, slice);
    v = _mm256_srl_epi16(v, _mm_cvtsi32_si128(s % 2 * 4));
    __m256i h = load_slice(block + Q5_K_QH + c * WORD_BYTES, slice);
    h = _mm256_srl_epi16(h, _mm_cvtsi32_si128(s));
    return _mm256_or_si256(field(v, 0, 4), bit_at(h, 0, 4));
}

/* ---- Sub-blocks of 16 ---- */

/* Scale bytes of four sub-blocks per word, and the same of minima (Q2_K). */
typedef struct scales_16 {
    __m256i scale[4], min[4];
} scales_16;

INLINE scales_16 scales_q6_k(const uint8_t *block, int slice)
{
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        k.scale[w] = load_slice(block + Q6_K_SCALES + w * WORD_BYTES, slice);
        k.min[w] = _mm256_setzero_si256();
    }
    return k;
}

INLINE scales_16 scales_q3_k(const uint8_t *block, int slice)
{
    const uint8_t *at = block + Q3_K_SCALES;
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        __m256i low = field(load_slice(at + w % 2 * WORD_BYTES, slice), w / 2 * 4, 4);
        __m256i high = field(load_slice(at + 2 * WORD_BYTES, slice), 2 * w, 2);
        __m256i scale = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
        k.scale[w] = _mm256_sub_epi8(scale, _mm256_set1_epi8(32));
        k.min[w] = _mm256_setzero_si256();
    }
    return k;
}

INLINE scales_16 scales_q2_k(const uint8_t *block, int slice)
{
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        __m256i v = load_slice(block + Q2_K_SCALES + w * WORD_BYTES, slice);
        k.scale[w] = field(v, 0, 4);
        k.min[w] = field(v, 4, 4);
    }
    return k;
}

/* Word c of sub-block j of four, 32 weights apart, in quarter p (as in tile_sub16_avx512.c). */
INLINE __m256i word_q6_k(const uint8_t *block, int p, int j, int c, int slice)
{
    const uint8_t *qh = block + Q6_K_QUANTS + p * Q6_K_QUARTER_BYTES + c * WORD_BYTES;
    __m256i low = field(load_slice(qh + (4 + j % 2 * 4) * WORD_BYTES, slice), j / 2 * 4, 4);
    __m256i high = field(load_slice(qh, slice), 2 * j, 2);
    return _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
}

INLINE __m256i word_q3_k(const uint8_t *block, int p, int j, int c, int slice)
{
    __m256i v = load_slice(block + Q3_K_QS + (p * 4 + c) * WORD_BYTES, slice);
    __m256i h = load_slice(block + Q3_K_HMASK + (p % 2 * 4 + c) * WORD_BYTES, slice);
    h = _mm256_srl_epi16(h, _mm_cvtsi32_si128(p / 2 * 4));
    return _mm256_or_si256(field(v, 2 * j, 2), bit_at(h, j, 2));
}

INLINE __m256i word_q2_k(const uint8_t *block, int p, int j, int c, int slice)
{
    return field(load_slice(block + Q2_K_QS + (p * 4 + c) * WORD_BYTES, slice), 2 * j, 2);
}
