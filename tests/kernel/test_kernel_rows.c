/* Row operations: every tier that runs here has the bits of the scalar reference, whatever the
 * sizes. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "kernel/kernel.h"
#include "support/faults/guard.h"
#include "support/test.h"

static uint64_t rng_state;

static uint32_t rng(void)
{
    rng_state = rng_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((rng_state ^ rng_state >> 29) * 0xbf58476d1ce4e5b9u >> 33);
}

static float uniform(float low, float high)
{
    return low + (high - low) * (float)(rng() >> 8) * 0x1p-23f;
}

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* Mostly ordinary numbers, now and then a zero, a denormal or a large one. */
static float awkward(void)
{
    static const float odd[] = {0.0f, -0.0f, 1e-42f, -1e-40f, 3e-39f, 1e9f, -1e9f, 65504.0f};
    return rng() % 16 == 0 ? odd[rng() % 8] : uniform(-4, 4);
}

static void fill(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = awkward();
}

static guarded floats(int64_t n)
{
    guarded g = guard_alloc((size_t)n * sizeof(float));
    fill(g.data, n);
    return g;
}

static void same_bits(const char *tier, const char *op, int64_t size, const guarded *got,
                      const guarded *want)
{
    if (memcmp(got->data, want->data, want->size_bytes) != 0)
        fail_msg("%s of size %d on %s differs from ref", op, (int)size, tier);
    if (!guard_intact(got))
        fail_msg("%s of size %d on %s wrote before its output", op, (int)size, tier);
}

/* Runs body for the reference and every vector tier; `t` is the tier's table. */
#define FOR_EACH_TIER(t)                                                                           \
    for (const char *const *tier_name = kernel_tiers(); *tier_name; tier_name++)                   \
        for (const kernel_table *t = kernel_select(*tier_name); t; t = NULL)

static const int64_t sizes[] = {1,  2,  3,  7,  8,  9,  15, 16,  17,  31,  32,
                                33, 47, 48, 63, 64, 65, 96, 127, 576, 1000};
enum { N_SIZES = sizeof sizes / sizeof *sizes };

static void test_rmsnorm(void **state)
{
    const kernel_table *ref = kernel_select("ref");
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        guarded x = floats(n), w = floats(n), want = floats(n), got = floats(n);
        if (i % 4 == 3) /* tiny sums: eps decides */
            for (int64_t j = 0; j < n; j++)
                ((float *)x.data)[j] *= 1e-30f;
        ref->rmsnorm(want.data, x.data, w.data, n, 1e-6f);
        FOR_EACH_TIER(t)
        {
            memset(got.data, 0xff, got.size_bytes);
            t->rmsnorm(got.data, x.data, w.data, n, 1e-6f);
            same_bits(t->tier, "rmsnorm", n, &got, &want);
            memcpy(got.data, x.data, x.size_bytes);
            t->rmsnorm(got.data, got.data, w.data, n, 1e-6f);
            same_bits(t->tier, "rmsnorm in place", n, &got, &want);
        }
        guard_free(&x), guard_free(&w), guard_free(&want), guard_free(&got);
    }
}

/* Against the definition in double: the reference itself must be right. */
static void test_rmsnorm_definition(void **state)
{
    float x[100], w[100], y[100];
    double sum = 0;
    for (int i = 0; i < 100; i++) {
        x[i] = uniform(-3, 3), w[i] = uniform(0, 2);
        sum += (double)x[i] * (double)x[i];
    }
    kernel_select("ref")->rmsnorm(y, x, w, 100, 1e-5f);
    for (int i = 0; i < 100; i++) {
        double want = (double)x[i] / sqrt(sum / 100 + (double)1e-5f) * (double)w[i];
        assert_true(fabs((double)y[i] - want) <= 16 * 0x1p-24 * fabs(want));
    }
}

