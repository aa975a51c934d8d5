/* Row operations for Arm. */
#include "kernel/tiers.h"

void neon_rows_init(kernel_table *table)
{
    (void)table;
}
