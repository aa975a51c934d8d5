/* Matrix kernels, avx512 tier. */
#include "kernel/tiers.h"

void avx512_matmul_init(kernel_table *table)
{
    (void)table;
}
