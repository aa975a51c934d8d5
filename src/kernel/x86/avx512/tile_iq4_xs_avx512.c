/* IQ4_XS: eight sub-blocks of 32 with signed scales; weights are levels looked up by nibble. */
#include "kernel/x86/avx512/tile_avx512.h"

/* Scales of sub-blocks 0..3 or 4..7 (w), a signed byte each: four low bits from scales_l's nibbles
 * 4 w .. 4 w + 3, two high ones from scales_h, less 32. */
INLINE __m512i scale_bytes(const uint8_t *block, int half, int w)
{
    __m512i low = load_line(block + IQ4_XS_SCALES_L + half * HALF_BYTES);
    __m512i high = _mm512_cvtepu16_epi32(
        _mm256_loadu_si256((const __m256i *)(const void *)(block + IQ4_XS_SCALES_H + half * 32)));
    __m512i bytes = _mm512_setzero_si512();
    UNROLL
    for (int s = 0; s < 4; s++) {
        __m512i l = _mm512_and_si512(_mm512_srli_epi32(low, (unsigned)(16 * w + 4 * s)),
                                     _mm512_set1_epi32(15));
        __m512i h = _mm512_and_si512(_mm512_srli_epi32(high, (unsigned)(8 * w + 2 * s)),
                                     _mm512_set1_epi32(3));
        __m512i v = _mm512_or_si512(l, _mm512_slli_epi32(h, 4));
        bytes = _mm512_or_si512(bytes, _mm512_slli_epi32(v, (unsigned)(8 * s)));
    }
    return _mm512_sub_epi8(bytes, _mm512_set1_epi8(32));
}

INLINE void tile_iq4_xs_m(const int m, const int variant, float *sums, const uint8_t *block,
                          const uint8_t *acts, int32_t n_blocks)
{
    const int fetch = m > FEW_TOKENS ? HALVES : variant;
    const __m512i levels = _mm512_xor_si512(
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)iq4_levels)),
        _mm512_set1_epi8(-128));
    for (; n_blocks > 0; n_blocks--) {
        __m512i scales[2][2], products[2][TOKEN_TILE];
        front_lines(block, IQ4_XS_QS / 64, m, fetch);
        UNROLL
        for (int half = 0; half < 2; half++) {
            UNROLL
            for (int w = 0; w < 2; w++)
                scales[half][w] = scale_bytes(block, half, w);
            UNROLL
            for (int t = 0; t < m; t++)
                products[half][t] = _mm512_setzero_si512();
        }
        const uint8_t *qs = block + IQ4_XS_QS, *x = acts, *sum16 = acts + ACT_256_SUM16 * m;
        ROLLED
        for (int i = 0; i < 8; i++) {
            __m512i s[2][TOKEN_TILE];
            prefetch_lines(qs, 8, m, fetch);
            /* -128 * sum(x) over 32 from the two -32 * sum(x) over 16. */
            UNROLL
            for (int t = 0; t < m; t++)
                s[0][t] = s[1][t] =
                    _mm512_slli_epi32(_mm512_add_epi32(broadcast_word(sum16 + t * 4),
                                                       broadcast_word(sum16 + (m + t) * 4)),
                                      2);
            UNROLL
            for (int c = 0; c < 8; c++) {
                __m512i w0 = load_line(qs + c % 4 * WORD_BYTES);
                __m512i w1 = load_line(qs + c % 4 * WORD_BYTES + HALF_BYTES);
                w0 = _mm512_shuffle_epi8(levels, c < 4 ? low_nibbles(w0) : high_nibbles(w0));
                w1 = _mm512_shuffle_epi8(levels, c < 4 ? low_nibbles(w1) : high_nibbles(w1));
                UNROLL
                for (int t = 0; t < m; t++) {
                    __m512i b = broadcast_word(x + (c * m + t) * 4);
                    s[0][t] = _mm512_dpbusd_epi32(s[0][t], w0, b);
                    s[1][t] = _mm512_dpbusd_epi32(s[1][t], w1, b);
                }
            }
            __m128i up = _mm_cvtsi32_si128(24 - 8 * (i % 4));
            UNROLL
            for (int half = 0; half < 2; half++) {
                __m512i scale = _mm512_srai_epi32(_mm512_sll_epi32(scales[half][i / 4], up), 24);
                UNROLL
                for (int t = 0; t < m; t++)
                    products[half][t] = add_product(products[half][t], s[half][t], scale);
            }
            qs += 4 * WORD_BYTES;
            x += 32 * m;
            sum16 += 2 * m * 4;
        }
        UNROLL
        for (int half = 0; half < 2; half++) {
            __m512 dw = load_halves(block + IQ4_XS_D + half * 32);
            UNROLL
            for (int t = 0; t < m; t++)
                finish_256(sums, acts, m, t, half, dw, dw, products[half][t], products[half][t],
                           false);
        }
        block += 136 * GROUP_ROWS;
        acts += ACT_Q8_256_BYTES * m;
    }
}
TILE_FEW(iq4_xs, sparse, SPARSE)
TILE_FEW(iq4_xs, far, FAR)
TILE_FEW(iq4_xs, near, NEAR)
TILE_MANY(iq4_xs, lines, LINES)
