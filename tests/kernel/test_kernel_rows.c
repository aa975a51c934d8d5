/* Row operations: every tier that runs here has the bits of the scalar reference, whatever the
 * sizes; and the reference is compared with the definitions in double. */
#include <math.h>

#include "base/fmath.h"
#include "kernel/kernel_test.h"

static float float_of(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}

/* ---- Every operation on every tier ---- */

enum { PLAIN = 2, ROUNDS = 4 }; /* round PLAIN: without large numbers */

#define OPERATION(op) ROW_##op,
typedef enum operation { KERNEL_ROWS(OPERATION) N_OPERATIONS } operation;
#undef OPERATION
#define OPERATION(op) #op,
static const char *const names[] = {KERNEL_ROWS(OPERATION)};
#undef OPERATION

/* Operands of an operation. Before ROW_to_f16 it may write to x itself. */
typedef struct operands {
    const float *x, *w, *b; /* [n] */
    int64_t n;
    int round;
    const int32_t *rope; /* heads, head_dim, pairs: n = heads * head_dim */
} operands;

/* Runs it; what it reads ends where its operands do. Returns the bytes that it has written. */
static size_t run(operation op, const kernel_table *t, float *y, const operands *o)
{
    static const float caps[ROUNDS] = {30, 50, 1, 0.37f};
    const size_t bytes = (size_t)o->n * sizeof *y;
    if (op == ROW_rope || op == ROW_softcap || op == ROW_add)
        memmove(y, o->x, bytes);
    switch (op) {
    case ROW_rmsnorm:
        t->rmsnorm(y, o->x, o->w, o->n, 1e-6f);
        break;
    case ROW_layernorm:
        t->layernorm(y, o->x, o->w, o->b, o->n, 1e-6f);
        break;
    case ROW_rope:
        t->rope(y, o->w + o->n - 2 * o->rope[2], o->rope[0], o->rope[1], o->rope[2], o->round % 2);
        break;
    case ROW_swiglu:
        t->swiglu(y, o->x, o->w, o->n);
        break;
    case ROW_geglu:
        t->geglu(y, o->x, o->round % 2 ? o->w : NULL, o->n);
        break;
    case ROW_gelu:
        t->gelu(y, o->x, o->n);
        break;
    case ROW_gate:
        t->gate(y, o->x, o->w, o->n);
        break;
    case ROW_softcap:
        t->softcap(y, o->n, caps[o->round]);
        break;
    case ROW_add:
        t->add(y, o->w, o->n);
        break;
    case ROW_to_f16:
        t->to_f16((uint16_t *)(void *)y, o->x, o->n);
        return bytes / 2;
    case ROW_from_f16: /* any bits */
        t->from_f16(y, (const uint16_t *)(const void *)o->x + o->n, o->n);
        break;
    case ROW_arg_max:
        *y = (float)t->arg_max(o->x, o->n);
        return sizeof *y;
    case ROW_sum_exp:
        *y = t->sum_exp(o->x, o->n, 10, 1.25f);
        return sizeof *y;
    case N_OPERATIONS:
        fail_msg("no operation");
    }
    return bytes;
}

/* Mostly ordinary numbers, now and then a zero, a denormal, a large one, or one at the end of what
 * exp and gelu can do. Rounds 2 and 3: with a mean that matters, and only small odd ones, so that
 * all results are finite; tiny, so that eps decides. */
static void fill(float *x, int64_t n, int round)
{
    static const float odd[] = {0.0f,     -0.0f,  1e-42f, -1e-40f,  3e-39f,   1e9f,   -1e9f,
                                65504.0f, 88.71f, 88.73f, -88.71f,  -88.73f,  -87.2f, 87.31f,
                                12.0f,    -12.0f, 5.4f,   -5.4f,    1e30f,    -1e30f, 1e18f,
                                -1e18f,   -30.0f, 10.0f,  INFINITY, -INFINITY};
    size_t n_odd = round == PLAIN ? 5 : COUNT_OF(odd) - (round ? 2 : 0);
    for (int64_t i = 0; i < n; i++) {
        x[i] = random_bits() % 16 == 0 ? odd[random_bits() % n_odd] : uniform(-4, 4);
        x[i] = round == 3 ? x[i] * 1e-30f : x[i] + (float)(round / 2 * 3);
    }
}

