/* What NEON can do at most. */
#include "kernel/arm/arm.h"

#include <arm_neon.h>

#include "kernel/peaks/limits.h"

enum { STEP = 16 /* words: two lines of 64 bytes */, CHAINS = 16 };

INLINE uint64_t read_streams(const uint64_t *p, int64_t n, int32_t n_streams, int32_t ahead)
{
    int64_t span = n / n_streams / STEP * STEP;
    uint64x2_t sum[STEP / 2];
    UNROLL
    for (int j = 0; j < STEP / 2; j++)
        sum[j] = vdupq_n_u64(0);
    for (int64_t i = 0; i < span; i += STEP) {
        UNROLL
        for (int32_t s = 0; s < n_streams; s++) {
            const uint64_t *at = p + s * span + i;
            UNROLL
            for (int j = 0; j < STEP / 2; j++) {
                if (ahead && j % 4 == 0)
                    __builtin_prefetch(at + ahead + 2 * j);
                sum[j] = vaddq_u64(sum[j], vld1q_u64(at + 2 * j));
            }
        }
    }
    uint64_t total = sum_rest(p, span * n_streams, n);
    UNROLL
    for (int j = 0; j < STEP / 2; j++)
        total += vaddvq_u64(sum[j]);
    return total;
}

DEFINE_READ(neon)

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
