/* Two words of weights with the dot product instructions: four byte products and their sum in one
 * step, a token's word from a lane. For tiers that have them (matmul_tiles.h says what this is). */
#pragma once

#include "kernel/arm/tokens.h"

INLINE void words_2_lanes(int32x4_t (*acc)[HALF_REGISTERS], int8x16_t (*w)[HALF_REGISTERS],
                          int32_t n_rows, const uint8_t *x, int32_t m, int32_t n_tokens)
{
    UNROLL
    for (int32_t i = 0; i < 2; i++) {
        UNROLL
        for (int32_t t = 0; t < n_tokens; t += 4) {
            int8x16_t v = tokens_load(x + (i * m + t) * 4, n_tokens);
            UNROLL
            for (int32_t r = 0; r < n_rows; r++) {
                acc[t][r] = vdotq_laneq_s32(acc[t][r], w[i][r], v, 0);
                if (n_tokens > 1)
                    acc[t + 1][r] = vdotq_laneq_s32(acc[t + 1][r], w[i][r], v, 1);
                if (n_tokens > 2) {
                    acc[t + 2][r] = vdotq_laneq_s32(acc[t + 2][r], w[i][r], v, 2);
                    acc[t + 3][r] = vdotq_laneq_s32(acc[t + 3][r], w[i][r], v, 3);
                }
            }
        }
    }
}
