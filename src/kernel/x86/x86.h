/* Parts of the x86 tiers that fill table entries from separate files. */
#pragma once

#include "kernel/packing.h"

typedef struct decoded_step decoded_step; /* kernel/decoded.h */

/* Does what decode_coded does, for the tiers of x86. */
void decode_coded_avx2(decoded_step *to, tensor_type type, const uint8_t *block, int32_t n_blocks);

/* Scratch of the amx tier's dot, any k. */
enum { AMX_SCRATCH_BYTES = 640 << 10 };

/* pack of every type. */
void pack_avx2_set(kernel_table *table);
/* Products of decoded weights: types with blocks of 256, and dot_many of the others. */
void decoded_avx2_set(kernel_table *table);
void decoded_avxvnni_set(kernel_table *table);
/* One row of types with code books, which comes after these. */
void books_avx2_set(kernel_table *table);
void books_avxvnni_set(kernel_table *table);
/* The coded types, after books_avx2_set; vbmi: the processor has AVX512-VBMI. */
void decoded_avx512_set(kernel_table *table, bool vbmi);
/* quantise to ACT_Q8_32 and ACT_Q8_256. */
void quantise_avx2_set(kernel_table *table);
/* read, int8_peak and float_peak. */
void limits_avx2_set(kernel_table *table);
void limits_avx512_set(kernel_table *table);
/* int8_peak alone. */
void limits_avxvnni_set(kernel_table *table);
void limits_amx_set(kernel_table *table);