/* Returns how many results of round PLAIN are finite and not 0. */
static int64_t check(operation op, int64_t n, int round, const int32_t *rope)
{
    const size_t bytes = (size_t)n * sizeof(float);
    guarded x = guard_alloc(bytes), w = guard_alloc(bytes), b = guard_alloc(bytes);
    guarded want = guard_alloc(bytes), got = guard_alloc(bytes), half = guard_alloc(bytes / 2);
    int64_t n_numbers = 0;
    guarded *out = op == ROW_to_f16 ? &half : &got;
    fill(x.data, n, round), fill(w.data, n, round == PLAIN ? PLAIN : 0);
    fill(b.data, n, round == PLAIN ? PLAIN : 1);
    operands o = {x.data, w.data, b.data, n, round, rope};
    size_t n_written = run(op, kernel_select("ref"), want.data, &o);
    for (size_t i = 0; round == PLAIN && i < n_written / sizeof(float); i++) {
        float y = ((const float *)want.data)[i];
        assert_true(isfinite(y) || op == ROW_to_f16 || op == ROW_from_f16);
        n_numbers += isfinite(y) && y != 0;
    }
    FOR_EACH_TIER(t)
    for (int in_place = 0; in_place < (op < ROW_to_f16 ? 2 : 1); in_place++) {
        memset(out->data, 0xff, out->size_bytes);
        o.x = in_place ? memcpy(got.data, x.data, bytes) : x.data;
        run(op, t, out->data, &o);
        if (memcmp(out->data, want.data, n_written) != 0 || !guard_intact(out))
            fail_msg("%s of size %d on %s differs from ref, in place %d, round %d, or wrote "
                     "before its output",
                     names[op], (int)n, t->tier, in_place, round);
    }
    guard_free(&x), guard_free(&w), guard_free(&b);
    guard_free(&want), guard_free(&got), guard_free(&half);
    return n_numbers;
}

TEST(test_every_operation)
{
    static const int64_t sizes[] = {1,  2,  3,  7,  8,  9,  15, 16,  17,  31,  32,
                                    33, 47, 48, 63, 64, 65, 96, 127, 576, 1000};
    static const int32_t ropes[][3] = {{1, 2, 1},    {3, 6, 3},     {2, 14, 7},  {2, 32, 16},
                                       {3, 64, 32},  {2, 80, 16},   {2, 96, 48}, {14, 64, 32},
                                       {2, 128, 64}, {1, 256, 128}, {3, 66, 33}, {2, 100, 25},
                                       {2, 36, 17}};
    for (operation op = 0; op < N_OPERATIONS; op++) {
        int64_t n_numbers = 0;
        for (int round = 0; round < ROUNDS; round++)
            if (op == ROW_rope)
                for (size_t i = 0; i < COUNT_OF(ropes); i++)
                    n_numbers += check(op, ropes[i][0] * ropes[i][1], round, ropes[i]);
            else
                for (size_t i = 0; i < COUNT_OF(sizes); i++)
                    n_numbers += check(op, sizes[i], round, NULL);
        assert_true(n_numbers > 0);
    }
}

/* ---- The reference against the definitions, in double ---- */

TEST(test_rmsnorm_definition)
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

TEST(test_small_definitions)
{
    const kernel_table *ref = kernel_select("ref");
    /* Mean 2, variance 1: -1 and 1, times 3, plus 0.5. */
    float x[2] = {1, 3}, w[2] = {3, 3}, b[2] = {0.5f, 0.5f}, y[2];
    ref->layernorm(y, x, w, b, 2, 0);
    assert_true(y[0] == -2.5f && y[1] == 3.5f);
    float gate = 2, up = 3;
    ref->swiglu(y, &gate, &up, 1);
    assert_true(fabs((double)y[0] - 6 / (1 + exp(-2))) < 1e-6);
    ref->gate(y, &up, &gate, 1);
    assert_true(fabs((double)y[0] - 3 / (1 + exp(-2))) < 1e-6);
    y[0] = 0.25f;
    ref->add(y, &gate, 1);
    assert_true(y[0] == 2.25f);
}

