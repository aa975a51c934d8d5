/* The AVX2 tier's matrix kernels. */
#include "kernel/tiers.h"

#include "kernel/x86/x86.h"

void avx2_matmul_init(kernel_table *table)
{
    pack_avx2_set(table);
    quantise_avx2_set(table);
}

void float_avx2_matmul_init(kernel_table *table)
{
    (void)table;
}
