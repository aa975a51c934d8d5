/* Activations into tiles (packing.h), in plain C. */
#include "kernel/ref/ref.h"

#include <math.h>

#include "kernel/quantise_rows.h"
#include "os/cpu_tuning.h"

/* Largest |x|; NaN is passed over, here and in every tier. */
static float amax_of(const float *x, int32_t n)
{
    float amax = 0;
    for (int32_t i = 0; i < n; i++)
        amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
    return amax;
}

/* rint(x * inverse) in [-127, 127]; NaN becomes -127 (as maxps would have it). */
static int8_t q_of(float x, float inverse)
{
    float v = x * inverse;
    v = v > -127.0f ? v : -127.0f;
    v = v < 127.0f ? v : 127.0f;
    return (int8_t)lrintf(v);
}

/* Quantises n numbers into words (4 numbers) that are m words apart. */
static void words_store(uint8_t *words, const float *x, float inverse, int32_t n, int32_t m)
{
    for (int32_t i = 0; i < n; i++) {
        int8_t q = q_of(x[i], inverse);
        memcpy(words + (ptrdiff_t)(i / 4) * m * 4 + i % 4, &q, 1);
    }
}

/* Sum of n quantised numbers in words m apart. */
static int32_t words_sum(const uint8_t *words, int32_t n, int32_t m)
{
    int32_t sum = 0;
    for (int32_t i = 0; i < n; i++)
        sum += (int8_t)words[(ptrdiff_t)(i / 4) * m * 4 + i % 4];
    return sum;
}

static void block_32(uint8_t *block, const float *x, int32_t t, int32_t m)
{
    float amax = amax_of(x, 32);
    float d = amax / 127.0f, inverse = inverse_or_zero(&d, 127.0f / amax);
    uint8_t *words = block + t * 4;
    words_store(words, x, inverse, 32, m);
    int32_t sum = words_sum(words, 32, m);
    memcpy(block + ACT_32_D * m + t * 4, &d, 4);
    memcpy(block + ACT_32_SUM * m + t * 4, &sum, 4);
}

/* d of a block of 256: see ACT_Q8_256 in kernel.h. */
static float scale_256(const float *x)
{
    float d = amax_of(x, 256) / 127.0f;
    for (int32_t s = 0; s < 8; s++) {
        float sum = 0;
        for (int32_t i = 0; i < 32; i++)
            sum += fabsf(x[s * 32 + i]);
        float bound = sum / 2167.0f;
        d = bound > d ? bound : d;
    }
    return d;
}

static void block_256(uint8_t *block, const float *x, int32_t t, int32_t m)
{
    float d = scale_256(x);
    float inverse = inverse_or_zero(&d, 1.0f / d);
    uint8_t *words = block + t * 4;
    words_store(words, x, inverse, 256, m);
    int32_t sum16[16];
    for (int32_t s = 0; s < 16; s++)
        sum16[s] = words_sum(words + (ptrdiff_t)s * 4 * m * 4, 16, m);
    scale_and_sums_store(block, d, sum16, t, m);
}

static inline void block_1(uint8_t *block, const float *x, int32_t t, int32_t m)
{
    (void)m;
    memcpy(block + t * 4, x, sizeof *x);
}

DEFINE_QUANTISE(f32, 1, F32, block_1, _ref, false)
DEFINE_QUANTISE(q8_32, 32, Q8_32, block_32, _ref, false)
DEFINE_QUANTISE(q8_256, 256, Q8_256, block_256, _ref, false)
DEFINE_QUANTISE(f32, 1, F32, block_1, _even_ref, true)
DEFINE_QUANTISE(q8_32, 32, Q8_32, block_32, _even_ref, true)
DEFINE_QUANTISE(q8_256, 256, Q8_256, block_256, _even_ref, true)

void quantise_ref_set(kernel_table *table)
{
    bool even = table->shape & SHAPE_LINES;
    table->quantise[ACT_F32] = even ? quantise_f32_even_ref : quantise_f32_ref;
    table->quantise[ACT_Q8_32] = even ? quantise_q8_32_even_ref : quantise_q8_32_ref;
    table->quantise[ACT_Q8_256] = even ? quantise_q8_256_even_ref : quantise_q8_256_ref;
}
