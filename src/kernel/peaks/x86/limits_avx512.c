/* What AVX-512 with VNNI can do at most. */
#include "kernel/x86/x86.h"

#include <immintrin.h>

#include "kernel/peaks/limits.h"

enum { STEP = 32 /* words: four lines */, CHAINS = 16 };

INLINE uint64_t read_streams(const uint64_t *p, int64_t n, int32_t n_streams, int32_t ahead)
{
    int64_t span = n / n_streams / STEP * STEP;
    __m512i sum[STEP / 8];
    UNROLL
    for (int j = 0; j < STEP / 8; j++)
        sum[j] = _mm512_setzero_si512();
    for (int64_t i = 0; i < span; i += STEP) {
        UNROLL
        for (int32_t s = 0; s < n_streams; s++) {
            const uint64_t *at = p + s * span + i;
            UNROLL
            for (int j = 0; j < STEP / 8; j++) {
                if (ahead)
                    _mm_prefetch((const char *)(at + ahead + 8 * j), _MM_HINT_T0);
                sum[j] = _mm512_add_epi64(sum[j], _mm512_loadu_si512(at + 8 * j));
            }
        }
    }
    __m512i all =
        _mm512_add_epi64(_mm512_add_epi64(sum[0], sum[1]), _mm512_add_epi64(sum[2], sum[3]));
    return (uint64_t)_mm512_reduce_add_epi64(all) + sum_rest(p, span * n_streams, n);
}

DEFINE_READ(avx512)

DEFINE_PEAK(int8_peak_avx512, __m512i, _mm512_setzero_si512(), __m512i, _mm512_set1_epi8(3),
            _mm512_set1_epi8(-2), _mm512_dpbusd_epi32, 64)

DEFINE_PEAK(float_peak_avx512, __m512, _mm512_setzero_ps(), __m512, _mm512_set1_ps(0.5f),
            _mm512_set1_ps(0.25f), _mm512_fmadd_ps, 16)

void limits_avx512_set(kernel_table *table)
{
    table->read = read_avx512;
    table->int8_peak = int8_peak_avx512;
    table->float_peak = float_peak_avx512;
}
