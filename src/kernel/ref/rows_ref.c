/* Row operations in plain C, exactly in the order of arithmetic that kernel.h states. The vector
 * tiers are held against these functions bit by bit; speed does not matter here. */
#include "kernel/tiers.h"

#include <math.h>

#include "base/fmath.h"

static void rmsnorm_ref(float *y, const float *x, const float *w, int64_t d, float eps)
{
    float lane[SUM_LANES] = {0};
    for (int64_t i = 0; i < d; i++)
        lane[i % SUM_LANES] = fmaf(x[i], x[i], lane[i % SUM_LANES]);
    float scale = 1.0f / sqrtf(sum16(lane) / (float)d + eps);
    for (int64_t i = 0; i < d; i++)
        y[i] = x[i] * scale * w[i];
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

/* One query head's softmax so far: the blocks that were folded. */
typedef struct head_state {
    float max, sum; /* m and l */
    float *acc;     /* a [head_dim] */
} head_state;

/* A number of the cache: f16, or float. */
static float number(const void *numbers, int64_t i, bool half)
{
    return half ? f16_to_f32(((const uint16_t *)numbers)[i]) : ((const float *)numbers)[i];
}

static float qk_ref(const float *q, const void *keys, int64_t row, bool half, int32_t head_dim)
{
    float lane[SUM_LANES] = {0};
    for (int32_t i = 0; i < head_dim; i++)
        lane[i % SUM_LANES] = fmaf(q[i], number(keys, row + i, half), lane[i % SUM_LANES]);
    return sum16(lane);
}

/* Folds one block's m_b, l_b, a_b into the state. */
static void fold_ref(head_state *s, float block_max, float block_sum, const float *block_acc,
                     int32_t head_dim, bool first)
{
    if (first) {
        s->max = block_max;
        s->sum = block_sum;
        for (int32_t i = 0; i < head_dim; i++)
            s->acc[i] = block_acc[i];
        return;
    }
    float max = block_max > s->max ? block_max : s->max;
    float c = exp_f32(s->max - max), c_block = exp_f32(block_max - max);
    s->max = max;
    s->sum = fmaf(s->sum, c, block_sum * c_block);
    for (int32_t i = 0; i < head_dim; i++)
        s->acc[i] = fmaf(s->acc[i], c, block_acc[i] * c_block);
}

/* One block of count keys whose rows start at row[j]; p[count] and block_acc[head_dim] are scratch.
 */
static void attend_block_ref(head_state *state, const float *q, const void *keys,
                             const void *values, bool half, const int64_t *row, int32_t count,
                             int32_t head_dim, float scale, bool first, float *p, float *block_acc)
{
    float block_max = -INFINITY, block_sum = 0;
    for (int32_t j = 0; j < count; j++) {
        p[j] = scale * qk_ref(q, keys, row[j], half, head_dim);
        block_max = p[j] > block_max ? p[j] : block_max;
    }
    for (int32_t i = 0; i < head_dim; i++)
        block_acc[i] = 0;
    for (int32_t j = 0; j < count; j++) {
        p[j] = exp_f32(p[j] - block_max);
        block_sum += p[j];
        for (int32_t i = 0; i < head_dim; i++)
            block_acc[i] = fmaf(p[j], number(values, row[j] + i, half), block_acc[i]);
    }
    fold_ref(state, block_max, block_sum, block_acc, head_dim, first);
}

static void attend_any(float *out, const float *q, const void *keys, const void *values, bool half,
                       int32_t n_prefix, const int32_t *path, int32_t n_path, int32_t n_q,
                       int32_t head_dim, float scale, float *scratch)
{
    int32_t n = n_prefix + n_path;
    for (int32_t h = 0; h < n_q; h++) {
        const float *head_q = q + (int64_t)h * head_dim;
        head_state state = {.acc = out + (int64_t)h * head_dim};
        for (int32_t start = 0; start < n; start += ATTEND_BLOCK) {
            int32_t count = n - start < ATTEND_BLOCK ? n - start : ATTEND_BLOCK;
            int64_t row[ATTEND_BLOCK];
            for (int32_t j = 0, pos = start; j < count; j++, pos++)
                row[j] = (int64_t)(pos < n_prefix ? pos : path[pos - n_prefix]) * head_dim;
            attend_block_ref(&state, head_q, keys, values, half, row, count, head_dim, scale,
                             start == 0, scratch + head_dim, scratch);
        }
        float inverse = 1.0f / state.sum;
        for (int32_t i = 0; i < head_dim; i++)
            state.acc[i] *= inverse;
    }
}

static void attend_ref(float *out, const float *q, const void *keys, const void *values,
                       int32_t n_prefix, const int32_t *path, int32_t n_path, int32_t n_q,
                       int32_t head_dim, float scale, float *scratch)
{
    attend_any(out, q, keys, values, true, n_prefix, path, n_path, n_q, head_dim, scale, scratch);
}

static void attend_float(float *out, const float *q, const void *keys, const void *values,
                         int32_t n_prefix, const int32_t *path, int32_t n_path, int32_t n_q,
                         int32_t head_dim, float scale, float *scratch)
{
    attend_any(out, q, keys, values, false, n_prefix, path, n_path, n_q, head_dim, scale, scratch);
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
    table->rmsnorm = rmsnorm_ref;
    table->rope = rope_ref;
    table->swiglu = swiglu_ref;
    table->add = add_ref;
    table->to_f16 = to_f16_ref;
    table->from_f16 = from_f16_ref;
    table->kv_number_bytes = 2;
    table->attend = attend_ref;
    table->arg_max = arg_max_ref;
    table->sum_exp = sum_exp_ref;
}

/* Keys and values are activations too: on the float tier they stay float. */
void float_rows_init(kernel_table *table)
{
    table->kv_number_bytes = 4;
    table->attend = attend_float;
}
