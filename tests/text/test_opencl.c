/* The OpenCL unit: what it says of libraries that are missing or crash, and, where a device is
 * there (PoCL is one), products of every type with the bits of the plain C kernels, in parts, in
 * ranges of groups, with weights shared and copied, rows in vectors and alone, and attention over
 * keys and values that it reads where they lie.
 *
 * With CUDA_LIBRARY, as test_cuda, the same of libdrey-cuda and its devices. */
#include "kernel/packing.h"
#include "support/scene.h"
#include "unit/opencl/check_attention.h"
#include "unit/opencl/opencl.h"

#ifdef CUDA_LIBRARY
#define LIBRARY      CUDA_LIBRARY
#define DEVICE_CLASS cuda_class
#define KIND         "CUDA"
#else
#define LIBRARY      "libOpenCL.so.1"
#define DEVICE_CLASS opencl_class
#define KIND         "OpenCL"
#endif

static drey_status open_with(device **d, const char *library, const char *which, bool as_gpu,
                             drey_error *err)
{
    /* As a device with memory of its own, whose work items are lanes of the hardware. */
    const opencl_opening how = {.class = &DEVICE_CLASS,
                                .library = library,
                                .kind = KIND,
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
    REFUSED(DREY_ERR_UNSUPPORTED, word, open_with, &d, library, which, false);
    assert_null(d);
}

TEST(test_unusable)
{
    expect_refusal("libNoSuchThing.so.9", NULL, "libNoSuchThing.so.9");
    expect_refusal("libm.so.6", NULL, "lacks clGetPlatformIDs");
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
    NOT_RUN("no " KIND " device is tested: %s", err.message);
    return NULL;
}

TEST(test_choice)
{
    device *d = open_any(false);
    DEVICE_CLASS.close(&d);
    assert_null(d);
    DEVICE_CLASS.close(&d);
    expect_refusal(LIBRARY, "99", "there is no " KIND " device \"99\" here; there is: 0 \"");
    expect_refusal(LIBRARY, "no such name", "\"no such name\"");
    MUST(open_with, &d, LIBRARY, "0", false);
    DEVICE_CLASS.close(&d);
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
                else if (layout->parts[p].kind == PART_U8)
                    part[0] &= 0xbf;
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
    matmul_dot(e.kernel, e.expected, e.ldy, e.packed, n_groups, e.acts, n, k, scratch);
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
    must(d->class->attach(d, matrix, n, 128, &err), &err);
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

#define LISTED(TYPE, name, act, block_k, block_bytes) TYPE_##TYPE,
static const tensor_type all_types[] = {KERNEL_DEVICE_TYPES(LISTED)};
#undef LISTED
enum { N_TYPES = sizeof all_types / sizeof all_types[0] };

TEST(test_types)
{
    check_types(all_types, N_TYPES, false);
}

TEST(test_as_gpu)
{
    check_types(all_types, N_TYPES, true);
}

/* More results, and more activations, than the buffers hold. */
TEST(test_parts)
{
    device *d = open_any(false);
    example e[] = {example_make(TYPE_Q4_0, 32, 700, 100), example_make(TYPE_F32, 16384, 2, 75)};
    check_examples(d, e, 2, 0);
    d->class->close(&d);
    example_free(&e[0]);
    example_free(&e[1]);
}

/* With activations and results in memory that is lent, where the device takes that. */
TEST(test_lent_work)
{
    device *d = open_any(true);
    if (!d->class->lend_work) {
        d->class->close(&d);
        NOT_RUN("lent memory: this device takes none");
    }
    example e[N_TYPES];
    uint8_t *place[N_TYPES], *work;
    size_t bytes = 0;
    for (int32_t i = 0; i < N_TYPES; i++) {
        e[i] = example_make(all_types[i], 768, 5, 1 + i * 5 % 23);
        bytes += act_bytes(e[i].kernel->act, e[i].n, e[i].k) + 64;
        bytes += sizeof(float) * (size_t)(e[i].n * e[i].ldy) + 64;
    }
    bytes = (bytes + 4095) / 4096 * 4096;
    work = aligned_alloc(4096, bytes);
    assert_non_null(work);
    memset(work, 0, bytes);
    d->class->lend_work(d, work, bytes);
    place[0] = work;
    for (int32_t i = 0; i < N_TYPES; i++) {
        const size_t of_acts = act_bytes(e[i].kernel->act, e[i].n, e[i].k) / 64 * 64 + 64;
        memcpy(place[i], e[i].acts, act_bytes(e[i].kernel->act, e[i].n, e[i].k));
        free(e[i].acts);
        free(e[i].got);
        e[i].acts = place[i];
        e[i].got = (float *)(void *)(place[i] + of_acts);
        if (i + 1 < N_TYPES)
            place[i + 1] =
                place[i] + of_acts + sizeof(float) * (size_t)(e[i].n * e[i].ldy) / 64 * 64 + 64;
    }
    check_examples(d, e, N_TYPES, 1);
    d->class->lend_work(d, NULL, 0);
    d->class->close(&d);
    for (int32_t i = 0; i < N_TYPES; i++) {
        free(e[i].packed - 64);
        free(e[i].expected);
    }
    free(work);
}

/* ---- Attention ---- */

/* Zeros for two layers, lent to the device; they do not begin where a page begins. */
static uint8_t *lend_zeros(device *d, size_t bytes)
{
    drey_error err;
    uint8_t *p = must_alloc(2 * bytes + 4096);
    memset(p, 0, 2 * bytes + 4096);
    must(d->class->lend(d, p + 192, bytes, 2, &err), &err);
    return p;
}

/* The second layer is asked for: once while it is zeros, and once with the keys and values, as what
 * is written between two calls is seen. */
static drey_status attend_lent(void *user, const check_pieces *p, drey_error *err)
{
    device *d = user;
    device_piece piece[3];
    uint8_t *keys = lend_zeros(d, p->bytes), *values = lend_zeros(d, p->bytes);
    assert_int_equal(p->n, 3);
    for (int32_t i = 0; i < p->n; i++) {
        piece[i] = p->piece[i];
        piece[i].a.keys = keys + 192 + p->bytes + (p->piece[i].a.keys - p->keys);
        piece[i].a.values = values + 192 + p->bytes + (p->piece[i].a.values - p->values);
    }
    drey_status status = d->class->attend(d, piece, p->n, err);
    memcpy(keys + 192 + p->bytes, p->keys, p->bytes);
    memcpy(values + 192 + p->bytes, p->values, p->bytes);
    if (status == DREY_OK)
        status = d->class->attend(d, piece, p->n, err);
    d->class->take_back(d, keys + 192);
    d->class->take_back(d, values + 192);
    free(keys);
    free(values);
    return status;
}

static void check_attending(device *d, kv_format format, int32_t dim, int32_t rows)
{
    uint64_t seed = 9;
    const attention_shape shape = {.format = format,
                                   .head_dim = dim,
                                   .n_rows = rows,
                                   .n_q = 6,
                                   .n_blocks = 70,
                                   .cut = 45,
                                   .gap = 5};
    MUST(check_attention_of, &shape, &seed, attend_lent, d, "the device");
}

/* With vectors as suit it, and with items that are lanes; in parts, as 16 rows do not fit. */
TEST(test_attention)
{
    for (uint32_t lanes = 0; lanes < 2; lanes++) {
        device *d = open_any(false);
        const char *why = d->class->no_attention(d);
        d->class->close(&d);
        if (why) {
            NOT_RUN("attention: %s", why);
        }
        const opencl_opening how = {
            .class = &DEVICE_CLASS, .library = LIBRARY, .kind = KIND, .lanes = lanes};
        MUST(opencl_open, &d, &how);
        assert_null(d->class->no_attention(d));
        check_attending(d, KV_F16, 128, lanes ? 2 : CHECK_ROWS);
        check_attending(d, KV_Q8_0, 96, lanes ? 3 : 1);
        check_attending(d, KV_F32, 16, 1);
        d->class->close(&d);
    }
}

/* A device with memory of its own says why it has no part in attention. */
TEST(test_no_attention)
{
    device *d = open_any(true);
    assert_non_null(strstr(d->class->no_attention(d), "does not share the processor's memory"));
    d->class->close(&d);
}

#endif

static int set_up(void **state)
{
    setenv("POCL_CACHE_DIR", temp_dir(), 1);
    return temp_dir_set_up(state);
}

TEST_GROUP(set_up, temp_dir_tear_down)
