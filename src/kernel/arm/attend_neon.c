/* Attention, NEON: a v16 is four registers. See attend_tile.h. */
#include "kernel/arm/arm.h"

#include "kernel/arm/math_neon.h"
#include "kernel/unroll.h"

enum { TILE = 6, MOST_SPAN = 1, SUMS = TILE, SUMS_WITH_VALUES = 0, ROW_TILE = 2, ROW_SPAN = 2 };

INLINE int32_t key_span(int32_t n)
{
    (void)n;
    return 1;
}

INLINE int32_t value_span(int32_t n)
{
    (void)n;
    return 1;
}

#define EACH_REGISTER(expression)                                                                  \
    (v16)                                                                                          \
    {                                                                                              \
        {                                                                                          \
            expression(0), expression(1), expression(2), expression(3)                             \
        }                                                                                          \
    }

INLINE v16 v16_zero(void)
{
    return zero_16();
}

INLINE v16 v16_set1(float x)
{
    float32x4_t v = vdupq_n_f32(x);
    return (v16){{v, v, v, v}};
}

INLINE v16 v16_load(const float *x)
{
    return load_16(x);
}

INLINE void v16_store(float *x, v16 v)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        vst1q_f32(x + 4 * i, v.v[i]);
}

INLINE v16 v16_load_first(const float *x, int32_t n)
{
    return load_first(x, n);
}

INLINE void v16_store_first(float *x, v16 v, int32_t n)
{
    float copy[16];
    v16_store(copy, v);
    memcpy(x, copy, (size_t)n * sizeof *x);
}

INLINE v16 v16_f16(const uint16_t *x)
{
    return load_f16_16(x);
}

INLINE v16 v16_f16_first(const uint16_t *x, int32_t n)
{
    return load_f16_first(x, n);
}

INLINE v16 v16_q8(const int8_t *x)
{
    int8x16_t q = vld1q_s8(x);
    int16x8_t low = vmovl_s8(vget_low_s8(q)), high = vmovl_s8(vget_high_s8(q));
    return (v16){{vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))),
                  vcvtq_f32_s32(vmovl_s16(vget_high_s16(low))),
                  vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))),
                  vcvtq_f32_s32(vmovl_s16(vget_high_s16(high)))}};
}

INLINE v16 v16_add(v16 a, v16 b)
{
#define ADD(i) vaddq_f32(a.v[i], b.v[i])
    return EACH_REGISTER(ADD);
#undef ADD
}

INLINE v16 v16_sub(v16 a, v16 b)
{
#define SUB(i) vsubq_f32(a.v[i], b.v[i])
    return EACH_REGISTER(SUB);
#undef SUB
}

INLINE v16 v16_mul(v16 a, v16 b)
{
#define MUL(i) vmulq_f32(a.v[i], b.v[i])
    return EACH_REGISTER(MUL);
#undef MUL
}

INLINE v16 v16_fma(v16 a, v16 b, v16 c)
{
#define FMA(i) vfmaq_f32(c.v[i], a.v[i], b.v[i])
    return EACH_REGISTER(FMA);
#undef FMA
}

/* NaN loses to a number, and b stands where a is NaN. */
INLINE v16 v16_max(v16 a, v16 b)
{
#define MAX(i) vmaxnmq_f32(a.v[i], b.v[i])
    return EACH_REGISTER(MAX);
#undef MAX
}

INLINE v16 v16_exp(v16 x)
{
#define EXP(i) exp_neon(x.v[i])
    return EACH_REGISTER(EXP);
#undef EXP
}

INLINE float v16_max_of(v16 x)
{
    return vmaxnmvq_f32(vmaxnmq_f32(vmaxnmq_f32(x.v[0], x.v[1]), vmaxnmq_f32(x.v[2], x.v[3])));
}

/* Lanes 8 and 4 apart. */
INLINE float32x4_t add_quarters(v16 a)
{
    return vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
}

/* And 2 apart of two sums. */
INLINE float32x4_t add_halves(v16 a, v16 b)
{
    float32x4_t x = add_quarters(a), y = add_quarters(b);
    return vaddq_f32(vcombine_f32(vget_low_f32(x), vget_low_f32(y)),
                     vcombine_f32(vget_high_f32(x), vget_high_f32(y)));
}

INLINE void v16_sums4(float *to, const v16 *v, float scale)
{
    float32x4_t s = vpaddq_f32(add_halves(v[0], v[1]), add_halves(v[2], v[3]));
    vst1q_f32(to, vmulq_f32(vdupq_n_f32(scale), s));
}

INLINE void v16_turn(float *to, int64_t ld, const v16 *x)
{
    for (int i = 0; i < 16; i += 4)
        UNROLL
    for (int j = 0; j < 4; j++) {
        float32x4x2_t p = vtrnq_f32(x[i].v[j], x[i + 1].v[j]);
        float32x4x2_t q = vtrnq_f32(x[i + 2].v[j], x[i + 3].v[j]);
        UNROLL
        for (int k = 0; k < 2; k++) {
            vst1q_f32(to + (4 * j + k) * ld + i,
                      vcombine_f32(vget_low_f32(p.val[k]), vget_low_f32(q.val[k])));
            vst1q_f32(to + (4 * j + k + 2) * ld + i,
                      vcombine_f32(vget_high_f32(p.val[k]), vget_high_f32(q.val[k])));
        }
    }
}

#include "kernel/attend_tile.h"

const attend_kernel attend_neon = ATTEND_KERNEL;
