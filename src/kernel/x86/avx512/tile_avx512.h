/* Code that the AVX-512 tile kernels share: 32 rows are two vectors of 16 int32 or float lanes,
 * and one broadcast of 4 activation bytes feeds the vpdpbusd of both. m is a constant wherever
 * these functions are inlined (TILE_SWITCH), so that the loops over it unroll and sums live in
 * registers. */
#pragma once

#include <immintrin.h>

#include "kernel/dot.h"
#include "kernel/unroll.h"

#ifdef __clang__ /* the compilers' headers differ in the type of a shift's count */
#define SHIFT(n) ((unsigned)(n))
#else
#define SHIFT(n) (n)
#endif

/* Up to so many tokens a tile always goes over whole lines. */
enum { FEW_TOKENS = 4 };

/* A tile kernel is a template tile_<name>_m(m, variant, ...), and what becomes of it are functions
 * for few and for many tokens, tile_<name>_<variant>_avx512, of which matmul_avx512.c puts a kernel
 * together:
 *   few   m <= FEW_TOKENS: SPARSE, NEAR or FAR, how weights are fetched
 *   many  m > FEW_TOKENS:  HALVES, LINES or CHAINS, the tile's shape (cpu_tuning.h)
 * TILE_FEW and TILE_MANY define one of them each. */
enum { SPARSE, NEAR, FAR, HALVES, LINES, CHAINS };

#ifdef INSTRUMENTED
#define DEFINE_TILE_VARIANT(name, suffix, variant, first)                                          \
    void tile_##name##_##suffix##_avx512(float *sums, const uint8_t *weights, const uint8_t *acts, \
                                         int32_t n_blocks, int32_t m)                              \
    {                                                                                              \
        tile_##name##_m(m, variant, sums, weights, acts, n_blocks);                                \
    }
#else
#define DEFINE_TILE_VARIANT(name, suffix, variant, first)                                          \
    void tile_##name##_##suffix##_avx512(float *sums, const uint8_t *weights, const uint8_t *acts, \
                                         int32_t n_blocks, int32_t m)                              \
    {                                                                                              \
        switch (m) {                                                                               \
        case (first):                                                                              \
            tile_##name##_m(first, variant, sums, weights, acts, n_blocks);                        \
            return;                                                                                \
        case (first) + 1:                                                                          \
            tile_##name##_m((first) + 1, variant, sums, weights, acts, n_blocks);                  \
            return;                                                                                \
        case (first) + 2:                                                                          \
            tile_##name##_m((first) + 2, variant, sums, weights, acts, n_blocks);                  \
            return;                                                                                \
        default:                                                                                   \
            tile_##name##_m((first) + 3, variant, sums, weights, acts, n_blocks);                  \
        }                                                                                          \
    }
#endif
#define TILE_FEW(name, suffix, variant)  DEFINE_TILE_VARIANT(name, suffix, variant, 1)
#define TILE_MANY(name, suffix, variant) DEFINE_TILE_VARIANT(name, suffix, variant, FEW_TOKENS + 1)

/* Ways to fetch weights before they are used.
 *
 *  SPARSE  Where memory binds and the hardware's own prefetcher is the fastest reader (Zen 4), as
 *          long as lines are first asked for in the order of memory: a scale in front of a block
 *          that is used last is a step back, and one in every block cost up to a quarter of the
 *          speed. So those lines are touched before the others are used. One prefetch in eight
 *          lines, some pages ahead and into the L2 cache, helps the hardware over page ends; more
 *          would only occupy the few miss buffers of Zen 4.
 *  NEAR    Every line, some blocks ahead, into the L1 cache: with one row on Zen 5 1.2 times as
 *          fast for Q4_K, Q5_K and Q6_K, 1.4 for Q2_K and IQ4_XS, 1.04 to 1.12 for the others (Q8_0
 *          1.0), 2 to 8 KB ahead nearly alike.
 *  FAR     Every line into the L2 cache, 18 KB ahead: on a Xeon with AMX a prototype read 31 GB/s
 *          with one row, 28 with every line into L1, 23 with SPARSE; 37 KB ahead was slower.
 *  Many    From four tokens on arithmetic binds and the hardware's prefetcher is too slow between
 *          bursts of reading: every line is asked for, into the L2 cache, and its time is hidden.
 *          With LINES the K types ask for it into the L1 cache: 1.1 to 1.2 times as fast for 5 to 8
 *          tokens on Zen 5. */
