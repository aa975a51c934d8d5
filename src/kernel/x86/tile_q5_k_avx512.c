/* Q5_K: as Q4_K with a fifth bit a weight. Sub-block sums may leave int16, so each is multiplied by
 * its scale as int32. */
#include "kernel/x86/tile_k4_avx512.h"

INLINE void tile_q5_k_m(const int m, float *sums, const uint8_t *block, const uint8_t *acts,
                        int32_t n_blocks)
{
    const __m512i sixteen = _mm512_set1_epi8(16), byte = _mm512_set1_epi32(255);
    for (; n_blocks > 0; n_blocks--) {
        scales_k4 k[2];
        __m512i products[2][TOKEN_TILE];
        prefetch_lines(block, Q5_K_QS / 64, 4);
        UNROLL
        for (int half = 0; half < 2; half++)
            k[half] = scales_k4_load(block + Q5_K_SCALES, half);
        UNROLL
        for (int t = 0; t < m; t++)
            products[0][t] = products[1][t] = _mm512_setzero_si512();
        const uint8_t *qs = block + Q5_K_QS, *qh = block + Q5_K_QH, *x = acts;
        /* Chunk i holds sub-blocks 2 i (low nibbles) and 2 i + 1; bit s of qh belongs to sub-block
         * s. */
        ROLLED
        for (int i = 0; i < 4; i++) {
            prefetch_lines(qs, 16, 4);
            UNROLL
            for (int part = 0; part < 2; part++) {
                __m512i s[2][TOKEN_TILE];
                __m128i to_top = _mm_cvtsi32_si128(4 - 2 * i - part), /* bit s to bit 4 */
                    from_top = _mm_cvtsi32_si128(2 * i + part - 4);
                bool up = 2 * i + part < 4;
                UNROLL
                for (int t = 0; t < m; t++)
                    s[0][t] = s[1][t] = _mm512_setzero_si512();
                UNROLL
                for (int c = 0; c < 8; c++) {
                    __m512i w[2];
                    UNROLL
                    for (int half = 0; half < 2; half++) {
                        __m512i v = load_line(qs + c * WORD_BYTES + half * HALF_BYTES);
                        __m512i h = load_line(qh + c * WORD_BYTES + half * HALF_BYTES);
                        h = up ? _mm512_sll_epi16(h, to_top) : _mm512_srl_epi16(h, from_top);
                        w[half] = or_and(part ? high_nibbles(v) : low_nibbles(v), h, sixteen);
                    }
                    UNROLL
                    for (int t = 0; t < m; t++) {
                        __m512i b = broadcast_word(x + ((part * 8 + c) * m + t) * 4);
                        s[0][t] = _mm512_dpbusd_epi32(s[0][t], w[0], b);
                        s[1][t] = _mm512_dpbusd_epi32(s[1][t], w[1], b);
                    }
                }
                __m128i at = _mm_cvtsi32_si128(8 * (2 * (i % 2) + part));
                UNROLL
                for (int half = 0; half < 2; half++) {
                    __m512i scale =
                        _mm512_and_si512(_mm512_srl_epi32(k[half].scale[i / 2], at), byte);
                    UNROLL
                    for (int t = 0; t < m; t++)
                        products[half][t] = _mm512_add_epi32(products[half][t],
                                                             _mm512_mullo_epi32(s[half][t], scale));
                }
            }
            qs += 8 * WORD_BYTES;
            x += 64 * m;
        }
        UNROLL
        for (int half = 0; half < 2; half++)
            finish_k4(m, sums, block, acts, half, products[half], k[half].min);
        block += 176 * GROUP_ROWS;
        acts += ACT_Q8_256_BYTES * m;
    }
}
TILE_SWITCH(q5_k)
