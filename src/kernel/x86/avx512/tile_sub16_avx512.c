/* Q2_K, Q3_K and Q6_K: sub-blocks of 16 weights, so four vpdpbusd and then a scale.
 *
 * In all three, a word of the two-bit part holds four weights, 32 apart, of 128; the loop takes
 * half of those 32 columns at a time: four sub-blocks, 32 apart. The offset (4 or 32) is paid by
 * starting a sub-block's sum at -offset * sum(x); the activations carry -32 * sum(x) over 16. */
#include "kernel/x86/avx512/tile_avx512.h"

/* Bits 2 j, 2 j + 1 of each byte moved to bit `to`; other bits are anything. */
INLINE __m512i move_bits(__m512i v, int j, int to)
{
    int shift = 2 * j - to;
    return shift > 0   ? _mm512_srli_epi16(v, SHIFT(shift))
           : shift < 0 ? _mm512_slli_epi16(v, SHIFT(-shift))
                       : v;
}

/* The same, masked. */
INLINE __m512i two_bits(__m512i v, int j, int to)
{
    return _mm512_and_si512(move_bits(v, j, to), _mm512_set1_epi8((char)(3 << to)));
}

/* Words c .. of sub-block j (0..3) of part p (0..3: columns 16 * (p % 2) of half p / 2). */
INLINE __m512i word_q6_k(const uint8_t *block, int p, int j, int c, int half)
{
    const uint8_t *qh = block + Q6_K_QUANTS + p * Q6_K_QUARTER_BYTES + c * WORD_BYTES;
    const uint8_t *ql = qh + (4 + j % 2 * 4) * WORD_BYTES;
    __m512i v = load_line(ql + half * HALF_BYTES), h = load_line(qh + half * HALF_BYTES);
    return or_and(j < 2 ? low_nibbles(v) : high_nibbles(v), move_bits(h, j, 4),
                  _mm512_set1_epi8(3 << 4));
}

INLINE __m512i word_q3_k(const uint8_t *block, int p, int j, int c, int half)
{
    const uint8_t *qs = block + Q3_K_QS + (p / 2 * 8 + p % 2 * 4 + c) * WORD_BYTES;
    const uint8_t *hm = block + Q3_K_HMASK + (p % 2 * 4 + c) * WORD_BYTES;
    /* Bit 4 * (p / 2) + j of the mask becomes bit 2. */
    __m512i h = _mm512_srl_epi16(load_line(hm + half * HALF_BYTES), _mm_cvtsi32_si128(4 * (p / 2)));
    h = j < 2 ? _mm512_slli_epi16(h, SHIFT(2 - j)) : j > 2 ? _mm512_srli_epi16(h, SHIFT(j - 2)) : h;
    __m512i v = two_bits(load_line(qs + half * HALF_BYTES), j, 0);
    return or_and(v, h, _mm512_set1_epi8(4));
}

INLINE __m512i word_q2_k(const uint8_t *block, int p, int j, int c, int half)
{
    const uint8_t *qs = block + Q2_K_QS + (p / 2 * 8 + p % 2 * 4 + c) * WORD_BYTES;
    return two_bits(load_line(qs + half * HALF_BYTES), j, 0);
}

/* Words of four scale bytes of 16 rows: word w holds sub-blocks 4 w .. 4 w + 3. */
typedef struct scales_16 {
    __m512i scale[4], min[4];
} scales_16;

INLINE scales_16 scales_q6_k(const uint8_t *block, int half)
{
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        k.scale[w] = load_line(block + Q6_K_SCALES + w * WORD_BYTES + half * HALF_BYTES);
        k.min[w] = _mm512_setzero_si512();
    }
    return k;
}

INLINE scales_16 scales_q3_k(const uint8_t *block, int half)
{
    const uint8_t *at = block + Q3_K_SCALES + half * HALF_BYTES;
    __m512i a = load_line(at), b = load_line(at + WORD_BYTES), c = load_line(at + 2 * WORD_BYTES);
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        __m512i low = w % 2 ? b : a;
        low = w < 2 ? low_nibbles(low) : high_nibbles(low);
        __m512i scale = _mm512_or_si512(low, two_bits(c, w, 4));
        k.scale[w] = _mm512_sub_epi8(scale, _mm512_set1_epi8(32));
        k.min[w] = _mm512_setzero_si512();
    }
    return k;
}

