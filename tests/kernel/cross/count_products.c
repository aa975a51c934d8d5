/* One matrix product per tier, type and number of rows, between two calls of count_mark:
 * scripts/count-arm.py counts what an emulator executes between those. What the operands hold
 * changes no instruction, so they are zeros. Prints the cases in order: tier, type, rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/packing.h"

enum { COUNT_K = 1024, MOST_ROWS = 64 };

typedef struct counted_type {
    tensor_type type;
    const char *name;
} counted_type;

#define ENTRY(TYPE, name, act, block_k, block_bytes) {TYPE_##TYPE, #TYPE},
static const counted_type types[] = {KERNEL_INTEGER_TYPES(ENTRY)};
#undef ENTRY
static const int32_t row_counts[] = {1, 8, 64};

/* Executed before and after each product. */
__attribute__((noinline)) static void count_mark(void)
{
    __asm__ volatile("nop" ::: "memory");
}

static void *zeros(size_t bytes)
{
    bytes = (bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, bytes);
    if (!p)
        exit(1);
    return memset(p, 0, bytes);
}

int main(int argc, char **argv)
{
    size_t weight_bytes = (size_t)COUNT_K * GROUP_ROWS * 4;
    void *weights = zeros(weight_bytes), *acts = zeros(weight_bytes * 2);
    void *scratch = zeros(dot_scratch_bytes(COUNT_K));
    float *y = zeros(MOST_ROWS * GROUP_ROWS * sizeof(float));
    for (int i = 1; i < argc; i++) {
        const kernel_table *kernels = kernel_select(argv[i]);
        if (!kernels)
            return 1;
        for (size_t t = 0; t < sizeof types / sizeof *types; t++)
            for (size_t r = 0; r < sizeof row_counts / sizeof *row_counts; r++) {
                const matmul_kernel *m = &kernels->matmul[types[t].type];
                count_mark();
                matmul_dot(m, y, GROUP_ROWS, weights, 1, acts, row_counts[r], COUNT_K, scratch);
                count_mark();
                printf("%s %s %d\n", kernels->tier, types[t].name, (int)row_counts[r]);
            }
    }
    return 0;
}
