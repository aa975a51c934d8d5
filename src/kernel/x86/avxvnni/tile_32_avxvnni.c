/* Tile kernels of the types with blocks of 32, AVX-VNNI. */
#include "kernel/x86/avxvnni/tile_avxvnni.h"
#include "kernel/x86/words_8_ymm.h"

/* -(sum(x) << shift) of token t; zero for types without an offset. */
INLINE __m256i offset_start(const uint8_t *acts, int m, int t, int shift)
{
    if (shift == 0)
        return _mm256_setzero_si256();
    __m256i sum = broadcast_word(acts + ACT_32_SUM * m + t * 4);
    return _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_slli_epi32(sum, shift));
}

/* scales: load_halves or load_exponents. offset = 1 << shift, 0: none. min: byte offset of the
 * minima, 0: none. */
#define DEFINE_TILE_32(name, block_bytes, scales, shift, min)                                      \
    INLINE void name##_slice(const int m, float *sums, const uint8_t *block, const uint8_t *acts,  \
                             int slice)                                                            \
    {                                                                                              \
        __m256i s[TOKEN_TILE];                                                                     \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++)                                                                \
            s[t] = offset_start(acts, m, t, shift);                                                \
        UNROLL                                                                                     \
        for (int c = 0; c < 8; c++) {                                                              \
            __m256i w = word_##name(block, c, slice);                                              \
            UNROLL                                                                                 \
            for (int t = 0; t < m; t++)                                                            \
                s[t] = dot_bytes(s[t], w, broadcast_word(acts + (c * m + t) * 4));                 \
        }                                                                                          \
        __m256 dw = scales(block, slice), mw = load_halves(block + (min), slice);                  \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++) {                                                              \
            __m256 dx = broadcast_float(acts + ACT_32_D * m + t * 4);                              \
            __m256 sum = add_scaled(_mm256_loadu_ps(sums + t * GROUP_ROWS), dw, dx, s[t]);         \
            if (min)                                                                               \
                sum = add_scaled(sum, mw, dx, broadcast_word(acts + ACT_32_SUM * m + t * 4));      \
            _mm256_storeu_ps(sums + t * GROUP_ROWS, sum);                                          \
        }                                                                                          \
    }                                                                                              \
    DEFINE_TILE(name, block_bytes, ACT_Q8_32_BYTES)

DEFINE_TILE_32(q4_0, 18, load_halves, 3, 0)
DEFINE_TILE_32(q4_1, 20, load_halves, 0, Q4_1_M)
DEFINE_TILE_32(q5_0, 22, load_halves, 4, 0)
DEFINE_TILE_32(q5_1, 24, load_halves, 0, Q5_1_M)
DEFINE_TILE_32(q8_0, 34, load_halves, 7, 0)
DEFINE_TILE_32(iq4_nl, 18, load_halves, 7, 0)
DEFINE_TILE_32(mxfp4, 17, load_exponents, 4, 0)
