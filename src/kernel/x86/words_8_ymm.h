/* Weights of 8 bits, 8 rows at a time, as an 8-lane x86 tier takes them: included after its header,
 * which has bytes_q8_0 and bytes_iq4. */
#pragma once

#include "kernel/x86/words_32_ymm.h"

INLINE __m256i word_q8_0(const uint8_t *block, int c, int slice)
{
    return bytes_q8_0(load_slice(block + Q8_0_QS + c * WORD_BYTES, slice));
}

INLINE __m256i word_iq4_nl(const uint8_t *block, int c, int slice)
{
    return _mm256_shuffle_epi8(bytes_iq4(), nibbles_word(block + IQ4_NL_QS, c, slice));
}

/* Word c of sub-block s. */
INLINE __m256i word_iq4_xs(const uint8_t *block, int s, int c, int slice)
{
    __m256i v = load_slice(block + IQ4_XS_QS + (s * 4 + c % 4) * WORD_BYTES, slice);
    return _mm256_shuffle_epi8(bytes_iq4(), field(v, c / 4 * 4, 4));
}
