/* What the AVX-512 tile kernels share: 32 rows are two vectors of 16 int32 or float lanes, and one
 * broadcast of 4 activation bytes feeds the vpdpbusd of both. m is a constant wherever these
 * functions are inlined (TILE_SWITCH), so that the loops over it unroll and sums live in
 * registers. */
#ifndef DREY_KERNEL_X86_TILE_AVX512_H
#define DREY_KERNEL_X86_TILE_AVX512_H

#include <immintrin.h>

#include "kernel/dot.h"
#include "kernel/unroll.h"

#ifdef __clang__ /* the compilers' headers differ in the type of a shift's count */
#define SHIFT(n) ((unsigned)(n))
#else
#define SHIFT(n) (n)
#endif

/* Defines tile_<name>_avx512 on tile_<name>_m(m, ...). */
#ifdef INSTRUMENTED
#define TILE_SWITCH(name)                                                                          \
    void tile_##name##_avx512(float *sums, const uint8_t *weights, const uint8_t *acts,            \
                              int32_t n_blocks, int32_t m)                                         \
    {                                                                                              \
        tile_##name##_m(m, sums, weights, acts, n_blocks);                                         \
    }
#else
#define TILE_SWITCH(name)                                                                          \
    void tile_##name##_avx512(float *sums, const uint8_t *weights, const uint8_t *acts,            \
                              int32_t n_blocks, int32_t m)                                         \
    {                                                                                              \
        switch (m) {                                                                               \
        case 1:                                                                                    \
            tile_##name##_m(1, sums, weights, acts, n_blocks);                                     \
            return;                                                                                \
        case 2:                                                                                    \
            tile_##name##_m(2, sums, weights, acts, n_blocks);                                     \
            return;                                                                                \
        case 3:                                                                                    \
            tile_##name##_m(3, sums, weights, acts, n_blocks);                                     \
            return;                                                                                \
        case 4:                                                                                    \
            tile_##name##_m(4, sums, weights, acts, n_blocks);                                     \
            return;                                                                                \
        case 5:                                                                                    \
            tile_##name##_m(5, sums, weights, acts, n_blocks);                                     \
            return;                                                                                \
        case 6:                                                                                    \
            tile_##name##_m(6, sums, weights, acts, n_blocks);                                     \
            return;                                                                                \
        case 7:                                                                                    \
            tile_##name##_m(7, sums, weights, acts, n_blocks);                                     \
            return;                                                                                \
        default:                                                                                   \
            tile_##name##_m(8, sums, weights, acts, n_blocks);                                     \
        }                                                                                          \
    }
#endif

/* With few tokens memory binds, and nothing reads it faster than the hardware's own prefetcher, as
 * long as lines are first asked for in the order of memory: a scale in front of a block that is
 * used last is a step back, and one in every block cost up to a quarter of the speed. So those
 * lines are touched before the others are used. One prefetch in eight lines, some pages ahead and
 * into the L2 cache, helps the hardware over page ends; more would only occupy the few miss buffers
 * of Zen 4. From four tokens on arithmetic binds and the hardware's prefetcher falls behind between
 * bursts of reading: every line is asked for, and its time is hidden. */
enum { PREFETCH_BYTES = 12288, FEW_TOKENS = 3 };

INLINE void prefetch_lines(const uint8_t *p, int n_lines, int m)
{
    const int step = m > FEW_TOKENS ? 1 : 8;
    UNROLL
    for (int i = 0; i < n_lines; i += step)
        _mm_prefetch((const char *)p + PREFETCH_BYTES + i * 64, _MM_HINT_T1);
}

INLINE void touch_lines(const uint8_t *p, int n_lines, int m)
{
    if (m > FEW_TOKENS)
        return;
    UNROLL
    for (int i = 0; i < n_lines; i++)
        __asm__ volatile("" : : "r"(load_u32(p + i * 64)) : "memory");
}

/* Lines that are used out of order, such as a block's front. */
INLINE void front_lines(const uint8_t *block, int n_lines, int m)
{
    prefetch_lines(block, n_lines, m);
    touch_lines(block, n_lines, m);
}

/* A line that is kept in a register: compilers would rather load it again for each use. */
INLINE __m512i load_kept(const uint8_t *p)
{
    __m512i v = _mm512_loadu_si512(p);
    __asm__("" : "+v"(v));
    return v;
}

/* Up to so many tokens a tile kernel goes over whole lines of 32 rows, in the order of memory; with
 * more, the sums of both halves would not fit the registers, and the halves go one after the other.
 * The kernels' inner functions say so by (m, first, count): halves [first, first + count) of a
 * group, all three constants. */
enum { HALVES_TOKENS = 4 };

/* a + b * c, settled here: compilers would rather gather the products of a whole loop body, add
 * them up at its end, and spill them until then. */
INLINE __m512i add_product(__m512i a, __m512i b, __m512i c)
{
    a = _mm512_add_epi32(a, _mm512_mullo_epi32(b, c));
    __asm__("" : "+v"(a));
    return a;
}

INLINE __m512i load_line(const uint8_t *p)
{
    return _mm512_loadu_si512(p);
}

INLINE __m512i broadcast_word(const uint8_t *p)
{
    return _mm512_set1_epi32((int32_t)load_u32(p));
}

INLINE __m512 broadcast_float(const uint8_t *p)
{
    return _mm512_set1_ps(load_f32(p));
}

/* 16 halves as floats. */
INLINE __m512 load_halves(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)(const void *)p));
}

INLINE __m512i low_nibbles(__m512i v)
{
    return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

INLINE __m512i high_nibbles(__m512i v)
{
    return _mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15));
}

/* a | (b & c) */
INLINE __m512i or_and(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi32(a, b, c, 0xf8);
}

#define DECLARE_TILE(TYPE, name, act, block_k, block_bytes)                                        \
    void tile_##name##_avx512(float *sums, const uint8_t *weights, const uint8_t *acts,            \
                              int32_t n_blocks, int32_t m);
KERNEL_TYPES(DECLARE_TILE)
#undef DECLARE_TILE

#endif
