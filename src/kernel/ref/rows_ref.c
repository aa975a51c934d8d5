/* Row operations in plain C, exactly in the order of arithmetic that kernel.h states. The vector
 * tiers are compared with these functions bit by bit; speed does not matter here. */
#include "kernel/tiers.h"

#include <math.h>

#include "base/fmath.h"
#include "kernel/attend.h"
#include "kernel/delta.h"

static void rmsnorm_ref(float *y, const float *x, const float *w, int64_t d, float eps)
{
    float lane[SUM_LANES] = {0};
    for (int64_t i = 0; i < d; i++)
        lane[i % SUM_LANES] = fmaf(x[i], x[i], lane[i % SUM_LANES]);
    float scale = 1.0f / sqrtf(sum16(lane) / (float)d + eps);
    for (int64_t i = 0; i < d; i++)
        y[i] = x[i] * scale * w[i];
}

static void layernorm_ref(float *y, const float *x, const float *w, const float *b, int64_t d,
                          float eps)
{
    float sum[SUM_LANES] = {0}, square[SUM_LANES] = {0};
    for (int64_t i = 0; i < d; i++)
        sum[i % SUM_LANES] += x[i];
    float mean = sum16(sum) / (float)d;
    for (int64_t i = 0; i < d; i++)
        square[i % SUM_LANES] = fmaf(x[i] - mean, x[i] - mean, square[i % SUM_LANES]);
    float scale = 1.0f / sqrtf(sum16(square) / (float)d + eps);
    for (int64_t i = 0; i < d; i++)
        y[i] = (x[i] - mean) * scale * w[i] + b[i];
}

static void rope_ref(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                     int32_t n_pairs, bool neox)
{
    int32_t step = neox ? 1 : 2, apart = neox ? n_pairs : 1;
    for (int32_t h = 0; h < n_heads; h++) {
        float *head = x + (int64_t)h * head_dim;
        for (int32_t i = 0; i < n_pairs; i++) {
            float c = cos_sin[2 * i], s = cos_sin[2 * i + 1];
            float a = head[i * step], b = head[i * step + apart];
            head[i * step] = fmaf(a, c, -(b * s));
            head[i * step + apart] = fmaf(a, s, b * c);
        }
    }
}

static void swiglu_ref(float *y, const float *gate, const float *up, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = gate[i] / (1.0f + exp_f32(-gate[i])) * up[i];
}

static void geglu_ref(float *y, const float *gate, const float *up, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        float x = gate[i], v = x * fmaf(x * x, GELU_F32_CUBIC, GELU_F32_LINEAR);
        float gelu = x / (1.0f + exp_f32(-v));
        y[i] = up ? gelu * up[i] : gelu;
    }
}

static void gelu_ref(float *y, const float *x, int64_t n)
{
    static const float c[] = {GELU_F32_C5, GELU_F32_C4, GELU_F32_C3,
                              GELU_F32_C2, GELU_F32_C1, GELU_F32_C0};
    for (int64_t i = 0; i < n; i++) {
        float a = fabsf(x[i]), t = 1.0f / fmaf(a, GELU_F32_T, 1.0f), p = GELU_F32_C6;
        for (size_t j = 0; j < sizeof c / sizeof *c; j++)
            p = fmaf(p, t, c[j]);
        float q = p * t * exp_f32(x[i] * (x[i] * -0.5f));
        y[i] = (x[i] > 0.0f ? x[i] : 0.0f) - a * q;
    }
}

static void gate_ref(float *y, const float *x, const float *gate, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = x[i] / (1.0f + exp_f32(-gate[i]));
}

static void softcap_ref(float *y, int64_t n, float cap)
{
    float factor = 2.0f / cap;
    for (int64_t i = 0; i < n; i++)
        y[i] = cap - 2.0f * cap / (1.0f + exp_f32(y[i] * factor));
}

static void add_ref(float *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += x[i];
}

static void to_f16_ref(uint16_t *y, const float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = f32_to_f16(x[i]);
}

static void from_f16_ref(float *y, const uint16_t *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = f16_to_f32(x[i]);
}

static int64_t arg_max_ref(const float *x, int64_t n)
{
    int64_t best = -1;
    for (int64_t i = 0; i < n; i++) {
        if (x[i] == x[i] && (best < 0 || x[i] > x[best]))
            best = i;
    }
    return best < 0 ? 0 : best;
}

static float sum_exp_ref(const float *x, int64_t n, float shift, float factor)
{
    float lane[SUM_LANES] = {0};
    for (int64_t i = 0; i < n; i++)
        lane[i % SUM_LANES] += exp_f32((x[i] - shift) * factor);
    return sum16(lane);
}

void ref_rows_init(kernel_table *table)
{
#define SET_ROW(op) table->op = op##_ref;
    KERNEL_ROWS(SET_ROW)
#undef SET_ROW
    table->kv_plain = KV_F16;
    table->attend = &attend_ref;
    table->delta = &delta_ref;
}

/* Keys and values are activations too: on the float tier they stay float unless the cache is to be
 * q8_0. */
void float_rows_init(kernel_table *table)
{
    table->kv_plain = KV_F32;
    table->attend = &attend_ref;
}
