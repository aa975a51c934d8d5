/* The same bits everywhere: hashes of what every kernel makes of seeded inputs, the same on every
 * tier, compiler and architecture (x86 here, Arm by arm_kernels.sh). A hash that changes is a
 * change of the numeric contract: texts would differ from those of earlier versions. */
#include <inttypes.h>

#include "base/fmath.h"
#include "kernel/delta.h"
#include "kernel/kernel_test.h"
#include "kernel/packing.h"

#define GOLDEN_FLOAT        0x79eb0c2a3fff6ebau
#define GOLDEN_DOUBLE       0xc75f782d592841d9u
#define GOLDEN_ROWS         0xf0cb066d7cd9d685u
#define GOLDEN_KV_Q8        0xf5abcd437e3a36a8u
#define GOLDEN_FURTHER_ROWS 0x13ebf4ed722fd382u
#define GOLDEN_DELTA        0x6f0475cb2472e638u
/* Hashes by weight type: with the type's own activations; on the float tier. */
#define GOLDEN_F32     0xfe718d65426114d6u, 0xfe718d65426114d6u
#define GOLDEN_F16     0xf932451571a1f7dau, 0xf932451571a1f7dau
#define GOLDEN_BF16    0x72dcd68082a0ee63u, 0x72dcd68082a0ee63u
#define GOLDEN_Q4_0    0x51fac8256fbd9536u, 0xa9f4445893d74852u
#define GOLDEN_Q4_1    0x6f9939bab394e9d1u, 0x3e7e43996c657cfeu
#define GOLDEN_Q5_0    0xccb8b080c16d04c5u, 0xba3743d44f0e87e7u
#define GOLDEN_Q5_1    0x95ab54b6dca26970u, 0xd467801c265c8c54u
#define GOLDEN_Q8_0    0x625dbdbf9825fbfeu, 0xab254499c652d462u
#define GOLDEN_IQ4_NL  0xb23419108529c878u, 0x4079004fe58288bau
#define GOLDEN_MXFP4   0x6baeca6fc75e8af8u, 0x7a1f04bebd123f66u
#define GOLDEN_Q2_K    0x3e27f2dbddc37ee0u, 0x1b7a23b4c517328cu
#define GOLDEN_Q3_K    0x5f069b75bb6a2586u, 0x394442b70fde24b0u
#define GOLDEN_Q4_K    0x137c0444522b5ffdu, 0x3918ae3aba991b39u
#define GOLDEN_Q5_K    0x680fb51fb5ef96e3u, 0xea3e3a6d0f391638u
#define GOLDEN_Q6_K    0xb268940802b3b013u, 0x299d06ddc67e2d28u
#define GOLDEN_IQ4_XS  0x6a07e4d560c3cba4u, 0x19ed3acaafac2537u
#define GOLDEN_IQ2_XXS 0x9a7114514c35c081u, 0x22b35de5e1d657bbu
#define GOLDEN_IQ2_XS  0xc5545d89cdafabd1u, 0x61ecf59b30b9d04fu
#define GOLDEN_IQ2_S   0xe7edf4b7f5bbacf0u, 0x28c399ea3d142415u
#define GOLDEN_IQ3_XXS 0xa2c4871a0819ecb6u, 0x89df685f9e2b8e6bu
#define GOLDEN_IQ3_S   0x8cd0043458edb321u, 0x648cdc512afb64d4u
#define GOLDEN_IQ1_S   0x68ca5b2d93cce7aeu, 0x20f30a6fb43ade4fu
#define GOLDEN_IQ1_M   0xdb66d78616cb30e7u, 0x4616a1df5b5a6badu
#define GOLDEN_TQ1_0   0x0992e39bd2a08f9cu, 0x4678b1ebe58598a6u
#define GOLDEN_TQ2_0   0x1fee131dd74989c1u, 0x641758cee2142786u
#define GOLDEN_NVFP4   0x85261c3332c6c86eu, 0x15f17bc2cd9b123du

enum { N = 11, K = 768, ROWS = 45, GROUPS = 2 }; /* one full tile and a part; one full group */

/* The generator that the hashes were made with: not kernel_test.h's. */
static uint64_t lcg_state;

static uint32_t bits(void)
{
    lcg_state = lcg_state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(lcg_state >> 32);
}

