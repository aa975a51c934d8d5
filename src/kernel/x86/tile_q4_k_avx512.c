/* Q4_K: 256 weights are eight sub-blocks of 32 with 6-bit scales and minima.
 *
 * The activations' scale rule (ACT_Q8_256 in kernel.h) keeps the dot product of a sub-block inside
 * int16, so two of them share one int32 lane: the first is accumulated and shifted up by 16, the
 * second accumulated on top. The second's borrow is repaired by adding 0x8000 and flipping that
 * bit; then one vpdpwssd multiplies both by their scales and adds. */
#include "kernel/x86/tile_k4_avx512.h"

/* Pairs of 16-bit scales, (scale 2 i + 1 | scale 2 i << 16) of 16 rows, for chunk i of 64 weights.
 */
INLINE __m512i scale_pairs(const __m512i scale[2], int i)
{
    __m512i v = scale[i / 2];
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(v, i % 2 ? 24 : 8), _mm512_set1_epi32(255));
    __m512i even = _mm512_slli_epi32(i % 2 ? _mm512_srli_epi32(v, 16) : v, 16);
    return or_and(odd, even, _mm512_set1_epi32(255 << 16));
}

INLINE void tile_q4_k_m(const int m, float *sums, const uint8_t *block, const uint8_t *acts,
                        int32_t n_blocks)
{
    for (; n_blocks > 0; n_blocks--) {
        scales_k4 k[2];
        __m512i pairs[4][2], products[2][TOKEN_TILE];
        prefetch_lines(block, Q4_K_QS / 64, 4);
        UNROLL
        for (int half = 0; half < 2; half++) {
            k[half] = scales_k4_load(block + Q4_K_SCALES, half);
            UNROLL
            for (int i = 0; i < 4; i++)
                pairs[i][half] = scale_pairs(k[half].scale, i);
        }
        UNROLL
        for (int t = 0; t < m; t++)
            products[0][t] = products[1][t] = _mm512_setzero_si512();
        const uint8_t *qs = block + Q4_K_QS, *x = acts;
        ROLLED
        for (int i = 0; i < 4; i++) {
            __m512i s[2][TOKEN_TILE];
            prefetch_lines(qs, 16, 4);
            UNROLL
            for (int t = 0; t < m; t++)
                s[0][t] = s[1][t] = _mm512_setzero_si512();
            UNROLL
            for (int c = 0; c < 16; c++) {
                __m512i w0 = load_line(qs + c % 8 * WORD_BYTES);
                __m512i w1 = load_line(qs + c % 8 * WORD_BYTES + HALF_BYTES);
                w0 = c < 8 ? low_nibbles(w0) : high_nibbles(w0);
                w1 = c < 8 ? low_nibbles(w1) : high_nibbles(w1);
                UNROLL
                for (int t = 0; t < m; t++) {
                    __m512i b = broadcast_word(x + (c * m + t) * 4);
                    if (c == 8) {
                        s[0][t] = _mm512_slli_epi32(s[0][t], 16);
                        s[1][t] = _mm512_slli_epi32(s[1][t], 16);
                    }
                    s[0][t] = _mm512_dpbusd_epi32(s[0][t], w0, b);
                    s[1][t] = _mm512_dpbusd_epi32(s[1][t], w1, b);
                }
            }
            const __m512i half_bit = _mm512_set1_epi32(0x8000);
            UNROLL
            for (int t = 0; t < m; t++) {
                UNROLL
                for (int half = 0; half < 2; half++) {
                    __m512i v = _mm512_add_epi32(s[half][t], half_bit);
                    v = _mm512_xor_si512(v, half_bit);
                    products[half][t] = _mm512_dpwssd_epi32(products[half][t], v, pairs[i][half]);
                }
            }
            qs += 8 * WORD_BYTES;
            x += 64 * m;
        }
        UNROLL
        for (int half = 0; half < 2; half++)
            finish_k4(m, sums, block, acts, half, products[half], k[half].min);
        block += 144 * GROUP_ROWS;
        acts += ACT_Q8_256_BYTES * m;
    }
}
TILE_SWITCH(q4_k)
