/* Our own exp, log, sin, cos, pow and half precision: see fmath.h.
 *
 * Every function is a fixed chain of IEEE operations (fma is one of them), so its result has the
 * same bits with every compiler and on every architecture. The double functions use Taylor series:
 * after the range reduction they need 7 to 14 terms, and no critical loop calls them. */
#include "base/fmath.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static float f32_of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

static uint64_t bits_of_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static double f64_of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* 2^n, n in [-126, 127] and [-1022, 1023]. */
static float pow2_f32(int32_t n)
{
    return f32_of_bits((uint32_t)(n + 127) << 23);
}

static double pow2_f64(int64_t n)
{
    return f64_of_bits((uint64_t)(n + 1023) << 52);
}

float exp_f32(float x)
{
    if (x != x)
        return x;
    if (x > EXP_F32_MAX)
        return INFINITY;
    if (x < EXP_F32_MIN)
        return 0;
    float n = rintf(x * EXP_F32_LOG2E);
    float r = fmaf(n, -EXP_F32_LN2_HI, x);
    r = fmaf(n, -EXP_F32_LN2_LO, r);
    float p = EXP_F32_C6;
    p = fmaf(p, r, EXP_F32_C5);
    p = fmaf(p, r, EXP_F32_C4);
    p = fmaf(p, r, EXP_F32_C3);
    p = fmaf(p, r, EXP_F32_C2);
    p = fmaf(p, r, 1.0f);
    p = fmaf(p, r, 1.0f);
    int32_t whole = (int32_t)n; /* up to 128: the factors' product is the scale, each is a float */
    int32_t half = whole >> 1;
    return p * pow2_f32(half) * pow2_f32(whole - half);
}

static const double ln2_hi = 0x1.62e42fefa39efp-1, ln2_lo = 0x1.abc9e3b39803fp-56;

double exp_f64(double x)
{
    if (x != x)
        return x;
    if (x > 709.79)
        return INFINITY;
    if (x < -745.2)
        return 0;
    double n = rint(x * 0x1.71547652b82fep+0);
    double r = fma(n, -ln2_hi, x);
    r = fma(n, -ln2_lo, r);
    /* |r| <= 0.347: the first term left out, r^14 / 14!, is below 5e-18. */
    double p = 1;
    for (int k = 13; k > 0; k--)
        p = fma(p, r / k, 1.0);
    int64_t whole = (int64_t)n, half = whole >> 1;
    return p * pow2_f64(half) * pow2_f64(whole - half);
}

double log_f64(double x)
{
    if (x != x || x == INFINITY)
        return x;
    if (x <= 0)
        return x == 0 ? -INFINITY : NAN;
    int64_t e = 0;
    if (x < 0x1p-1022) { /* denormals: scale into the normal range first */
        x *= 0x1p54;
        e = -54;
    }
    uint64_t u = bits_of_f64(x);
    e += (int64_t)(u >> 52) - 1023;
    double m = f64_of_bits((u & 0xfffffffffffffu) | 0x3ff0000000000000u);
    if (m > 0x1.6a09e667f3bcdp+0) { /* keep m in (sqrt(1/2), sqrt(2)] so that log(1) is exact */
        m *= 0.5;
        e++;
    }
    /* log m = 2 atanh(s) = 2 (s + s^3/3 + ...), |s| <= 0.172: 11 terms reach 1e-18. */
    double s = (m - 1) / (m + 1), z = s * s;
    double p = 1.0 / 23;
    for (int k = 21; k > 0; k -= 2)
        p = fma(p, z, 1.0 / k);
    double log_m = 2 * s * p;
    return fma((double)e, ln2_hi, fma((double)e, ln2_lo, log_m));
}

/* r in [-pi/4, pi/4] with x = r + n pi/2; returns n mod 4. For |x| <= 1e7 the product n * hi is
 * within an fma's exact reach, so r keeps full relative precision except next to a multiple of
 * pi/2, where the absolute error stays below 1e-16. */
static int quadrant(double x, double *r)
{
    static const double hi = 0x1.921fb54442d18p+0, mid = 0x1.1a62633145c07p-54,
                        lo = -0x1.f1976b7ed8fbcp-110;
    double n = rint(x * 0x1.45f306dc9c883p-1);
    *r = fma(n, -lo, fma(n, -mid, fma(n, -hi, x)));
    return (int)((int64_t)n & 3);
}

/* Taylor to r^17 and r^16 on |r| <= pi/4: what is left out is below 1e-17. */
static double sin_reduced(double r)
{
    double z = -r * r, p = 1;
    for (int k = 16; k > 0; k -= 2)
        p = fma(p, z / (k * (k + 1)), 1.0);
    return r * p;
}

static double cos_reduced(double r)
{
    double z = -r * r, p = 1;
    for (int k = 15; k > 0; k -= 2)
        p = fma(p, z / (k * (k + 1)), 1.0);
    return p;
}

double sin_f64(double x)
{
    double r;
    int n = quadrant(x, &r);
    double v = n & 1 ? cos_reduced(r) : sin_reduced(r);
    return n & 2 ? -v : v;
}

double cos_f64(double x)
{
    double r;
    int n = quadrant(x, &r);
    double v = n & 1 ? sin_reduced(r) : cos_reduced(r);
    return n == 1 || n == 2 ? -v : v;
}

double pow_f64(double base, double exponent)
{
    if (exponent == 0 || base == 1)
        return 1;
    return exp_f64(exponent * log_f64(base));
}

float f16_to_f32(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, mantissa = h & 1023;
    if (exponent == 0) { /* zero and denormals: a count of 2^-24, exact as a float */
        float magnitude = (float)mantissa * 0x1p-24f;
        return f32_of_bits(sign | bits_of_f32(magnitude));
    }
    if (exponent == 31) /* infinity; NaN keeps its payload and becomes quiet, as hardware does */
        return f32_of_bits(sign | 0x7f800000u | mantissa << 13 | (mantissa ? 0x400000u : 0));
    return f32_of_bits(sign | (exponent + 112) << 23 | mantissa << 13);
}

uint16_t f32_to_f16(float f)
{
    uint32_t u = bits_of_f32(f), magnitude = u & 0x7fffffffu;
    uint32_t sign = u >> 16 & 0x8000u, half;
    if (magnitude > 0x7f800000u) /* NaN: quiet, with the payload's upper bits, as hardware does */
        half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    else if (magnitude >= 0x47800000u) /* 65536 and up */
        half = 0x7c00u;
    else if (magnitude >= 0x38800000u) /* normal: 13 bits are rounded off; a carry may reach inf */
        half = (magnitude + 0xfffu + (magnitude >> 13 & 1u) - (112u << 23)) >> 13;
    else /* denormal: at 0.5 a float's last place is 2^-24, so the addition rounds for us */
        half = bits_of_f32(f32_of_bits(magnitude) + 0.5f) - 0x3f000000u;
    return (uint16_t)(sign | half);
}
