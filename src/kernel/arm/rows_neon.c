/* Row operations, NEON: four registers are the contract's 16 lanes; what is left over runs through
 * the scalar formulas, which have the same bits. */

#include "kernel/arm/arm.h"
#include "kernel/arm/math_neon.h"
#include "kernel/attend.h"
#include "kernel/unroll.h"

static void rmsnorm_neon(float *y, const float *x, const float *w, int64_t d, float eps)
{
    float lane[SUM_LANES] = {0};
    v16 sum = zero_16();
    int64_t i = 0;
    for (; i + 16 <= d; i += 16) {
        v16 a = load_16(x + i);
        UNROLL
        for (int j = 0; j < 4; j++)
            sum.v[j] = vfmaq_f32(sum.v[j], a.v[j], a.v[j]);
    }
    for (int j = 0; j < 4; j++)
        vst1q_f32(lane + 4 * j, sum.v[j]);
    for (; i < d; i++)
        lane[i % SUM_LANES] = fmaf(x[i], x[i], lane[i % SUM_LANES]);
    float scale = 1.0f / sqrtf(sum16(lane) / (float)d + eps);
    for (i = 0; i + 4 <= d; i += 4)
        vst1q_f32(y + i, vmulq_f32(vmulq_n_f32(vld1q_f32(x + i), scale), vld1q_f32(w + i)));
    for (; i < d; i++)
        y[i] = x[i] * scale * w[i];
}

/* The 16 lanes' sums of x, or (squares) of the squares of x - shift. */
static float lane_sums(const float *x, int64_t d, float shift, bool squares)
{
    float lane[SUM_LANES] = {0};
    v16 sum = zero_16();
    int64_t i = 0;
    for (; i + 16 <= d; i += 16) {
        v16 a = load_16(x + i);
        UNROLL
        for (int j = 0; j < 4; j++) {
            float32x4_t v = squares ? vsubq_f32(a.v[j], vdupq_n_f32(shift)) : a.v[j];
            sum.v[j] = squares ? vfmaq_f32(sum.v[j], v, v) : vaddq_f32(sum.v[j], v);
        }
    }
    for (int j = 0; j < 4; j++)
        vst1q_f32(lane + 4 * j, sum.v[j]);
    for (; i < d; i++) {
        float *to = &lane[i % SUM_LANES];
        *to = squares ? fmaf(x[i] - shift, x[i] - shift, *to) : *to + x[i];
    }
    return sum16(lane);
}

static void layernorm_neon(float *y, const float *x, const float *w, const float *b, int64_t d,
                           float eps)
{
    float mean = lane_sums(x, d, 0, false) / (float)d;
    float scale = 1.0f / sqrtf(lane_sums(x, d, mean, true) / (float)d + eps);
    int64_t i = 0;
    for (; i + 4 <= d; i += 4) {
        float32x4_t v = vmulq_n_f32(vsubq_f32(vld1q_f32(x + i), vdupq_n_f32(mean)), scale);
        vst1q_f32(y + i, vaddq_f32(vmulq_f32(v, vld1q_f32(w + i)), vld1q_f32(b + i)));
    }
    for (; i < d; i++)
        y[i] = (x[i] - mean) * scale * w[i] + b[i];
}

/* One pair in the scalar form. */
static inline void rotate(float *a, float *b, float c, float s)
{
    float x = *a, y = *b;
    *a = fmaf(x, c, -(y * s));
    *b = fmaf(x, s, y * c);
}

static inline void rotate_4(float32x4_t *a, float32x4_t *b, float32x4_t c, float32x4_t s)
{
    float32x4_t x = *a, y = *b;
    *a = vfmaq_f32(vnegq_f32(vmulq_f32(y, s)), x, c);
    *b = vfmaq_f32(vmulq_f32(y, c), x, s);
}

static void rope_neon(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim,
                      int32_t n_pairs, bool neox)
{
    for (int32_t h = 0; h < n_heads; h++) {
        float *head = x + (int64_t)h * head_dim;
        int32_t i = 0;
        for (; i + 4 <= n_pairs; i += 4) {
            float32x4x2_t cs = vld2q_f32(cos_sin + 2 * i);
            if (neox) {
                float32x4_t a = vld1q_f32(head + i), b = vld1q_f32(head + n_pairs + i);
                rotate_4(&a, &b, cs.val[0], cs.val[1]);
                vst1q_f32(head + i, a);
                vst1q_f32(head + n_pairs + i, b);
            } else {
                float32x4x2_t ab = vld2q_f32(head + 2 * i);
                rotate_4(&ab.val[0], &ab.val[1], cs.val[0], cs.val[1]);
                vst2q_f32(head + 2 * i, ab);
            }
        }
        for (; i < n_pairs; i++) {
            float *a = neox ? head + i : head + 2 * i, *b = neox ? a + n_pairs : a + 1;
            rotate(a, b, cos_sin[2 * i], cos_sin[2 * i + 1]);
        }
    }
}

