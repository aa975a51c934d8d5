/* Peaks of AVX-512 with VNNI. */
#include "kernel/x86/x86.h"

#include <immintrin.h>

#include "kernel/peaks/limits.h"

enum { STEP = 32 /* words: four lines */, CHAINS = 16 };

DEFINE_READ(avx512, __m512i, 8, _mm512_setzero_si512(), _mm512_loadu_si512, _mm512_add_epi64)

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
