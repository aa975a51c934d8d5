/* The engine's own exp, log, sin, cos and pow, so that a text does not depend on a libm.
 *
 * exp_f32 is used inside kernels: its steps are stated so that vector tiers repeat them exactly.
 * The double functions serve tables and sampling: they need not be fast, only the same everywhere
 * and accurate to 1e-12. */
#ifndef DREY_BASE_FMATH_H
#define DREY_BASE_FMATH_H

#include <stdint.h>

/* exp(x) within 2 ulp for x in [-87.3, 88.7]; 0 below -87.3 (softmax needs no denormals), +inf
 * above 88.72, NaN for NaN. Steps: n = rint(x * log2e); r = fma(n, -ln2_hi, x); r = fma(n, -ln2_lo,
 * r); a polynomial in r by fma from the highest power; times 2^n made from bits (in two factors
 * where n exceeds 127). */
float exp_f32(float x);

double exp_f64(double x);
double log_f64(double x); /* x > 0; log(0) = -inf */
double sin_f64(double x); /* |x| up to 1e7 (positions times frequency 1) */
double cos_f64(double x);
double pow_f64(double base, double exponent); /* base > 0 */

/* Half precision, round to nearest even; NaN stays NaN. */
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

#endif
