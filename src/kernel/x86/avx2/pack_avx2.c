/* Packing with AVX2, any type by its layout: the parts of 32-bit words are transposed 8 rows by 4
 * words at a time, in registers. It is bound by memory, so AVX-512 uses it too. */
#include "kernel/x86/x86.h"

#include <immintrin.h>

#include "kernel/packing.h"

/* Rows r and r + 4 of a block of 8, 16 bytes of each. */
static inline __m256i two_rows(const uint8_t *rows, int64_t row_bytes, int r)
{
    __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(rows + r * row_bytes));
    __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(rows + (r + 4) * row_bytes));
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

/* Words 0..3 of 8 rows: out[w] holds word w of each row. */
static inline void transpose_8x4(__m256i out[4], const uint8_t *rows, int64_t row_bytes)
{
    __m256i a = two_rows(rows, row_bytes, 0), b = two_rows(rows, row_bytes, 1);
    __m256i c = two_rows(rows, row_bytes, 2), d = two_rows(rows, row_bytes, 3);
    __m256i ab01 = _mm256_unpacklo_epi32(a, b), ab23 = _mm256_unpackhi_epi32(a, b);
    __m256i cd01 = _mm256_unpacklo_epi32(c, d), cd23 = _mm256_unpackhi_epi32(c, d);
    out[0] = _mm256_unpacklo_epi64(ab01, cd01);
    out[1] = _mm256_unpackhi_epi64(ab01, cd01);
    out[2] = _mm256_unpacklo_epi64(ab23, cd23);
    out[3] = _mm256_unpackhi_epi64(ab23, cd23);
}

static inline void store(uint8_t *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)p, v);
}

typedef __m256i lanes;

static inline lanes lanes_zero(void)
{
    return _mm256_setzero_si256();
}

static inline lanes most_16_of(lanes most, __m256i v)
{
    return _mm256_max_epu16(most, _mm256_and_si256(v, _mm256_set1_epi16(0x7fff)));
}

/* Returns the larger of two: `most`, which all wait for, is used half as often. */
static inline lanes most_32_of(lanes most, __m256i a, __m256i b)
{
    const __m256i mask = _mm256_set1_epi32(0x7fffffff);
    __m256i larger = _mm256_max_epu32(_mm256_and_si256(a, mask), _mm256_and_si256(b, mask));
    return _mm256_max_epu32(most, larger);
}

static inline __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

static inline lanes most_16(lanes most, const uint8_t *p)
{
    return most_16_of(most_16_of(most, load(p)), load(p + 32));
}

static inline lanes most_32(lanes most, const uint8_t *p)
{
    most = most_32_of(most, load(p), load(p + 32));
    return most_32_of(most, load(p + 64), load(p + 96));
}

static inline uint32_t largest_16(lanes most)
{
    uint16_t all[16], largest = 0;
    store((uint8_t *)all, most);
    for (int i = 0; i < 16; i++)
        largest = all[i] > largest ? all[i] : largest;
    return largest;
}

static inline uint32_t largest_32(lanes most)
{
    uint32_t all[8], largest = 0;
    store((uint8_t *)all, most);
    for (int i = 0; i < 8; i++)
        largest = all[i] > largest ? all[i] : largest;
    return largest;
}

/* Words first .. 3 (of the four at rows) of all 32 rows, flipped by a mask. */
static inline void words_4(uint8_t *out, const uint8_t *rows, int64_t row_bytes, int first,
                           uint8_t flip, lanes *most)
{
    const __m256i mask = _mm256_set1_epi8((char)flip);
    for (int g = 0; g < GROUP_ROWS / 8; g++) {
        __m256i v[4];
        transpose_8x4(v, rows + g * 8 * row_bytes, row_bytes);
        for (int w = 0; most && w < 4; w += 2)
            *most = most_32_of(*most, v[w], v[w + 1]);
        for (int w = first; w < 4; w++)
            store(out + (w - first) * WORD_BYTES + g * 32, _mm256_xor_si256(v[w], mask));
    }
}

/* Exchanges two bits of the bit index: bits at mask with those shift above. */
static inline __m256i bits_swap(__m256i x, int shift, uint32_t mask)
{
    __m128i n = _mm_cvtsi32_si128(shift);
    __m256i t = _mm256_xor_si256(x, _mm256_srl_epi32(x, n));
    t = _mm256_and_si256(t, _mm256_set1_epi32((int32_t)mask));
    return _mm256_xor_si256(x, _mm256_xor_si256(t, _mm256_sll_epi32(t, n)));
}

/* plane_from_bits of packing.h in 8 words: the bit index c2 c1 c0 j1 j0 becomes j1 j0 c2 c1 c0. */
static inline __m256i planes_from_bits(__m256i x)
{
    x = bits_swap(x, 14, 0x0000cccc);
    x = bits_swap(x, 7, 0x00aa00aa);
    x = bits_swap(x, 2, 0x0c0c0c0c);
    return bits_swap(x, 1, 0x22222222);
}

static inline void planes_32(uint8_t *part)
{
    for (int i = 0; i < WORD_BYTES; i += 32)
        store(part + i, planes_from_bits(load(part + i)));
}

/* A load, as the processor drops prefetches when its queue is full: with those packing was no
 * faster. */
static inline void line_fetch(const uint8_t *p)
{
    __asm__ volatile("" : : "r"(*p) : "memory");
}

/* 8 halves of 16 rows (r and r + 8 share a register): out + i * 64 gets half i of the 16. */
static inline void halves_16x8(uint8_t *out, const uint8_t *rows, int64_t row_bytes, lanes *most)
{
    __m256i v[8], u[8];
    for (int r = 0; r < 8; r++) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(rows + r * row_bytes));
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(rows + (r + 8) * row_bytes));
        v[r] = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
        *most = most_16_of(*most, v[r]);
    }
    for (int i = 0; i < 4; i++) { /* pairs of rows: halves 0..3 and 4..7 */
        u[i] = _mm256_unpacklo_epi16(v[2 * i], v[2 * i + 1]);
        u[i + 4] = _mm256_unpackhi_epi16(v[2 * i], v[2 * i + 1]);
    }
    for (int i = 0; i < 8; i += 4) { /* fours of rows: two halves each */
        v[i] = _mm256_unpacklo_epi32(u[i], u[i + 1]);
        v[i + 1] = _mm256_unpackhi_epi32(u[i], u[i + 1]);
        v[i + 2] = _mm256_unpacklo_epi32(u[i + 2], u[i + 3]);
        v[i + 3] = _mm256_unpackhi_epi32(u[i + 2], u[i + 3]);
    }
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            store(out + (i + 2 * j) * 64, _mm256_unpacklo_epi64(v[i + j], v[i + j + 2]));
            store(out + (i + 2 * j + 1) * 64, _mm256_unpackhi_epi64(v[i + j], v[i + j + 2]));
        }
}

static inline void halves_8(uint8_t *out, const uint8_t *rows, int64_t row_bytes, lanes *most)
{
    halves_16x8(out, rows, row_bytes, most);
    halves_16x8(out + 32, rows + HALF_ROWS * row_bytes, row_bytes, most);
}

#include "kernel/pack_rows.h"

void pack_avx2_set(kernel_table *table)
{
    packs_set(table);
}
