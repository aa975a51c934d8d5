/* Attempts in a child process, and the test vectors that refuse a device. */
#include <unistd.h>

#include "kernel/packing.h"
#include "unit/opencl/check_vectors.h"
#include "unit/opencl/probe.h"
#include "support/scene.h"

static drey_status does_well(void *user, drey_error *err)
{
    *(int *)user = 7; /* in the child's memory */
    return DREY_OK;
}

static drey_status refuses(void *user, drey_error *err)
{
    FAIL(err, DREY_ERR_MEMORY, "too little of %s", "everything");
}

static drey_status crashes(void *user, drey_error *err)
{
    abort();
}

static drey_status leaves(void *user, drey_error *err)
{
    _exit(0);
}

static drey_status hangs(void *user, drey_error *err)
{
    pause();
    return DREY_OK;
}

static void expect(drey_status (*attempt)(void *, drey_error *), int32_t idle_s, drey_status status,
                   const char *sentence)
{
    drey_error err = {0};
    int seen = 0;
    assert_int_equal(probe_in_child(attempt, &seen, "the thing", idle_s, &err), status);
    assert_int_equal(seen, 0);
    assert_string_equal(err.message, sentence);
}

TEST(test_probe)
{
    expect(does_well, 60, DREY_OK, "");
    expect(refuses, 60, DREY_ERR_MEMORY, "too little of everything");
    expect(crashes, 60, DREY_ERR_UNSUPPORTED, "the thing crashes when it is opened (Aborted)");
    expect(leaves, 60, DREY_ERR_UNSUPPORTED, "the thing ends the process that opens it");
    expect(hangs, 1, DREY_ERR_UNSUPPORTED, "the thing hangs when it is opened");
}

/* ---- Numbers that show how a device computes ---- */

static void numbers_right(float out[CHECK_NUMBERS])
{
    /* By hand: (1 + 2^-12)^2 = 1 + 2^-11 + 2^-24, of which 1 + 2^-11 is left after one rounding. */
    memset(out, 0, sizeof(float) * CHECK_NUMBERS);
    out[0] = 0x1p-11f;
    out[1] = 0x1p-11f + 0x1p-24f;
    out[2] = 0x1.8p-140f;
    out[3] = 0x1p-140f + 0x1p-145f;
    out[4] = 16777220.0f;
    out[5] = 0x1p-128f;
}

static void expect_number(int i, float value, const char *word)
{
    float out[CHECK_NUMBERS];
    numbers_right(out);
    out[i] = value;
    REFUSED(DREY_ERR_UNSUPPORTED, word, check_numbers, out, "It");
}

TEST(test_numbers)
{
    float out[CHECK_NUMBERS];
    numbers_right(out);
    MUST(check_numbers, out, "It");
    expect_number(0, out[1], "It contracts");
    expect_number(1, out[0], "It rounds a fused multiply-add twice");
    expect_number(2, 0, "It flushes denormal numbers");
    expect_number(3, 0, "It flushes denormal numbers");
    expect_number(5, 0, "It flushes denormal numbers");
    expect_number(4, 16777218.0f, "It does not round whole numbers");
}

/* ---- Vectors ---- */

/* A device that is a processor: a tier, or that with a fault. */
typedef struct pretender {
    const char *tier;
    bool flushes;
    int n_calls;
} pretender;

static drey_status pretend(void *user, const check_product *p, drey_error *err)
{
    pretender *x = user;
    const matmul_kernel *kernel = &kernel_select_shape(x->tier, 0)->matmul[p->type];
    void *scratch = aligned_alloc(64, (dot_scratch_bytes(p->k) + 63) / 64 * 64);
    assert_non_null(scratch);
    assert_int_equal(p->act_bytes, act_bytes(p->act, p->n, p->k));
    matmul_dot(kernel, p->y, p->ldy, p->packed, p->n_groups, p->acts, p->n, p->k, scratch);
    for (int64_t i = 0; i < p->n * p->ldy; i++)
        if (x->flushes && fpclassify(p->y[i]) == FP_SUBNORMAL)
            p->y[i] = 0;
    free(scratch);
    x->n_calls++;
    return DREY_OK;
}

TEST(test_vectors)
{
    pretender right = {.tier = "ref"}, best = {0}, flushing = {.tier = "ref", .flushes = true};
    drey_error err;
#define CHECK(TYPE, name, act, block_k, block_bytes)                                               \
    MUST(check_vectors, TYPE_##TYPE, pretend, &right, "It");                                       \
    MUST(check_vectors, TYPE_##TYPE, pretend, &best, "It");                                        \
    assert_int_equal(check_vectors(TYPE_##TYPE, pretend, &flushing, "It", &err),                   \
                     DREY_ERR_UNSUPPORTED);                                                        \
    assert_non_null(strstr(err.message, "of " #TYPE " with other bits"));
    KERNEL_DEVICE_TYPES(CHECK)
#undef CHECK
    assert_true(right.n_calls > 15);
}
