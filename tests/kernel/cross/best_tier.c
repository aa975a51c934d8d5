/* Exit status 0 if the best tier here is the one named: best_tier TIER. */
#include <stdio.h>
#include <string.h>

#include "kernel/kernel.h"

int main(int argc, char **argv)
{
    const char *best = kernel_select(NULL)->tier;
    if (argc == 2 && strcmp(best, argv[1]) == 0)
        return 0;
    printf("the best tier here is %s, not %s\n", best, argc == 2 ? argv[1] : "named");
    return 1;
}
