/* Attention, AVX2: a v16 is two registers. See attend_tile.h. */
#include "kernel/unroll.h"
#include "kernel/x86/avx2/math_avx2.h"

enum { TILE = 6, MOST_SPAN = 1, SUMS = TILE, SUMS_WITH_VALUES = 0, ROW_TILE = 3, ROW_SPAN = 2 };

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

#include "kernel/attend_tile.h"

const attend_kernel attend_avx2 = ATTEND_KERNEL;
