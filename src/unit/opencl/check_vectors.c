#include "unit/opencl/check_vectors.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gguf/types.h"
#include "kernel/kernel.h"

/* ---- Test numbers ---- */

/* (1 + 2^-12)^2 - 1 has a bit that is lost with two roundings. */
const float check_numbers_in[CHECK_NUMBERS] = {
    1.0f + 0x1p-12f, 1.0f + 0x1p-12f, -1.0f, 0x1p-70f, 0x1.8p-70f, 0x1p-140f, 0x1p-145f, 0x1p-64f};

drey_status check_numbers(const float out[CHECK_NUMBERS], const char *device, drey_error *err)
{
    const float *in = check_numbers_in;
    const float product = in[0] * in[1], fused = fmaf(in[0], in[1], in[2]);
    if (out[0] != product + in[2])
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s contracts a product and a sum to one rounding: its texts would differ", device);
    if (out[1] != fused)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s rounds a fused multiply-add twice: its texts would differ", device);
    if (out[2] != in[3] * in[4] || out[3] != in[5] + in[6] || out[5] != in[7] * in[7])
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s flushes denormal numbers: its texts would differ",
             device);
    if (out[4] != 16777220.0f)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s does not round whole numbers to the nearest: its texts would differ", device);
    return DREY_OK;
}

/* ---- Products ---- */

enum { GROUPS = 2, ROWS = GROUPS * GROUP_ROWS, MOST_ROWS = 11, K = 512 };

static uint32_t check_bits(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return (uint32_t)(*seed >> 32);
}

float check_float(uint64_t *seed)
{
    return (float)(int32_t)check_bits(seed) * 0x1p-31f;
}

/* A finite half of any exponent, or one of the smallest. */
static uint16_t random_half(uint64_t *seed, bool small)
{
    uint16_t half = (uint16_t)check_bits(seed);
    if (small)
        return half & 0x8007;
    return (half & F16_INFINITE) == F16_INFINITE ? (uint16_t)(half & ~0x4000) : half;
}

/* Rows of a file: any quants, scales that are finite; every fourth row is small throughout, so that
 * its products with small activations are denormal. */
static void rows_fill(uint8_t *rows, tensor_type type, uint64_t *seed)
{
    const type_layout *layout = layout_find(type);
    const int64_t n_blocks = (int64_t)ROWS * (K / layout->block_k);
    for (int64_t b = 0; b < n_blocks; b++) {
        uint8_t *block = rows + b * layout->file_block_bytes;
        const bool small = b / (K / layout->block_k) % 4 == 1;
        for (int32_t i = 0; i < layout->file_block_bytes; i++)
            block[i] = (uint8_t)check_bits(seed);
        if (type == TYPE_F32 || type == TYPE_BF16) {
            float v = ldexpf(check_float(seed), small ? -20 : -(int)(check_bits(seed) % 64));
            uint32_t bits;
            memcpy(&bits, &v, sizeof bits);
            bits >>= type == TYPE_BF16 ? 16 : 0;
            memcpy(block, &bits, (size_t)layout->file_block_bytes);
        }
        if (layout->parts[0].kind == PART_U8)
            block[0] = (uint8_t)(small ? check_bits(seed) % 3 : 64 + check_bits(seed) % 128);
        for (int32_t p = 0; p < layout->n_scales || (type == TYPE_F16 && p == 0); p++) {
            uint16_t half = random_half(seed, small);
            if (layout->parts[p].kind == PART_U8)
                continue;
            memcpy(block + layout->parts[p].file_offset, &half, sizeof half);
        }
    }
}

/* Rows of ordinary size, of a size whose products are denormal, and between. */
static void acts_fill(float *x, uint64_t *seed)
{
    static const int exponents[4] = {0, -119, 6, -128};
    for (int32_t t = 0; t < MOST_ROWS; t++)
        for (int32_t i = 0; i < K; i++)
            x[t * K + i] = ldexpf(check_float(seed), exponents[t % 4]);
}

typedef struct vectors {
    uint8_t *raw, *packed, *acts;
    float *x, *expected, *got;
    void *scratch;
} vectors;

void *check_take(size_t bytes)
{
    return aligned_alloc(64, (bytes + 63) / 64 * 64);
}

static bool vectors_make(vectors *v, const matmul_kernel *kernel, int64_t row_bytes)
{
    *v = (vectors){.raw = check_take((size_t)row_bytes * ROWS),
                   .packed = check_take(kernel->group_bytes(K) * GROUPS),
                   .acts = check_take(act_bytes(kernel->act, MOST_ROWS, K)),
                   .x = check_take(sizeof(float) * MOST_ROWS * K),
                   .expected = check_take(sizeof(float) * MOST_ROWS * ROWS),
                   .got = check_take(sizeof(float) * MOST_ROWS * ROWS),
                   .scratch = check_take(dot_scratch_bytes(K))};
    return v->raw && v->packed && v->acts && v->x && v->expected && v->got && v->scratch;
}

static void vectors_free(vectors *v)
{
    void *all[] = {v->raw, v->packed, v->acts, v->x, v->expected, v->got, v->scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static drey_status compare(const vectors *v, tensor_type type, int32_t n, const char *device,
                           drey_error *err)
{
    int32_t n_wrong = 0;
    for (int32_t i = 0; i < n * ROWS; i++)
        n_wrong += memcmp(&v->got[i], &v->expected[i], sizeof(float)) != 0;
    if (n_wrong > 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s computes %d of %d products of %s with other bits than the processor: its texts "
             "would differ",
             device, n_wrong, n * ROWS, type_find(type)->name);
    return DREY_OK;
}

drey_status check_vectors(tensor_type type, check_run_fn *run, void *user, const char *device,
                          drey_error *err)
{
    static const int32_t row_counts[] = {1, 2, MOST_ROWS};
    const kernel_table *ref = kernel_select_shape("ref", 0);
    const matmul_kernel *kernel = &ref->matmul[type];
    const int64_t row_bytes = type_row_bytes(type_find(type), K);
    uint64_t seed = 88172645463325252u + type;
    drey_status status = DREY_OK;
    vectors v;
    if (!vectors_make(&v, kernel, row_bytes))
        status = error_set(err, DREY_ERR_MEMORY, "no memory for the test of %s", device);
    for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0] && status == DREY_OK; i++) {
        const int32_t n = row_counts[i];
        rows_fill(v.raw, type, &seed);
        acts_fill(v.x, &seed);
        for (int32_t g = 0; g < GROUPS; g++)
            kernel->pack(v.packed + (size_t)g * kernel->group_bytes(K),
                         v.raw + g * GROUP_ROWS * row_bytes, row_bytes, GROUP_ROWS, K);
        ref->quantise[kernel->act](v.acts, v.x, K, 0, n, n, K);
        matmul_dot(kernel, v.expected, ROWS, v.packed, GROUPS, v.acts, n, K, v.scratch);
        memset(v.got, 0xff, sizeof(float) * MOST_ROWS * ROWS);
        const check_product p = {type,
                                 kernel->act,
                                 K,
                                 v.packed,
                                 kernel->group_bytes(K),
                                 GROUPS,
                                 v.acts,
                                 act_bytes(kernel->act, n, K),
                                 n,
                                 v.got,
                                 ROWS};
        status = run(user, &p, err);
        if (status == DREY_OK)
            status = compare(&v, type, n, device, err);
    }
    vectors_free(&v);
    return status;
}
