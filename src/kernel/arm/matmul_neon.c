/* Matrix kernels for Arm. */
#include "kernel/tiers.h"

void neon_matmul_init(kernel_table *table)
{
    (void)table;
}

void dotprod_matmul_init(kernel_table *table)
{
    (void)table;
}
