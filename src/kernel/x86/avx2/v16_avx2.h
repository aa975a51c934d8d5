/* v16 (kernel/v16.h) with AVX2, FMA and F16C: two registers. Included by *_avx2.c only. */
#pragma once

#include <immintrin.h>
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "kernel/unroll.h"

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

typedef struct v16 {
    __m256 low, high; /* lanes 0-7, 8-15 */
} v16;

INLINE v16 v16_zero(void)
{
    return (v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

INLINE v16 v16_set1(float x)
{
    __m256 v = _mm256_set1_ps(x);
    return (v16){v, v};
}

INLINE v16 v16_load(const float *x)
{
    return (v16){_mm256_loadu_ps(x), _mm256_loadu_ps(x + 8)};
}

INLINE void v16_store(float *x, v16 v)
{
    _mm256_storeu_ps(x, v.low);
    _mm256_storeu_ps(x + 8, v.high);
}

INLINE v16 v16_load_first(const float *x, int32_t n)
{
    return (v16){_mm256_maskload_ps(x, first_lanes(n)),
                 n > 8 ? _mm256_maskload_ps(x + 8, first_lanes(n - 8)) : _mm256_setzero_ps()};
}

INLINE void v16_store_first(float *x, v16 v, int32_t n)
{
    _mm256_maskstore_ps(x, first_lanes(n), v.low);
    if (n > 8)
        _mm256_maskstore_ps(x + 8, first_lanes(n - 8), v.high);
}

INLINE v16 v16_f16(const uint16_t *x)
{
    return (v16){load_f16_avx2(x), load_f16_avx2(x + 8)};
}

INLINE v16 v16_f16_first(const uint16_t *x, int32_t n)
{
    return (v16){load_f16_first(x, n), n > 8 ? load_f16_first(x + 8, n - 8) : _mm256_setzero_ps()};
}

INLINE v16 v16_q8(const int8_t *x)
{
    __m128i q = _mm_loadu_si128((const __m128i *)(const void *)x);
    return (v16){_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)),
                 _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_unpackhi_epi64(q, q)))};
}

INLINE v16 v16_add(v16 a, v16 b)
{
    return (v16){_mm256_add_ps(a.low, b.low), _mm256_add_ps(a.high, b.high)};
}

INLINE v16 v16_sub(v16 a, v16 b)
{
    return (v16){_mm256_sub_ps(a.low, b.low), _mm256_sub_ps(a.high, b.high)};
}

INLINE v16 v16_mul(v16 a, v16 b)
{
    return (v16){_mm256_mul_ps(a.low, b.low), _mm256_mul_ps(a.high, b.high)};
}

INLINE v16 v16_fma(v16 a, v16 b, v16 c)
{
    return (v16){_mm256_fmadd_ps(a.low, b.low, c.low), _mm256_fmadd_ps(a.high, b.high, c.high)};
}

INLINE v16 v16_max(v16 a, v16 b)
{
    return (v16){_mm256_max_ps(a.low, b.low), _mm256_max_ps(a.high, b.high)};
}

INLINE v16 v16_exp(v16 x)
{
    return (v16){exp_avx2(x.low), exp_avx2(x.high)};
}

INLINE v16 v16_div(v16 a, v16 b)
{
    return (v16){_mm256_div_ps(a.low, b.low), _mm256_div_ps(a.high, b.high)};
}

INLINE v16 v16_neg(v16 x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return (v16){_mm256_xor_ps(x.low, sign), _mm256_xor_ps(x.high, sign)};
}

INLINE v16 v16_keep(v16 x, int32_t n)
{
    return (v16){_mm256_and_ps(x.low, _mm256_castsi256_ps(first_lanes(n))),
                 _mm256_and_ps(x.high, _mm256_castsi256_ps(first_lanes(n - 8)))};
}

