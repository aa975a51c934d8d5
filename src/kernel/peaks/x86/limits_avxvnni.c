/* What AVX-VNNI can do at most; reading and floats are AVX2's. */
#include "kernel/x86/x86.h"

#include "kernel/peaks/limits.h"
#include "kernel/x86/vnni_ymm.h"

enum { CHAINS = 12 };

static int64_t int8_peak_avxvnni(int64_t rounds)
{
    __m256i sum[CHAINS], w = _mm256_set1_epi8(3), x = _mm256_set1_epi8(-2);
    UNROLL
    for (int j = 0; j < CHAINS; j++) {
        sum[j] = _mm256_setzero_si256();
        CHANGES(sum[j]); /* or one chain would do for all */
    }
    for (int64_t i = 0; i < rounds; i++) {
        UNROLL
        for (int j = 0; j < CHAINS; j++)
            sum[j] = dot_bytes(sum[j], w, x);
        CHANGES(w);
    }
    UNROLL
    for (int j = 0; j < CHAINS; j++)
        CHANGES(sum[j]);
    return rounds * CHAINS * 32 * 2;
}

void limits_avxvnni_set(kernel_table *table)
{
    table->int8_peak = int8_peak_avxvnni;
}
