/* Parts of the x86 tiers that fill table entries from separate files. */
#pragma once

#include "kernel/packing.h"

/* Scratch of the amx tier's dot, any k. */
enum { AMX_SCRATCH_BYTES = 640 << 10 };

/* The dot of the avx512 tier in shape 0, which amx uses for few tokens. */
#define DECLARE_DOT_AVX512(TYPE, name, act, block_k, block_bytes)                                  \
    void dot_##name##_avx512(float *y, int64_t ldy, const void *groups, int32_t n_groups,          \
                             const void *acts, int32_t n, int64_t k, void *scratch);
KERNEL_INTEGER_TYPES(DECLARE_DOT_AVX512)
#undef DECLARE_DOT_AVX512

/* pack of every type. */
void pack_avx2_set(kernel_table *table);
/* quantise to ACT_Q8_32 and ACT_Q8_256. */
void quantise_avx2_set(kernel_table *table);
/* read, int8_peak and float_peak. */
void limits_avx2_set(kernel_table *table);
void limits_avx512_set(kernel_table *table);
/* int8_peak alone. */
void limits_avxvnni_set(kernel_table *table);
void limits_amx_set(kernel_table *table);
