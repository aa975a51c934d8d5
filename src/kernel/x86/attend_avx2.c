/* Attention, AVX2: a v16 is two registers. See attend_tile.h. */
#include "kernel/unroll.h"
#include "kernel/x86/math_avx2.h"

enum { TILE = 6, MOST_SPAN = 1, SUMS = TILE, SUMS_WITH_VALUES = 0 };

INLINE int32_t key_span(int32_t n)
{
    (void)n;
    return 1;
}

INLINE int32_t value_span(int32_t n)
{
    (void)n;
    return 1;
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

INLINE float v16_max_of(v16 x)
{
    __m256 m8 = _mm256_max_ps(x.low, x.high);
    __m128 m4 = _mm_max_ps(_mm256_castps256_ps128(m8), _mm256_extractf128_ps(m8, 1));
    __m128 m2 = _mm_max_ps(m4, _mm_movehl_ps(m4, m4));
    return _mm_cvtss_f32(_mm_max_ss(m2, _mm_movehdup_ps(m2)));
}

#include "kernel/attend_tile.h"

const attend_kernel attend_avx2 = ATTEND_KERNEL;
