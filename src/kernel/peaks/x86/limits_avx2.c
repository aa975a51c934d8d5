/* What AVX2 with FMA can do at most. */
#include "kernel/x86/x86.h"

#include <immintrin.h>

#include "kernel/peaks/limits.h"

enum { STEP = 16 /* words: two lines */, CHAINS = 10, WIDENED = 4 };

INLINE uint64_t read_streams(const uint64_t *p, int64_t n, int32_t n_streams, int32_t ahead)
{
    int64_t span = n / n_streams / STEP * STEP;
    __m256i sum[STEP / 4];
    UNROLL
    for (int j = 0; j < STEP / 4; j++)
        sum[j] = _mm256_setzero_si256();
    for (int64_t i = 0; i < span; i += STEP) {
        UNROLL
        for (int32_t s = 0; s < n_streams; s++) {
            const uint64_t *at = p + s * span + i;
            UNROLL
            for (int j = 0; j < STEP / 4; j++) {
                if (ahead && j % 2 == 0)
                    _mm_prefetch((const char *)(at + ahead + 4 * j), _MM_HINT_T0);
                __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)(at + 4 * j));
                sum[j] = _mm256_add_epi64(sum[j], v);
            }
        }
    }
    uint64_t part[4], total = sum_rest(p, span * n_streams, n);
    _mm256_storeu_si256(
        (__m256i *)(void *)part,
        _mm256_add_epi64(_mm256_add_epi64(sum[0], sum[1]), _mm256_add_epi64(sum[2], sum[3])));
    for (int j = 0; j < 4; j++)
        total += part[j];
    return total;
}

DEFINE_READ(avx2)

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
