/* Words of weights with the dot product instructions: four byte products and their sum in one step,
 * a token's word from a lane. For tiers that have them (matmul_tiles.h says what this is). */
#pragma once

#include "kernel/arm/tokens.h"

enum { STEP_TOKENS_32 = 8, STEP_TOKENS_256 = 8, MOST_ROWS_256 = 4, ROW_WORDS = 1, ROW_SUMS = 16 };

/* Adds the products of a word of 4 rows and of the token in a lane. */
INLINE int32x4_t word_dot_lane(int32x4_t acc, int8x16_t w, int8x16_t x, int32_t lane)
{
    switch (lane) {
    case 0:
        return vdotq_laneq_s32(acc, w, x, 0);
    case 1:
        return vdotq_laneq_s32(acc, w, x, 1);
    case 2:
        return vdotq_laneq_s32(acc, w, x, 2);
    default:
        return vdotq_laneq_s32(acc, w, x, 3);
    }
}

INLINE void words_dot_lanes(int32x4_t (*acc)[TOKEN_TILE], int8x16_t (*w)[4], int32_t n_rows,
                            int32_t n_words, const uint8_t *x, int32_t m, int32_t n_tokens)
{
    UNROLL
    for (int32_t i = 0; i < n_words; i++) {
        int8x16_t v[2]; /* both first: they become one instruction */
        UNROLL
        for (int32_t t = 0; t < n_tokens; t += 4)
            v[t / 4] = tokens_load(x + (i * m + t) * 4, n_tokens);
        UNROLL
        for (int32_t t = 0; t < n_tokens; t++) {
            UNROLL
            for (int32_t r = 0; r < n_rows; r++)
                acc[r][t] = word_dot_lane(acc[r][t], w[r][i], v[t / 4], t % 4);
        }
    }
}

INLINE void one_dot(int32x4_t *acc, int8x16_t (*w)[4], const uint8_t *x, int32_t j, int32_t fitting)
{
    (void)fitting;
    *acc = word_dot_lane(*acc, w[0][0], vld1q_s8((const int8_t *)x), j);
}
