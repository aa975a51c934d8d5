/* F32, F16 and BF16 weights with AVX2, and the float tier's row of sums. */
#include "kernel/tiers.h"

#include "kernel/ref/ref.h"
#include "kernel/x86/avx2/tile_avx2.h"

enum {
    FLOAT_CHUNK = 3, /* tokens: 12 chains in registers */
    FLOAT_STEP = 64  /* k between loads of the sums: the weights stay in the L1 cache */
};

INLINE __m256 weights_f32(const uint8_t *block, int slice)
{
    return _mm256_loadu_ps((const float *)(const void *)(block + slice * SLICE_BYTES));
}

INLINE __m256 weights_f16(const uint8_t *block, int slice)
{
    return load_halves(block, slice);
}

INLINE __m256 weights_bf16(const uint8_t *block, int slice)
{
    __m128i v = _mm_loadu_si128((const __m128i *)(const void *)(block + slice * 16));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(v), 16));
}

#define DEFINE_TILE_FLOAT(name, bytes)                                                             \
    INLINE void name##_chunk(const int mt, float *sums, const uint8_t *weights,                    \
                             const uint8_t *acts, int32_t n, int m)                                \
    {                                                                                              \
        __m256 s[FLOAT_CHUNK][SLICES];                                                             \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++) {                                                             \
            UNROLL                                                                                 \
            for (int i = 0; i < SLICES; i++)                                                       \
                s[t][i] = _mm256_loadu_ps(sums + t * GROUP_ROWS + i * SLICE_ROWS);                 \
        }                                                                                          \
        for (; n > 0; n--) {                                                                       \
            UNROLL                                                                                 \
            for (int t = 0; t < mt; t++) {                                                         \
                __m256 x = broadcast_float(acts + t * 4);                                          \
                UNROLL                                                                             \
                for (int i = 0; i < SLICES; i++)                                                   \
                    s[t][i] = _mm256_fmadd_ps(weights_##name(weights, i), x, s[t][i]);             \
            }                                                                                      \
            weights += (bytes)*GROUP_ROWS;                                                         \
            acts += 4 * m;                                                                         \
        }                                                                                          \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++) {                                                             \
            UNROLL                                                                                 \
            for (int i = 0; i < SLICES; i++)                                                       \
                _mm256_storeu_ps(sums + t * GROUP_ROWS + i * SLICE_ROWS, s[t][i]);                 \
        }                                                                                          \
    }                                                                                              \
    void tile_##name##_avx2(float *sums, const uint8_t *weights, const uint8_t *acts,              \
                            int32_t n_blocks, int32_t m)                                           \
    {                                                                                              \
        for (int32_t b = 0; b < n_blocks; b += FLOAT_STEP) {                                       \
            int32_t n = n_blocks - b < FLOAT_STEP ? n_blocks - b : FLOAT_STEP;                     \
            for (int32_t t = 0; t < m; t += FLOAT_CHUNK) {                                         \
                float *out = sums + t * GROUP_ROWS;                                                \
                if (m - t == 1)                                                                    \
                    name##_chunk(1, out, weights, acts + t * 4, n, m);                             \
                else if (m - t == 2)                                                               \
                    name##_chunk(2, out, weights, acts + t * 4, n, m);                             \
                else                                                                               \
                    name##_chunk(3, out, weights, acts + t * 4, n, m);                             \
            }                                                                                      \
            weights += (bytes)*GROUP_ROWS * n;                                                     \
            acts += 4 * m * n;                                                                     \
        }                                                                                          \
    }

DEFINE_TILE_FLOAT(f32, 4)
DEFINE_TILE_FLOAT(f16, 2)
DEFINE_TILE_FLOAT(bf16, 2)

/* Sums of n_tiles neighbouring full tiles: lanes are tokens. */
INLINE void fma_tiles(const int n_tiles, float *y, int64_t ldy, const float *weights,
                      const float *acts, int64_t k)
{
    enum { MAX_TILES = 4 };
    __m256 s[MAX_TILES];
    UNROLL
    for (int i = 0; i < n_tiles; i++)
        s[i] = _mm256_setzero_ps();
    for (int64_t j = 0; j < k; j++) {
        __m256 w = _mm256_set1_ps(weights[j]);
        UNROLL
        for (int i = 0; i < n_tiles; i++)
            s[i] = _mm256_fmadd_ps(w, _mm256_loadu_ps(acts + (i * k + j) * TOKEN_TILE), s[i]);
    }
    for (int i = 0; i < n_tiles; i++) {
        float lanes[TOKEN_TILE];
        _mm256_storeu_ps(lanes, s[i]);
        for (int t = 0; t < TOKEN_TILE; t++)
            y[(i * TOKEN_TILE + t) * ldy] = lanes[t];
    }
}

/* The last tile, of m < 8 tokens. */
static void fma_part(float *y, int64_t ldy, const float *weights, const float *acts, int32_t m,
                     int64_t k)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(m), lane);
    __m256 s = _mm256_setzero_ps();
    for (int64_t j = 0; j < k; j++)
        s = _mm256_fmadd_ps(_mm256_set1_ps(weights[j]), _mm256_maskload_ps(acts + j * m, mask), s);
    float lanes[TOKEN_TILE];
    _mm256_storeu_ps(lanes, s);
    for (int32_t t = 0; t < m; t++)
        y[t * ldy] = lanes[t];
}

static void fma_row_avx2(float *y, int64_t ldy, const float *weights, const float *acts, int32_t n,
                         int64_t k)
{
    int32_t t = 0;
    for (; t + 4 * TOKEN_TILE <= n; t += 4 * TOKEN_TILE)
        fma_tiles(4, y + t * ldy, ldy, weights, acts + t * k, k);
    for (; t + TOKEN_TILE <= n; t += TOKEN_TILE)
        fma_tiles(1, y + t * ldy, ldy, weights, acts + t * k, k);
    if (t < n)
        fma_part(y + t * ldy, ldy, weights, acts + t * k, n - t, k);
}

#define DEFINE_DOT_AVX2(TYPE, name, act, block_k, block_bytes)                                     \
    DEFINE_FLOAT_DOT(TYPE, name, fma_row_avx2)
KERNEL_TYPES(DEFINE_DOT_AVX2)

void float_avx2_matmul_init(kernel_table *table)
{
    KERNEL_TYPES(SET_FLOAT_DOT)
}