static void test_layernorm(void **state)
{
    const kernel_table *ref = kernel_select("ref");
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        guarded x = floats(n), w = floats(n), b = floats(n), want = floats(n), got = floats(n);
        for (int64_t j = 0; j < n; j++) /* a mean that matters */
            ((float *)x.data)[j] =
                ((float *)x.data)[j] * (i % 4 == 3 ? 1e-30f : 1) + (float)(i % 3 * 3);
        ref->layernorm(want.data, x.data, w.data, b.data, n, 1e-6f);
        FOR_EACH_TIER(t)
        {
            memset(got.data, 0xff, got.size_bytes);
            t->layernorm(got.data, x.data, w.data, b.data, n, 1e-6f);
            same_bits(t->tier, "layernorm", n, &got, &want);
            memcpy(got.data, x.data, x.size_bytes);
            t->layernorm(got.data, got.data, w.data, b.data, n, 1e-6f);
            same_bits(t->tier, "layernorm in place", n, &got, &want);
        }
        guard_free(&x), guard_free(&w), guard_free(&b), guard_free(&want), guard_free(&got);
    }
    /* Mean 2, variance 1: -1 and 1, times 3, plus 0.5. */
    float x[2] = {1, 3}, w[2] = {3, 3}, b[2] = {0.5f, 0.5f}, y[2];
    ref->layernorm(y, x, w, b, 2, 0);
    assert_true(y[0] == -2.5f && y[1] == 3.5f);
}

static void test_rope(void **state)
{
    const kernel_table *ref = kernel_select("ref");
    static const int32_t shapes[][3] = {/* heads, head_dim, pairs */
                                        {1, 2, 1},    {3, 6, 3},     {2, 14, 7},  {2, 32, 16},
                                        {3, 64, 32},  {2, 80, 16},   {2, 96, 48}, {14, 64, 32},
                                        {2, 128, 64}, {1, 256, 128}, {3, 66, 33}, {2, 100, 25},
                                        {2, 36, 17}};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int32_t heads = shapes[i][0], dim = shapes[i][1], pairs = shapes[i][2];
        guarded x = floats(heads * dim), cs = floats(2 * pairs);
        guarded want = floats(heads * dim), got = floats(heads * dim);
        for (int neox = 0; neox < 2; neox++) {
            memcpy(want.data, x.data, x.size_bytes);
            ref->rope(want.data, cs.data, heads, dim, pairs, neox);
            FOR_EACH_TIER(t)
            {
                memcpy(got.data, x.data, x.size_bytes);
                t->rope(got.data, cs.data, heads, dim, pairs, neox);
                same_bits(t->tier, neox ? "rope neox" : "rope", dim, &got, &want);
            }
        }
        guard_free(&x), guard_free(&cs), guard_free(&want), guard_free(&got);
    }
}

static void test_rope_definition(void **state)
{
    float cs[] = {0.6f, 0.8f, 0.0f, 1.0f};
    float x[] = {1, 2, 3, 4, 9}, y[] = {1, 2, 3, 4, 9};
    kernel_select("ref")->rope(x, cs, 1, 5, 2, false); /* pairs (1, 2) and (3, 4) */
    assert_true(fabsf(x[0] + 1.0f) < 1e-6f && fabsf(x[1] - 2.0f) < 1e-6f);
    assert_true(x[2] == -4 && x[3] == 3 && x[4] == 9);
    kernel_select("ref")->rope(y, cs, 1, 5, 2, true); /* pairs (1, 3) and (2, 4) */
    assert_true(fabsf(y[0] + 1.8f) < 1e-6f && fabsf(y[2] - 2.6f) < 1e-6f);
    assert_true(y[1] == -4 && y[3] == 2 && y[4] == 9);
}

static void test_swiglu(void **state)
{
    static const float gates[] = {88.71f, 88.73f, -88.71f, -88.73f, -87.2f, 87.31f, 1e30f, -1e30f};
    const kernel_table *ref = kernel_select("ref");
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        guarded gate = floats(n), up = floats(n), want = floats(n), got = floats(n);
        for (int64_t j = 0; j < n && j < 8; j++)
            ((float *)gate.data)[j * 37 % n] = gates[(j + i) % 8];
        ref->swiglu(want.data, gate.data, up.data, n);
        FOR_EACH_TIER(t)
        {
            memcpy(got.data, gate.data, gate.size_bytes);
            t->swiglu(got.data, got.data, up.data, n);
            same_bits(t->tier, "swiglu", n, &got, &want);
        }
        guard_free(&gate), guard_free(&up), guard_free(&want), guard_free(&got);
    }
    float gate = 2, up = 3, y;
    ref->swiglu(&y, &gate, &up, 1);
    assert_true(fabs((double)y - 6 / (1 + exp(-2))) < 1e-6);
}

