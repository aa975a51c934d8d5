/* Matrix kernels for Arm with the dot product instructions (armv8.2-a and later). Float weights
 * stay with NEON. */
#include "kernel/arm/arm.h"

#include "kernel/arm/dot_lanes.h"

enum { PAIRS = 0 };

INLINE void words_dot(int32x4_t (*acc)[TOKEN_TILE], int8x16_t (*w)[4], int32_t n_rows,
                      int32_t n_words, const uint8_t *x, int32_t m, int32_t n_tokens,
                      int32_t fitting)
{
    (void)fitting;
    words_dot_lanes(acc, w, n_rows, n_words, x, m, n_tokens);
}

#include "kernel/arm/matmul_tiles.h"

DEFINE_TILES(dotprod)

void dotprod_matmul_init(kernel_table *table)
{
    limits_dotprod_set(table);
    SET_TILES(table, dotprod);
}
