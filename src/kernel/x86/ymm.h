/* Code that the 8-lane x86 tiers (avx2, avxvnni) share: 32 rows are four slices of 8 lanes. */
#pragma once

#include <immintrin.h>

#include "kernel/dot.h"
#include "kernel/unroll.h"

enum { SLICES = 4, SLICE_ROWS = 8, SLICE_BYTES = 32 };

INLINE __m256i load_slice(const uint8_t *p, int slice)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)(p + slice * SLICE_BYTES));
}

/* Lines first .. last - 1 of a block that is so far ahead, into the second cache: what a core
 * fetches by itself does not keep up with one row. */
enum { FETCH_AHEAD = 18432 };

INLINE void fetch_lines(const uint8_t *block, int first, int last)
{
    for (int i = first; i < last; i++)
        _mm_prefetch((const char *)block + FETCH_AHEAD + i * 64, _MM_HINT_T1);
}

INLINE __m256i broadcast_word(const uint8_t *p)
{
    return _mm256_set1_epi32((int32_t)load_u32(p));
}

INLINE __m256 broadcast_float(const uint8_t *p)
{
    return _mm256_set1_ps(load_f32(p));
}

/* 8 halves as floats. */
INLINE __m256 load_halves(const uint8_t *p, int slice)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)(p + slice * 16)));
}

/* 8 exponents as the scales that they stand for: e8m0_half of packing.h. */
INLINE __m256 load_exponents(const uint8_t *p, int slice)
{
    __m256i e =
        _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)(p + slice * 8)));
    e = _mm256_max_epu32(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(E8M0_LEAST));
    return _mm256_mul_ps(_mm256_castsi256_ps(e), _mm256_set1_ps(0.5f));
}

/* Field of `bits` bits from bit `shift` of each byte. */
INLINE __m256i field(__m256i v, int shift, int bits)
{
    __m256i moved = shift ? _mm256_srli_epi16(v, shift) : v;
    return _mm256_and_si256(moved, _mm256_set1_epi8((char)((1 << bits) - 1)));
}

/* Bit `bit` of each byte moved to bit `to`. */
INLINE __m256i bit_at(__m256i v, int bit, int to)
{
    v = bit > to ? _mm256_srli_epi16(v, bit - to) : _mm256_slli_epi16(v, to - bit);
    return _mm256_and_si256(v, _mm256_set1_epi8((char)(1 << to)));
}

INLINE __m256i iq4_table(void)
{
    return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)iq4_levels));
}

/* sum += factor * dx * (float)i, the product first. */
INLINE __m256 add_scaled(__m256 sum, __m256 factor, __m256 dx, __m256i i)
{
    return _mm256_fmadd_ps(_mm256_mul_ps(factor, dx), _mm256_cvtepi32_ps(i), sum);
}
