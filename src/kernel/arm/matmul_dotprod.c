/* Matrix kernels for Arm with the dot product instructions (armv8.2-a and later): four byte
 * products and their sum in one step. Float weights stay with NEON. */
#include "kernel/arm/arm.h"

#include <arm_neon.h>

static inline int32x4_t dot_4x4(int32x4_t acc, int8x16_t w, int8x16_t x)
{
    return vdotq_s32(acc, w, x);
}

#include "kernel/arm/matmul_tiles.h"

DEFINE_TILES(dotprod)

void dotprod_matmul_init(kernel_table *table)
{
    limits_dotprod_set(table);
    SET_TILES(table, dotprod);
}