INLINE scales_16 scales_q2_k(const uint8_t *block, int half)
{
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        __m512i v = load_line(block + Q2_K_SCALES + w * WORD_BYTES + half * HALF_BYTES);
        k.scale[w] = low_nibbles(v);
        k.min[w] = high_nibbles(v);
    }
    return k;
}

/* Signed byte 2 * (j % 2) + p % 2 of each word: sub-block 8 * (p / 2) + 2 j + p % 2 (of the
 * words 2 * (p / 2) + j / 2). */
INLINE __m512i scale_of(__m512i words, int p, int j)
{
    __m512i up = _mm512_sll_epi32(words, _mm_cvtsi32_si128(8 * (1 - p % 2)));
    return _mm512_srai_epi32(j % 2 ? up : _mm512_slli_epi32(up, 16), 24);
}

/* -offset * sum(x) of a sub-block of 16. */
INLINE __m512i start_of(const uint8_t *sum16, int offset)
{
    if (offset == 0)
        return _mm512_setzero_si512();
    __m512i v = broadcast_word(sum16);
    return offset == 32 ? v : _mm512_srai_epi32(v, 3);
}

/* One super-block of the halves (16 rows) [first, first + count) of a group.
 * offset: 0, 4 or 32; has_min: whether the second scale is a minimum's; ordered: whether lines are
 * first used in the order of memory (Q3_K's mask with its quants), so that few tokens leave
 * them to the hardware. */
