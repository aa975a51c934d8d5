/* Tile kernels of the types with blocks of 32, AVX2. */
#include "kernel/x86/avx2/tile_avx2.h"
#include "kernel/x86/words_8_ymm.h"

/* scales: load_halves or load_exponents. words: how many words' products fit 16 bits. shift: offset
 * = 1 << shift, paid by starting at -offset * sum(x); 0: none. min: byte offset of the minima, 0:
 * none. */
#define DEFINE_TILE_32(name, block_bytes, scales, words, is_signed, shift, min)                    \
    INLINE void name##_chunk(const int mt, float *sums, const uint8_t *block, const uint8_t *acts, \
                             int m, int slice)                                                     \
    {                                                                                              \
        const __m256i one = _mm256_set1_epi16(1);                                                  \
        __m256i s[CHUNK_ROWS], part[CHUNK_ROWS];                                                   \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++) {                                                             \
            s[t] = _mm256_setzero_si256();                                                         \
            if (shift)                                                                             \
                s[t] = _mm256_sub_epi32(                                                           \
                    s[t],                                                                          \
                    _mm256_slli_epi32(broadcast_word(acts + ACT_32_SUM * m + t * 4), shift));      \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int c = 0; c < 8; c++) {                                                              \
            __m256i w = word_##name(block, c, slice);                                              \
            UNROLL                                                                                 \
            for (int t = 0; t < mt; t++) {                                                         \
                __m256i x = broadcast_word(acts + (c * m + t) * 4);                                \
                __m256i p = products_16(w, x, is_signed);                                          \
                part[t] = c % (words) ? _mm256_add_epi16(part[t], p) : p;                          \
                if (c % (words) == (words)-1)                                                      \
                    s[t] = _mm256_add_epi32(s[t], _mm256_madd_epi16(part[t], one));                \
            }                                                                                      \
        }                                                                                          \
        __m256 dw = scales(block, slice), mw = load_halves(block + (min), slice);                  \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++) {                                                             \
            __m256 dx = broadcast_float(acts + ACT_32_D * m + t * 4);                              \
            __m256 sum = add_scaled(_mm256_loadu_ps(sums + t * GROUP_ROWS), dw, dx, s[t]);         \
            if (min)                                                                               \
                sum = add_scaled(sum, mw, dx, broadcast_word(acts + ACT_32_SUM * m + t * 4));      \
            _mm256_storeu_ps(sums + t * GROUP_ROWS, sum);                                          \
        }                                                                                          \
    }                                                                                              \
    DEFINE_TILE(name, block_bytes, ACT_Q8_32_BYTES)

DEFINE_TILE_32(q4_0, 18, load_halves, 8, false, 3, 0)
DEFINE_TILE_32(q4_1, 20, load_halves, 8, false, 0, Q4_1_M)
DEFINE_TILE_32(q5_0, 22, load_halves, 4, false, 4, 0)
DEFINE_TILE_32(q5_1, 24, load_halves, 4, false, 0, Q5_1_M)
DEFINE_TILE_32(q8_0, 34, load_halves, 1, true, 0, 0)
DEFINE_TILE_32(iq4_nl, 18, load_halves, 1, true, 0, 0)
DEFINE_TILE_32(mxfp4, 17, load_exponents, 4, false, 4, 0)
