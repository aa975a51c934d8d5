/* Q4_K: 256 weights are eight sub-blocks of 32 with 6-bit scales and minima.
 *
 * The activations' scale rule (ACT_Q8_256 in kernel.h) keeps the dot product of a sub-block inside
 * int16, so two of them share one int32 lane: the first is accumulated and shifted up by 16, the
 * second accumulated on top. The second's borrow is repaired by adding 0x8000 and flipping that
 * bit; then one vpdpwssd multiplies both by their scales and adds. */
#include "kernel/x86/avx512/tile_k4_avx512.h"

/* Pairs of 16-bit scales, (scale 2 i + 1 | scale 2 i << 16) of 16 rows, for chunk i of 64 weights.
 */
INLINE __m512i scale_pairs(const __m512i scale[2], int i)
{
    __m512i v = scale[i / 2];
    __m512i odd = _mm512_and_si512(_mm512_srli_epi32(v, i % 2 ? 24 : 8), _mm512_set1_epi32(255));
    __m512i even = _mm512_slli_epi32(i % 2 ? _mm512_srli_epi32(v, 16) : v, 16);
    return or_and(odd, even, _mm512_set1_epi32(255 << 16));
}

/* One super-block of the halves (16 rows) [first, first + count) of a group. */
INLINE void halves_q4_k(const int m, const int variant, const int first, const int count,
                        float *sums, const uint8_t *block, const uint8_t *acts)
{
    scales_k4 k[2];
    __m512i pairs[4][2], products[2][TOKEN_TILE];
    UNROLL
    for (int h = 0; h < count; h++) {
        k[h] = scales_k4_load(block + Q4_K_SCALES, first + h);
        UNROLL
        for (int i = 0; i < 4; i++)
            pairs[i][h] = scale_pairs(k[h].scale, i);
        UNROLL
        for (int t = 0; t < m; t++)
            products[h][t] = _mm512_setzero_si512();
    }
    const uint8_t *qs = block + Q4_K_QS + first * HALF_BYTES, *x = acts;
    ROLLED
    for (int i = 0; i < 4; i++) {
        __m512i s[2][TOKEN_TILE];
        prefetch_lines(qs + first * 7 * HALF_BYTES, 8 * count, m, variant);
        UNROLL
        for (int t = 0; t < m; t++)
            s[0][t] = s[1][t] = _mm512_setzero_si512();
        UNROLL
        for (int c = 0; c < 16; c++) {
            __m512i w[2];
            UNROLL
            for (int h = 0; h < count; h++) {
                const uint8_t *line = qs + c % 8 * WORD_BYTES + h * HALF_BYTES;
                if (c < 8 && m > SPARSE_TOKENS &&
                    variant != NEAR) /* from L2 into L1, two rounds ahead */
                    _mm_prefetch((const char *)line + 16 * WORD_BYTES, _MM_HINT_T0);
                w[h] = load_line(line);
                w[h] = c < 8 ? low_nibbles(w[h]) : high_nibbles(w[h]);
            }
            UNROLL
            for (int t = 0; t < m; t++) {
                __m512i b = broadcast_word(x + (c * m + t) * 4);
                UNROLL
                for (int h = 0; h < count; h++) {
                    if (c == 8)
                        s[h][t] = _mm512_slli_epi32(s[h][t], 16);
                    s[h][t] = _mm512_dpbusd_epi32(s[h][t], w[h], b);
                }
            }
        }
        const __m512i half_bit = _mm512_set1_epi32(0x8000);
        UNROLL
        for (int h = 0; h < count; h++) {
            UNROLL
            for (int t = 0; t < m; t++) {
                __m512i v = _mm512_add_epi32(s[h][t], half_bit);
                v = _mm512_xor_si512(v, half_bit);
                products[h][t] = _mm512_dpwssd_epi32(products[h][t], v, pairs[i][h]);
            }
        }
        qs += 8 * WORD_BYTES;
        x += 64 * m;
    }
    UNROLL
    for (int h = 0; h < count; h++)
        finish_k4(m, sums, block, acts, first + h, products[h], k[h].min);
}

