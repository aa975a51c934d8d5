/* The engine's own exp, log, sin, cos and pow, so that a text does not depend on a libm.
 *
 * exp_f32 is used inside kernels: its steps are given so that vector tiers repeat them exactly. The
 * double functions are for tables and sampling: they need not be fast, only the same on every
 * machine and accurate to 1e-12. */
#pragma once

#include <stdint.h>

/* exp(x) within 2 ulp for x in [-87.3, 88.72]; 0 below (softmax needs no denormals), +inf above,
 * NaN for NaN. Steps: n = rint(x * LOG2E); r = fma(n, -LN2_HI, x); r = fma(n, -LN2_LO, r); p = C6,
 * then p = fma(p, r, c) with c = C5, C4, C3, C2, 1, 1; the result is p * 2^n (no rounding: every
 * result is a normal number; n reaches 128, so code that makes 2^n from bits uses two factors).
 * C2..C6 are the minimax fit of (exp(r) - 1 - r) / r^2 for |r| <= ln2 / 2: relative error 4e-9. */
#define EXP_F32_MIN    (-87.3f)
#define EXP_F32_MAX    88.72f
#define EXP_F32_LOG2E  0x1.715476p+0f
#define EXP_F32_LN2_HI 0x1.62e43p-1f
#define EXP_F32_LN2_LO (-0x1.05c61p-29f)
#define EXP_F32_C2     0x1.fffffcp-2f
#define EXP_F32_C3     0x1.555492p-3f
#define EXP_F32_C4     0x1.5558f2p-5f
#define EXP_F32_C5     0x1.123a2p-7f
#define EXP_F32_C6     0x1.6a23dp-10f
float exp_f32(float x);

double exp_f64(double x);
double log_f64(double x); /* log(0) = -inf, NaN below */
double sin_f64(double x); /* |x| up to 1e7 (positions times frequency 1), absolute accuracy */
double cos_f64(double x);
double pow_f64(double base, double exponent); /* base > 0; |exponent * log(base)| < 700 */

/* Half precision, round to nearest even. NaN stays NaN: quiet, sign and upper payload kept. */
float f16_to_f32(uint16_t h);
uint16_t f32_to_f16(float f);
static inline float bf16_to_f32(uint16_t h)
{
    union {
        uint32_t u;
        float f;
    } v = {.u = (uint32_t)h << 16};
    return v.f;
}
