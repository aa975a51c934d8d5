/* v16 (kernel/v16.h) with AVX-512: a register. Included by *_avx512.c only. */
#pragma once

#include <immintrin.h>
#include <math.h>

#include "base/fmath.h"
#include "kernel/unroll.h"

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

/* The first n lanes (n of 16 and more: all). */
static inline __mmask16 first_lanes(int64_t n)
{
    return (__mmask16)(n >= 16 ? 0xffff : (1u << n) - 1);
}

typedef __m512 v16;

INLINE v16 v16_zero(void)
{
    return _mm512_setzero_ps();
}

INLINE v16 v16_set1(float x)
{
    return _mm512_set1_ps(x);
}

INLINE v16 v16_load(const float *x)
{
    return _mm512_loadu_ps(x);
}

INLINE void v16_store(float *x, v16 v)
{
    _mm512_storeu_ps(x, v);
}

INLINE v16 v16_load_first(const float *x, int32_t n)
{
    return _mm512_maskz_loadu_ps(first_lanes(n), x);
}

INLINE void v16_store_first(float *x, v16 v, int32_t n)
{
    _mm512_mask_storeu_ps(x, first_lanes(n), v);
}

INLINE v16 v16_f16(const uint16_t *x)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)x));
}

INLINE v16 v16_f16_first(const uint16_t *x, int32_t n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(first_lanes(n), x));
}

INLINE v16 v16_q8(const int8_t *x)
{
    __m128i q = _mm_loadu_si128((const __m128i *)(const void *)x);
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q));
}

INLINE v16 v16_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}

INLINE v16 v16_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}

INLINE v16 v16_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}

INLINE v16 v16_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

INLINE v16 v16_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}

INLINE v16 v16_exp(v16 x)
{
    return exp_avx512(x);
}

INLINE v16 v16_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}

INLINE v16 v16_neg(v16 x)
{
    return _mm512_xor_ps(x, _mm512_set1_ps(-0.0f));
}

INLINE v16 v16_keep(v16 x, int32_t n)
{
    return _mm512_maskz_mov_ps(first_lanes(n), x);
}

INLINE uint32_t v16_equal(v16 a, v16 b)
{
    return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ);
}

INLINE float v16_sum(v16 x)
{
    __m256 s8 = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

INLINE __m256i halves_of(v16 x)
{
    return _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

INLINE void v16_to_f16(uint16_t *y, v16 x)
{
    _mm256_storeu_si256((__m256i *)(void *)y, halves_of(x));
}

INLINE void v16_to_f16_first(uint16_t *y, v16 x, int32_t n)
{
    _mm256_mask_storeu_epi16(y, first_lanes(n), halves_of(x));
}

INLINE float v16_max_of(v16 x)
{
    return _mm512_reduce_max_ps(x);
}

/* Lanes 8 apart of two sums. */
INLINE __m512 add_halves(__m512 a, __m512 b)
{
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee));
}

INLINE void v16_sums4(float *to, const v16 *v, float scale)
{
    __m512 ab = add_halves(v[0], v[1]), cd = add_halves(v[2], v[3]);
    __m512 s4 =
        _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    __m512 s2 = _mm512_add_ps(s4, _mm512_permute_ps(s4, 0x4e));
    __m512 s = _mm512_mul_ps(_mm512_set1_ps(scale), _mm512_add_ps(s2, _mm512_permute_ps(s2, 0xb1)));
    _mm_storeu_ps(to, _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, s)));
}

INLINE void v16_turn(float *to, int64_t ld, const v16 *x)
{
    __m512 a[16], b[16];
    UNROLL
    for (int i = 0; i < 16; i += 4) { /* in every 128 bits: a column of four rows */
        __m512 p = _mm512_unpacklo_ps(x[i], x[i + 1]), q = _mm512_unpackhi_ps(x[i], x[i + 1]);
        __m512 r = _mm512_unpacklo_ps(x[i + 2], x[i + 3]);
        __m512 s = _mm512_unpackhi_ps(x[i + 2], x[i + 3]);
        a[i] = _mm512_shuffle_ps(p, r, 0x44);
        a[i + 1] = _mm512_shuffle_ps(p, r, 0xee);
        a[i + 2] = _mm512_shuffle_ps(q, s, 0x44);
        a[i + 3] = _mm512_shuffle_ps(q, s, 0xee);
    }
    UNROLL
    for (int i = 0; i < 4; i++) { /* column i of every 128 bits */
        b[i] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0x88);
        b[i + 4] = _mm512_shuffle_f32x4(a[i], a[i + 4], 0xdd);
        b[i + 8] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0x88);
        b[i + 12] = _mm512_shuffle_f32x4(a[i + 8], a[i + 12], 0xdd);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        _mm512_storeu_ps(to + i * ld, _mm512_shuffle_f32x4(b[i], b[i + 8], 0x88));
        _mm512_storeu_ps(to + (i + 4) * ld, _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0x88));
        _mm512_storeu_ps(to + (i + 8) * ld, _mm512_shuffle_f32x4(b[i], b[i + 8], 0xdd));
        _mm512_storeu_ps(to + (i + 12) * ld, _mm512_shuffle_f32x4(b[i + 4], b[i + 12], 0xdd));
    }
}
