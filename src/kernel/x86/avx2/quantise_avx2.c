/* Activations into tiles with AVX2; AVX-512 uses it too. Every step is one IEEE operation an
 * element or exact, in the order of kernel.h, so the bytes are those of the scalar version. */
#include "kernel/x86/x86.h"

#include <immintrin.h>

#include "kernel/quantise_rows.h"
#include "os/cpu_tuning.h"

/* max passes NaN over when it is the first operand, as the scalar version does. */
static inline __m256 abs_max(__m256 amax, __m256 x)
{
    return _mm256_max_ps(_mm256_andnot_ps(_mm256_set1_ps(-0.0f), x), amax);
}

static inline float largest(__m256 v)
{
    __m128 m = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    m = _mm_max_ps(m, _mm_movehl_ps(m, m));
    return _mm_cvtss_f32(_mm_max_ss(m, _mm_shuffle_ps(m, m, 1)));
}

static inline __m256i quantise_8(const float *x, __m256 inverse)
{
    __m256 v = _mm256_mul_ps(_mm256_loadu_ps(x), inverse);
    v = _mm256_max_ps(v, _mm256_set1_ps(-127.0f));
    v = _mm256_min_ps(v, _mm256_set1_ps(127.0f));
    return _mm256_cvtps_epi32(v);
}

/* 32 numbers to 8 words, m words apart. sums: [2] vectors whose lanes add up to the sums of 16. */
static inline void words_32(uint8_t *words, const float *x, __m256 inverse, int32_t m,
                            __m256i sums[2])
{
    __m256i a = quantise_8(x, inverse), b = quantise_8(x + 8, inverse);
    __m256i c = quantise_8(x + 16, inverse), d = quantise_8(x + 24, inverse);
    sums[0] = _mm256_add_epi32(a, b);
    sums[1] = _mm256_add_epi32(c, d);
    __m256i bytes = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
    bytes = _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
    if (m == 1) {
        _mm256_storeu_si256((__m256i *)(void *)words, bytes);
        return;
    }
    uint32_t w[8];
    _mm256_storeu_si256((__m256i *)(void *)w, bytes);
    for (int c4 = 0; c4 < 8; c4++)
        memcpy(words + (ptrdiff_t)c4 * m * 4, &w[c4], 4);
}

/* Sums of four vectors' lanes. */
static inline __m128i sums_of_4(const __m256i v[4])
{
    __m256i s = _mm256_hadd_epi32(_mm256_hadd_epi32(v[0], v[1]), _mm256_hadd_epi32(v[2], v[3]));
    return _mm_add_epi32(_mm256_castsi256_si128(s), _mm256_extracti128_si256(s, 1));
}

static inline void block_32(uint8_t *block, const float *x, int32_t t, int32_t m)
{
    __m256 v = _mm256_setzero_ps();
    for (int i = 0; i < 32; i += 8)
        v = abs_max(v, _mm256_loadu_ps(x + i));
    float amax = largest(v), d = amax / 127.0f;
    float inverse = inverse_or_zero(&d, 127.0f / amax);
    __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(),
                       _mm256_setzero_si256()};
    words_32(block + t * 4, x, _mm256_set1_ps(inverse), m, sums);
    __m128i s = sums_of_4(sums);
    int32_t sum = _mm_extract_epi32(s, 0) + _mm_extract_epi32(s, 1);
    memcpy(block + ACT_32_D * m + t * 4, &d, 4);
    memcpy(block + ACT_32_SUM * m + t * 4, &sum, 4);
}

/* Rows of 8 numbers become columns. */
static inline void transpose_8x8(__m256 v[8])
{
    __m256 pairs[8], fours[8];
    for (int i = 0; i < 8; i += 2) {
        pairs[i] = _mm256_unpacklo_ps(v[i], v[i + 1]);
        pairs[i + 1] = _mm256_unpackhi_ps(v[i], v[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
        fours[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
        fours[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
        fours[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
        fours[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x20);
        v[i + 4] = _mm256_permute2f128_ps(fours[i], fours[i + 4], 0x31);
    }
}

/* The sums of |x| over the eight runs of 32 are in a vector's lanes, each added in order of index.
 * max passes NaN over: it comes first, and the scalar comparison would not take it either. */
static inline float scale_256(const float *x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 most = _mm256_setzero_ps(), sums = _mm256_setzero_ps();
    for (int i = 0; i < 32; i += 8) {
        __m256 v[8];
        for (int s = 0; s < 8; s++) {
            v[s] = _mm256_andnot_ps(sign, _mm256_loadu_ps(x + s * 32 + i));
            most = _mm256_max_ps(v[s], most);
        }
        transpose_8x8(v);
        for (int j = 0; j < 8; j++)
            sums = _mm256_add_ps(sums, v[j]);
    }
    float d = largest(most) / 127.0f;
    __m256 bounds = _mm256_div_ps(sums, _mm256_set1_ps(2167.0f));
    return largest(_mm256_max_ps(bounds, _mm256_set1_ps(d)));
}

static inline void block_256(uint8_t *block, const float *x, int32_t t, int32_t m)
{
    float d = scale_256(x);
    __m256 inverse = _mm256_set1_ps(inverse_or_zero(&d, 1.0f / d));
    int32_t sum16[16];
    for (int i = 0; i < 4; i++) { /* 64 numbers: four sums of 16 */
        __m256i v[4];
        words_32(block + t * 4 + i * 16 * m * 4, x + i * 64, inverse, m, v);
        words_32(block + t * 4 + (i * 16 + 8) * m * 4, x + i * 64 + 32, inverse, m, v + 2);
        _mm_storeu_si128((__m128i *)(void *)(sum16 + i * 4), sums_of_4(v));
    }
    scale_and_sums_store(block, d, sum16, t, m);
}

DEFINE_QUANTISE(q8_32, 32, Q8_32, block_32, _avx2, false)
DEFINE_QUANTISE(q8_256, 256, Q8_256, block_256, _avx2, false)
DEFINE_QUANTISE(q8_32, 32, Q8_32, block_32, _even_avx2, true)
DEFINE_QUANTISE(q8_256, 256, Q8_256, block_256, _even_avx2, true)

void quantise_avx2_set(kernel_table *table)
{
    bool even = table->shape & SHAPE_LINES;
    table->quantise[ACT_Q8_32] = even ? quantise_q8_32_even_avx2 : quantise_q8_32_avx2;
    table->quantise[ACT_Q8_256] = even ? quantise_q8_256_even_avx2 : quantise_q8_256_avx2;
}
