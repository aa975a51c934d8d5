/* Building blocks of the AVX2 row operations: exp_f32's formula, the fixed tree, and loads and
 * stores of the first n lanes. Included by *_avx2.c only. */
#ifndef DREY_KERNEL_MATH_AVX2_H
#define DREY_KERNEL_MATH_AVX2_H

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/fmath.h"

/* 2^n in every lane, n in [-126, 127]. */
static inline __m256 pow2_avx2(__m256i n)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
}

/* exp_f32 in every lane (fmath.h). */
static inline __m256 exp_avx2(__m256 x)
{
    __m256 n = _mm256_round_ps(_mm256_mul_ps(x, _mm256_set1_ps(EXP_F32_LOG2E)),
                               _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m256 r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_F32_LN2_HI), x);
    r = _mm256_fnmadd_ps(n, _mm256_set1_ps(EXP_F32_LN2_LO), r);
    __m256 p = _mm256_set1_ps(EXP_F32_C6);
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_F32_C5));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_F32_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_F32_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(EXP_F32_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(1.0f));
    __m256i whole = _mm256_cvtps_epi32(n), half = _mm256_srai_epi32(whole, 1);
    p = _mm256_mul_ps(p, pow2_avx2(half));
    p = _mm256_mul_ps(p, pow2_avx2(_mm256_sub_epi32(whole, half)));
    __m256 high = _mm256_cmp_ps(x, _mm256_set1_ps(EXP_F32_MAX), _CMP_GT_OQ);
    __m256 low = _mm256_cmp_ps(x, _mm256_set1_ps(EXP_F32_MIN), _CMP_LT_OQ);
    p = _mm256_blendv_ps(p, _mm256_set1_ps(INFINITY), high);
    p = _mm256_andnot_ps(low, p);
    return _mm256_blendv_ps(p, x, _mm256_cmp_ps(x, x, _CMP_UNORD_Q)); /* NaN stays NaN */
}

/* sum16 of kernel.h: lanes 8 apart, 4 apart, then (s0 + s2) + (s1 + s3). */
static inline float sum16_avx2(__m256 low, __m256 high)
{
    __m256 s8 = _mm256_add_ps(low, high);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

/* All bits in the first n lanes (none for n <= 0, all for n >= 8). */
static inline __m256i first_lanes(int64_t n)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    int32_t count = n > 8 ? 8 : n < 0 ? 0 : (int32_t)n;
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), index);
}

/* Eight halves as floats. */
static inline __m256 load_f16_avx2(const uint16_t *x)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)x));
}

/* The first n halves as floats, zeros after. */
static inline __m256 load_f16_first(const uint16_t *x, int64_t n)
{
    uint16_t copy[8] = {0};
    if (n > 0)
        memcpy(copy, x, (size_t)(n > 8 ? 8 : n) * sizeof *x);
    return load_f16_avx2(copy);
}

#endif