enum {
    SPARSE_BYTES = 12288,
    NEAR_BYTES = 4096,
    FAR_BYTES = 18432,
    LINES_BYTES = 8192,
    SPARSE_TOKENS = 3
};

INLINE void prefetch_lines(const uint8_t *p, int n_lines, int m, int variant)
{
    const bool close = variant == NEAR || variant == LINES;
    const int ahead = variant == NEAR    ? NEAR_BYTES
                      : variant == LINES ? LINES_BYTES
                      : variant == FAR   ? FAR_BYTES
                                         : SPARSE_BYTES;
    UNROLL
    for (int i = 0; i < n_lines; i++) {
        if (close)
            _mm_prefetch((const char *)p + ahead + i * 64, _MM_HINT_T0);
        else if (variant == FAR || m > SPARSE_TOKENS || i % 8 == 0)
            _mm_prefetch((const char *)p + ahead + i * 64, _MM_HINT_T1);
    }
}

INLINE void touch_lines(const uint8_t *p, int n_lines, int m, int variant)
{
    if (m > SPARSE_TOKENS || variant != SPARSE)
        return;
    UNROLL
    for (int i = 0; i < n_lines; i++)
        __asm__ volatile("" : : "r"(load_u32(p + i * 64)) : "memory");
}

/* Lines that are used out of order, such as a block's front. */
INLINE void front_lines(const uint8_t *block, int n_lines, int m, int variant)
{
    prefetch_lines(block, n_lines, m, variant);
    touch_lines(block, n_lines, m, variant);
}

/* A line that is kept in a register: compilers would rather load it again for each use. */
INLINE __m512i load_kept(const uint8_t *p)
{
    __m512i v = _mm512_loadu_si512(p);
    __asm__("" : "+v"(v));
    return v;
}

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

/* 16 exponents as the scales that they stand for: e8m0_half of packing.h. */
INLINE __m512 load_exponents(const uint8_t *p)
{
    __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    e = _mm512_max_epu32(_mm512_slli_epi32(e, 23), _mm512_set1_epi32(E8M0_LEAST));
    return _mm512_mul_ps(_mm512_castsi512_ps(e), _mm512_set1_ps(0.5f));
}

/* sum += factor * dx * (float)i, the product first. */
INLINE __m512 add_scaled(__m512 sum, __m512 factor, __m512 dx, __m512i i)
{
    return _mm512_fmadd_ps(_mm512_mul_ps(factor, dx), _mm512_cvtepi32_ps(i), sum);
}

/* The end of a super-block, 16 rows and token t: sum + dw * dx * products, then - mw * dx * minima
 * where there are some. */
INLINE void finish_256(float *sums, const uint8_t *acts, int m, int t, int half, __m512 dw,
                       __m512 mw, __m512i products, __m512i minima, bool has_min)
{
    float *to = sums + t * GROUP_ROWS + half * HALF_ROWS;
    __m512 dx = broadcast_float(acts + ACT_256_D * m + t * 4);
    __m512 sum = add_scaled(_mm512_loadu_ps(to), dw, dx, products);
    if (has_min)
        sum = _mm512_fnmadd_ps(_mm512_mul_ps(mw, dx), _mm512_cvtepi32_ps(minima), sum);
    _mm512_storeu_ps(to, sum);
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

#define DECLARE_TILE(name, suffix)                                                                 \
    void tile_##name##_##suffix##_avx512(float *sums, const uint8_t *weights, const uint8_t *acts, \
                                         int32_t n_blocks, int32_t m);
#define DECLARE_TILES(TYPE, name, act, block_k, block_bytes)                                       \
    DECLARE_TILE(name, sparse)                                                                     \
    DECLARE_TILE(name, near)                                                                       \
    DECLARE_TILE(name, far)                                                                        \
    DECLARE_TILE(name, halves)                                                                     \
    DECLARE_TILE(name, lines)                                                                      \
    DECLARE_TILE(name, chains)
KERNEL_TYPES(DECLARE_TILES)
#undef DECLARE_TILES
#undef DECLARE_TILE
