/* The tiers that the numeric tests go through: those that run here, on x86 machines with AVX-512
 * two test-only builds of kernel files that the machine may not be able to run as they are shipped:
 *
 *   "avxvnni (as EVEX)"   the avxvnni tier's files, with AVX512-VNNI's encoding of vpdpbusd and
 *                         vpdpwssd, which does the same to the same registers
 *   "amx (emulated)"      the amx tier's files, with tiles kept in memory
 *
 * then "avx512 (without VBMI)", the tier as it is on processors without those instructions, and the
 * tiers that have shapes (os/cpu_tuning.h) in each of them.
 *
 * The library knows nothing of those builds: they are in none of its tables. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "kernel/emulated/amx_tile_emulated.h"
#include "kernel/kernel.h"

/* Names, best first as in kernel_tiers(), then the test-only ones; NULL at the end. */
const char *const *test_tiers(void);
/* NULL when it is not one of those. */
const kernel_table *test_table(const char *tier);
/* Scratch that is enough for any of them; the test-only ones take as much whatever k is. */
size_t test_scratch_bytes(int64_t k);
size_t test_scratch_least(void);

/* Returns whether this thread's emulated tiles are released. */
bool test_tiles_at_rest(void);
/* Instructions of emulated tiles since the start; none where there is no such tier. */
tile_counts test_tile_counts(void);