INLINE uint32_t v16_equal(v16 a, v16 b)
{
    int low = _mm256_movemask_ps(_mm256_cmp_ps(a.low, b.low, _CMP_EQ_OQ));
    return (uint32_t)low | (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(a.high, b.high, _CMP_EQ_OQ))
                               << 8;
}

INLINE float v16_sum(v16 x)
{
    __m256 s8 = _mm256_add_ps(x.low, x.high);
    __m128 s4 = _mm_add_ps(_mm256_castps256_ps128(s8), _mm256_extractf128_ps(s8, 1));
    __m128 s2 = _mm_add_ps(s4, _mm_movehl_ps(s4, s4));
    return _mm_cvtss_f32(_mm_add_ss(s2, _mm_movehdup_ps(s2)));
}

INLINE void v16_to_f16(uint16_t *y, v16 x)
{
    _mm_storeu_si128((__m128i *)(void *)y, _mm256_cvtps_ph(x.low, _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128((__m128i *)(void *)(y + 8),
                     _mm256_cvtps_ph(x.high, _MM_FROUND_TO_NEAREST_INT));
}

INLINE void v16_to_f16_first(uint16_t *y, v16 x, int32_t n)
{
    uint16_t copy[16];
    v16_to_f16(copy, x);
    memcpy(y, copy, (size_t)n * sizeof *y);
}

INLINE float v16_max_of(v16 x)
{
    __m256 m8 = _mm256_max_ps(x.low, x.high);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
}

/* Lanes 8 and 4 apart of two sums. */
INLINE __m256 add_halves(v16 a, v16 b)
{
    __m256 a8 = _mm256_add_ps(a.low, a.high), b8 = _mm256_add_ps(b.low, b.high);
    return _mm256_add_ps(_mm256_permute2f128_ps(a8, b8, 0x20),
                         _mm256_permute2f128_ps(a8, b8, 0x31));
}

INLINE void v16_sums4(float *to, const v16 *v, float scale)
{
    __m256 ab = add_halves(v[0], v[1]), cd = add_halves(v[2], v[3]);
    __m256 s2 = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
    __m256 s = _mm256_hadd_ps(s2, s2); /* of 0 and 2, then of 1 and 3 */
    __m128 all = _mm_unpacklo_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));
    _mm_storeu_ps(to, _mm_mul_ps(_mm_set1_ps(scale), all));
}

/* Eight by eight: a half of v16s x[0] .. x[7]. */
INLINE void turn_8(float *to, int64_t ld, const __m256 *x)
{
    __m256 a[8];
    UNROLL
    for (int i = 0; i < 8; i += 4) { /* in both halves: a column of four rows */
        __m256 p = _mm256_unpacklo_ps(x[i], x[i + 1]), q = _mm256_unpackhi_ps(x[i], x[i + 1]);
        __m256 r = _mm256_unpacklo_ps(x[i + 2], x[i + 3]);
        __m256 s = _mm256_unpackhi_ps(x[i + 2], x[i + 3]);
        a[i] = _mm256_shuffle_ps(p, r, 0x44);
        a[i + 1] = _mm256_shuffle_ps(p, r, 0xee);
        a[i + 2] = _mm256_shuffle_ps(q, s, 0x44);
        a[i + 3] = _mm256_shuffle_ps(q, s, 0xee);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        _mm256_storeu_ps(to + i * ld, _mm256_permute2f128_ps(a[i], a[i + 4], 0x20));
        _mm256_storeu_ps(to + (i + 4) * ld, _mm256_permute2f128_ps(a[i], a[i + 4], 0x31));
    }
}

INLINE void v16_turn(float *to, int64_t ld, const v16 *x)
{
    UNROLL
    for (int half = 0; half < 2; half++) {
        __m256 low[8], high[8];
        UNROLL
        for (int i = 0; i < 8; i++) {
            low[i] = x[8 * half + i].low;
            high[i] = x[8 * half + i].high;
        }
        turn_8(to + 8 * half, ld, low);
        turn_8(to + 8 * half + 8 * ld, ld, high);
    }
}
