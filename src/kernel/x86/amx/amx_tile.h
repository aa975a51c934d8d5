/* AMX's tile instructions, as the amx tier uses them. Tiles are numbered by literals.
 *
 * Written as assembly because the compilers' intrinsics promise too little about memory: gcc 12's
 * _tile_loadconfig declares 8 of the 64 bytes as read, its _tile_loadd none, so that stores to them
 * may be moved after it. Here configuring reads all of the configuration, and loads and stores of
 * tiles are in order with every other access to memory.
 *
 * The tests compile the tier's files a second time with a header of this name that keeps tiles in
 * memory (tests/kernel/emulated), so that the kernels are checked on machines without AMX too. */
#pragma once

#include <stdint.h>

/* Operand of ldtilecfg, 64 bytes. */
typedef struct tile_config {
    uint8_t palette; /* 1 */
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16]; /* bytes of a row of tiles 0 .. 7; the rest zero */
    uint8_t rows[16];
} tile_config;

_Static_assert(sizeof(tile_config) == 64, "as ldtilecfg reads it");

/* Configures this thread's tiles and zeroes them. */
#define TILE_CONFIGURE(config) __asm__ volatile("ldtilecfg %0" : : "m"(*(config)) : "memory")
/* Back to the initial state: no tiles, nothing to save on a task switch. */
#define TILE_RELEASE() __asm__ volatile("tilerelease" : : : "memory")

#define TILE_ZERO(tile) __asm__ volatile("tilezero %%tmm" #tile : :)

/* Row r of the tile from or to base + r * stride. */
#define TILE_LOAD(tile, base, stride)                                                              \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile                                            \
                     :                                                                             \
                     : "r"((const void *)(base)), "r"((int64_t)(stride))                           \
                     : "memory")
#define TILE_STORE(tile, base, stride)                                                             \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)"                                        \
                     :                                                                             \
                     : "r"((void *)(base)), "r"((int64_t)(stride))                                 \
                     : "memory")

/* c[m][n] += sum over k of a[m][k] * b[k / 4][n][k % 4], int32; a signed, b signed or unsigned. */
#define TILE_DOT_SIGNED(c, a, b) __asm__ volatile("tdpbssd %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
#define TILE_DOT_UNSIGNED(c, a, b)                                                                 \
    __asm__ volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #c : :)
