/* Peaks of AMX's tiles; reading and floats are AVX-512's. */
#include "kernel/x86/x86.h"

#include <string.h>

#include "kernel/x86/amx/amx_tile.h"

enum { CHAINS = 6, TILE_OPS = 16 * 16 * 64 * 2 };

/* C in tiles 0 .. 5, so that no product waits for the one before in the same C. */
static const tile_config config = {
    .palette = 1,
    .row_bytes = {64, 64, 64, 64, 64, 64, 64, 64},
    .rows = {16, 16, 16, 16, 16, 16, 16, 16},
};

/* Operands are not zero: a Xeon (family 6, model 207) multiplies zeros a quarter faster. */
static int64_t int8_peak_amx(int64_t rounds)
{
    _Alignas(64) uint8_t operand[1024];
    memset(operand, 0x35, sizeof operand);
    TILE_CONFIGURE(&config);
    TILE_LOAD(6, operand, 64);
    TILE_LOAD(7, operand, 64);
    for (int64_t i = 0; i < rounds; i++) {
        TILE_DOT_SIGNED(0, 6, 7);
        TILE_DOT_SIGNED(1, 6, 7);
        TILE_DOT_SIGNED(2, 6, 7);
        TILE_DOT_SIGNED(3, 6, 7);
        TILE_DOT_SIGNED(4, 6, 7);
        TILE_DOT_SIGNED(5, 6, 7);
    }
    TILE_RELEASE();
    return rounds * CHAINS * TILE_OPS;
}

void limits_amx_set(kernel_table *table)
{
    table->int8_peak = int8_peak_amx;
}
