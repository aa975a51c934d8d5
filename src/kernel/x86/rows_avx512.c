/* Row operations, avx512 tier. */
#include "kernel/tiers.h"

void avx512_rows_init(kernel_table *table)
{
    (void)table;
}
