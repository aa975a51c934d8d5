/* Building blocks of the AVX-512 row operations: exp_f32's formula and the fixed tree, on 16 lanes.
 * Included by *_avx512.c only. */
#ifndef DREY_KERNEL_MATH_AVX512_H
#define DREY_KERNEL_MATH_AVX512_H

#include <immintrin.h>
#include <math.h>

#include "base/fmath.h"

/* exp_f32 in every lane (fmath.h); scalef multiplies by 2^n in one exact step. */
static inline __m512 exp_avx512(__m512 x)
{
    __m512 n = _mm512_roundscale_ps(_mm512_mul_ps(x, _mm512_set1_ps(EXP_F32_LOG2E)),
                                    _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    __m512 r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_F32_LN2_HI), x);
    r = _mm512_fnmadd_ps(n, _mm512_set1_ps(EXP_F32_LN2_LO), r);
    __m512 p = _mm512_set1_ps(EXP_F32_C6);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_F32_C5));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_F32_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_F32_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(EXP_F32_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.0f));
    p = _mm512_scalef_ps(p, n);
    __mmask16 high = _mm512_cmp_ps_mask(x, _mm512_set1_ps(EXP_F32_MAX), _CMP_GT_OQ);
    __mmask16 low = _mm512_cmp_ps_mask(x, _mm512_set1_ps(EXP_F32_MIN), _CMP_LT_OQ);
    p = _mm512_mask_mov_ps(p, high, _mm512_set1_ps(INFINITY));
    return _mm512_mask_mov_ps(p, low, _mm512_setzero_ps());
}

/* sum16 of kernel.h: lanes 8 apart, 4 apart, then (s0 + s2) + (s1 + s3). */
static inline float sum16_avx512(__m512 lanes)
{
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(lanes), _mm512_extractf32x8_ps(lanes, 1));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

/* The first n lanes (n of 16 and more: all). */
static inline __mmask16 first_lanes(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1);
}

#endif
