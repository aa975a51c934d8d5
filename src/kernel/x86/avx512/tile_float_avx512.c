/* F32, F16 and BF16 weights: one fused multiply-add a weight and token, in the order of k. */
#include "kernel/x86/avx512/tile_avx512.h"

INLINE __m512 weights_f32(const uint8_t *block, int half)
{
    return _mm512_loadu_ps(block + half * HALF_BYTES);
}

INLINE __m512 weights_f16(const uint8_t *block, int half)
{
    return load_halves(block + half * 32);
}

INLINE __m512 weights_bf16(const uint8_t *block, int half)
{
    __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(block + half * 32));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(v), 16));
}

#define DEFINE_TILE_FLOAT(name, bytes)                                                             \
    INLINE void tile_##name##_m(const int m, const int variant, float *sums, const uint8_t *block, \
                                const uint8_t *acts, int32_t n_blocks)                             \
    {                                                                                              \
        __m512 s[2][TOKEN_TILE];                                                                   \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++) {                                                              \
            s[0][t] = _mm512_loadu_ps(sums + t * GROUP_ROWS);                                      \
            s[1][t] = _mm512_loadu_ps(sums + t * GROUP_ROWS + HALF_ROWS);                          \
        }                                                                                          \
        for (int32_t b = 0; b < n_blocks; b++) {                                                   \
            if (m > SPARSE_TOKENS || variant != SPARSE)                                            \
                prefetch_lines(block, (bytes)*GROUP_ROWS / 64, m,                                  \
                               variant > FAR ? SPARSE : variant);                                  \
            __m512 w0 = weights_##name(block, 0), w1 = weights_##name(block, 1);                   \
            UNROLL                                                                                 \
            for (int t = 0; t < m; t++) {                                                          \
                __m512 x = broadcast_float(acts + t * 4);                                          \
                s[0][t] = _mm512_fmadd_ps(w0, x, s[0][t]);                                         \
                s[1][t] = _mm512_fmadd_ps(w1, x, s[1][t]);                                         \
            }                                                                                      \
            block += (bytes)*GROUP_ROWS;                                                           \
            acts += 4 * m;                                                                         \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int t = 0; t < m; t++) {                                                              \
            _mm512_storeu_ps(sums + t * GROUP_ROWS, s[0][t]);                                      \
            _mm512_storeu_ps(sums + t * GROUP_ROWS + HALF_ROWS, s[1][t]);                          \
        }                                                                                          \
    }                                                                                              \
    TILE_FEW(name, sparse, SPARSE)                                                                 \
    TILE_FEW(name, near, NEAR)                                                                     \
    TILE_FEW(name, far, FAR)                                                                       \
    TILE_MANY(name, lines, LINES)

DEFINE_TILE_FLOAT(f32, 4)
DEFINE_TILE_FLOAT(f16, 2)
DEFINE_TILE_FLOAT(bf16, 2)
