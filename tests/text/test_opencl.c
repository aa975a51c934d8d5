/* The OpenCL unit: what it says of libraries that are missing or crash, and, where a device is
 * there (PoCL is one), products of every type with the bits of the plain C kernels, in parts, in
 * ranges of groups, with weights shared and copied, rows in vectors and alone, and attention over
 * keys and values that it reads where they lie. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "kernel/packing.h"
#include "support/rng.h"
#include "support/scene.h"
#include "support/temp_dir.h"
#include "support/test.h"
#include "unit/opencl/opencl.h"

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
    print_message("no OpenCL device is tested: %s\n", err.message);
    skip();
    return NULL;
}

TEST(test_choice)
{
    device *d = open_any(false);
    opencl_class.close(&d);
    assert_null(d);
    opencl_class.close(&d);
    expect_refusal(LIBRARY, "99", "there is no OpenCL device \"99\" here; there is: 0 \"");
    expect_refusal(LIBRARY, "no such name", "\"no such name\"");
    MUST(open_with, &d, LIBRARY, "0", false);
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

TEST(test_types)
{
#define LISTED(TYPE, name, act, block_k, block_bytes) TYPE_##TYPE,
    static const tensor_type types[] = {KERNEL_TYPES(LISTED)};
#undef LISTED
    check_types(types, sizeof types / sizeof types[0], false);
}

TEST(test_as_gpu)
{
    static const tensor_type types[] = {TYPE_Q4_K, TYPE_Q5_1, TYPE_IQ4_XS, TYPE_F16};
    check_types(types, 4, true);
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

/* ---- Attention ---- */

enum { HEADS = 2, N_Q = 6, MOST_ROWS = 16, BLOCKS = 70, CUT = 45 };

/* Two layers of two heads behind BLOCKS blocks; the second layer is asked for. */
typedef struct attention_example {
    attention a;
    size_t head_bytes;
    uint8_t *keys, *values;
    float *q, *out[2], *partials[2];
    int32_t n_prefix[MOST_ROWS], n_path[MOST_ROWS];
    size_t out_floats, partials_floats;
    void *scratch;
} attention_example;

