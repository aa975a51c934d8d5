/* Peaks of Arm's dot product instruction. */
#include "kernel/arm/arm.h"

#include <arm_neon.h>

#include "kernel/peaks/limits.h"

enum { CHAINS = 16 };

DEFINE_PEAK(int8_peak_dotprod, int32x4_t, vdupq_n_s32(0), int8x16_t, vdupq_n_s8(3), vdupq_n_s8(-2),
            vdotq_s32, 16)

void limits_dotprod_set(kernel_table *table)
{
    table->int8_peak = int8_peak_dotprod;
}
