/* Matrix kernels for Arm with the dot product instructions (armv8.2-a and later). Float weights
 * stay with NEON. */
#include "kernel/arm/arm.h"

#include "kernel/arm/dot_lanes.h"

enum { PAIRS = 0, STEP_TOKENS = 8 };

INLINE void words_2(int32x4_t (*acc)[HALF_REGISTERS], int8x16_t (*w)[HALF_REGISTERS],
                    int32_t n_rows, const uint8_t *x, int32_t m, int32_t n_tokens, bool narrow)
{
    (void)narrow;
    words_2_lanes(acc, w, n_rows, x, m, n_tokens);
}

#include "kernel/arm/matmul_tiles.h"

DEFINE_TILES(dotprod)

void dotprod_matmul_init(kernel_table *table)
{
    limits_dotprod_set(table);
    SET_TILES(table, dotprod);
}
