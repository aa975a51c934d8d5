/* Tile kernels of the types with blocks of 32: eight vpdpbusd a row vector and token, then the
 * block's scale. Offsets (Q4_0's 8, Q8_0's 128, ...) are paid by starting the integer sum at
 * -offset * sum(x). */
#include "kernel/x86/avx512/tile_avx512.h"

/* Word c (weights 4 c .. 4 c + 3) of 16 rows: nibbles of the qs part, line = 2 * (c % 4) + half. */
INLINE __m512i nibbles_word(const uint8_t *qs, int c, int half)
{
    __m512i v = load_line(qs + (c % 4) * WORD_BYTES + half * HALF_BYTES);
    return c < 4 ? low_nibbles(v) : high_nibbles(v);
}

/* The same with the fifth bit, bit c of the plane's bytes. */
INLINE __m512i five_bit_word(const uint8_t *qs, const uint8_t *plane, int c, int half)
{
    __m512i bits = load_line(plane + half * HALF_BYTES);
    bits = c < 4   ? _mm512_slli_epi16(bits, SHIFT(4 - c))
           : c > 4 ? _mm512_srli_epi16(bits, SHIFT(c - 4))
                   : bits;
    return or_and(nibbles_word(qs, c, half), bits, _mm512_set1_epi8(16));
}

INLINE __m512i word_q4_0(const uint8_t *block, int c, int half)
{
    return nibbles_word(block + Q4_0_QS, c, half);
}

INLINE __m512i word_q4_1(const uint8_t *block, int c, int half)
{
    return nibbles_word(block + Q4_1_QS, c, half);
}

INLINE __m512i word_q5_0(const uint8_t *block, int c, int half)
{
    return five_bit_word(block + Q5_0_QS, block + Q5_0_QH, c, half);
}

INLINE __m512i word_q5_1(const uint8_t *block, int c, int half)
{
    return five_bit_word(block + Q5_1_QS, block + Q5_1_QH, c, half);
}

INLINE __m512i word_q8_0(const uint8_t *block, int c, int half)
{
    return load_line(block + Q8_0_QS + c * WORD_BYTES + half * HALF_BYTES);
}

/* Levels plus 128. */
INLINE __m512i word_iq4_nl(const uint8_t *block, int c, int half)
{
    __m512i levels =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)iq4_levels));
    levels = _mm512_xor_si512(levels, _mm512_set1_epi8(-128));
    return _mm512_shuffle_epi8(levels, nibbles_word(block + IQ4_NL_QS, c, half));
}

/* Levels plus 16. */
INLINE __m512i word_mxfp4(const uint8_t *block, int c, int half)
{
    __m512i levels =
        _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)mxfp4_levels));
    levels = _mm512_add_epi8(levels, _mm512_set1_epi8(16));
    return _mm512_shuffle_epi8(levels, nibbles_word(block + MXFP4_QS, c, half));
}

/* The scales of a half of the rows. */
INLINE __m512 half_scales(const uint8_t *block, int half)
{
    return load_halves(block + half * 2 * HALF_ROWS);
}

INLINE __m512 exponent_scales(const uint8_t *block, int half)
{
    return load_exponents(block + half * HALF_ROWS);
}

/* -(sum << shift) of token t, both halves; zero for types without an offset. */
INLINE __m512i offset_start(const uint8_t *acts, int m, int t, int shift)
{
    if (shift == 0)
        return _mm512_setzero_si512();
    __m512i sum = broadcast_word(acts + ACT_32_SUM * m + t * 4);
    return _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_slli_epi32(sum, (unsigned)shift));
}

/* One block of the halves (16 rows) [first, first + count) of a group.
 * scales: half_scales or exponent_scales. offset = 1 << shift; min: byte offset of the minima, 0:
 * none. */
#define DEFINE_TILE_32(name, block_bytes, scales, shift, min)                                      \
    INLINE void halves_##name(const int m, const int first, const int count, float *sums,          \
                              const uint8_t *block, const uint8_t *acts)                           \
    {                                                                                              \
        __m512i s[2][TOKEN_TILE];                                                                  \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++)                                                                \
            s[0][t] = s[1][t] = offset_start(acts, m, t, shift);                                   \
        UNROLL                                                                                     \
        for (int c = 0; c < 8; c++) {                                                              \
            __m512i w[2];                                                                          \
            UNROLL                                                                                 \
            for (int h = 0; h < count; h++)                                                        \
                w[h] = word_##name(block, c, first + h);                                           \
            UNROLL                                                                                 \
            for (int t = 0; t < m; t++) {                                                          \
                __m512i x = broadcast_word(acts + (c * m + t) * 4);                                \
                UNROLL                                                                             \
                for (int h = 0; h < count; h++)                                                    \
                    s[h][t] = _mm512_dpbusd_epi32(s[h][t], w[h], x);                               \
            }                                                                                      \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int h = 0; h < count; h++) {                                                          \
            __m512 dw = scales(block, first + h);                                                  \
            __m512 mw = half_scales(block + (min), first + h);                                     \
            UNROLL                                                                                 \
            for (int t = 0; t < m; t++) {                                                          \
                float *sum = sums + t * GROUP_ROWS + (first + h) * HALF_ROWS;                      \
                __m512 dx = broadcast_float(acts + ACT_32_D * m + t * 4);                          \
                __m512 acc = add_scaled(_mm512_loadu_ps(sum), dw, dx, s[h][t]);                    \
                if (min)                                                                           \
                    acc = add_scaled(acc, mw, dx, broadcast_word(acts + ACT_32_SUM * m + t * 4));  \
                _mm512_storeu_ps(sum, acc);                                                        \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    INLINE void tile_##name##_m(const int m, const int variant, float *sums, const uint8_t *block, \
                                const uint8_t *acts, int32_t n_blocks)                             \
    {                                                                                              \
        for (; n_blocks > 0; n_blocks--) {                                                         \
            front_lines(block, ((block_bytes)*GROUP_ROWS + 63) / 64, m,                            \
                        m > FEW_TOKENS ? HALVES : variant);                                        \
            if (variant == HALVES) {                                                               \
                halves_##name(m, 0, 1, sums, block, acts);                                         \
                halves_##name(m, 1, 1, sums, block, acts);                                         \
            } else {                                                                               \
                halves_##name(m, 0, 2, sums, block, acts);                                         \
            }                                                                                      \
            block += (block_bytes)*GROUP_ROWS;                                                     \
            acts += ACT_Q8_32_BYTES * m;                                                           \
        }                                                                                          \
    }                                                                                              \
    TILE_FEW(name, sparse, SPARSE)                                                                 \
    TILE_FEW(name, near, NEAR)                                                                     \
    TILE_FEW(name, far, FAR)                                                                       \
    TILE_MANY(name, halves, HALVES)                                                                \
    TILE_MANY(name, lines, LINES)

DEFINE_TILE_32(q4_0, 18, half_scales, 3, 0)
DEFINE_TILE_32(q4_1, 20, half_scales, 0, Q4_1_M)
DEFINE_TILE_32(q5_0, 22, half_scales, 4, 0)
DEFINE_TILE_32(q5_1, 24, half_scales, 0, Q5_1_M)
DEFINE_TILE_32(q8_0, 34, half_scales, 7, 0)
DEFINE_TILE_32(iq4_nl, 18, half_scales, 7, 0)
DEFINE_TILE_32(mxfp4, 17, exponent_scales, 4, 0)
