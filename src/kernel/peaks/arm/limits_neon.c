/* Peaks of NEON. */
#include "kernel/arm/arm.h"

#include <arm_neon.h>

#include "kernel/peaks/limits.h"

enum { STEP = 16 /* words: two lines of 64 bytes */, CHAINS = 16 };

DEFINE_READ(neon, uint64x2_t, 2, vdupq_n_u64(0), vld1q_u64, vaddq_u64)

/* Bytes widen to 16 bits, two products of a pair fit, and pairs add up to 32. */
static int64_t int8_peak_neon(int64_t rounds)
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
        for (int j = 0; j < CHAINS; j++) {
            CHANGES(x);
            int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(x)), high = vmull_high_s8(w, x);
            sum[j] = vpadalq_s16(sum[j], vpaddq_s16(low, high));
        }
    }
    UNROLL
    for (int j = 0; j < CHAINS; j++)
        CHANGES(sum[j]);
    return rounds * CHAINS * 16 * 2;
}

DEFINE_PEAK(float_peak_neon, float32x4_t, vdupq_n_f32(0), float32x4_t, vdupq_n_f32(0.5f),
            vdupq_n_f32(0.25f), vfmaq_f32, 4)

void limits_neon_set(kernel_table *table)
{
    table->read = read_neon;
    table->int8_peak = int8_peak_neon;
    table->float_peak = float_peak_neon;
}
