/* Functions that fill the kernel tables. Each tier's function overlays the entries that it does
 * better; what it leaves alone stays as the tier below filled it (table.c holds the ladder). */
#pragma once

#include "kernel/kernel.h"

/* Matrix kernels: matmul[] and quantise[]. */
void ref_matmul_init(kernel_table *table);
void float_matmul_init(kernel_table *table);
void avx2_matmul_init(kernel_table *table);
void avxvnni_matmul_init(kernel_table *table);
void avx512_matmul_init(kernel_table *table);
void amx_matmul_init(kernel_table *table);
void neon_matmul_init(kernel_table *table);
void dotprod_matmul_init(kernel_table *table);
void i8mm_matmul_init(kernel_table *table);

/* The float tier's dot products where FMA is in hardware: the same bits, sooner. */
void float_avx2_matmul_init(kernel_table *table);

/* Row operations: everything else in the table. */
void ref_rows_init(kernel_table *table);
void float_rows_init(kernel_table *table);
void avx2_rows_init(kernel_table *table);
void avx512_rows_init(kernel_table *table);
void neon_rows_init(kernel_table *table);