TEST(test_rope_definition)
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

TEST(test_geglu_definition)
{
    const kernel_table *ref = kernel_select("ref");
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

TEST(test_gelu_definition)
{
    for (int i = 0; i < 4000; i++) {
        float x = uniform(-12, 12), y;
        double gelu = 0.5 * (double)x * erfc(-(double)x / sqrt(2));
        kernel_select("ref")->gelu(&y, &x, 1);
        /* The exponent is off by a rounding of at most 72. */
        assert_true(fabs((double)y - gelu) <= fabs(gelu) * 1e-5);
    }
}

TEST(test_softcap_and_sum_exp_definitions)
{
    const kernel_table *ref = kernel_select("ref");
    for (int round = 0; round < 100; round++) {
        enum { MOST = 1000 };
        float x[MOST], y[MOST], cap = uniform(0.3f, 50);
        int64_t n = 1 + random_bits() % MOST;
        double sum = 0;
        for (int64_t i = 0; i < n; i++) {
            x[i] = uniform(-30, 10);
            sum += exp(((double)x[i] - 10) * 1.25);
        }
        double got = (double)ref->sum_exp(x, n, 10, 1.25f);
        assert_true(fabs(got - sum) <= sum * (double)(n / 16 + 60) * 0x1p-24);
        x[n / 2] = round % 2 ? INFINITY : -INFINITY;
        memcpy(y, x, sizeof y);
        ref->softcap(y, n, cap);
        for (int64_t i = 0; i < n; i++)
            assert_true(fabs((double)y[i] - (double)cap * tanh((double)x[i] / (double)cap)) <=
                        1e-6 * (double)cap);
    }
}

/* ---- Numbers that the operations above do not all meet ---- */

/* Every half there is. */
TEST(test_all_halves)
{
    static uint16_t all[65536];
    static float want[65536], got[65536];
    for (int h = 0; h < 65536; h++)
        all[h] = (uint16_t)h;
    kernel_select("ref")->from_f16(want, all, 65536);
    FOR_EACH_TIER(t)
    {
        t->from_f16(got, all, 65536);
        assert_memory_equal(got, want, sizeof want);
    }
}

/* Any bits at all, NaN among them. */
TEST(test_all_kinds_of_floats_to_f16)
{
    static float x[65536];
    static uint16_t want[65536], got[65536];
    for (int round = 0; round < 20; round++) {
        for (int j = 0; j < 65536; j++)
            x[j] = float_of(round < 4 ? 0x33000000u + (uint32_t)(round * 65536 + j) * 0x371u
                                      : random_bits());
        kernel_select("ref")->to_f16(want, x, 65536);
        FOR_EACH_TIER(t)
        {
            t->to_f16(got, x, 65536);
            assert_memory_equal(got, want, sizeof want);
        }
    }
}

TEST(test_arg_max_of_ties_and_nan)
{
    static const int64_t sizes[] = {1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 65, 96, 576, 1000};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        int64_t n = sizes[i];
        guarded g = guard_alloc((size_t)n * sizeof(float));
        float *x = g.data;
        FOR_EACH_TIER(t)
        for (int64_t at = 0; at < n; at += 1 + n / 40) {
            fill(x, n, 1);
            x[at] = 2e30f;
            assert_int_equal(t->arg_max(x, n), at);
            x[n - 1] = 2e30f; /* a tie: the lower index wins */
            assert_int_equal(t->arg_max(x, n), at);
            x[random_bits() % (uint32_t)n] = NAN;
            x[at] = 2e30f;
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
        guard_free(&g);
    }
}

/* A sum of one term is exp itself: floats of every exponent. */
TEST(test_exp_has_one_result)
{
    FOR_EACH_TIER(t)
    for (uint64_t u = 0; u <= 0xffffffffu; u += 20011) {
        float x = float_of((uint32_t)u), want = exp_f32(x);
        float got = t->sum_exp(&x, 1, 0, 1);
        if (x == x ? memcmp(&got, &want, sizeof want) != 0 : got == got)
            fail_msg("exp(%a) is %a on %s, not %a", (double)x, (double)got, t->tier, (double)want);
    }
}
