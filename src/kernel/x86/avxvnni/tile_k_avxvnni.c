/* Tile kernels of the types with blocks of 256, AVX-VNNI.
 *
 * A sub-block's sum is multiplied by its scale in one of two ways, both exact. Where it fits 16
 * bits, one vpdpwssd multiplies and adds: its other pair of halves meets a zero. It fits for Q4_K
 * (the scale rule of the activations, kernel.h: 15 * sum|x| of a 32-block is within int16), for
 * Q3_K (4 * 16 * 127) and for Q2_K. The others take a 32-bit multiplication. */
#include "kernel/x86/avxvnni/tile_avxvnni.h"
#include "kernel/x86/words_k_ymm.h"

/* sums + part * scale. narrow: part is within int16, scale within 0..65535 or int16. */
INLINE __m256i add_product(__m256i sum, __m256i part, __m256i scale, bool narrow)
{
    if (narrow) /* the upper half of a lane of part is its sign, and must not count */
        return dot_pairs(sum, part, _mm256_and_si256(scale, _mm256_set1_epi32(0xffff)));
    return _mm256_add_epi32(sum, _mm256_mullo_epi32(part, scale));
}

/* ---- Sub-blocks of 32 ---- */

/* Levels plus 128. */
INLINE __m256i word_iq4_xs(const uint8_t *block, int s, int c, int slice)
{
    return _mm256_shuffle_epi8(iq4_unsigned(), nibbles_iq4_xs(block, s, c, slice));
}

/* Sum over the sub-blocks of min * sum(x) of token t. */
INLINE __m256i minima_sum(const __m256i min[2], const uint8_t *acts, int m, int t)
{
    __m256i sum = _mm256_setzero_si256();
    UNROLL
    for (int p = 0; p < 4; p++) {
        __m256i x = broadcast_word(acts + ACT_256_PAIRS * m + (p * m + t) * 4);
        __m256i pair = p % 2 ? _mm256_srli_epi16(min[p / 2], 8)
                             : _mm256_and_si256(min[p / 2], _mm256_set1_epi16(255));
        sum = dot_pairs(sum, pair, x);
    }
    return sum;
}

/* -128 * sum(x) over sub-block s, from the activations' -32 * sum(x) over 16. */
INLINE __m256i start_32(const uint8_t *acts, int m, int t, int s)
{
    const uint8_t *sum16 = acts + (ACT_256_SUM16 + s * 8) * m + t * 4;
    return _mm256_slli_epi32(_mm256_add_epi32(broadcast_word(sum16), broadcast_word(sum16 + m * 4)),
                             2);
}

/* IQ4_XS alone is signed and has no minima. */
#define DEFINE_TILE_K32(name, block_bytes, narrow, is_signed)                                      \
    INLINE void name##_slice(const int m, float *sums, const uint8_t *block, const uint8_t *acts,  \
                             int slice)                                                            \
    {                                                                                              \
        scales_32 k = scales_##name(block, slice);                                                 \
        __m256i products[TOKEN_TILE];                                                              \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++)                                                                \
            products[t] = _mm256_setzero_si256();                                                  \
        ROLLED                                                                                     \
        for (int s = 0; s < 8; s++) {                                                              \
            __m256i scale =                                                                        \
                (is_signed) ? signed_byte_of(k.scale[s / 4], s) : byte_of(k.scale[s / 4], s);      \
            __m256i part[TOKEN_TILE];                                                              \
            UNROLL                                                                                 \
            for (int t = 0; t < m; t++)                                                            \
                part[t] = (is_signed) ? start_32(acts, m, t, s) : _mm256_setzero_si256();          \
            UNROLL                                                                                 \
            for (int c = 0; c < 8; c++) {                                                          \
                __m256i w = word_##name(block, s, c, slice);                                       \
                UNROLL                                                                             \
                for (int t = 0; t < m; t++)                                                        \
                    part[t] =                                                                      \
                        dot_bytes(part[t], w, broadcast_word(acts + ((s * 8 + c) * m + t) * 4));   \
            }                                                                                      \
            UNROLL                                                                                 \
            for (int t = 0; t < m; t++)                                                            \
                products[t] = add_product(products[t], part[t], scale, narrow);                    \
        }                                                                                          \
        __m256 dw = load_halves(block, slice), mw = load_halves(block + 64, slice);                \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++)                                                                \
            finish(sums, acts, m, t, dw, mw, products[t], minima_sum(k.min, acts, m, t),           \
                   !(is_signed));                                                                  \
    }                                                                                              \
    DEFINE_TILE(name, block_bytes, ACT_Q8_256_BYTES)