static float within(float scale)
{
    return (float)((int32_t)(bits() >> 8) - (1 << 23)) * 0x1p-23f * scale;
}

static uint64_t hash_more(uint64_t hash, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3u;
    return hash;
}

static const uint64_t hash_start = 0xcbf29ce484222325u;

static int n_wrong;

static void expect(const char *what, const char *tier, uint64_t got, uint64_t want)
{
    if (got == want)
        return;
    print_message("%s on %s: 0x%016" PRIx64 ", not 0x%016" PRIx64 "\n", what, tier, got, want);
    n_wrong++;
}

TEST(test_fmath_bits)
{
    uint64_t hash = hash_start;
    for (uint64_t u = 0; u <= 0xffffffffu; u += 40009) {
        uint32_t word = (uint32_t)u;
        float x;
        memcpy(&x, &word, 4);
        if (x != x)
            continue;
        float e = exp_f32(x);
        uint16_t h = f32_to_f16(x);
        hash = hash_more(hash, &e, 4);
        hash = hash_more(hash, &h, 2);
    }
    expect("exp_f32, f32_to_f16", "any tier", hash, GOLDEN_FLOAT);
    hash = hash_start;
    lcg_state = 3;
    for (int i = 0; i < 3000; i++) {
        double x = (double)within(1) * 700, y = (double)within(1);
        y += bits() % 10000000;
        double v[] = {exp_f64(x), log_f64(y + 2), sin_f64(y), cos_f64(y), pow_f64(y + 2, x / 100)};
        hash = hash_more(hash, v, sizeof v);
    }
    expect("exp, log, sin, cos, pow", "any tier", hash, GOLDEN_DOUBLE);
    assert_int_equal(n_wrong, 0);
}

/* ROWS file rows of K weights of any bits, but with finite scales. */
static uint8_t *weights_make(tensor_type type, int64_t row_bytes)
{
    const type_layout *layout = layout_find(type);
    size_t n_blocks = (size_t)(ROWS * K / layout->block_k);
    uint8_t *rows = must_alloc((size_t)(ROWS * row_bytes));
    for (size_t b = 0; b < n_blocks; b++) {
        uint8_t *block = rows + b * (size_t)layout->file_block_bytes;
        for (int32_t i = 0; i < layout->file_block_bytes; i++)
            block[i] = (uint8_t)bits();
        float v = within(2);
        if (type == TYPE_F32)
            memcpy(block, &v, 4);
        else if (type == TYPE_BF16)
            memcpy(block, (uint8_t *)&v + 2, 2); /* its upper half: little-endian machines only */
        for (int32_t p = 0; p < layout->n_parts && type != TYPE_BF16; p++) {
            if (layout->parts[p].kind == PART_U8)
                block[0] = (uint8_t)(100 + block[0] % 32);
            if (layout->parts[p].kind == PART_SPREAD) {
                uint64_t d = f32_to_f16(within(0.1f));
                uint8_t *at = block + layout->parts[p].file_offset;
                scales_scatter(at, (scales_gather(at) & ~UINT64_C(0xffff)) | d);
            }
            if (layout->parts[p].kind != PART_U16 || (type == TYPE_IQ4_XS && p == 1))
                continue;
            uint16_t half = f32_to_f16(within(0.1f));
            memcpy(block + layout->parts[p].file_offset, &half, 2);
        }
    }
    return rows;
}

static uint64_t matmul_hash(const kernel_table *t, tensor_type type)
{
    const matmul_kernel *kernel = &t->matmul[type];
    const type_layout *layout = layout_find(type);
    int64_t row_bytes = K / layout->block_k * layout->file_block_bytes;
    lcg_state = (uint64_t)type + 77;
    uint8_t *rows = weights_make(type, row_bytes);
    float *x = must_alloc(sizeof(float) * N * K);
    for (int i = 0; i < N * K; i++)
        x[i] = within(i / 100 % 5 ? 1.0f : 50.0f);
    size_t group_bytes = kernel->group_bytes(K);
    uint8_t *groups = must_alloc(GROUPS * group_bytes);
    for (int32_t g = 0; g < GROUPS; g++)
        kernel->pack(groups + (size_t)g * group_bytes, rows + g * GROUP_ROWS * row_bytes, row_bytes,
                     g == 0 ? GROUP_ROWS : ROWS - GROUP_ROWS, K);
    uint8_t *acts = must_alloc(act_bytes(kernel->act, N, K));
    uint8_t *scratch = must_alloc(test_scratch_bytes(K));
    float *y = must_alloc(sizeof(float) * N * GROUPS * GROUP_ROWS);
    t->quantise[kernel->act](acts, x, K, 0, N, N, K);
    matmul_dot(kernel, y, GROUPS * GROUP_ROWS, groups, GROUPS, acts, N, K, scratch);
    uint64_t hash = hash_more(hash_start, y, sizeof(float) * N * GROUPS * GROUP_ROWS);
    free(rows), free(x), free(groups), free(acts), free(scratch), free(y);
    return hash;
}

