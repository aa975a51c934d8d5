/* The two instructions by which the avxvnni tier differs from avx2, in their VEX encoding
 * (AVX-VNNI). AVX512-VNNI with VL has the same two for the same registers in another encoding; the
 * tests compile the tier's files a second time with a header of this name that uses those
 * (tests/kernel/emulated), so that machines that have only that encoding check the kernels too. */
#pragma once

#include <immintrin.h>

#include "kernel/unroll.h"

/* Each lane: sum += the four unsigned bytes of w times the four signed bytes of x. */
INLINE __m256i dot_bytes(__m256i sum, __m256i w, __m256i x)
{
    return _mm256_dpbusd_avx_epi32(sum, w, x);
}

/* Each lane: sum += the two int16 of a times the two of b. */
INLINE __m256i dot_pairs(__m256i sum, __m256i a, __m256i b)
{
    return _mm256_dpwssd_avx_epi32(sum, a, b);
}
