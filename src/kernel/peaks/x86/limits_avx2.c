/* Peaks of AVX2 with FMA. */
#include "kernel/x86/x86.h"

#include <immintrin.h>

#include "kernel/peaks/limits.h"

enum { STEP = 16 /* words: two lines */, CHAINS = 10, WIDENED = 4 };

INLINE __m256i load(const uint64_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

DEFINE_READ(avx2, __m256i, 4, _mm256_setzero_si256(), load, _mm256_add_epi64)

/* vpmaddubsw into 16-bit sums, which 4-bit weights allow for a while, widened now and then: the
 * least work a product of bytes can be here. */
static int64_t int8_peak_avx2(int64_t rounds)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256i sum = _mm256_setzero_si256(), pairs[WIDENED];
    __m256i w = _mm256_set1_epi8(3), x = _mm256_set1_epi8(-2);
    for (int64_t i = 0; i < rounds; i++) {
        UNROLL
        for (int j = 0; j < WIDENED; j++)
            pairs[j] = _mm256_setzero_si256();
        UNROLL
        for (int k = 0; k < 8; k++) {
            UNROLL
            for (int j = 0; j < WIDENED; j++) {
                CHANGES(x);
                pairs[j] = _mm256_add_epi16(pairs[j], _mm256_maddubs_epi16(w, x));
            }
        }
        UNROLL
        for (int j = 0; j < WIDENED; j++)
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs[j], one));
    }
    CHANGES(sum);
    return rounds * WIDENED * 8 * 32 * 2;
}

DEFINE_PEAK(float_peak_avx2, __m256, _mm256_setzero_ps(), __m256, _mm256_set1_ps(0.5f),
            _mm256_set1_ps(0.25f), _mm256_fmadd_ps, 8)

void limits_avx2_set(kernel_table *table)
{
    table->read = read_avx2;
    table->int8_peak = int8_peak_avx2;
    table->float_peak = float_peak_avx2;
}
