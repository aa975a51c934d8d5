/* Building blocks of the NEON row operations: exp_f32's formula, 16 lanes as four registers, and
 * half precision. Included by *_neon.c only. */
#ifndef DREY_KERNEL_MATH_NEON_H
#define DREY_KERNEL_MATH_NEON_H

#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "kernel/kernel.h"

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

/* The contract's 16 lanes: register i holds lanes 4 i to 4 i + 3. */
typedef struct v16 {
    float32x4_t v[4];
} v16;

static inline v16 zero_16(void)
{
    float32x4_t zero = vdupq_n_f32(0);
    return (v16){{zero, zero, zero, zero}};
}

static inline v16 load_16(const float *x)
{
    return (v16){{vld1q_f32(x), vld1q_f32(x + 4), vld1q_f32(x + 8), vld1q_f32(x + 12)}};
}

/* The first n (under 16) numbers, zeros after. */
static inline v16 load_first(const float *x, int32_t n)
{
    float copy[16] = {0};
    memcpy(copy, x, (size_t)n * sizeof *x);
    return load_16(copy);
}

/* Four halves as floats. */
static inline float32x4_t load_f16x4(const uint16_t *x)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x)));
}

static inline v16 load_f16_16(const uint16_t *x)
{
    return (v16){{load_f16x4(x), load_f16x4(x + 4), load_f16x4(x + 8), load_f16x4(x + 12)}};
}

static inline v16 load_f16_first(const uint16_t *x, int32_t n)
{
    uint16_t copy[16] = {0};
    memcpy(copy, x, (size_t)n * sizeof *x);
    return load_f16_16(copy);
}

/* The first two levels of sum16: lanes 8 apart, then 4 apart. */
static inline float32x4_t sum16_upper(const v16 *a)
{
    return vaddq_f32(vaddq_f32(a->v[0], a->v[2]), vaddq_f32(a->v[1], a->v[3]));
}

#endif
