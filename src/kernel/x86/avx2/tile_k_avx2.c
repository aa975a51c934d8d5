/* Tile kernels of the types with blocks of 256, AVX2. The 16-bit sums of a sub-block are multiplied
 * by its scale as they are widened (vpmaddwd), which is exact. */
#include "kernel/x86/avx2/tile_avx2.h"
#include "kernel/x86/words_k_ymm.h"

/* ---- Sub-blocks of 32 ---- */

INLINE __m256i word_iq4_xs(const uint8_t *block, int s, int c, int slice)
{
    return _mm256_shuffle_epi8(iq4_table(), nibbles_iq4_xs(block, s, c, slice));
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
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pair, x));
    }
    return sum;
}

/* words: how many words' products fit 16 bits. IQ4_XS alone is signed and has no minima. */
#define DEFINE_TILE_K32(name, block_bytes, words, is_signed)                                       \
    INLINE void name##_chunk(const int mt, float *sums, const uint8_t *block, const uint8_t *acts, \
                             int m, int slice)                                                     \
    {                                                                                              \
        scales_32 k = scales_##name(block, slice);                                                 \
        __m256i products[CHUNK_ROWS], part[CHUNK_ROWS];                                            \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++)                                                               \
            products[t] = _mm256_setzero_si256();                                                  \
        for (int s = 0; s < 8; s++) {                                                              \
            __m256i scale =                                                                        \
                (is_signed) ? signed_byte_of(k.scale[s / 4], s) : byte_of(k.scale[s / 4], s);      \
            scale = both_halves(scale);                                                            \
            UNROLL                                                                                 \
            for (int c = 0; c < 8; c++) {                                                          \
                __m256i w = word_##name(block, s, c, slice);                                       \
                UNROLL                                                                             \
                for (int t = 0; t < mt; t++) {                                                     \
                    __m256i x = broadcast_word(acts + ((s * 8 + c) * m + t) * 4);                  \
                    __m256i p = products_16(w, x, is_signed);                                      \
                    part[t] = c % (words) ? _mm256_add_epi16(part[t], p) : p;                      \
                    if (c % (words) == (words)-1)                                                  \
                        products[t] =                                                              \
                            _mm256_add_epi32(products[t], _mm256_madd_epi16(part[t], scale));      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        __m256 dw = load_halves(block, slice), mw = load_halves(block + 64, slice);                \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++)                                                               \
            finish(sums, acts, m, t, dw, mw, products[t], minima_sum(k.min, acts, m, t),           \
                   !(is_signed));                                                                  \
    }                                                                                              \
    DEFINE_TILE(name, block_bytes, ACT_Q8_256_BYTES)

DEFINE_TILE_K32(q4_k, 144, 8, false)
DEFINE_TILE_K32(q5_k, 176, 4, false)
DEFINE_TILE_K32(iq4_xs, 136, 1, true)

/* ---- Sub-blocks of 16 ---- */

/* words: how many words' products fit 16 bits. offset: 0, 4 or 32, paid through the sums of x (the
 * activations carry -32 times those). */
#define DEFINE_TILE_K16(name, block_bytes, words, offset, has_min)                                 \
    INLINE void name##_chunk(const int mt, float *sums, const uint8_t *block, const uint8_t *acts, \
                             int m, int slice)                                                     \
    {                                                                                              \
        scales_16 k = scales_##name(block, slice);                                                 \
        __m256i products[CHUNK_ROWS], minima[CHUNK_ROWS], part[CHUNK_ROWS];                        \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++)                                                               \
            products[t] = minima[t] = _mm256_setzero_si256();                                      \
        for (int p = 0; p < 4; p++) {                                                              \
            UNROLL                                                                                 \
            for (int j = 0; j < 4; j++) {                                                          \
                int s = p / 2 * 8 + j * 2 + p % 2;                                                 \
                const uint8_t *x = acts + (p / 2 * 32 + j * 8 + p % 2 * 4) * m * 4;                \
                const uint8_t *sum16 = acts + (ACT_256_SUM16 + s * 4) * m;                         \
                __m256i scale = signed_byte_of(k.scale[s / 4], s);                                 \
                __m256i min = signed_byte_of(k.min[s / 4], s);                                     \
                __m256i scale16 = both_halves(scale);                                              \
                UNROLL                                                                             \
                for (int c = 0; c < 4; c++) {                                                      \
                    __m256i w = word_##name(block, p, j, c, slice);                                \
                    UNROLL                                                                         \
                    for (int t = 0; t < mt; t++) {                                                 \
                        __m256i v = products_16(w, broadcast_word(x + (c * m + t) * 4), false);    \
                        part[t] = c % (words) ? _mm256_add_epi16(part[t], v) : v;                  \
                        if (c % (words) == (words)-1)                                              \
                            products[t] = _mm256_add_epi32(products[t],                            \
                                                           _mm256_madd_epi16(part[t], scale16));   \
                    }                                                                              \
                }                                                                                  \
                UNROLL                                                                             \
                for (int t = 0; t < mt; t++) {                                                     \
                    __m256i v = broadcast_word(sum16 + t * 4);                                     \
                    if (offset)                                                                    \
                        products[t] = _mm256_add_epi32(                                            \
                            products[t],                                                           \
                            _mm256_mullo_epi32(scale,                                              \
                                               (offset) == 32 ? v : _mm256_srai_epi32(v, 3)));     \
                    if (has_min)                                                                   \
                        minima[t] = _mm256_add_epi32(minima[t], _mm256_mullo_epi32(min, v));       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        __m256 dw = load_halves(block, slice), mw = load_halves(block + 64, slice);                \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++) /* minima is -32 times what it should be */                   \
            finish(sums, acts, m, t, dw, mw, products[t],                                          \
                   _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_srai_epi32(minima[t], 5)),      \
                   has_min);                                                                       \
    }                                                                                              \
    DEFINE_TILE(name, block_bytes, ACT_Q8_256_BYTES)

DEFINE_TILE_K16(q2_k, 84, 4, 0, true)
DEFINE_TILE_K16(q3_k, 110, 4, 4, false)
DEFINE_TILE_K16(q6_k, 210, 2, 32, false)
