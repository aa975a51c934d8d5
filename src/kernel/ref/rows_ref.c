/* Row operations, ref tier. */
#include "kernel/tiers.h"

void ref_rows_init(kernel_table *table)
{
    (void)table;
}
