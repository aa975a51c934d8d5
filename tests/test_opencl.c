/* The OpenCL unit: what it says of libraries that are missing or crash, and, where a device is there
 * (PoCL is one), products of every type with the bits of the plain C kernels, in parts, in ranges of
 * groups, with weights shared and copied, rows in vectors and alone. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/num.h"
#include "kernel/packing.h"
#include "support/rng.h"
#include "support/temp_dir.h"
#include "unit/opencl.h"

#define LIBRARY "libOpenCL.so.1"

static drey_status open_with(device **d, const char *library, const char *which, bool as_gpu,
                             drey_error *err)
{
    /* As a device with memory of its own, whose work items are lanes of the hardware. */
    const opencl_opening how = {.class = &opencl_class,
                                .library = library,
                                .kind = "OpenCL",
                                .which = which,
                                .copies = as_gpu,
                                .lanes = as_gpu ? 1 : 0};
    return opencl_open(d, &how, err);
}

/* ---- Libraries that cannot be used ---- */

static void expect_refusal(const char *library, const char *which, const char *word)
{
    drey_error err;
    device *d = (device *)&err;
    assert_int_equal(open_with(&d, library, which, false, &err), DREY_ERR_UNSUPPORTED);
    assert_null(d);
    if (!strstr(err.message, word))
        fail_msg("\"%s\" lacks \"%s\"", err.message, word);
}

static void test_missing(void **state)
{
    (void)state;
    expect_refusal("libNoSuchThing.so.9", NULL, "libNoSuchThing.so.9");
}

static void test_lacking(void **state)
{
    (void)state;
    expect_refusal("libm.so.6", NULL, "lacks clGetPlatformIDs");
}

static void test_crashing(void **state)
{
    (void)state;
    expect_refusal(CRASHING_OPENCL, NULL, "crashes when it is opened");
}

/* ---- A device, if there is one ---- */

#ifndef TESTS_SANITIZED /* drivers leak and race as they like */

static device *open_any(bool as_gpu)
{
    drey_error err;
    device *d;
    drey_status status = open_with(&d, LIBRARY, NULL, as_gpu, &err);
    if (status == DREY_OK)
        return d;
    print_message("no OpenCL device is tested: %s\n", err.message);
    skip();
    return NULL;
}

static void test_choice(void **state)
{
    (void)state;
    device *d = open_any(false);
    opencl_class.close(&d);
    assert_null(d);
    opencl_class.close(&d);
    expect_refusal(LIBRARY, "99", "there is no OpenCL device \"99\" here; there is: 0 \"");
    expect_refusal(LIBRARY, "no such name", "\"no such name\"");
    drey_error err;
    assert_int_equal(open_with(&d, LIBRARY, "0", false, &err), DREY_OK);
    opencl_class.close(&d);
}

static rng random_numbers = {1};

/* A matrix of n_groups groups, rows of k, and activations for n rows. */
typedef struct example {
    tensor_type type;
    const matmul_kernel *kernel;
    int64_t k;
    int32_t n_groups, n;
    uint8_t *packed, *acts;
    float *expected, *got; /* [n][ldy] */
    int64_t ldy;
} example;

static void *must_alloc(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(p);
    return p;
}

/* One row of a group is packed from the same bytes for all: products differ by the activations. */
static void example_pack(example *e)
{
    const type_layout *layout = layout_find(e->type);
    const int64_t row_bytes = e->k / layout->block_k * layout->file_block_bytes;
    uint8_t *rows = must_alloc((size_t)row_bytes * GROUP_ROWS);
    for (int32_t g = 0; g < e->n_groups; g++) {
        for (int64_t i = 0; i < row_bytes * GROUP_ROWS; i++)
            rows[i] = (uint8_t)rng_below(&random_numbers, 256);
        for (int64_t b = 0; b < row_bytes * GROUP_ROWS; b += layout->file_block_bytes)
            for (int32_t p = 0; p < layout->n_parts; p++) {
                /* Finite halves and floats: no exponent of all ones. */
                uint8_t *part = rows + b + layout->parts[p].file_offset;
                if (layout->block_k == 1)
                    rows[b + layout->file_block_bytes - 1] &= 0xb3;
                else if (p < layout->n_scales)
                    part[1] &= 0xbb;
            }
        assert_true(e->kernel->pack(e->packed + (size_t)g * e->kernel->group_bytes(e->k), rows,
                                    row_bytes, GROUP_ROWS, e->k));
    }
    free(rows);
}

