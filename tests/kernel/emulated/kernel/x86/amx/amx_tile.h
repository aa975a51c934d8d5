/* Replacement in the test-only build of the amx tier's files: AMX's tiles kept in memory
 * (tests/kernel/emulated/ amx_tile_emulated.c), see src/kernel/x86/amx/amx_tile.h. */
#pragma once

#include "kernel/emulated/amx_tile_emulated.h"

#define TILE_CONFIGURE(config)         emulated_ldtilecfg(config)
#define TILE_RELEASE()                 emulated_tilerelease()
#define TILE_ZERO(tile)                emulated_tilezero(tile)
#define TILE_LOAD(tile, base, stride)  emulated_tileloadd(tile, base, stride)
#define TILE_STORE(tile, base, stride) emulated_tilestored(tile, base, stride)
#define TILE_DOT_SIGNED(c, a, b)       emulated_tdp(c, a, b, true)
#define TILE_DOT_UNSIGNED(c, a, b)     emulated_tdp(c, a, b, false)
