/* AMX's tiles in plain C, after the instruction pages of Intel's manual (volume 2: LDTILECFG,
 * TILELOADD, TILESTORED, TILEZERO, TDPBSSD, TDPBSUD, TILERELEASE), palette 1.
 *
 * What the processor answers with a fault fails the running test: a bad configuration, the use of
 * tiles that are not configured, shapes that do not match, one tile for two operands. Each thread
 * has its own tiles, as in the processor. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The 64 bytes that ldtilecfg reads. */
typedef struct tile_config {
    uint8_t palette;
    uint8_t start_row;
    uint8_t reserved[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tile_config;

void emulated_ldtilecfg(const tile_config *config);
void emulated_tilerelease(void);
void emulated_tilezero(int tile);
void emulated_tileloadd(int tile, const void *base, int64_t stride);
void emulated_tilestored(int tile, void *base, int64_t stride);
/* TDPBSSD where b_signed, else TDPBSUD: c, a, b as the manual's tmm1, tmm2, tmm3. */
void emulated_tdp(int c, int a, int b, bool b_signed);

/* Returns whether this thread's tiles are configured: a kernel must leave them released. */
bool emulated_tiles_in_use(void);
/* Since the program's start, all threads. */
typedef struct tile_counts {
    uint64_t products, loads, stores;
} tile_counts;
tile_counts emulated_tile_counts(void);
