/* Operations of running states in plain C, exactly in the order of arithmetic that delta.h
 * states. */
#include "kernel/delta.h"

#include <math.h>
#include <string.h>

#include "base/fmath.h"

static float silu(float x)
{
    return x / (1.0f + exp_f32(-x));
}

static void conv_ref(float *y, const conv_taps *taps, int64_t n)
{
    for (int64_t c = 0; c < n; c++) {
        float sum = taps->bias ? taps->bias[c] : 0;
        for (int32_t i = 0; i < taps->n_taps; i++)
            sum = fmaf(taps->w[i * taps->ld + c], taps->x[i][c], sum);
        y[c] = taps->silu ? silu(sum) : sum;
    }
}

static float dot(const float *a, const float *b, int64_t n)
{
    float lane[SUM_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % SUM_LANES] = fmaf(a[i], b[i], lane[i % SUM_LANES]);
    return sum16(lane);
}

static void unit_ref(float *y, const float *x, int64_t n, float eps, float factor)
{
    const float scale = factor / sqrtf(dot(x, x, n) + eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * scale;
}

static void gated_norm_ref(float *y, const float *x, const float *w, const float *z, int64_t n,
                           float eps)
{
    const float scale = 1.0f / sqrtf(dot(x, x, n) / (float)n + eps);
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] * scale * w[i] * silu(z[i]);
}

static void rows_ref(float *y, int64_t ldy, const float *x, int64_t ldx, int32_t n, const float *s,
                     int32_t k_dim, int32_t v_dim)
{
    for (int32_t r = 0; r < n; r++)
        for (int32_t j = 0; j < v_dim; j++) {
            float sum = 0;
            for (int32_t i = 0; i < k_dim; i++)
                sum = fmaf(x[r * ldx + i], s[(int64_t)i * v_dim + j], sum);
            y[r * ldy + j] = sum;
        }
}

static void dots_ref(float *y, const float *x, const float *const *k, int32_t n, int32_t k_dim)
{
    for (int32_t t = 0; t < n; t++)
        y[t] = dot(x, k[t], k_dim);
}

static void join_ref(const delta_row *row)
{
    const int32_t n = row->n;
    float e[DELTA_BLOCK + 1];
    for (int32_t t = 0; t <= n; t++)
        e[t] = exp_f32(row->exponent[t]);
    for (int32_t j = 0; j < row->v_dim; j++) {
        float u = e[n] * row->u[j], w = e[n] * row->w[j];
        for (int32_t t = 0; t < n; t++) {
            u = fmaf(e[t] * row->kk[t], row->past[t][j], u);
            w = fmaf(e[t] * row->qk[t], row->past[t][j], w);
        }
        const float d = row->beta * (row->v[j] - u);
        row->d[j] = d;
        row->out[j] = fmaf(row->qk[n], d, w);
    }
}

static void scan_ref(const delta_row *row)
{
    const int32_t n = row->n;
    float e[DELTA_BLOCK + 1];
    for (int32_t t = 0; t <= n; t++)
        e[t] = exp_f32(row->exponent[t]);
    for (int32_t j = 0; j < row->v_dim; j++) {
        float w = e[n] * row->w[j];
        for (int32_t t = 0; t < n; t++)
            w = fmaf(e[t] * row->qk[t], row->past[t][j], w);
        const float d = row->beta * row->v[j];
        row->d[j] = d;
        row->out[j] = fmaf(row->skip, row->v[j], fmaf(row->qk[n], d, w));
    }
}

static void end_ref(float *to, const float *s, const delta_records *b)
{
    float e[DELTA_BLOCK + 1];
    for (int32_t t = 0; t <= b->n; t++)
        e[t] = exp_f32(b->exponent[t]);
    for (int64_t i = 0; i < b->k_dim; i++)
        for (int64_t j = 0; j < b->v_dim; j++) {
            float sum = e[b->n] * s[i * b->v_dim + j];
            for (int32_t t = 0; t < b->n; t++)
                sum = fmaf(e[t] * b->k[t][i], b->d[t][j], sum);
            to[i * b->v_dim + j] = sum;
        }
}

#define MEMBER(op) .op = op##_ref,
const delta_kernel delta_ref = {KERNEL_DELTA(MEMBER)};
#undef MEMBER
