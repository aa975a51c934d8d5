/* Scalar matrix kernels that other tiers use too: where they have nothing better, or as the tail of
 * their own. */
#pragma once

#include "kernel/packing.h"
#include "kernel/ref/decode.h"

/* Packs a group of any type by its layout. */
bool pack_ref(tensor_type type, void *group, const void *rows, int64_t row_bytes, int32_t n_rows,
              int64_t k);

/* Dequantises row r of a packed group of any type. */
void unpack_row_ref(tensor_type type, float *out, const void *group, int32_t r, int64_t k);

/* Fills quantise[], as the table's shape needs it. */
void quantise_ref_set(kernel_table *table);

/* Fills read, int8_peak and float_peak. */
void limits_ref_set(kernel_table *table);

/* The float tier: dequantised rows times float activations. A fma_row does the sums of one row:
 * sums[t] = fma chain over k, for n rows in ACT_F32 tiles, y[t * ldy] = sums[t]. */
typedef void fma_row(float *y, int64_t ldy, const float *weights, const float *acts, int32_t n,
                     int64_t k);

/* matmul_kernel's dot of any type by a fma_row. scratch: the k floats of a row. */
void dot_float(tensor_type type, fma_row *row, float *y, int64_t ldy, const void *groups,
               int32_t n_groups, const void *acts, int32_t n, int64_t k, void *scratch);

/* Defines dot_<name>_float by a fma_row. */
#define DEFINE_FLOAT_DOT(TYPE, name, row)                                                          \
    static void dot_##name##_float(float *y, int64_t ldy, const void *groups, int32_t n_groups,    \
                                   const void *acts, int32_t n, int64_t k, void *scratch)          \
    {                                                                                              \
        dot_float(TYPE_##TYPE, row, y, ldy, groups, n_groups, acts, n, k, scratch);                \
    }

/* Sets that dot: for KERNEL_TYPES. */
#define SET_FLOAT_DOT(TYPE, name, act_, block_k, block_bytes)                                      \
    table->matmul[TYPE_##TYPE].act = ACT_F32;                                                      \
    table->matmul[TYPE_##TYPE].dot = dot_##name##_float;                                           \
    table->matmul[TYPE_##TYPE].tile = NULL;
