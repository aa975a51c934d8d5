/* What Arm's dot product instruction can do at most. */
#include "kernel/arm/arm.h"

#include <arm_neon.h>

#include "kernel/peaks/limits.h"

enum { CHAINS = 16 };

static int64_t int8_peak_dotprod(int64_t rounds)
{
    int32x4_t sum[CHAINS];
    int8x16_t w = vdupq_n_s8(3), x = vdupq_n_s8(-2);
    UNROLL
    for (int j = 0; j < CHAINS; j++) {
        sum[j] = vdupq_n_s32(0);
        CHANGES(sum[j]); /* or one chain would do for all */
    }
    for (int64_t i = 0; i < rounds; i++) {
        UNROLL
        for (int j = 0; j < CHAINS; j++)
            sum[j] = vdotq_s32(sum[j], w, x);
        CHANGES(w);
    }
    UNROLL
    for (int j = 0; j < CHAINS; j++)
        CHANGES(sum[j]);
    return rounds * CHAINS * 16 * 2;
}

void limits_dotprod_set(kernel_table *table)
{
    table->int8_peak = int8_peak_dotprod;
}
