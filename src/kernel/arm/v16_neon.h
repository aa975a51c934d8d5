/* v16 (kernel/v16.h) with NEON: four registers, register i with lanes 4 i to 4 i + 3. Included by
 * *_neon.c only. */
#pragma once

#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "kernel/unroll.h"

/* 2^n in every lane, n in [-126, 127]. */
static inline float32x4_t pow2_neon(int32x4_t n)
{
    return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n, vdupq_n_s32(127)), 23));
}

/* exp_f32 in every lane (fmath.h). */
static inline float32x4_t exp_neon(float32x4_t x)
{
    float32x4_t n = vrndnq_f32(vmulq_f32(x, vdupq_n_f32(EXP_F32_LOG2E)));
    float32x4_t r = vfmsq_f32(x, n, vdupq_n_f32(EXP_F32_LN2_HI));
    r = vfmsq_f32(r, n, vdupq_n_f32(EXP_F32_LN2_LO));
    float32x4_t p = vdupq_n_f32(EXP_F32_C6);
    p = vfmaq_f32(vdupq_n_f32(EXP_F32_C5), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_F32_C4), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_F32_C3), p, r);
    p = vfmaq_f32(vdupq_n_f32(EXP_F32_C2), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    p = vfmaq_f32(vdupq_n_f32(1.0f), p, r);
    int32x4_t whole = vcvtq_s32_f32(n), half = vshrq_n_s32(whole, 1);
    p = vmulq_f32(p, pow2_neon(half));
    p = vmulq_f32(p, pow2_neon(vsubq_s32(whole, half)));
    p = vbslq_f32(vcgtq_f32(x, vdupq_n_f32(EXP_F32_MAX)), vdupq_n_f32(INFINITY), p);
    p = vbslq_f32(vcltq_f32(x, vdupq_n_f32(EXP_F32_MIN)), vdupq_n_f32(0), p);
    return vbslq_f32(vceqq_f32(x, x), p, x); /* NaN stays NaN */
}

typedef struct v16 {
    float32x4_t v[4];
} v16;

#define EACH_REGISTER(expression)                                                                  \
    (v16)                                                                                          \
    {                                                                                              \
        {                                                                                          \
            expression(0), expression(1), expression(2), expression(3)                             \
        }                                                                                          \
    }

INLINE v16 v16_set1(float x)
{
    float32x4_t v = vdupq_n_f32(x);
    return (v16){{v, v, v, v}};
}

INLINE v16 v16_zero(void)
{
    return v16_set1(0);
}

INLINE v16 v16_load(const float *x)
{
    return (v16){{vld1q_f32(x), vld1q_f32(x + 4), vld1q_f32(x + 8), vld1q_f32(x + 12)}};
}

INLINE void v16_store(float *x, v16 v)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        vst1q_f32(x + 4 * i, v.v[i]);
}

INLINE v16 v16_load_first(const float *x, int32_t n)
{
    float copy[16] = {0};
    memcpy(copy, x, (size_t)n * sizeof *x);
    return v16_load(copy);
}

INLINE void v16_store_first(float *x, v16 v, int32_t n)
{
    float copy[16];
    v16_store(copy, v);
    memcpy(x, copy, (size_t)n * sizeof *x);
}

INLINE v16 v16_f16(const uint16_t *x)
{
#define HALVES(i) vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x + 4 * i)))
    return EACH_REGISTER(HALVES);
#undef HALVES
}

INLINE v16 v16_f16_first(const uint16_t *x, int32_t n)
{
    uint16_t copy[16] = {0};
    memcpy(copy, x, (size_t)n * sizeof *x);
    return v16_f16(copy);
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

/* The number where one is NaN: b where a is NaN. */
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

INLINE v16 v16_div(v16 a, v16 b)
{
#define DIV(i) vdivq_f32(a.v[i], b.v[i])
    return EACH_REGISTER(DIV);
#undef DIV
}

INLINE v16 v16_neg(v16 x)
{
#define NEG(i) vnegq_f32(x.v[i])
    return EACH_REGISTER(NEG);
#undef NEG
}

INLINE v16 v16_keep(v16 x, int32_t n)
{
    float copy[16];
    v16_store(copy, x);
    return v16_load_first(copy, n);
}

INLINE uint32_t v16_equal(v16 a, v16 b)
{
#define EQUAL(i) vceqq_f32(a.v[i], b.v[i])
    uint32x4_t any = vorrq_u32(vorrq_u32(EQUAL(0), EQUAL(1)), vorrq_u32(EQUAL(2), EQUAL(3)));
    uint32_t found = 0, lane[16];
    if (vmaxvq_u32(any) == 0)
        return 0;
    UNROLL
    for (int i = 0; i < 4; i++)
        vst1q_u32(lane + 4 * i, EQUAL(i));
    for (int i = 0; i < 16; i++)
        found |= (lane[i] & 1) << i;
    return found;
#undef EQUAL
}

INLINE void v16_to_f16(uint16_t *y, v16 x)
{
    UNROLL
    for (int i = 0; i < 4; i++)
        vst1_u16(y + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.v[i])));
}

INLINE void v16_to_f16_first(uint16_t *y, v16 x, int32_t n)
{
    uint16_t copy[16];
    v16_to_f16(copy, x);
    memcpy(y, copy, (size_t)n * sizeof *y);
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

INLINE float v16_sum(v16 x)
{
    float32x4_t s4 = add_quarters(x);
    return vpadds_f32(vadd_f32(vget_low_f32(s4), vget_high_f32(s4)));
}

/* Adds lanes that are 2 apart, of two sums. */
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
