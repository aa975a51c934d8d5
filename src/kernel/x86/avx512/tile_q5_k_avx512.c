/* Q5_K: as Q4_K with a fifth bit a weight. Sub-block sums may leave int16, so each is multiplied by
 * its scale as int32. The loop over pairs of sub-blocks stays rolled: unrolled, its code outgrew
 * the instruction cache, and passes over weights from memory took up to half as long again. */
#include "kernel/x86/avx512/tile_k4_avx512.h"

/* One super-block of the halves (16 rows) [first, first + count) of a group. */
INLINE void halves_q5_k(const int m, const int variant, const int first, const int count,
                        float *sums, const uint8_t *block, const uint8_t *acts)
{
    const __m512i sixteen = _mm512_set1_epi8(16), byte = _mm512_set1_epi32(255);
    scales_k4 k[2];
    __m512i products[2][TOKEN_TILE];
    UNROLL
    for (int h = 0; h < count; h++) {
        k[h] = scales_k4_load(block + Q5_K_SCALES, first + h);
        UNROLL
        for (int t = 0; t < m; t++)
            products[h][t] = _mm512_setzero_si512();
    }
    const uint8_t *qh = block + Q5_K_QH, *qs = block + Q5_K_QS, *x = acts;
    ROLLED
    for (int i = 0; i < 4; i++) {
        prefetch_lines(qs + first * 8 * HALF_BYTES, 8 * count, m, variant);
        UNROLL
        for (int part = 0; part < 2; part++) {
            /* Turns bit 2 i + part of each byte of qh into bit 4. */
            const __m512i turn = _mm512_set1_epi32(4 - 2 * i - part);
            __m512i s[2][TOKEN_TILE];
            UNROLL
            for (int t = 0; t < m; t++)
                s[0][t] = s[1][t] = _mm512_setzero_si512();
            UNROLL
            for (int c = 0; c < 8; c++) {
                __m512i w[2];
                UNROLL
                for (int h = 0; h < count; h++) {
                    __m512i v = load_line(qs + c * WORD_BYTES + (first + h) * HALF_BYTES);
                    __m512i five = load_line(qh + c * WORD_BYTES + (first + h) * HALF_BYTES);
                    five = _mm512_rolv_epi32(five, turn);
                    w[h] = or_and(part ? high_nibbles(v) : low_nibbles(v), five, sixteen);
                }
                UNROLL
                for (int t = 0; t < m; t++) {
                    __m512i b = broadcast_word(x + ((part * 8 + c) * m + t) * 4);
                    UNROLL
                    for (int h = 0; h < count; h++)
                        s[h][t] = _mm512_dpbusd_epi32(s[h][t], w[h], b);
                }
            }
            UNROLL
            for (int h = 0; h < count; h++) {
                __m512i scale = _mm512_srlv_epi32(k[h].scale[i / 2],
                                                  _mm512_set1_epi32(8 * (2 * (i % 2) + part)));
                scale = _mm512_and_si512(scale, byte);
                UNROLL
                for (int t = 0; t < m; t++)
                    products[h][t] = add_product(products[h][t], s[h][t], scale);
            }
        }
        qs += 8 * WORD_BYTES;
        x += 64 * m;
    }
    UNROLL
    for (int h = 0; h < count; h++)
        finish_k4(m, sums, block, acts, first + h, products[h], k[h].min);
}

/* The same for one token, both halves: every line is loaded once, in the order of memory, and the
 * fifth bits wait in registers, turned by one for each sub-block. */
INLINE void lines_q5_k(const int variant, float *sums, const uint8_t *block, const uint8_t *acts)
{
    const __m512i sixteen = _mm512_set1_epi8(16), byte = _mm512_set1_epi32(255);
    scales_k4 k[2];
    __m512i products[2], five[8][2];
    UNROLL
    for (int h = 0; h < 2; h++) {
        k[h] = scales_k4_load(block + Q5_K_SCALES, h);
        products[h] = _mm512_setzero_si512();
    }
    UNROLL
    for (int i = 0; i < 16; i++)
        five[i / 2][i % 2] = _mm512_rol_epi32(load_kept(block + Q5_K_QH + i * 64), 4);
    const uint8_t *line = block + Q5_K_QS, *x = acts;
    ROLLED
    for (int i = 0; i < 4; i++, x += 64) {
        __m512i s[2][2];
        if (variant != SPARSE)
            prefetch_lines(line, 16, 1, variant);
        s[0][0] = s[0][1] = s[1][0] = s[1][1] = _mm512_setzero_si512();
        UNROLL
        for (int l = 0; l < 16; l++, line += 64) {
            int c = l / 2, h = l % 2;
            __m512i v = load_kept(line);
            UNROLL
            for (int part = 0; part < 2; part++) {
                __m512i w = or_and(part ? high_nibbles(v) : low_nibbles(v), five[c][h], sixteen);
                five[c][h] = _mm512_ror_epi32(five[c][h], 1);
                s[part][h] =
                    _mm512_dpbusd_epi32(s[part][h], w, broadcast_word(x + (part * 8 + c) * 4));
            }
        }
        UNROLL
        for (int part = 0; part < 2; part++) {
            const __m512i at = _mm512_set1_epi32(8 * (2 * (i % 2) + part));
            UNROLL
            for (int h = 0; h < 2; h++) {
                __m512i scale = _mm512_and_si512(_mm512_srlv_epi32(k[h].scale[i / 2], at), byte);
                products[h] = add_product(products[h], s[part][h], scale);
            }
        }
    }
    UNROLL
    for (int h = 0; h < 2; h++)
        finish_k4(1, sums, block, acts, h, &products[h], k[h].min);
}

INLINE void tile_q5_k_m(const int m, const int variant, float *sums, const uint8_t *block,
                        const uint8_t *acts, int32_t n_blocks)
{
    for (; n_blocks > 0; n_blocks--) {
        prefetch_lines(block, Q5_K_QS / 64, m, variant);
        touch_lines(block, Q5_K_QH / 64, m, variant);
        if (variant == HALVES) {
            halves_q5_k(m, variant, 0, 1, sums, block, acts);
            halves_q5_k(m, variant, 1, 1, sums, block, acts);
        } else if (m == 1) {
            lines_q5_k(variant, sums, block, acts);
        } else {
            halves_q5_k(m, variant, 0, 2, sums, block, acts);
        }
        block += 176 * GROUP_ROWS;
        acts += ACT_Q8_256_BYTES * m;
    }
}
TILE_FEW(q5_k, sparse, SPARSE)
TILE_FEW(q5_k, far, FAR)
TILE_FEW(q5_k, near, NEAR)
TILE_MANY(q5_k, halves, HALVES)
