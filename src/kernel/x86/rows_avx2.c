/* Row operations, avx2 tier. */
#include "kernel/tiers.h"

void avx2_rows_init(kernel_table *table)
{
    (void)table;
}
