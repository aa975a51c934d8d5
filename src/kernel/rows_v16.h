/* The row operations on any vector unit, in the order of arithmetic that kernel.h states: the
 * contract's 16 lanes are a v16 (v16.h). Whole vectors first; what is left over is one more step
 * with the first lanes. Included by rows_*.c, one a tier, after the tier's v16_*.h. */
#pragma once

#include <math.h>

#include "kernel/kernel.h"
#include "kernel/v16.h"

INLINE v16 squares_16(const float *x, v16 mean, v16 sum, int32_t n)
{
    v16 v = keep_some(v16_sub(load_some(x, n), mean), n);
    return v16_fma(v, v, sum);
}

static void rmsnorm_v16(float *y, const float *x, const float *w, int64_t d, float eps)
{
    v16 sum = v16_zero();
    EACH_16(d, sum = v16_fma(load_some(x + i, m), load_some(x + i, m), sum));
    const v16 scale = v16_set1(1.0f / sqrtf(v16_sum(sum) / (float)d + eps));
    EACH_16(
        d, store_some(y + i, v16_mul(v16_mul(load_some(x + i, m), scale), load_some(w + i, m)), m));
}

static void layernorm_v16(float *y, const float *x, const float *w, const float *b, int64_t d,
                          float eps)
{
    v16 sum = v16_zero(), square = v16_zero();
    EACH_16(d, sum = v16_add(sum, load_some(x + i, m)));
    const v16 mean = v16_set1(v16_sum(sum) / (float)d);
    EACH_16(d, square = squares_16(x + i, mean, square, m));
    const v16 scale = v16_set1(1.0f / sqrtf(v16_sum(square) / (float)d + eps));
    EACH_16(d, v16 v = v16_mul(v16_sub(load_some(x + i, m), mean), scale);
            v = v16_mul(v, load_some(w + i, m));
            store_some(y + i, v16_add(v, load_some(b + i, m)), m));
}

static void swiglu_v16(float *y, const float *gate, const float *up, int64_t n)
{
    EACH_16(n, v16 x = load_some(gate + i, m);
            store_some(y + i, v16_mul(gated(x, x), load_some(up + i, m)), m));
}

INLINE v16 gelu_16(v16 x)
{
    v16 v = v16_fma(v16_mul(x, x), v16_set1(GELU_F32_CUBIC), v16_set1(GELU_F32_LINEAR));
    return gated(x, v16_mul(x, v));
}

static void geglu_v16(float *y, const float *gate, const float *up, int64_t n)
{
    EACH_16(n, v16 v = gelu_16(load_some(gate + i, m));
            store_some(y + i, up ? v16_mul(v, load_some(up + i, m)) : v, m));
}

INLINE v16 gelu_tail_16(v16 a, v16 square)
{
    const v16 one = v16_set1(1.0f);
    v16 t = v16_div(one, v16_fma(a, v16_set1(GELU_F32_T), one)), p = v16_set1(GELU_F32_C6);
    p = v16_fma(p, t, v16_set1(GELU_F32_C5));
    p = v16_fma(p, t, v16_set1(GELU_F32_C4));
    p = v16_fma(p, t, v16_set1(GELU_F32_C3));
    p = v16_fma(p, t, v16_set1(GELU_F32_C2));
    p = v16_fma(p, t, v16_set1(GELU_F32_C1));
    p = v16_fma(p, t, v16_set1(GELU_F32_C0));
    return v16_mul(v16_mul(p, t), v16_exp(square));
}

static void gelu_v16(float *y, const float *x, int64_t n)
{
    EACH_16(n, v16 v = load_some(x + i, m); const v16 a = v16_max(v, v16_neg(v));
            v16 q = gelu_tail_16(a, v16_mul(v, v16_mul(v, v16_set1(-0.5f))));
            store_some(y + i, v16_sub(v16_max(v, v16_zero()), v16_mul(a, q)), m));
}

static void gate_v16(float *y, const float *x, const float *gate, int64_t n)
{
    EACH_16(n, store_some(y + i, gated(load_some(x + i, m), load_some(gate + i, m)), m));
}

static void softcap_v16(float *y, int64_t n, float cap)
{
    const v16 factor = v16_set1(2.0f / cap), one = v16_set1(1.0f);
    const v16 c = v16_set1(cap), twice = v16_set1(2.0f * cap);
    EACH_16(n, v16 e = v16_exp(v16_mul(load_some(y + i, m), factor));
            store_some(y + i, v16_sub(c, v16_div(twice, v16_add(one, e))), m));
}

static void add_v16(float *y, const float *x, int64_t n)
{
    EACH_16(n, store_some(y + i, v16_add(load_some(y + i, m), load_some(x + i, m)), m));
}

static void to_f16_v16(uint16_t *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        v16_to_f16(y + i, v16_load(x + i));
    if (i < n)
        v16_to_f16_first(y + i, v16_load_first(x + i, (int32_t)(n - i)), (int32_t)(n - i));
}

static void from_f16_v16(float *y, const uint16_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 16 <= n; i += 16)
        v16_store(y + i, v16_f16(x + i));
    if (i < n)
        v16_store_first(y + i, v16_f16_first(x + i, (int32_t)(n - i)), (int32_t)(n - i));
}

/* The largest value first (NaN is passed over), then where it is first found. */
static int64_t arg_max_v16(const float *x, int64_t n)
{
    v16 best = v16_set1(-INFINITY), best2 = best;
    int64_t i = 0;
    for (; i + 32 <= n; i += 32) {
        best = v16_max(v16_load(x + i), best);
        best2 = v16_max(v16_load(x + i + 16), best2);
    }
    float top = v16_max_of(v16_max(best, best2));
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (i = 0; i + 16 <= n; i += 16) {
        uint32_t found = v16_equal(v16_load(x + i), v16_set1(top));
        if (found)
            return i + __builtin_ctz(found);
    }
    for (; i < n; i++)
        if (x[i] == top)
            return i;
    return 0; /* nothing but NaN */
}

static float sum_exp_v16(const float *x, int64_t n, float shift, float factor)
{
    const v16 s = v16_set1(shift), f = v16_set1(factor);
    v16 sum = v16_zero();
    EACH_16(n, v16 e = v16_exp(v16_mul(v16_sub(load_some(x + i, m), s), f));
            sum = v16_add(sum, keep_some(e, m)));
    return v16_sum(sum);
}

/* All of KERNEL_ROWS; rope is the tier's own rope_v16. */
#define ROWS_SET(table)                                                                            \
    do {                                                                                           \
        KERNEL_ROWS(ROW_SET)                                                                       \
    } while (0)
#define ROW_SET(op) table->op = op##_v16;