static float *random_floats(size_t n)
{
    float *x = must_alloc(n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(4 * rng_unit(&random_numbers) - 2);
    return x;
}

static void attention_fill(attention_example *e)
{
    const int32_t dim = e->a.head_dim;
    for (int32_t i = 0; i < 2 * HEADS * BLOCKS * ATTEND_BLOCK; i++) {
        const size_t at = (size_t)(i / (BLOCKS * ATTEND_BLOCK)) * e->head_bytes;
        const int32_t slot = i % (BLOCKS * ATTEND_BLOCK);
        float *x = random_floats(2 * (size_t)dim);
        kv_store_key(e->a.kernels, e->a.format, e->keys + at, slot, x, dim, e->scratch);
        kv_store_value(e->a.kernels, e->a.format, e->values + at, slot, x + dim, dim, e->scratch);
        free(x);
    }
}

static attention_example attention_make(kv_format format, int32_t dim, int32_t rows)
{
    attention_example e = {.a = {.kernels = kernel_select("ref"),
                                 .format = format,
                                 .head_dim = dim,
                                 .n_q = N_Q,
                                 .n_rows = rows,
                                 .scale = 0.3f,
                                 .ld = HEADS * N_Q * dim + 5}};
    e.head_bytes = kv_head_bytes(format, BLOCKS * ATTEND_BLOCK, dim);
    e.keys = must_alloc(2 * HEADS * e.head_bytes + 4096);
    e.values = must_alloc(2 * HEADS * e.head_bytes);
    e.keys += 192; /* not at the beginning of a page */
    e.out_floats = (size_t)(rows * e.a.ld);
    e.partials_floats = attend_partials_floats(rows * N_Q, dim, BLOCKS);
    e.scratch = must_alloc(attend_scratch_bytes(dim));
    e.q = random_floats(e.out_floats);
    for (int i = 0; i < 2; i++) {
        e.out[i] = must_alloc(e.out_floats * sizeof(float));
        e.partials[i] = must_alloc(HEADS * e.partials_floats * sizeof(float));
        memset(e.out[i], 0, e.out_floats * sizeof(float));
        memset(e.partials[i], 0, HEADS * e.partials_floats * sizeof(float));
    }
    for (int32_t row = 0; row < rows; row++)
        e.n_prefix[row] = BLOCKS * ATTEND_BLOCK;
    attention_fill(&e);
    return e;
}

static void attention_free(attention_example *e)
{
    free(e->keys - 192);
    free(e->values);
    free(e->q);
    free(e->scratch);
    for (int i = 0; i < 2; i++) {
        free(e->out[i]);
        free(e->partials[i]);
    }
}

/* Of one head two ranges, and all of the other. */
static int32_t attention_pieces(attention_example *e, int side, device_piece *piece)
{
    static const int32_t head[] = {0, 1, 0}, from[] = {0, 0, CUT}, to[] = {CUT, BLOCKS, BLOCKS};
    for (int i = 0; i < 3; i++) {
        device_piece *p = &piece[i];
        const size_t at = (size_t)(HEADS + head[i]) * e->head_bytes;
        const int64_t width = (int64_t)head[i] * N_Q * e->a.head_dim;
        *p = (device_piece){.a = e->a,
                            .last = e->a.n_rows * N_Q,
                            .n_first_range = head[i] ? BLOCKS : CUT,
                            .from = from[i],
                            .to = to[i],
                            .partials = e->partials[side] + (size_t)head[i] * e->partials_floats};
        p->a.keys = e->keys + at;
        p->a.values = e->values + at;
        p->a.q = e->q + width;
        p->a.out = e->out[side] + width;
        p->a.n_prefix = e->n_prefix;
        p->a.n_path = e->n_path;
    }
    return 3;
}

/* Padding aside: m, l, and what follows. */
static void same_partials(const attention_example *e, int32_t head)
{
    const int32_t n = e->a.n_rows * N_Q, dim = e->a.head_dim;
    const size_t header = attend_partials_floats(n, dim, 0),
                 each = attend_partials_floats(n, dim, 1) - header;
    for (int32_t part = 0; part <= (head ? 0 : BLOCKS - CUT); part++) {
        const size_t at =
            (size_t)head * e->partials_floats + (part ? header + (size_t)(part - 1) * each : 0);
        for (size_t i = 0; i < (part ? each : header); i++)
            if ((i >= header || i % (header / 2) < (size_t)n) &&
                memcmp(e->partials[0] + at + i, e->partials[1] + at + i, sizeof(float)) != 0)
                fail_msg("format %d, head %d, part %d: number %d differs", (int)e->a.format,
                         (int)head, (int)part, (int)i);
    }
}

static void check_attending(device *d, kv_format format, int32_t dim, int32_t rows)
{
    attention_example e = attention_make(format, dim, rows);
    device_piece piece[3];
    drey_error err;
    must(d->class->lend(d, e.keys, HEADS * e.head_bytes, 2, &err), &err);
    must(d->class->lend(d, e.values, HEADS * e.head_bytes, 2, &err), &err);
    for (int round = 0; round < 2; round++) {
        /* What is written between calls is seen. */
        float *x = random_floats((size_t)dim);
        kv_store_key(e.a.kernels, format, e.keys + HEADS * e.head_bytes, 3, x, dim, e.scratch);
        free(x);
        const int32_t n = attention_pieces(&e, 0, piece);
        for (int32_t i = 0; i < n; i++)
            attend_range(&piece[i].a, piece[i].first, piece[i].last, piece[i].n_first_range,
                         piece[i].from, piece[i].to, piece[i].partials, e.scratch);
        attention_pieces(&e, 1, piece);
        must(d->class->attend(d, piece, n, &err), &err);
        if (memcmp(e.out[0], e.out[1], e.out_floats * sizeof(float)) != 0)
            fail_msg("format %d, head_dim %d, %d rows: sums differ", (int)format, (int)dim,
                     (int)rows);
        same_partials(&e, 0);
        same_partials(&e, 1);
    }
    d->class->take_back(d, e.keys);
    d->class->take_back(d, e.values);
    attention_free(&e);
}

/* With vectors as suit it, and with items that are lanes; in parts, as 16 rows do not fit. */
TEST(test_attention)
{
    for (uint32_t lanes = 0; lanes < 2; lanes++) {
        device *d = open_any(false);
        const char *why = d->class->no_attention(d);
        d->class->close(&d);
        if (why) {
            print_message("attention is not tested: %s\n", why);
            skip();
        }
        const opencl_opening how = {
            .class = &opencl_class, .library = LIBRARY, .kind = "OpenCL", .lanes = lanes};
        MUST(opencl_open, &d, &how);
        assert_null(d->class->no_attention(d));
        check_attending(d, KV_F16, 128, lanes ? 2 : MOST_ROWS);
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