/* The same for one half, with its own sums for each of a chunk's two sub-blocks, so that sixteen
 * chains of products of eight tokens do not wait for each other. A sum within int16 takes
 * part in vpdpwssd as it is: the upper half of its lane meets a zero. That is one product more than
 * halves_q4_k has, and three operations fewer, which matters where all share two ports. llvm-mca
 * (Sapphire Rapids) expects 1.11 products per cycle instead of 1.04; on Zen 5 it is as fast as
 * lines. */
INLINE void chains_q4_k(const int m, const int variant, const int half, float *sums,
                        const uint8_t *block, const uint8_t *acts)
{
    const scales_k4 k = scales_k4_load(block + Q4_K_SCALES, half);
    const __m512i byte = _mm512_set1_epi32(255);
    __m512i products[TOKEN_TILE];
    UNROLL
    for (int t = 0; t < m; t++)
        products[t] = _mm512_setzero_si512();
    const uint8_t *qs = block + Q4_K_QS + half * HALF_BYTES, *x = acts;
    ROLLED
    for (int i = 0; i < 4; i++) {
        __m512i sum[2][TOKEN_TILE], scale = k.scale[i / 2];
        prefetch_lines(qs + half * 7 * HALF_BYTES, 8, m, variant);
        UNROLL
        for (int t = 0; t < m; t++)
            sum[0][t] = sum[1][t] = _mm512_setzero_si512();
        UNROLL
        for (int c = 0; c < 8; c++) {
            const uint8_t *line = qs + c * WORD_BYTES;
            _mm_prefetch((const char *)line + 16 * WORD_BYTES, _MM_HINT_T0);
            __m512i v = load_kept(line), low = low_nibbles(v), high = high_nibbles(v);
            UNROLL
            for (int t = 0; t < m; t++) {
                const uint8_t *at = x + (c * m + t) * 4;
                sum[0][t] = _mm512_dpbusd_epi32(sum[0][t], low, broadcast_word(at));
                sum[1][t] = _mm512_dpbusd_epi32(sum[1][t], high, broadcast_word(at + 32 * m));
            }
        }
        scale = _mm512_srl_epi32(scale, _mm_cvtsi32_si128(i % 2 * 16));
        const __m512i even = _mm512_and_si512(scale, byte);
        const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(scale, 8), byte);
        UNROLL
        for (int t = 0; t < m; t++) {
            products[t] = _mm512_dpwssd_epi32(products[t], sum[0][t], even);
            products[t] = _mm512_dpwssd_epi32(products[t], sum[1][t], odd);
        }
        qs += 8 * WORD_BYTES;
        x += 64 * m;
    }
    finish_k4(m, sums, block, acts, half, products, k.min);
}

INLINE void tile_q4_k_m(const int m, const int variant, float *sums, const uint8_t *block,
                        const uint8_t *acts, int32_t n_blocks)
{
    for (; n_blocks > 0; n_blocks--) {
        front_lines(block, Q4_K_QS / 64, m, variant);
        if (variant == HALVES) {
            halves_q4_k(m, variant, 0, 1, sums, block, acts);
            halves_q4_k(m, variant, 1, 1, sums, block, acts);
        } else if (variant == CHAINS) {
            chains_q4_k(m, variant, 0, sums, block, acts);
            chains_q4_k(m, variant, 1, sums, block, acts);
        } else {
            halves_q4_k(m, variant, 0, 2, sums, block, acts);
        }
        block += 144 * GROUP_ROWS;
        acts += ACT_Q8_256_BYTES * m;
    }
}
TILE_FEW(q4_k, sparse, SPARSE)
TILE_FEW(q4_k, far, FAR)
TILE_FEW(q4_k, near, NEAR)
TILE_MANY(q4_k, halves, HALVES)
TILE_MANY(q4_k, lines, LINES)
TILE_MANY(q4_k, chains, CHAINS)
