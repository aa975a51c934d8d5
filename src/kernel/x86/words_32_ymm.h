/* The weights of blocks of 32 as bytes, 8 rows at a time, for the 8-lane x86 tiers (words_8_ymm.h
 * has those of 8 bits). */
#pragma once

#include "kernel/x86/ymm.h"

/* Word c (weights 4 c .. 4 c + 3) of 8 rows. */
INLINE __m256i nibbles_word(const uint8_t *qs, int c, int slice)
{
    return field(load_slice(qs + (c % 4) * WORD_BYTES, slice), c < 4 ? 0 : 4, 4);
}

INLINE __m256i word_q4_0(const uint8_t *block, int c, int slice)
{
    return nibbles_word(block + Q4_0_QS, c, slice);
}

INLINE __m256i word_q4_1(const uint8_t *block, int c, int slice)
{
    return nibbles_word(block + Q4_1_QS, c, slice);
}

INLINE __m256i word_q5_0(const uint8_t *block, int c, int slice)
{
    return _mm256_or_si256(nibbles_word(block + Q5_0_QS, c, slice),
                           bit_at(load_slice(block + Q5_0_QH, slice), c, 4));
}

INLINE __m256i word_q5_1(const uint8_t *block, int c, int slice)
{
    return _mm256_or_si256(nibbles_word(block + Q5_1_QS, c, slice),
                           bit_at(load_slice(block + Q5_1_QH, slice), c, 4));
}

/* Levels plus 16. */
INLINE __m256i word_mxfp4(const uint8_t *block, int c, int slice)
{
    __m256i levels =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)mxfp4_levels));
    levels = _mm256_add_epi8(levels, _mm256_set1_epi8(16));
    return _mm256_shuffle_epi8(levels, nibbles_word(block + MXFP4_QS, c, slice));
}
