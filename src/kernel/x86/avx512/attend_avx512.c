/* Attention, AVX-512: a v16 is a register. See attend_tile.h. */
#include "kernel/unroll.h"
#include "kernel/x86/avx512/math_avx512.h"

enum { TILE = 12, MOST_SPAN = 4, SUMS = 24, SUMS_WITH_VALUES = 1, ROW_TILE = 6, ROW_SPAN = 4 };

/* A product takes its broadcast number from memory where no other one shares it. Then, and only
 * then, conversions from f16 cost Zen 4 no products: 16 % of them otherwise, with 6 pairs and a
 * span of 2, which 4 brings back too. Few pairs need the span for their sums' latency. */
INLINE int32_t key_span(int32_t n)
{
    return n >= 5 ? 1 : 2;
}

INLINE int32_t value_span(int32_t n)
{
    return n <= 6 ? 4 : 1;
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

#include "kernel/attend_tile.h"

const attend_kernel attend_avx512 = ATTEND_KERNEL;