static example example_make(tensor_type type, int64_t k, int32_t n_groups, int32_t n)
{
    const kernel_table *ref = kernel_select_shape("ref", 0);
    example e = {type, &ref->matmul[type], k, n_groups, n, .ldy = n_groups * GROUP_ROWS + 7};
    e.packed = must_alloc(e.kernel->group_bytes(k) * (size_t)n_groups + 64);
    e.packed += 64; /* not at the beginning of a page */
    e.acts = must_alloc(act_bytes(e.kernel->act, n, k));
    e.expected = must_alloc(sizeof(float) * (size_t)(n * e.ldy));
    e.got = must_alloc(sizeof(float) * (size_t)(n * e.ldy));
    example_pack(&e);
    float *x = must_alloc(sizeof(float) * (size_t)(n * k));
    for (int64_t i = 0; i < n * k; i++)
        x[i] = (float)rng_unit(&random_numbers) - 0.5f;
    ref->quantise[e.kernel->act](e.acts, x, k, 0, n, n, k);
    void *scratch = must_alloc(dot_scratch_bytes(k));
    memset(e.expected, 0, sizeof(float) * (size_t)(n * e.ldy));
    memset(e.got, 0, sizeof(float) * (size_t)(n * e.ldy));
    e.kernel->dot(e.expected, e.ldy, e.packed, n_groups, e.acts, n, k, scratch);
    free(scratch);
    free(x);
    return e;
}

static void example_free(example *e)
{
    free(e->packed - 64);
    free(e->acts);
    free(e->expected);
    free(e->got);
}

static device_work work_of(const example *e, int32_t matrix, int32_t first, int32_t n_groups)
{
    return (device_work){.matrix = matrix,
                         .first_group = first,
                         .n_groups = n_groups,
                         .acts = e->acts,
                         .act = e->kernel->act,
                         .act_bytes = act_bytes(e->kernel->act, e->n, e->k),
                         .n = e->n,
                         .y = e->got,
                         .ldy = e->ldy};
}

/* Groups [skipped, n_groups) are the device's, and asked for in two ranges before a wait. */
static void check_examples(device *d, example *e, int32_t n, int32_t skipped)
{
    drey_error err;
    device_matrix matrix[16];
    for (int32_t i = 0; i < n; i++)
        matrix[i] =
            (device_matrix){e[i].type,
                            e[i].kernel->act,
                            e[i].k,
                            e[i].kernel->group_bytes(e[i].k),
                            skipped,
                            e[i].n_groups - skipped,
                            e[i].packed + (size_t)skipped * e[i].kernel->group_bytes(e[i].k)};
    if (d->class->attach(d, matrix, n, 128, &err) != DREY_OK)
        fail_msg("%s", err.message);
    for (int32_t i = 0; i < n; i++) {
        const int32_t half = skipped + (e[i].n_groups - skipped) / 2;
        device_work front = work_of(&e[i], i, skipped, half - skipped),
                    back = work_of(&e[i], i, half, e[i].n_groups - half);
        assert_int_equal(d->class->submit(d, &front, &err), DREY_OK);
        assert_int_equal(d->class->submit(d, &back, &err), DREY_OK);
        assert_int_equal(d->class->wait(d, &err), DREY_OK);
        for (int64_t t = 0; t < e[i].n; t++) {
            for (int32_t r = 0; r < skipped * GROUP_ROWS; r++)
                e[i].expected[t * e[i].ldy + r] = 0;
            if (memcmp(e[i].got + t * e[i].ldy, e[i].expected + t * e[i].ldy,
                       sizeof(float) * (size_t)e[i].ldy) != 0)
                fail_msg("type %d, row %d of %d", e[i].type, (int)t, e[i].n);
        }
    }
}

static void check_types(const tensor_type *types, int32_t n_types, bool as_gpu)
{
    device *d = open_any(as_gpu);
    example e[16];
    assert_int_equal(d->class->unified(d) && as_gpu, false);
    for (int32_t i = 0; i < n_types; i++)
        e[i] = example_make(types[i], 512, 5, 1 + i * 3 % 17);
    check_examples(d, e, n_types, 1);
    d->class->close(&d);
    for (int32_t i = 0; i < n_types; i++)
        example_free(&e[i]);
}

static void test_types(void **state)
{
    (void)state;
#define LISTED(TYPE, name, act, block_k, block_bytes) TYPE_##TYPE,
    static const tensor_type types[] = {KERNEL_TYPES(LISTED)};
#undef LISTED
    check_types(types, sizeof types / sizeof types[0], false);
}

static void test_as_gpu(void **state)
{
    (void)state;
    static const tensor_type types[] = {TYPE_Q4_K, TYPE_Q5_1, TYPE_IQ4_XS, TYPE_F16};
    check_types(types, 4, true);
}

/* More results, and more activations, than the buffers hold. */
static void test_parts(void **state)
{
    (void)state;
    device *d = open_any(false);
    example e[] = {example_make(TYPE_Q4_0, 32, 700, 100), example_make(TYPE_F32, 16384, 2, 75)};
    check_examples(d, e, 2, 0);
    d->class->close(&d);
    example_free(&e[0]);
    example_free(&e[1]);
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_missing),  cmocka_unit_test(test_lacking),
        cmocka_unit_test(test_crashing),
#ifndef TESTS_SANITIZED
        cmocka_unit_test(test_choice),   cmocka_unit_test(test_types),
        cmocka_unit_test(test_as_gpu),   cmocka_unit_test(test_parts),
#endif
    };
    setenv("POCL_CACHE_DIR", temp_dir(), 1);
    int n_failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_dir_remove();
    return n_failed;
}