DEFINE_TILE_K32(q4_k, 144, true, false)
DEFINE_TILE_K32(q5_k, 176, false, false)
DEFINE_TILE_K32(iq4_xs, 136, false, true)

/* ---- Sub-blocks of 16 ---- */

/* -offset * sum(x) of a sub-block, from -32 * sum(x). */
INLINE __m256i start_16(const uint8_t *sum16, int offset)
{
    if (offset == 0)
        return _mm256_setzero_si256();
    __m256i v = broadcast_word(sum16);
    return offset == 32 ? v : _mm256_srai_epi32(v, 3);
}

/* offset: 0, 4 or 32. */
#define DEFINE_TILE_K16(name, block_bytes, narrow, offset, has_min)                                \
    INLINE void name##_slice(const int m, float *sums, const uint8_t *block, const uint8_t *acts,  \
                             int slice)                                                            \
    {                                                                                              \
        scales_16 k = scales_##name(block, slice);                                                 \
        __m256i products[TOKEN_TILE], minima[TOKEN_TILE];                                          \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++)                                                                \
            products[t] = minima[t] = _mm256_setzero_si256();                                      \
        ROLLED                                                                                     \
        for (int p = 0; p < 4; p++) {                                                              \
            UNROLL                                                                                 \
            for (int j = 0; j < 4; j++) {                                                          \
                int s = p / 2 * 8 + j * 2 + p % 2;                                                 \
                const uint8_t *x = acts + (p / 2 * 32 + j * 8 + p % 2 * 4) * m * 4;                \
                const uint8_t *sum16 = acts + (ACT_256_SUM16 + s * 4) * m;                         \
                __m256i scale = signed_byte_of(k.scale[s / 4], s);                                 \
                __m256i min = signed_byte_of(k.min[s / 4], s);                                     \
                __m256i part[TOKEN_TILE];                                                          \
                UNROLL                                                                             \
                for (int t = 0; t < m; t++)                                                        \
                    part[t] = start_16(sum16 + t * 4, offset);                                     \
                UNROLL                                                                             \
                for (int c = 0; c < 4; c++) {                                                      \
                    __m256i w = word_##name(block, p, j, c, slice);                                \
                    UNROLL                                                                         \
                    for (int t = 0; t < m; t++)                                                    \
                        part[t] = dot_bytes(part[t], w, broadcast_word(x + (c * m + t) * 4));      \
                }                                                                                  \
                UNROLL                                                                             \
                for (int t = 0; t < m; t++) {                                                      \
                    products[t] = add_product(products[t], part[t], scale, narrow);                \
                    if (has_min) { /* 32 * sum(x) exceeds int16, sum(x) does not */                \
                        __m256i v = _mm256_srai_epi32(broadcast_word(sum16 + t * 4), 5);           \
                        minima[t] = add_product(minima[t], v, min, true);                          \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        __m256 dw = load_halves(block, slice), mw = load_halves(block + 64, slice);                \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++) /* minima were added up with the sign of the stored sums */    \
            finish(sums, acts, m, t, dw, mw, products[t],                                          \
                   _mm256_sub_epi32(_mm256_setzero_si256(), minima[t]), has_min);                  \
    }                                                                                              \
    DEFINE_TILE(name, block_bytes, ACT_Q8_256_BYTES)

DEFINE_TILE_K16(q2_k, 84, true, 0, true)
DEFINE_TILE_K16(q3_k, 110, true, 4, false)
DEFINE_TILE_K16(q6_k, 210, false, 32, false)
