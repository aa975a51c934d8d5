/* Matrix kernels, ref tier. */
#include "kernel/tiers.h"

void ref_matmul_init(kernel_table *table)
{
    (void)table;
}

void float_matmul_init(kernel_table *table)
{
    (void)table;
}
