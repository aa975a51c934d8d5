/* Code that the avxvnni tile kernels of packed blocks share: those of blocks of 32 for few rows,
 * where decoding is cheap (decoded_ymm.h has the others). A slice of 8 rows meets all tokens of a
 * tile at once: a word of weights is decoded once, then takes one broadcast load and one vpdpbusd a
 * token. With 16 registers 8 sums, the weights and a broadcast fit; 16 rows by 4 tokens would save
 * broadcasts, which run next to the dot products, but decode the weights of a full tile twice.
 *
 * vpdpbusd wants unsigned weights: offsets (Q4_0's 8, Q8_0's 128, ...) are paid by starting a sum
 * at -offset * sum(x). */
#pragma once

#include "kernel/x86/vnni_ymm.h"
#include "kernel/x86/ymm.h"

/* tile_<name>_avxvnni with m rows: slice by slice, block after block. m is a constant where this is
 * inlined, so that sums live in registers. */
#define DEFINE_TILE(name, block_bytes, act_bytes_)                                                 \
    INLINE void tile_##name##_m(const int m, float *sums, const uint8_t *weights,                  \
                                const uint8_t *acts, int32_t n_blocks)                             \
    {                                                                                              \
        for (; n_blocks > 0; n_blocks--) {                                                         \
            ROLLED                                                                                 \
            for (int slice = 0; slice < SLICES; slice++) {                                         \
                const int lines = (block_bytes)*GROUP_ROWS / 64;                                   \
                fetch_lines(weights, lines *slice / SLICES, lines * (slice + 1) / SLICES);         \
                name##_slice(m, sums + slice * SLICE_ROWS, weights, acts, slice);                  \
            }                                                                                      \
            weights += (block_bytes)*GROUP_ROWS;                                                   \
            acts += (act_bytes_)*m;                                                                \
        }                                                                                          \
    }                                                                                              \
    TILE_SWITCH(name)

#define TILE_CASE(name, count)                                                                     \
    case count:                                                                                    \
        tile_##name##_m(count, sums, weights, acts, n_blocks);                                     \
        return;

#ifdef INSTRUMENTED
#define TILE_CASES(name)
#define TILE_DEFAULT m
#else
#define TILE_CASES(name)                                                                           \
    TILE_CASE(name, 1)                                                                             \
    TILE_CASE(name, 2)                                                                             \
    TILE_CASE(name, 3)                                                                             \
    TILE_CASE(name, 4)                                                                             \
    TILE_CASE(name, 5)                                                                             \
    TILE_CASE(name, 6)                                                                             \
    TILE_CASE(name, 7)
#define TILE_DEFAULT 8
#endif

#define TILE_SWITCH(name)                                                                          \
    void tile_##name##_avxvnni(float *sums, const uint8_t *weights, const uint8_t *acts,           \
                               int32_t n_blocks, int32_t m)                                        \
    {                                                                                              \
        switch (m) {                                                                               \
            TILE_CASES(name)                                                                       \
        default:                                                                                   \
            tile_##name##_m(TILE_DEFAULT, sums, weights, acts, n_blocks);                          \
        }                                                                                          \
    }

/* Q8_0's weights as they are stored, plus 128. */
INLINE __m256i bytes_q8_0(__m256i stored)
{
    return stored;
}

/* The levels of IQ4_NL and IQ4_XS plus 128. */
INLINE __m256i bytes_iq4(void)
{
    return _mm256_xor_si256(iq4_table(), _mm256_set1_epi8(-128));
}

#define DECLARE_TILE(TYPE, name, act, block_k, block_bytes)                                        \
    void tile_##name##_avxvnni(float *sums, const uint8_t *weights, const uint8_t *acts,           \
                               int32_t n_blocks, int32_t m);
KERNEL_TYPES_32(DECLARE_TILE)
#undef DECLARE_TILE
