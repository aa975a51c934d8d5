/* Code that the AVX2 tile kernels of packed blocks share (decoded_ymm.h has the others). A product
 * of bytes is vpmaddubsw (unsigned weights by signed activations, pairs added to 16 bits), so each
 * type says how many words (4 weights) add up before 16 bits could overflow. With 16 registers,
 * tokens go in chunks of up to 4; m stays the distance between the words of a token. */
#pragma once

#include "kernel/x86/ymm.h"

enum { CHUNK_ROWS = 4 };

/* Calls chunk(mt, sums, block, acts, m, slice) for all slices and chunks of a block; mt constant.
 */
#define FOR_CHUNKS(chunk, sums, block, acts, m)                                                    \
    ROLLED                                                                                         \
    for (int slice_ = 0; slice_ < SLICES; slice_++)                                                \
        for (int t_ = 0; t_ < (m); t_ += CHUNK_ROWS) {                                             \
            float *sums_ = (sums) + t_ * GROUP_ROWS + slice_ * SLICE_ROWS;                         \
            const uint8_t *acts_ = (acts) + t_ * 4;                                                \
            switch ((m)-t_) {                                                                      \
            case 1:                                                                                \
                chunk(1, sums_, block, acts_, m, slice_);                                          \
                break;                                                                             \
            case 2:                                                                                \
                chunk(2, sums_, block, acts_, m, slice_);                                          \
                break;                                                                             \
            case 3:                                                                                \
                chunk(3, sums_, block, acts_, m, slice_);                                          \
                break;                                                                             \
            default:                                                                               \
                chunk(4, sums_, block, acts_, m, slice_);                                          \
            }                                                                                      \
        }

/* Defines tile_<name>_avx2 on <name>_chunk, block after block. */
#define DEFINE_TILE(name, block_bytes, act_bytes_)                                                 \
    void tile_##name##_avx2(float *sums, const uint8_t *weights, const uint8_t *acts,              \
                            int32_t n_blocks, int32_t m)                                           \
    {                                                                                              \
        for (; n_blocks > 0; n_blocks--) {                                                         \
            fetch_lines(weights, 0, (block_bytes)*GROUP_ROWS / 64);                                \
            FOR_CHUNKS(name##_chunk, sums, weights, acts, m)                                       \
            weights += (block_bytes)*GROUP_ROWS;                                                   \
            acts += (act_bytes_)*m;                                                                \
        }                                                                                          \
    }

/* Q8_0's weights, signed. */
INLINE __m256i bytes_q8_0(__m256i stored)
{
    return _mm256_xor_si256(stored, _mm256_set1_epi8(-128));
}

/* The levels of IQ4_NL and IQ4_XS. */
INLINE __m256i bytes_iq4(void)
{
    return iq4_table();
}

/* Pairs of byte products in 16 bits: weights in 0..127, or signed ones by absolute value. */
INLINE __m256i products_16(__m256i w, __m256i x, bool is_signed)
{
    if (is_signed)
        return _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w));
    return _mm256_maddubs_epi16(w, x);
}

/* A 32-bit number within int16 in both halves of its lane. */
INLINE __m256i both_halves(__m256i v)
{
    return _mm256_blend_epi16(v, _mm256_slli_epi32(v, 16), 0xaa);
}

#define DECLARE_TILE(TYPE, name, act, block_k, block_bytes)                                        \
    void tile_##name##_avx2(float *sums, const uint8_t *weights, const uint8_t *acts,              \
                            int32_t n_blocks, int32_t m);
KERNEL_FLOAT_TYPES(DECLARE_TILE)
KERNEL_TYPES_32(DECLARE_TILE)
#undef DECLARE_TILE
