/* Our own exp, log, sin, cos, pow and half precision against the C library's long double. */
#include "base/fmath.h"
#include "support/rng.h"
#include "support/test.h"

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

static rng random_numbers = {1};

static double uniform(double low, double high)
{
    return low + (high - low) * rng_unit(&random_numbers);
}

/* Floats of every exponent, 4099 apart: about a million of them. */
TEST(test_exp_f32_is_within_2_ulp)
{
    long double worst = 0;
    for (uint64_t u = 0; u <= 0xffffffffu; u += 4099) {
        float x = float_of((uint32_t)u);
        if (!(x >= EXP_F32_MIN && x <= EXP_F32_MAX))
            continue;
        long double want = expl((long double)x);
        int e;
        frexpl(want, &e);
        long double off = fabsl((long double)exp_f32(x) - want) / ldexpl(1, e - 24);
        worst = off > worst ? off : worst;
    }
    print_message("exp_f32: worst error %.3f ulp\n", (double)worst);
    assert_true(worst > 0.5L && worst < 2);
}

TEST(test_exp_f32_edges)
{
    assert_true(exp_f32(0.0f) == 1 && exp_f32(-0.0f) == 1);
    assert_true(exp_f32(nextafterf(EXP_F32_MAX, 100)) == INFINITY);
    assert_true(exp_f32(INFINITY) == INFINITY);
    assert_true(isfinite(exp_f32(EXP_F32_MAX)));
    assert_true(exp_f32(nextafterf(EXP_F32_MIN, -100)) == 0 && exp_f32(-INFINITY) == 0);
    assert_true(exp_f32(EXP_F32_MIN) >= 0x1p-126f);
    assert_true(isnan(exp_f32(NAN)));
}

static void close_to(double got, long double want, double relative, double absolute)
{
    long double limit = relative * fabsl(want) + absolute;
    if (!(fabsl((long double)got - want) <= limit))
        fail_msg("%.17g is not %.20Lg", got, want);
}

TEST(test_double_functions)
{
    for (int i = 0; i < 100000; i++) {
        double x = uniform(-708, 709);
        close_to(exp_f64(x), expl(x), 1e-13, 0);
        x = exp_f64(uniform(-708, 709));
        close_to(log_f64(x), logl(x), 1e-14, 0);
        x = uniform(0.5, 2);
        close_to(log_f64(x), logl(x), 1e-14, 0);
        x = uniform(-1e7, 1e7);
        close_to(sin_f64(x), sinl(x), 0, 1e-15);
        close_to(cos_f64(x), cosl(x), 0, 1e-15);
        x = uniform(-10, 10);
        close_to(sin_f64(x), sinl(x), 0, 1e-15);
        close_to(cos_f64(x), cosl(x), 0, 1e-15);
        double base = uniform(1, 1e7), exponent = uniform(-2, 2);
        close_to(pow_f64(base, exponent), powl(base, exponent), 1e-12, 0);
    }
}

/* Positions are integers; near multiples of pi/2 the reduction cancels most. */
TEST(test_sin_cos_of_positions)
{
    for (int i = -2000; i < 300000; i++) {
        close_to(sin_f64(i), sinl(i), 0, 1e-15);
        close_to(cos_f64(i), cosl(i), 0, 1e-15);
        double near = i * 1.5707963267948966;
        close_to(sin_f64(near), sinl(near), 0, 1e-15);
        close_to(cos_f64(near), cosl(near), 0, 1e-15);
    }
}

TEST(test_double_edges)
{
    assert_true(exp_f64(0) == 1 && exp_f64(710) == INFINITY && exp_f64(-746) == 0);
    assert_true(exp_f64(-INFINITY) == 0 && exp_f64(INFINITY) == INFINITY && isnan(exp_f64(NAN)));
    close_to(exp_f64(-740), expl(-740), 0, 0x1p-1074);
    assert_true(log_f64(1) == 0 && log_f64(0) == -INFINITY && isnan(log_f64(-1)));
    assert_true(log_f64(INFINITY) == INFINITY && isnan(log_f64(NAN)));
    close_to(log_f64(0x1p-1074), logl(0x1p-1074L), 1e-15, 0);
    assert_true(sin_f64(0) == 0 && cos_f64(0) == 1);
    assert_true(pow_f64(10000, 0) == 1 && pow_f64(1, 5) == 1);
}

TEST(test_every_half_survives)
{
    for (uint32_t h = 0; h < 65536; h++) {
        float f = f16_to_f32((uint16_t)h);
        uint32_t exponent = h >> 10 & 31, mantissa = h & 1023;
        if (exponent == 31 && mantissa) {
            assert_true(isnan(f));
            assert_int_equal(f32_to_f16(f), h | 0x200u);
            continue;
        }
        float want = exponent == 31 ? INFINITY
                     : exponent     ? ldexpf((float)(1024 + mantissa), (int)exponent - 25)
                                    : ldexpf((float)mantissa, -24);
        assert_int_equal(bits_of(f), bits_of(h & 0x8000 ? -want : want));
        assert_int_equal(f32_to_f16(f), h);
    }
}

/* Between every two neighbouring halves: just below the middle, the middle, just above. */
TEST(test_half_rounds_to_nearest_even)
{
    for (uint32_t h = 0; h < 0x7c00; h++) {
        float low = f16_to_f32((uint16_t)h);
        float high = h == 0x7bff ? 65536.0f : f16_to_f32((uint16_t)(h + 1));
        float middle = low + (high - low) / 2;
        uint32_t even = h & 1 ? h + 1 : h;
        for (uint32_t sign = 0; sign < 2; sign++) {
            float s = sign ? -1.0f : 1.0f;
            assert_int_equal(f32_to_f16(s * middle), sign << 15 | even);
            assert_int_equal(f32_to_f16(s * nextafterf(middle, 0)), sign << 15 | h);
            assert_int_equal(f32_to_f16(s * nextafterf(middle, INFINITY)), sign << 15 | (h + 1));
        }
    }
    assert_int_equal(f32_to_f16(INFINITY), 0x7c00);
    assert_int_equal(f32_to_f16(3e38f), 0x7c00);
    assert_int_equal(f32_to_f16(-0.0f), 0x8000);
    assert_int_equal(f32_to_f16(float_of(1)), 0);
}