static void test_geglu(void **state)
{
    static const float gates[] = {12.0f, -12.0f, 5.4f, -5.4f, 1e18f, -1e18f, 1e30f, -1e30f};
    const kernel_table *ref = kernel_select("ref");
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        guarded gate = floats(n), up = floats(n), want = floats(n), got = floats(n);
        for (int64_t j = 0; j < n && j < 8; j++)
            ((float *)gate.data)[j * 37 % n] = gates[(j + i) % 8];
        for (int gated = 0; gated < 2; gated++) {
            const float *by = gated ? up.data : NULL;
            ref->geglu(want.data, gate.data, by, n);
            FOR_EACH_TIER(t)
            {
                memcpy(got.data, gate.data, gate.size_bytes);
                t->geglu(got.data, got.data, by, n);
                same_bits(t->tier, gated ? "geglu" : "gelu", n, &got, &want);
            }
        }
        guard_free(&gate), guard_free(&up), guard_free(&want), guard_free(&got);
    }
    const double linear = 0.7978845608028654; /* sqrt(2 / pi) */
    for (int i = 0; i < 4000; i++) {
        float x = uniform(-9, 9), up = 1.5f, y, z;
        double cube = (double)x * (double)x * (double)x;
        double gelu = 0.5 * (double)x * (1 + tanh(linear * ((double)x + 0.044715 * cube)));
        ref->geglu(&y, &x, &up, 1);
        ref->geglu(&z, &x, NULL, 1);
        /* The exponent is off by a few roundings of at most 200. */
        double bound = fabs(gelu) * 1e-4 + 1e-12;
        assert_true(fabs((double)y - 1.5 * gelu) < 1.5 * bound && fabs((double)z - gelu) < bound);
    }
}

static void test_softcap(void **state)
{
    const kernel_table *ref = kernel_select("ref");
    static const float caps[] = {30, 50, 1, 0.37f};
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        float cap = caps[i % 4];
        guarded x = floats(n), want = floats(n), got = floats(n);
        ((float *)x.data)[n / 2] = i % 2 ? INFINITY : -INFINITY;
        memcpy(want.data, x.data, x.size_bytes);
        ref->softcap(want.data, n, cap);
        FOR_EACH_TIER(t)
        {
            memcpy(got.data, x.data, x.size_bytes);
            t->softcap(got.data, n, cap);
            same_bits(t->tier, "softcap", n, &got, &want);
        }
        for (int64_t j = 0; j < n; j++) {
            double exact = (double)cap * tanh((double)((float *)x.data)[j] / (double)cap);
            assert_true(fabs((double)((float *)want.data)[j] - exact) <= 1e-6 * (double)cap);
        }
        guard_free(&x), guard_free(&want), guard_free(&got);
    }
}

static void test_add(void **state)
{
    const kernel_table *ref = kernel_select("ref");
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        guarded x = floats(n), more = floats(n), want = floats(n), got = floats(n);
        memcpy(want.data, x.data, x.size_bytes);
        ref->add(want.data, more.data, n);
        FOR_EACH_TIER(t)
        {
            memcpy(got.data, x.data, x.size_bytes);
            t->add(got.data, more.data, n);
            same_bits(t->tier, "add", n, &got, &want);
        }
        guard_free(&x), guard_free(&more), guard_free(&want), guard_free(&got);
    }
    float x = 2, y = 0.25f;
    ref->add(&y, &x, 1);
    assert_true(y == 2.25f);
}

/* Every half there is. */
static void test_from_f16(void **state)
{
    guarded all = guard_alloc(65536 * 2), want = floats(65536), got = floats(65536);
    for (int h = 0; h < 65536; h++)
        ((uint16_t *)all.data)[h] = (uint16_t)h;
    kernel_select("ref")->from_f16(want.data, all.data, 65536);
    FOR_EACH_TIER(t)
    {
        t->from_f16(got.data, all.data, 65536);
        same_bits(t->tier, "from_f16", 65536, &got, &want);
    }
    guard_free(&all), guard_free(&want), guard_free(&got);
}

