/* Division of a tile among Arm's matrix kernels: counts of tokens that are constants, and one
 * register's worth of tokens. */
#pragma once

#include <arm_neon.h>

#include "kernel/unroll.h"

enum { HALF_REGISTERS = 4 }; /* registers of 4 rows each: 16 rows */

/* Registers of rows that n tokens leave room for, of sums registers in all. */
#define STEP_ROWS(n, sums) ((sums) / (n) < HALF_REGISTERS ? (sums) / (n) : HALF_REGISTERS)

/* body(t, n, rows) for constant counts n, most at the most, that add up to m; t is the first token.
 */
#define FOR_TOKENS(m, most, sums, body)                                                            \
    do {                                                                                           \
        int32_t t_ = 0;                                                                            \
        for (; (most) == 8 && t_ + 8 <= (m); t_ += 8)                                              \
            body(t_, 8, STEP_ROWS(8, sums));                                                       \
        for (; t_ + 4 <= (m); t_ += 4)                                                             \
            body(t_, 4, STEP_ROWS(4, sums));                                                       \
        for (; t_ + 2 <= (m); t_ += 2)                                                             \
            body(t_, 2, STEP_ROWS(2, sums));                                                       \
        if (t_ < (m))                                                                              \
            body(t_, 1, STEP_ROWS(1, sums));                                                       \
    } while (0)

/* A word of each of n_tokens (a constant; of four if there are more) tokens, from lane 0 on; one is
 * in every lane. */
INLINE int8x16_t tokens_load(const uint8_t *x, int32_t n_tokens)
{
    if (n_tokens >= 4)
        return vreinterpretq_s8_u8(vld1q_u8(x));
    if (n_tokens == 2)
        return vreinterpretq_s8_u8(vcombine_u8(vld1_u8(x), vdup_n_u8(0)));
    return vreinterpretq_s8_u32(vld1q_dup_u32((const uint32_t *)(const void *)x));
}