static void swiglu_neon(float *y, const float *gate, const float *up, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t g = vld1q_f32(gate + i);
        float32x4_t v = vdivq_f32(g, vaddq_f32(vdupq_n_f32(1.0f), exp_neon(vnegq_f32(g))));
        vst1q_f32(y + i, vmulq_f32(v, vld1q_f32(up + i)));
    }
    for (; i < n; i++)
        y[i] = gate[i] / (1.0f + exp_f32(-gate[i])) * up[i];
}

static inline float32x4_t gelu_4(float32x4_t x)
{
    float32x4_t v =
        vfmaq_f32(vdupq_n_f32(GELU_F32_LINEAR), vmulq_f32(x, x), vdupq_n_f32(GELU_F32_CUBIC));
    float32x4_t e = exp_neon(vnegq_f32(vmulq_f32(x, v)));
    return vdivq_f32(x, vaddq_f32(vdupq_n_f32(1.0f), e));
}

static void geglu_neon(float *y, const float *gate, const float *up, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t v = gelu_4(vld1q_f32(gate + i));
        vst1q_f32(y + i, up ? vmulq_f32(v, vld1q_f32(up + i)) : v);
    }
    for (; i < n; i++) {
        float x = gate[i], v = x * fmaf(x * x, GELU_F32_CUBIC, GELU_F32_LINEAR);
        float gelu = x / (1.0f + exp_f32(-v));
        y[i] = up ? gelu * up[i] : gelu;
    }
}

static void softcap_neon(float *y, int64_t n, float cap)
{
    float factor = 2.0f / cap;
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        float32x4_t e = exp_neon(vmulq_n_f32(vld1q_f32(y + i), factor));
        e = vdivq_f32(vdupq_n_f32(2.0f * cap), vaddq_f32(vdupq_n_f32(1.0f), e));
        vst1q_f32(y + i, vsubq_f32(vdupq_n_f32(cap), e));
    }
    for (; i < n; i++)
        y[i] = cap - 2.0f * cap / (1.0f + exp_f32(y[i] * factor));
}

static void add_neon(float *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, vaddq_f32(vld1q_f32(y + i), vld1q_f32(x + i)));
    for (; i < n; i++)
        y[i] += x[i];
}

static void to_f16_neon(uint16_t *y, const float *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1_u16(y + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(x + i))));
    for (; i < n; i++)
        y[i] = f32_to_f16(x[i]);
}

static void from_f16_neon(float *y, const uint16_t *x, int64_t n)
{
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        vst1q_f32(y + i, load_f16x4(x + i));
    for (; i < n; i++)
        y[i] = f16_to_f32(x[i]);
}

/* The largest value first (maxnm passes over NaN), then where it is first found. */
static int64_t arg_max_neon(const float *x, int64_t n)
{
    float32x4_t best = vdupq_n_f32(-INFINITY);
    int64_t i = 0;
    for (; i + 4 <= n; i += 4)
        best = vmaxnmq_f32(best, vld1q_f32(x + i));
    float top = vmaxnmvq_f32(best);
    for (; i < n; i++)
        top = x[i] > top ? x[i] : top;
    for (i = 0; i + 4 <= n; i += 4)
        if (vmaxvq_u32(vceqq_f32(vld1q_f32(x + i), vdupq_n_f32(top))))
            break;
    for (; i < n; i++)
        if (x[i] == top)
            return i;
    return 0; /* nothing but NaN */
}

static float sum_exp_neon(const float *x, int64_t n, float shift, float factor)
{
    float lane[SUM_LANES];
    v16 sum = zero_16();
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        v16 a = load_16(x + i);
        UNROLL
        for (int j = 0; j < 4; j++) {
            float32x4_t v = vmulq_n_f32(vsubq_f32(a.v[j], vdupq_n_f32(shift)), factor);
            sum.v[j] = vaddq_f32(sum.v[j], exp_neon(v));
        }
    }
    for (int j = 0; j < 4; j++)
        vst1q_f32(lane + 4 * j, sum.v[j]);
    for (; i < n; i++)
        lane[i % SUM_LANES] += exp_f32((x[i] - shift) * factor);
    return sum16(lane);
}

void neon_rows_init(kernel_table *table)
{
#define SET_ROW(op) table->op = op##_neon;
    KERNEL_ROWS(SET_ROW)
#undef SET_ROW
    table->attend = &attend_neon;
}