/* Any bits at all, NaN among them. */
static void test_to_f16(void **state)
{
    guarded x = floats(65536), got = guard_alloc(65536 * 2), want = guard_alloc(65536 * 2);
    for (int round = 0; round < 20; round++) {
        for (int j = 0; j < 65536; j++)
            ((float *)x.data)[j] =
                round < 4 ? float_of(0x33000000u + (uint32_t)(round * 65536 + j) * 0x371u)
                          : float_of(rng() << 1 ^ rng());
        kernel_select("ref")->to_f16(want.data, x.data, 65536);
        FOR_EACH_TIER(t)
        {
            t->to_f16(got.data, x.data, 65536);
            same_bits(t->tier, "to_f16", 65536, &got, &want);
        }
    }
    guard_free(&x), guard_free(&got), guard_free(&want);
}

static void test_f16_sizes(void **state)
{
    const kernel_table *ref = kernel_select("ref");
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        guarded x = floats(n), half = guard_alloc((size_t)n * 2),
                half_want = guard_alloc((size_t)n * 2);
        guarded want = floats(n), got = floats(n);
        ref->to_f16(half_want.data, x.data, n);
        ref->from_f16(want.data, half_want.data, n);
        FOR_EACH_TIER(t)
        {
            t->to_f16(half.data, x.data, n);
            same_bits(t->tier, "to_f16", n, &half, &half_want);
            t->from_f16(got.data, half.data, n);
            same_bits(t->tier, "from_f16", n, &got, &want);
        }
        guard_free(&x), guard_free(&half), guard_free(&half_want), guard_free(&want),
            guard_free(&got);
    }
}

static void test_arg_max(void **state)
{
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        guarded g = floats(n);
        float *x = g.data;
        FOR_EACH_TIER(t)
        {
            for (int64_t at = 0; at < n; at += 1 + n / 40) {
                fill(x, n);
                x[at] = 2e9f;
                assert_int_equal(t->arg_max(x, n), at);
                x[n - 1] = 2e9f; /* a tie: the lower index wins */
                assert_int_equal(t->arg_max(x, n), at);
                x[rng() % (uint32_t)n] = NAN;
                x[at] = 2e9f;
                assert_int_equal(t->arg_max(x, n), at);
                for (int64_t j = 0; j < n; j++)
                    x[j] = NAN;
                assert_int_equal(t->arg_max(x, n), 0);
                x[at] = -INFINITY;
                assert_int_equal(t->arg_max(x, n), at);
                for (int64_t j = 0; j < n; j++)
                    x[j] = j < at ? -1.0f : j == at ? -0.0f : 0.0f;
                assert_int_equal(t->arg_max(x, n), at);
            }
        }
        guard_free(&g);
    }
}

static void test_sum_exp(void **state)
{
    const kernel_table *ref = kernel_select("ref");
    for (int i = 0; i < N_SIZES; i++) {
        int64_t n = sizes[i];
        guarded g = floats(n);
        float *x = g.data, want;
        double oracle = 0;
        for (int64_t j = 0; j < n; j++) {
            x[j] = uniform(-30, 10);
            oracle += exp(((double)x[j] - 10) * 1.25);
        }
        want = ref->sum_exp(x, n, 10, 1.25f);
        assert_true(fabs((double)want - oracle) <= oracle * (double)(n / 16 + 60) * 0x1p-24);
        x[n / 2] = -INFINITY;
        want = ref->sum_exp(x, n, 10, 1.25f);
        FOR_EACH_TIER(t)
        {
            float got = t->sum_exp(x, n, 10, 1.25f);
            assert_memory_equal(&got, &want, sizeof want);
        }
        guard_free(&g);
    }
}

/* A sum of one term is exp itself: floats of every exponent. */
static void test_exp_has_one_result(void **state)
{
    FOR_EACH_TIER(t)
    {
        for (uint64_t u = 0; u <= 0xffffffffu; u += 20011) {
            float x = float_of((uint32_t)u), want = exp_f32(x);
            float got = t->sum_exp(&x, 1, 0, 1);
            if (x == x ? memcmp(&got, &want, sizeof want) != 0 : got == got)
                fail_msg("exp(%a) is %a on %s, not %a", (double)x, (double)got, t->tier,
                         (double)want);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define OPERATION(op) cmocka_unit_test(test_##op),
        KERNEL_ROWS(OPERATION) /* an operation without its test does not compile */
#undef OPERATION
        cmocka_unit_test(test_rmsnorm_definition),
        cmocka_unit_test(test_rope_definition),
        cmocka_unit_test(test_f16_sizes),
        cmocka_unit_test(test_exp_has_one_result),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
