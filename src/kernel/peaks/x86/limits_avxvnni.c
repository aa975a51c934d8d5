/* Peaks of AVX-VNNI; reading and floats are AVX2's. */
#include "kernel/x86/x86.h"

#include "kernel/peaks/limits.h"
#include "kernel/x86/vnni_ymm.h"

enum { CHAINS = 12 };

DEFINE_PEAK(int8_peak_avxvnni, __m256i, _mm256_setzero_si256(), __m256i, _mm256_set1_epi8(3),
            _mm256_set1_epi8(-2), dot_bytes, 32)

void limits_avxvnni_set(kernel_table *table)
{
    table->int8_peak = int8_peak_avxvnni;
}
