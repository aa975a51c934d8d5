/* Declarations that the files of Arm's tiers share. */
#pragma once

#include "kernel/tiers.h"

/* Sets pack of every type. */
void pack_neon_set(kernel_table *table);
/* Set read, int8_peak and float_peak; int8_peak. */
void limits_neon_set(kernel_table *table);
void limits_dotprod_set(kernel_table *table);
void limits_i8mm_set(kernel_table *table);

/* Sets the quantisers of both 8-bit kinds. */
void quantise_neon_set(kernel_table *table);