TEST(test_matmul_bits)
{
    static const struct {
        tensor_type type;
        const char *name;
        uint64_t hash, float_hash;
    } goldens[] = {
#define ENTRY(TYPE, name, act, block_k, block_bytes) {TYPE_##TYPE, #TYPE, GOLDEN_##TYPE},
        KERNEL_TYPES(ENTRY)
#undef ENTRY
    };
    for (const char *const *tier = test_tiers(); *tier; tier++)
        for (size_t i = 0; i < COUNT_OF(goldens); i++)
            expect(goldens[i].name, *tier, matmul_hash(test_table(*tier), goldens[i].type),
                   strcmp(*tier, "float") == 0 ? goldens[i].float_hash : goldens[i].hash);
    assert_int_equal(n_wrong, 0);
}

enum { HEADS = 7, DIM = 64, POSITIONS = 150 };

static float f16_round(float x)
{
    return f16_to_f32(f32_to_f16(x));
}

/* One row's attention over [POSITIONS][DIM] keys and values, put into a cache of the format. */
static void attention_run(const kernel_table *t, kv_format format, float *out, const float *q,
                          const float *keys, const float *values)
{
    void *scratch = must_alloc(attend_scratch_bytes(DIM, DIM, false));
    uint8_t *k = must_alloc(kv_head_bytes(format, POSITIONS, DIM));
    uint8_t *v = must_alloc(kv_head_bytes(format, POSITIONS, DIM));
    for (int32_t i = 0; i < POSITIONS; i++) {
        kv_store_key(t, format, k, i, keys + (ptrdiff_t)i * DIM, DIM, scratch);
        kv_store_value(t, format, v, i, values + (ptrdiff_t)i * DIM, DIM, scratch);
    }
    attend(&(attention){.kernels = t,
                        .format = format,
                        .k_dim = DIM,
                        .v_dim = DIM,
                        .n_q = HEADS,
                        .n_rows = 1,
                        .scale = 0.125f,
                        .keys = k,
                        .values = v,
                        .n_prefix = (int32_t[]){POSITIONS},
                        .n_path = (int32_t[]){0},
                        .q = q,
                        .out = out},
           0, HEADS, scratch);
    free(scratch), free(k), free(v);
}

static uint64_t q8_hash(const kernel_table *t)
{
    static float q[HEADS * DIM], out[HEADS * DIM], keys[POSITIONS * DIM], values[POSITIONS * DIM];
    lcg_state = 8;
    for (int i = 0; i < HEADS * DIM; i++)
        q[i] = within(3);
    for (int i = 0; i < POSITIONS * DIM; i++)
        keys[i] = within(i / 32 % 3 ? 3 : 0.01f), values[i] = within(i / 32 % 4 ? 3 : 1e-3f);
    attention_run(t, KV_Q8_0, out, q, keys, values);
    return hash_more(hash_start, out, sizeof out);
}

