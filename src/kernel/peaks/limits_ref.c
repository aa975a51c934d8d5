/* Peaks of plain C: the bottom of every tier's ladder. */
#include "kernel/ref/ref.h"

#include <math.h>

static uint64_t read_ref(const uint64_t *p, int64_t n, int32_t n_streams, int32_t ahead)
{
    (void)ahead;
    uint64_t sum = 0;
    int64_t span = n / n_streams;
    for (int64_t i = 0; i < span; i++)
        for (int32_t s = 0; s < n_streams; s++)
            sum += p[s * span + i];
    for (int64_t i = span * n_streams; i < n; i++)
        sum += p[i];
    return sum;
}

enum { CHAINS = 8 };

/* Each sum is the next round's factor, so that no compiler finds a formula for the loop. */
static int64_t int8_peak_ref(int64_t rounds)
{
    volatile uint32_t start = 3;
    uint32_t sum[CHAINS];
    for (int j = 0; j < CHAINS; j++)
        sum[j] = start + (uint32_t)j;
    for (int64_t i = 0; i < rounds; i++)
        for (int j = 0; j < CHAINS; j++)
            sum[j] = sum[j] * sum[j] + (uint32_t)j;
    for (int j = 0; j < CHAINS; j++)
        start = sum[j];
    return rounds * CHAINS * 2;
}

static int64_t float_peak_ref(int64_t rounds)
{
    volatile float start = 0.5f;
    float sum[CHAINS], factor = start;
    for (int j = 0; j < CHAINS; j++)
        sum[j] = start;
    for (int64_t i = 0; i < rounds; i++)
        for (int j = 0; j < CHAINS; j++)
            sum[j] = fmaf(sum[j], factor, factor);
    for (int j = 0; j < CHAINS; j++)
        start = sum[j];
    return rounds * CHAINS * 2;
}

void limits_ref_set(kernel_table *table)
{
    table->read = read_ref;
    table->int8_peak = int8_peak_ref;
    table->float_peak = float_peak_ref;
}
