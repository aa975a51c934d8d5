/* Code that Q4_K and Q5_K share: eight 6-bit scales and minima in 12 bytes, and the float end of a
 * super-block. */
#pragma once

#include "kernel/x86/avx512/tile_avx512.h"

/* Scale bytes of sub-blocks 0..3 and 4..7 of 16 rows, a word a row, and the minima alike. */
typedef struct scales_k4 {
    __m512i scale[2], min[2];
} scales_k4;

INLINE scales_k4 scales_k4_load(const uint8_t *scales, int half)
{
    __m512i a = load_line(scales + half * HALF_BYTES);
    __m512i b = load_line(scales + WORD_BYTES + half * HALF_BYTES);
    __m512i c = load_line(scales + 2 * WORD_BYTES + half * HALF_BYTES);
    const __m512i six = _mm512_set1_epi8(0x3f), top = _mm512_set1_epi8(0x30);
    scales_k4 k;
    k.scale[0] = _mm512_and_si512(a, six);
    k.scale[1] = or_and(low_nibbles(c), _mm512_srli_epi16(a, 2), top);
    k.min[0] = _mm512_and_si512(b, six);
    k.min[1] = or_and(high_nibbles(c), _mm512_srli_epi16(b, 2), top);
    return k;
}

/* Sum over the sub-blocks of min * sum(x) of token t, 16 rows. */
INLINE __m512i minima_sum(const __m512i min[2], const uint8_t *acts, int m, int t)
{
    const __m512i even = _mm512_set1_epi16(255);
    __m512i sum = _mm512_setzero_si512();
    UNROLL
    for (int p = 0; p < 4; p++) {
        __m512i x = broadcast_word(acts + ACT_256_PAIRS * m + (p * m + t) * 4);
        __m512i pair =
            _mm512_and_si512(p % 2 ? _mm512_srli_epi16(min[p / 2], 8) : min[p / 2], even);
        sum = _mm512_dpwssd_epi32(sum, pair, x);
    }
    return sum;
}

/* The super-block's end: two fused multiply-adds for each row and token. */
INLINE void finish_k4(const int m, float *sums, const uint8_t *block, const uint8_t *acts, int half,
                      const __m512i *products, const __m512i min[2])
{
    __m512 dw = load_halves(block + half * 32);
    __m512 mw = load_halves(block + 64 + half * 32);
    UNROLL
    for (int t = 0; t < m; t++)
        finish_256(sums, acts, m, t, half, dw, mw, products[t], minima_sum(min, acts, m, t), true);
}