static uint64_t rows_hash(const kernel_table *t)
{
    static float x[1001], y[1001], w[1001];
    static float q[HEADS * DIM], out[HEADS * DIM];
    static uint16_t half[1001];
    static float keys[POSITIONS * DIM], values[POSITIONS * DIM];
    lcg_state = 5;
    uint64_t hash = hash_start;
    for (int i = 0; i < 1001; i++)
        x[i] = within(20), w[i] = within(2);
    for (int i = 0; i < HEADS * DIM; i++)
        q[i] = within(3);
    for (int i = 0; i < POSITIONS * DIM; i++)
        keys[i] = f16_round(within(3)), values[i] = f16_round(within(3));
    t->rmsnorm(y, x, w, 1001, 1e-6f);
    hash = hash_more(hash, y, sizeof y);
    t->rope(y, x, 10, 100, 45, true);
    t->rope(y, w, 10, 100, 45, false);
    hash = hash_more(hash, y, sizeof y);
    t->swiglu(y, x, w, 1001);
    t->add(y, w, 1001);
    hash = hash_more(hash, y, sizeof y);
    t->to_f16(half, x, 1001);
    hash = hash_more(hash, half, sizeof half);
    t->from_f16(y, half, 1001);
    hash = hash_more(hash, y, sizeof y);
    attention_run(t, t->kv_plain, out, q, keys, values);
    hash = hash_more(hash, out, sizeof out);
    float sum = t->sum_exp(x, 1001, 20.0f, 1.25f);
    int64_t at = t->arg_max(x, 1001);
    hash = hash_more(hash, &sum, sizeof sum);
    return hash_more(hash, &at, sizeof at);
}

/* Hashes the rows that only architectures other than llama's kind need. */
static uint64_t further_rows_hash(const kernel_table *t)
{
    static float x[1001], y[1001], w[1001], b[1001];
    lcg_state = 6;
    uint64_t hash = hash_start;
    for (int i = 0; i < 1001; i++)
        x[i] = within(9), w[i] = within(2), b[i] = within(1);
    t->layernorm(y, x, w, b, 1001, 1e-5f);
    hash = hash_more(hash, y, sizeof y);
    t->geglu(y, x, w, 1001);
    hash = hash_more(hash, y, sizeof y);
    t->geglu(y, x, NULL, 1001);
    hash = hash_more(hash, y, sizeof y);
    t->gelu(y, x, 1001);
    hash = hash_more(hash, y, sizeof y);
    t->softcap(x, 1001, 5.0f);
    return hash_more(hash, x, sizeof x);
}

/* Hashes what layers with a running state need: two rows, a block's end and what is around it. */
static uint64_t delta_hash(const delta_kernel *k)
{
    enum { WIDE = 96 };
    static float x[DELTA_BLOCK][WIDE], s[WIDE * WIDE], y[4 * WIDE];
    const float *of[DELTA_BLOCK];
    float exponent[DELTA_BLOCK + 1], products[DELTA_BLOCK];
    lcg_state = 9;
    uint64_t hash = hash_start;
    for (int i = 0; i < WIDE * WIDE; i++)
        s[i] = within(1);
    for (int t = 0; t < DELTA_BLOCK; t++) {
        for (int i = 0; i < WIDE; i++)
            x[t][i] = within(1);
        of[t] = x[t], exponent[t] = -(float)t;
    }
    exponent[DELTA_BLOCK] = -20;
    k->conv(y, &(conv_taps){.x = of, .w = s, .ld = WIDE, .n_taps = 4, .silu = true}, WIDE);
    k->unit(y + WIDE, x[0], WIDE, 1e-6f, 0.5f);
    k->gated_norm(y + 2 * WIDE, x[0], x[1], x[2], WIDE, 1e-6f);
    hash = hash_more(hash, y, 3 * WIDE * sizeof *y);
    k->rows(y, WIDE, x[0], WIDE, 2, s, WIDE, WIDE);
    k->dots(products, x[0], of, DELTA_BLOCK, WIDE);
    k->join(&(delta_row){.u = y,
                         .w = y + WIDE,
                         .v = x[2],
                         .exponent = exponent,
                         .kk = products,
                         .qk = products,
                         .past = of,
                         .beta = 0.5f,
                         .n = DELTA_BLOCK - 1,
                         .v_dim = WIDE,
                         .d = y + 2 * WIDE,
                         .out = y + 3 * WIDE});
    hash = hash_more(hash, y, sizeof y);
    k->end(s, s, &(delta_records){of, of, exponent, DELTA_BLOCK, WIDE, WIDE});
    return hash_more(hash, s, sizeof s);
}

TEST(test_rows_bits)
{
    FOR_EACH_TIER(t)
    {
        expect("row operations", t->tier, rows_hash(t), GOLDEN_ROWS);
        expect("attention over q8_0", t->tier, q8_hash(t), GOLDEN_KV_Q8);
        expect("further row operations", t->tier, further_rows_hash(t), GOLDEN_FURTHER_ROWS);
        expect("running states", t->tier, delta_hash(t->delta), GOLDEN_DELTA);
    }
    assert_int_equal(n_wrong, 0);
}
