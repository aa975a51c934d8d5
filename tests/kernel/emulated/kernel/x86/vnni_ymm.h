/* Replacement in the test-only build of the avxvnni tier's files: the same instructions in their
 * EVEX encoding (AVX512-VNNI and VL), see src/kernel/x86/vnni_ymm.h. */
#pragma once

#include <immintrin.h>

#include "kernel/unroll.h"

INLINE __m256i dot_bytes(__m256i sum, __m256i w, __m256i x)
{
    return _mm256_dpbusd_epi32(sum, w, x);
}

INLINE __m256i dot_pairs(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_dpwssd_epi32(sum, a, b);
}
