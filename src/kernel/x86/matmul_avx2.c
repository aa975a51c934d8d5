/* Matrix kernels, avx2 tier. */
#include "kernel/tiers.h"

void avx2_matmul_init(kernel_table *table)
{
    (void)table;
}

void float_avx2_matmul_init(kernel_table *table)
{
    (void)table;
}