#define DEFINE_HALVES_16(name, block_bytes, quants_at, ordered, offset, has_min)                   \
    INLINE void halves_##name(const int m, const int variant, const int first, const int count,    \
                              float *sums, const uint8_t *block, const uint8_t *acts)              \
    {                                                                                              \
        enum { STEP_LINES = ((block_bytes)*GROUP_ROWS - (quants_at)) / 64 / 16 };                  \
        scales_16 k[2];                                                                            \
        __m512i products[2][TOKEN_TILE], minima[2][TOKEN_TILE];                                    \
        UNROLL                                                                                     \
        for (int h = 0; h < count; h++) {                                                          \
            k[h] = scales_##name(block, first + h);                                                \
            UNROLL                                                                                 \
            for (int t = 0; t < m; t++)                                                            \
                products[h][t] = minima[h][t] = _mm512_setzero_si512();                            \
        }                                                                                          \
        ROLLED                                                                                     \
        for (int p = 0; p < 4; p++) {                                                              \
            UNROLL                                                                                 \
            for (int j = 0; j < 4; j++) {                                                          \
                __m512i s[2][TOKEN_TILE];                                                          \
                prefetch_lines(block + (quants_at) + (p * 4 + j) * STEP_LINES * 64 +               \
                                   first * STEP_LINES / 2 * 64,                                    \
                               (STEP_LINES * count + 1) / 2, (ordered) ? m : TOKEN_TILE, variant); \
                const uint8_t *x = acts + (p / 2 * 32 + j * 8 + p % 2 * 4) * m * 4;                \
                const uint8_t *sum16 =                                                             \
                    acts + ACT_256_SUM16 * m + (p / 2 * 8 + j * 2 + p % 2) * m * 4;                \
                UNROLL                                                                             \
                for (int t = 0; t < m; t++)                                                        \
                    s[0][t] = s[1][t] = start_of(sum16 + t * 4, offset);                           \
                UNROLL                                                                             \
                for (int c = 0; c < 4; c++) {                                                      \
                    __m512i w[2];                                                                  \
                    UNROLL                                                                         \
                    for (int h = 0; h < count; h++)                                                \
                        w[h] = word_##name(block, p, j, c, first + h);                             \
                    UNROLL                                                                         \
                    for (int t = 0; t < m; t++) {                                                  \
                        __m512i b = broadcast_word(x + (c * m + t) * 4);                           \
                        UNROLL                                                                     \
                        for (int h = 0; h < count; h++)                                            \
                            s[h][t] = _mm512_dpbusd_epi32(s[h][t], w[h], b);                       \
                    }                                                                              \
                }                                                                                  \
                UNROLL                                                                             \
                for (int h = 0; h < count; h++) {                                                  \
                    __m512i scale = scale_of(k[h].scale[p / 2 * 2 + j / 2], p, j);                 \
                    __m512i min = scale_of(k[h].min[p / 2 * 2 + j / 2], p, j);                     \
                    UNROLL                                                                         \
                    for (int t = 0; t < m; t++) {                                                  \
                        products[h][t] = add_product(products[h][t], s[h][t], scale);              \
                        if (has_min)                                                               \
                            minima[h][t] =                                                         \
                                add_product(minima[h][t], min, broadcast_word(sum16 + t * 4));     \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int h = 0; h < count; h++) {                                                          \
            __m512 dw = load_halves(block + (first + h) * 32);                                     \
            __m512 mw = load_halves(block + 64 + (first + h) * 32);                                \
            UNROLL                                                                                 \
            for (int t = 0; t < m; t++) /* minima is -32 times what it should be */                \
                finish_256(                                                                        \
                    sums, acts, m, t, first + h, dw, mw, products[h][t],                           \
                    _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_srai_epi32(minima[h][t], 5)),  \
                    has_min);                                                                      \
        }                                                                                          \
    }

#define DEFINE_TILE_16(name, block_bytes, quants_at, ordered, offset, has_min)                     \
    DEFINE_HALVES_16(name, block_bytes, quants_at, ordered, offset, has_min)                       \
    INLINE void tile_##name##_m(const int m, const int variant, float *sums, const uint8_t *block, \
                                const uint8_t *acts, int32_t n_blocks)                             \
    {                                                                                              \
        for (; n_blocks > 0; n_blocks--) {                                                         \
            front_lines(block, (quants_at) / 64, (ordered) ? m : TOKEN_TILE, variant);             \
            if (variant == HALVES) {                                                               \
                halves_##name(m, variant, 0, 1, sums, block, acts);                                \
                halves_##name(m, variant, 1, 1, sums, block, acts);                                \
            } else {                                                                               \
                halves_##name(m, variant, 0, 2, sums, block, acts);                                \
            }                                                                                      \
            block += (block_bytes)*GROUP_ROWS;                                                     \
            acts += ACT_Q8_256_BYTES * m;                                                          \
        }                                                                                          \
    }                                                                                              \
    TILE_FEW(name, sparse, SPARSE)                                                                 \
    TILE_FEW(name, near, NEAR)                                                                     \
    TILE_FEW(name, far, FAR)                                                                       \
    TILE_MANY(name, halves, HALVES)

DEFINE_TILE_16(q2_k, 84, Q2_K_QS, true, 0, true)
DEFINE_TILE_16(q3_k, 110, Q3_K_HMASK, false, 4, false)
DEFINE_HALVES_16(q6_k, 210, Q6_K_QUANTS, true, 32, false)

/* One super-block of Q6_K for few tokens: every line is loaded once, in the order of memory, and
 * serves both sub-blocks whose nibbles it holds. The high bits of a quarter wait in registers. */
enum { Q6_K_LINES_TOKENS = 2 };

INLINE void lines_q6_k(const int m, const int variant, float *sums, const uint8_t *block,
                       const uint8_t *acts)
{
    const __m512i top = _mm512_set1_epi8(3 << 4);
    __m512i products[2][Q6_K_LINES_TOKENS];
    UNROLL
    for (int t = 0; t < m; t++)
        products[0][t] = products[1][t] = _mm512_setzero_si512();
    const uint8_t *line = block + Q6_K_QUANTS;
    ROLLED
    for (int p = 0; p < 4; p++) {
        const uint8_t *x = acts + (p / 2 * 32 + p % 2 * 4) * m * 4;
        const uint8_t *sum16 = acts + ACT_256_SUM16 * m + (p / 2 * 8 + p % 2) * m * 4;
        const uint8_t *scales = block + Q6_K_SCALES + p / 2 * 2 * WORD_BYTES;
        __m512i qh[4][2];
        UNROLL
        for (int i = 0; i < 8; i++, line += 64) {
            if (variant != SPARSE)
                prefetch_lines(line, 1, m, variant);
            qh[i / 2][i % 2] = load_kept(line);
        }
        UNROLL
        for (int j = 0; j < 2; j++) { /* sub-blocks j (low nibbles) and j + 2 (high ones) */
            __m512i s[2][2][Q6_K_LINES_TOKENS];
            UNROLL
            for (int t = 0; t < m; t++) {
                s[0][0][t] = s[0][1][t] = start_of(sum16 + (j * 2 * m + t) * 4, 32);
                s[1][0][t] = s[1][1][t] = start_of(sum16 + ((j + 2) * 2 * m + t) * 4, 32);
            }
            UNROLL
            for (int i = 0; i < 8; i++, line += 64) {
                int c = i / 2, h = i % 2;
                if (variant != SPARSE)
                    prefetch_lines(line, 1, m, variant);
                __m512i v = load_kept(line), w[2];
                w[0] = or_and(low_nibbles(v), move_bits(qh[c][h], j, 4), top);
                w[1] = or_and(high_nibbles(v), move_bits(qh[c][h], j + 2, 4), top);
                UNROLL
                for (int n = 0; n < 2; n++) {
                    UNROLL
                    for (int t = 0; t < m; t++) {
                        __m512i b = broadcast_word(x + (((j + 2 * n) * 8 + c) * m + t) * 4);
                        s[n][h][t] = _mm512_dpbusd_epi32(s[n][h][t], w[n], b);
                    }
                }
            }
            UNROLL
            for (int n = 0; n < 2; n++) {
                UNROLL
                for (int h = 0; h < 2; h++) {
                    __m512i words = load_line(scales + n * WORD_BYTES + h * HALF_BYTES);
                    __m512i scale = scale_of(words, p, j);
                    UNROLL
                    for (int t = 0; t < m; t++)
                        products[h][t] = add_product(products[h][t], s[n][h][t], scale);
                }
            }
        }
    }
    UNROLL
    for (int h = 0; h < 2; h++) {
        __m512 dw = load_halves(block + h * 32);
        UNROLL
        for (int t = 0; t < m; t++)
            finish_256(sums, acts, m, t, h, dw, dw, products[h][t], products[h][t], false);
    }
}

/* Up to so many tokens the sums and products of whole lines fit the registers; with more, two
 * halves are faster than sums that go through memory. */
enum { Q6_K_WHOLE_TOKENS = 6 };

INLINE void tile_q6_k_m(const int m, const int variant, float *sums, const uint8_t *block,
                        const uint8_t *acts, int32_t n_blocks)
{
    const int shape = m > Q6_K_WHOLE_TOKENS ? HALVES : variant;
    for (; n_blocks > 0; n_blocks--) {
        front_lines(block, Q6_K_QUANTS / 64, m, shape);
        if (shape == HALVES) {
            halves_q6_k(m, shape, 0, 1, sums, block, acts);
            halves_q6_k(m, shape, 1, 1, sums, block, acts);
        } else if (m > Q6_K_LINES_TOKENS) {
            halves_q6_k(m, variant, 0, 2, sums, block, acts);
        } else {
            lines_q6_k(m, variant, sums, block, acts);
        }
        block += 210 * GROUP_ROWS;
        acts += ACT_Q8_256_BYTES * m;
    }
}
TILE_FEW(q6_k, sparse, SPARSE)
TILE_FEW(q6_k, far, FAR)
TILE_FEW(q6_k, near, NEAR)
TILE_MANY(q6_k, halves, HALVES)
TILE_MANY(q6_k, lines, LINES)
