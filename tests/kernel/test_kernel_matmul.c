/* Matrix kernels: every type on every tier that runs here.
 *
 * The scalar tier is compared with independent values (dequantisation: golden files made by
 * scripts/make-dequant-goldens.py; dot products: double precision with a derived bound), and every
 * other tier with the scalar one, bit for bit; also, from test-only builds, tiers that this machine
 * cannot run as they are (emulated/tiers.h). Buffers end at guard pages. */
#include <math.h>
#include <stdio.h>

#include "base/fmath.h"
#include "kernel/kernel_test.h"
#include "kernel/packing.h"
#include "kernel/ref/decode.h"

typedef struct type_entry {
    tensor_type type;
    const char *name;
    act_kind act;
    int32_t block_k, block_bytes;
} type_entry;

#define ENTRY(TYPE, name, act, block_k, block_bytes)                                               \
    {TYPE_##TYPE, #TYPE, act, block_k, block_bytes},
static const type_entry types[] = {KERNEL_TYPES(ENTRY)};
#undef ENTRY
enum { N_TYPES = COUNT_OF(types) };

/* Contents of a block of weights. */
typedef enum fill { FILL_RANDOM, FILL_ONES, FILL_ZEROS, FILL_KINDS } fill;

/* A finite half: mostly ordinary, now and then zero, denormal or the largest there is. */
static uint16_t random_half(void)
{
    static const uint16_t special[4] = {0x0000, 0x0001, 0x83ff, 0x7bff};
    uint32_t bits = random_bits();
    if (bits % 16 == 0)
        return special[bits / 16 % 4];
    return f32_to_f16(uniform(-1, 1) * 0.1f);
}

/* An exponent, sometimes one of the least; sums of what it scales stay finite. */
static uint8_t random_exponent(void)
{
    static const uint8_t special[4] = {0, 1, 2, 180};
    uint32_t bits = random_bits();
    return bits % 16 == 0 ? special[bits / 16 % 4] : (uint8_t)(118 + bits / 16 % 8);
}

/* n_rows file rows of k weights; scales are finite whatever the rest is. */
static void rows_fill(uint8_t *rows, const type_entry *e, int32_t n_rows, int64_t k, fill kind)
{
    const type_layout *layout = layout_find(e->type);
    for (int64_t b = 0; b < n_rows * (k / e->block_k); b++) {
        uint8_t *block = rows + b * e->block_bytes;
        for (int32_t i = 0; i < e->block_bytes; i++)
            block[i] = kind == FILL_RANDOM ? (uint8_t)random_bits() : kind == FILL_ONES ? 255 : 0;
        if (e->type == TYPE_F32 || e->type == TYPE_BF16) {
            uint32_t bits;
            float v = uniform(-1, 1);
            memcpy(&bits, &v, 4);
            bits >>= 32 - 8 * e->block_bytes; /* BF16 is the upper half of a float */
            memcpy(block, &bits, (size_t)e->block_bytes);
            continue;
        }
        for (int32_t p = 0; p < layout->n_parts; p++) {
            uint16_t half = random_half();
            if (layout->parts[p].kind == PART_U8)
                block[layout->parts[p].file_offset] = random_exponent();
            if (layout->parts[p].kind == PART_SPREAD) {
                uint8_t *at = block + layout->parts[p].file_offset;
                scales_scatter(at, (scales_gather(at) & ~UINT64_C(0xffff)) | half);
            }
            if (layout->parts[p].kind == PART_U16 &&
                !(e->type == TYPE_IQ4_XS && layout->parts[p].file_offset == 2))
                memcpy(block + layout->parts[p].file_offset, &half, 2);
        }
    }
}

/* Activations with quiet and loud blocks; every 7th 32-block is zero, one has the same size
 * everywhere, which is the worst case of the integer ranges. */
static void acts_fill(float *x, int64_t n, int64_t k)
{
    for (int64_t t = 0; t < n; t++)
        for (int64_t i = 0; i < k; i++) {
            int64_t block = t * 5 + i / 32;
            float v = uniform(-1, 1) * (block % 3 ? 1.0f : 100.0f);
            x[t * k + i] = block % 7 == 0 ? 0.0f : block % 11 == 0 ? copysignf(3.0f, v) : v;
        }
}

static int64_t row_bytes_of(const type_entry *e, int64_t k)
{
    return k / e->block_k * e->block_bytes;
}

/* ---- Dequantising against golden values ---- */

TEST(test_unpack_goldens)
{
    for (int32_t i = 0; i < N_TYPES; i++) {
        const type_entry *e = &types[i];
        char path[512];
        snprintf(path, sizeof path, "%s/dequant/%s.bin", TEST_DATA, e->name);
        FILE *f = fopen(path, "rb");
        assert_non_null(f);
        enum { BLOCKS = 3 };
        int64_t k = e->block_k < 32 ? BLOCKS * 256 : BLOCKS * e->block_k;
        size_t raw_bytes = (size_t)row_bytes_of(e, k);
        uint8_t *raw = must_alloc(raw_bytes);
        float *expected = must_alloc((size_t)k * 4), *got = must_alloc((size_t)k * 4);
        assert_int_equal(fread(raw, 1, raw_bytes, f), raw_bytes);
        assert_int_equal(fread(expected, 4, (size_t)k, f), k);
        assert_int_equal(fgetc(f), EOF);
        fclose(f);
        FOR_EACH_TIER(table)
        {
            const matmul_kernel *kernel = &table->matmul[e->type];
            uint8_t *group = must_alloc(kernel->group_bytes(k));
            kernel->pack(group, raw, (int64_t)raw_bytes, 1, k);
            kernel->unpack_row(got, group, 0, k);
            assert_memory_equal(got, expected, (size_t)k * 4);
            free(group);
        }
        free(raw);
        free(expected);
        free(got);
    }
}

/* ---- Packing ---- */

static void check_pack(const type_entry *e, int32_t n_rows, int64_t k, int64_t padding)
{
    const kernel_table *ref = kernel_select("ref");
    int64_t row_bytes = row_bytes_of(e, k) + padding;
    size_t group_bytes = ref->matmul[e->type].group_bytes(k);
    /* The file's last row ends at the guard page: nothing after it may be read. */
    guarded rows = guard_alloc((size_t)(row_bytes * n_rows - padding));
    guarded group = guard_alloc(group_bytes);
    uint8_t *expected = must_alloc(group_bytes);
    for (size_t i = 0; i < rows.size_bytes; i++)
        ((uint8_t *)rows.data)[i] = (uint8_t)random_bits();
    ref->matmul[e->type].pack(expected, rows.data, row_bytes, n_rows, k);
    FOR_EACH_TIER(table)
    {
        const matmul_kernel *kernel = &table->matmul[e->type];
        assert_int_equal(kernel->group_bytes(k), group_bytes);
        memset(group.data, 0xa5, group_bytes);
        kernel->pack(group.data, rows.data, row_bytes, n_rows, k);
        if (memcmp(group.data, expected, group_bytes) != 0)
            fail_msg("pack of %s on %s, %d rows, k %d", e->name, table->tier, n_rows, (int)k);
        assert_true(guard_intact(&group));
    }
    free(expected);
    guard_free(&rows);
    guard_free(&group);
}

TEST(test_pack)
{
    static const int32_t row_counts[] = {1, 2, 15, 16, 17, 31, 32};
    for (int32_t i = 0; i < N_TYPES; i++)
        for (size_t r = 0; r < COUNT_OF(row_counts); r++) {
            int64_t unit = types[i].block_k < 32 ? 32 : types[i].block_k;
            check_pack(&types[i], row_counts[r], unit, 0);
            check_pack(&types[i], row_counts[r], unit * 3, 0);
            check_pack(&types[i], row_counts[r], unit * 5, 6);
        }
    /* Float types take any k. */
    for (int64_t k = 1; k < 40; k += 6)
        for (int32_t i = 0; types[i].block_k == 1; i++)
            check_pack(&types[i], 29, k, 2);
}

static void all_tiers_say(const type_entry *e, const uint8_t *rows, int32_t n_rows, int64_t k,
                          bool finite, const char *what)
{
    static _Alignas(64) uint8_t group[GROUP_ROWS * 5 * 256 * 4];
    FOR_EACH_TIER(table)
    {
        const matmul_kernel *kernel = &table->matmul[e->type];
        if (kernel->pack(group, rows, row_bytes_of(e, k), n_rows, k) != finite)
            fail_msg("%s on %s, %d rows: %s", e->name, table->tier, n_rows, what);
    }
}

/* Rows that are finite but for one number, which is put everywhere in turn. */
static void check_finite(const type_entry *e, int32_t n_rows, int64_t k)
{
    static const uint16_t halves[] = {0x7c00, 0xfc00, 0x7e00, 0xffff}, brains[] = {0x7f80, 0xffc0};
    static const uint32_t floats[] = {0x7f800000, 0xff800001};
    static const uint8_t exponent = E8M0_NONE;
    const type_layout *layout = layout_find(e->type);
    int64_t n_blocks = n_rows * (k / e->block_k);
    uint8_t *rows = must_alloc((size_t)(n_blocks * e->block_bytes));
    rows_fill(rows, e, n_rows, k, FILL_RANDOM);
    all_tiers_say(e, rows, n_rows, k, true, "finite");
    for (int64_t b = 0; b < n_blocks; b++)
        for (int32_t p = 0; p < layout->n_parts; p++) {
            uint8_t *at = rows + b * e->block_bytes + layout->parts[p].file_offset;
            uint32_t turn = (uint32_t)(b + p);
            uint64_t kept, spread;
            bool short_one = layout->parts[p].kind == PART_U8;
            bool is_spread = layout->parts[p].kind == PART_SPREAD;
            size_t n = short_one ? 1 : is_spread ? 8 : e->type == TYPE_F32 ? 4 : 2;
            if (is_spread)
                scales_scatter((uint8_t *)&spread, halves[turn % 4] | scales_gather(at) << 16);
            const void *bad = short_one              ? (const void *)&exponent
                              : is_spread            ? (const void *)&spread
                              : e->type == TYPE_F32  ? (const void *)&floats[turn % 2]
                              : e->type == TYPE_BF16 ? (const void *)&brains[turn % 2]
                                                     : (const void *)&halves[turn % 4];
            bool number =
                e->block_k == 1 || short_one || is_spread || layout->parts[p].kind == PART_U16;
            if (e->type == TYPE_IQ4_XS && layout->parts[p].file_offset == 2)
                number = false; /* high bits of scales */
            memcpy(&kept, at, n);
            memcpy(at, bad, n);
            all_tiers_say(e, rows, n_rows, k, !number, "one number is not");
            memcpy(at, &kept, n);
        }
    free(rows);
}

TEST(test_pack_sees_what_is_not_finite)
{
    static const int32_t row_counts[] = {1, 17, 32};
    for (int32_t i = 0; i < N_TYPES; i++)
        for (int r = 0; r < 3; r++)
            check_finite(&types[i], row_counts[r],
                         types[i].block_k == 1 ? 37 : 3 * types[i].block_k);
}

TEST(test_group_bytes)
{
    for (int32_t i = 0; i < N_TYPES; i++)
        for (int64_t k = 256; k <= 256 * 7; k += 256) {
            size_t bytes = kernel_select("ref")->matmul[types[i].type].group_bytes(k);
            size_t file = (size_t)row_bytes_of(&types[i], k) * GROUP_ROWS;
            assert_true(bytes % 32 == 0 && bytes <= file + file / 50);
        }
}

/* ---- Quantising ---- */

static void fill_awkward(float *x, int64_t n)
{
    static const float awkward[] = {0.0f,     -0.0f,    1e-45f, -1e-40f, 3e-38f, 1e-30f,
                                    3.4e38f,  -3.4e38f, 0.5f,   1.5f,    2.5f,   -126.5f,
                                    INFINITY, NAN,      127.0f, -127.0f};
    for (int64_t i = 0; i < n; i++) {
        /* A block draws either from the small ones, or without, or with the non-finite ones. */
        uint32_t range = i / 256 % 3 == 0 ? 6 : i / 256 % 3 == 1 ? 12 : 16;
        x[i] = random_bits() % 4 ? uniform(-1, 1) * (i / 256 % 3 ? 1.0f : 1e-38f)
                                 : awkward[random_bits() % range];
    }
}

static void check_quantise(const kernel_table *table, act_kind kind, int32_t n, int64_t k)
{
    int64_t ldx = k + 3;
    size_t bytes = (size_t)n * act_row_bytes(kind, k);
    assert_true(bytes <= act_bytes(kind, n, k));
    guarded x = guard_alloc(sizeof(float) * (size_t)((n - 1) * ldx + k));
    guarded acts = guard_alloc(bytes);
    uint8_t *expected = must_alloc(bytes);
    for (int32_t round = 0; round < 2; round++) {
        if (round == 0)
            acts_fill(x.data, 1, (n - 1) * ldx + k);
        else
            fill_awkward(x.data, (n - 1) * ldx + k);
        kernel_select_shape("ref", table->shape)->quantise[kind](expected, x.data, ldx, 0, n, n, k);
        memset(acts.data, 0xa5, bytes);
        /* In two pieces, as two threads would. */
        int32_t middle = n / 2 / TOKEN_TILE * TOKEN_TILE;
        table->quantise[kind](acts.data, x.data, ldx, middle, n, n, k);
        table->quantise[kind](acts.data, x.data, ldx, 0, middle, n, k);
        if (memcmp(acts.data, expected, bytes) != 0)
            fail_msg("quantise %d on %s, n %d, k %d, round %d", (int)kind, table->tier, n, (int)k,
                     round);
        assert_true(guard_intact(&acts));
        if (n > TOKEN_TILE || k <= ACT_COLUMNS)
            continue;
        /* By columns, the later ones first. */
        memset(acts.data, 0xa5, bytes);
        int64_t column = k / 2 / ACT_COLUMNS * ACT_COLUMNS;
        column = column ? column : ACT_COLUMNS;
        table->quantise[kind](act_columns(kind, acts.data, n, column),
                              (const float *)x.data + column, ldx, 0, n, n, k - column);
        table->quantise[kind](acts.data, x.data, ldx, 0, n, n, column);
        if (memcmp(acts.data, expected, bytes) != 0)
            fail_msg("quantise %d on %s by columns, n %d, k %d", (int)kind, table->tier, n, (int)k);
        assert_true(guard_intact(&acts));
    }
    free(expected);
    guard_free(&x);
    guard_free(&acts);
}

TEST(test_quantise_tiers)
{
    static const int32_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33};
    for (const char *const *tier = test_tiers(); *tier; tier++)
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            const kernel_table *table = test_table(*tier);
            check_quantise(table, ACT_F32, counts[c], 37);
            check_quantise(table, ACT_F32, counts[c], 288);
            check_quantise(table, ACT_Q8_32, counts[c], 32);
            check_quantise(table, ACT_Q8_32, counts[c], 864);
            check_quantise(table, ACT_Q8_256, counts[c], 256);
            check_quantise(table, ACT_Q8_256, counts[c], 768);
        }
}

/* What the contract says of one row (m = 1): errors of half a step, the 4-bit bound, the sums. */
TEST(test_quantise_contract)
{
    enum { K = 256 * 12 };
    float *x = must_alloc(K * sizeof(float));
    uint8_t *acts = must_alloc(act_bytes(ACT_Q8_256, 1, K));
    acts_fill(x, 1, K);
    for (int32_t i = 0; i < 256; i++) /* a block where the 4-bit bound decides */
        x[512 + i] = i & 1 ? 1.0f : -1.0f;
    const kernel_table *ref = kernel_select("ref");
    ref->quantise[ACT_Q8_256](acts, x, K, 0, 1, 1, K);
    for (int32_t b = 0; b < K / 256; b++) {
        const uint8_t *block = acts + b * ACT_Q8_256_BYTES;
        float d = load_f32(block + ACT_256_D);
        for (int32_t s = 0; s < 8; s++) {
            int32_t magnitude = 0, sum = 0;
            for (int32_t i = s * 32; i < s * 32 + 32; i++) {
                int32_t q = (int8_t)block[i];
                magnitude += abs(q);
                sum += q;
                assert_true(fabsf(x[b * 256 + i] - d * (float)q) <= d * 0.50001f);
            }
            assert_true(15 * magnitude <= INT16_MAX);
            int32_t sum16 = (int32_t)load_u32(block + ACT_256_SUM16 + s * 8) +
                            (int32_t)load_u32(block + ACT_256_SUM16 + s * 8 + 4);
            assert_int_equal(sum16, -32 * sum);
            static const int32_t place[8] = {0, 2, 1, 3, 4, 6, 5, 7};
            assert_int_equal((int16_t)load_u16(block + ACT_256_PAIRS + place[s] * 2), sum);
        }
    }
    ref->quantise[ACT_Q8_32](acts, x, K, 0, 1, 1, K);
    for (int32_t b = 0; b < K / 32; b++) {
        const uint8_t *block = acts + b * ACT_Q8_32_BYTES;
        float d = load_f32(block + ACT_32_D);
        int32_t sum = 0;
        for (int32_t i = 0; i < 32; i++) {
            sum += (int8_t)block[i];
            assert_true(fabsf(x[b * 32 + i] - d * (float)(int8_t)block[i]) <= d * 0.50001f);
        }
        assert_int_equal((int32_t)load_u32(block + ACT_32_SUM), sum);
    }
    free(x);
    free(acts);
}

/* ---- Dot products ---- */

/* One matrix, packed, and its activations. */
typedef struct problem {
    const type_entry *e;
    int32_t n_groups, n;
    int64_t k, ldy;
    guarded groups;
    float *x; /* [n][k] */
} problem;

static problem problem_make(const type_entry *e, int32_t n_rows, int32_t n, int64_t k, fill kind)
{
    problem p = {.e = e, .n_groups = (n_rows + GROUP_ROWS - 1) / GROUP_ROWS, .n = n, .k = k};
    p.ldy = p.n_groups * GROUP_ROWS + 5;
    const matmul_kernel *ref = &kernel_select("ref")->matmul[e->type];
    size_t group_bytes = ref->group_bytes(k);
    int64_t row_bytes = row_bytes_of(e, k);
    uint8_t *rows = must_alloc((size_t)(row_bytes * n_rows));
    rows_fill(rows, e, n_rows, k, kind);
    p.groups = guard_alloc(group_bytes * (size_t)p.n_groups);
    for (int32_t g = 0; g < p.n_groups; g++) {
        int32_t left = n_rows - g * GROUP_ROWS;
        ref->pack((uint8_t *)p.groups.data + (size_t)g * group_bytes,
                  rows + g * GROUP_ROWS * row_bytes, row_bytes,
                  left < GROUP_ROWS ? left : GROUP_ROWS, k);
    }
    free(rows);
    p.x = must_alloc((size_t)(n * k) * sizeof(float));
    acts_fill(p.x, n, k);
    /* Equal weights meet equal activations: nothing cancels, integers are as large as they get. In
     * two rows of four only 16 of 64 are not zero: quantised they are larger, and so are their sums
     * over 16. */
    for (int64_t i = 0; i < n * k && kind != FILL_RANDOM; i++)
        p.x[i] = i / k % 4 >= 2 && i % k % 64 >= 16 ? 0.0f : i / k % 2 ? -3.0f : 3.0f;
    return p;
}

static void problem_free(problem *p)
{
    guard_free(&p->groups);
    free(p->x);
}

/* y[n][ldy] of rows first .. first + n - 1 on a tier. Caller frees. */
static float *problem_run(const problem *p, const char *tier, int32_t first, int32_t n)
{
    const kernel_table *table = test_table(tier);
    const matmul_kernel *kernel = &table->matmul[p->e->type];
    guarded acts = guard_alloc((size_t)n * act_row_bytes(kernel->act, p->k));
    guarded y = guard_alloc((size_t)((n - 1) * p->ldy + p->n_groups * GROUP_ROWS) * sizeof(float));
    uint8_t *scratch = must_alloc(test_scratch_bytes(p->k));
    memset(y.data, 0xff, y.size_bytes);
    table->quantise[kernel->act](acts.data, p->x + first * p->k, p->k, 0, n, n, p->k);
    matmul_dot(kernel, y.data, p->ldy, p->groups.data, p->n_groups, acts.data, n, p->k, scratch);
    assert_true(guard_intact(&y));
    assert_true(test_tiles_at_rest());
    float *copy = must_alloc((size_t)(n * p->ldy) * sizeof(float));
    memcpy(copy, y.data, y.size_bytes);
    free(scratch);
    guard_free(&acts);
    guard_free(&y);
    return copy;
}

static bool rows_equal(const problem *p, const float *a, const float *b)
{
    return memcmp(a, b, (size_t)p->n_groups * GROUP_ROWS * sizeof(float)) == 0;
}

/* Every tier with the 8-bit contract against ref: all n rows and, for one row in the middle, that
 * row alone. */
static void check_dot(const type_entry *e, int32_t n_rows, int32_t n, int64_t k, fill kind)
{
    problem p = problem_make(e, n_rows, n, k, kind);
    float *expected = problem_run(&p, "ref", 0, n);
    for (const char *const *tier = test_tiers(); *tier; tier++) {
        if (strcmp(*tier, "ref") == 0 || (strcmp(*tier, "float") == 0 && e->act != ACT_F32))
            continue;
        float *got = problem_run(&p, *tier, 0, n);
        for (int32_t t = 0; t < n; t++)
            if (!rows_equal(&p, got + t * p.ldy, expected + t * p.ldy))
                fail_msg("dot of %s on %s: row %d of %d, k %d, fill %d", e->name, *tier, t, n,
                         (int)k, (int)kind);
        free(got);
        float *alone = problem_run(&p, *tier, n / 2, 1);
        if (!rows_equal(&p, alone, expected + n / 2 * p.ldy))
            fail_msg("dot of %s on %s: row %d of %d alone, k %d", e->name, *tier, n / 2, n, (int)k);
        free(alone);
    }
    free(expected);
    problem_free(&p);
}

TEST(test_dot_tiers)
{
    static const int32_t counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 33};
    for (int32_t i = 0; i < N_TYPES; i++) {
        const type_entry *e = &types[i];
        int64_t unit = e->block_k < 32 ? 32 : e->block_k;
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            check_dot(e, 32, counts[c], unit, FILL_RANDOM);
            check_dot(e, 40, counts[c], unit * 3, FILL_RANDOM);
        }
        check_dot(e, 32, 9, 1280, FILL_RANDOM);
        for (int kind = FILL_ONES; kind < FILL_KINDS; kind++) {
            check_dot(e, 1, 1, unit * 2, (fill)kind);
            check_dot(e, 32, 11, unit * 2, (fill)kind);
        }
    }
}

/* Enough rows and k for every level of blocking. */
TEST(test_dot_blocking)
{
    for (int32_t i = 0; i < N_TYPES; i++) {
        check_dot(&types[i], 33, 64, 768, FILL_RANDOM);
        check_dot(&types[i], 20, 256, types[i].act == ACT_F32 ? 1280 : 1536, FILL_RANDOM);
    }
    check_dot(&types[3], 32, 259, 64, FILL_RANDOM);
}

/* Every number of rows up to two and a half tiles of 16, one to three groups, k a multiple of the
 * block only. */
TEST(test_dot_counts)
{
    for (int32_t i = 0; i < N_TYPES; i++)
        for (int32_t n = 1; n <= 40 && types[i].act != ACT_F32; n++) {
            int64_t k = types[i].block_k * (types[i].block_k < 256 ? n % 11 + 1 : n % 3 + 1);
            check_dot(&types[i], GROUP_ROWS * (n % 3 + 1), n, k, FILL_RANDOM);
        }
}

/* Returns whether amx has kernels of its own for a type. */
static bool by_tiles(const type_entry *e)
{
    return test_table("amx (emulated)")->matmul[e->type].dot_many != NULL;
}

/* The tile kernels are what was checked: they run from 9 rows on, and not for fewer. */
TEST(test_tiles_used)
{
    if (!test_table("amx (emulated)"))
        NOT_RUN("tiles: AMX is not emulated in this build");
    for (int32_t i = 0; i < N_TYPES; i++) {
        if (!by_tiles(&types[i]))
            continue;
        problem p = problem_make(&types[i], 32, 9, 512, FILL_RANDOM);
        uint64_t before = test_tile_counts().products;
        free(problem_run(&p, "amx (emulated)", 0, 8));
        assert_true(test_tile_counts().products == before);
        free(problem_run(&p, "amx (emulated)", 0, 9));
        assert_true(test_tile_counts().products >= before + 16); /* 2 x 16 rows, 8 x 64 k */
        problem_free(&p);
        /* They rearrange activations once a call, so a call should have many groups. */
        const matmul_kernel *m = &test_table("amx (emulated)")->matmul[types[i].type];
        assert_int_equal(matmul_groups(m, 8), 1);
        assert_true(matmul_groups(m, 9) >= 8);
    }
}

/* Returns the costs of a unit (kernel/x86/amx/dot_amx.c): tile instructions of a group's 256 k with
 * 16 rows, by type, and as many for each unit of a product, whatever its blocking. */
static tile_counts unit_counts(tensor_type type, int32_t block_k)
{
    if (block_k == 32) /* 8 blocks of one plane, C of both halves emptied after each */
        return (tile_counts){16, 24, 16};
    bool one = type == TYPE_Q2_K || type == TYPE_Q3_K; /* plane */
    tile_counts c = one ? (tile_counts){8, 12, 2} : (tile_counts){16, 20, 4};
    if (type == TYPE_Q2_K || type == TYPE_Q4_K || type == TYPE_Q5_K) { /* minima */
        c.products += 2;
        c.loads += 3;
        c.stores += 2;
    }
    return c;
}

static tile_counts counts_since(tile_counts before)
{
    tile_counts now = test_tile_counts();
    return (tile_counts){now.products - before.products, now.loads - before.loads,
                         now.stores - before.stores};
}

static void check_counts(tile_counts got, tile_counts unit, uint64_t n_units)
{
    assert_int_equal(got.products, unit.products * n_units);
    assert_int_equal(got.loads, unit.loads * n_units);
    assert_int_equal(got.stores, unit.stores * n_units);
}

TEST(test_tile_costs)
{
    const kernel_table *amx = test_table("amx (emulated)");
    if (!amx)
        NOT_RUN("costs of tiles: AMX is not emulated in this build");
    guarded scratch = guard_alloc(test_scratch_least());
    for (int32_t i = 0; i < N_TYPES; i++) {
        if (!by_tiles(&types[i]))
            continue;
        tile_counts unit = unit_counts(types[i].type, types[i].block_k), none = {0, 0, 0};
        problem p = problem_make(&types[i], 64, 270, 1280, FILL_RANDOM);
        tile_counts before = test_tile_counts();
        free(problem_run(&p, "amx (emulated)", 0, 270));
        check_counts(counts_since(before), unit, 2 * 17 * 5); /* groups, 16 rows, 256 k */
        problem_free(&p);
        const uint64_t rounds = types[i].block_k == 32 ? 4 : 2; /* of 128 k, or of 256 */
        int32_t n_parts = 0;
        for (const char *name;; n_parts++) {
            before = test_tile_counts();
            name = amx->dot_part(types[i].type, n_parts, (int64_t)rounds, scratch.data);
            if (!name)
                break;
            check_counts(counts_since(before), strstr(name, "products") ? unit : none, 2);
            assert_true(test_tiles_at_rest());
        }
        assert_int_equal(n_parts, 5);
    }
    assert_true(guard_intact(&scratch));
    guard_free(&scratch);
}

/* The float tier against its statement: unpack_row, then fma in the order of k. */
TEST(test_dot_float)
{
    for (int32_t i = 0; i < N_TYPES; i++)
        for (int32_t n = 1; n <= 41; n += 10) {
            problem p = problem_make(&types[i], 37, n, 512, FILL_RANDOM);
            float *got = problem_run(&p, "float", 0, n);
            float *weights = must_alloc(512 * sizeof(float));
            const matmul_kernel *ref = &kernel_select("ref")->matmul[types[i].type];
            assert_int_equal(kernel_select("float")->matmul[types[i].type].act, ACT_F32);
            for (int32_t r = 0; r < 37; r += 9) {
                ref->unpack_row(weights,
                                (uint8_t *)p.groups.data +
                                    (size_t)(r / GROUP_ROWS) * ref->group_bytes(512),
                                r % GROUP_ROWS, 512);
                for (int32_t t = 0; t < n; t++) {
                    float sum = 0;
                    for (int32_t j = 0; j < 512; j++)
                        sum = fmaf(weights[j], p.x[t * 512 + j], sum);
                    assert_memory_equal(&got[t * p.ldy + r], &sum, 4);
                }
            }
            free(weights);
            free(got);
            problem_free(&p);
        }
}

/* ---- The scalar dot product against double precision ---- */

/* Finds the terms that weight i of a decoded block multiplies its activation with: a product and an
 * offset. */
static void weight_terms(const type_entry *e, const row_block *w, int32_t i, double *product,
                         double *offset)
{
    const int32_t sub_k = decoders_ref[e->type].sub_k, s = sub_k ? i / sub_k : 0;
    *offset = 0;
    *product = (double)(sub_k == FLOAT_SUBS ? w->fine[i / 16] : w->d) * w->q[i];
    if (e->act == ACT_Q8_256)
        *product *= w->scale[s];
    if (e->type == TYPE_Q4_1 || e->type == TYPE_Q5_1)
        *offset = w->m;
    if (e->type == TYPE_Q2_K || e->type == TYPE_Q4_K || e->type == TYPE_Q5_K)
        *offset = -(double)w->m * w->min[s];
}

/* The exact sum over one row of weights and one quantised row (a tile of one), and the sum of the
 * absolute values of its terms. */
static void dot_double(const problem *p, const uint8_t *acts, int32_t row, double *sum,
                       double *magnitude)
{
    const type_entry *e = p->e;
    const uint8_t *block =
        (const uint8_t *)p->groups.data + (size_t)(row / GROUP_ROWS) * (size_t)(p->k / e->block_k) *
                                              (size_t)e->block_bytes * GROUP_ROWS;
    float *weights = must_alloc((size_t)p->k * sizeof(float));
    kernel_select("ref")->matmul[e->type].unpack_row(weights, block, row % GROUP_ROWS, p->k);
    *sum = *magnitude = 0;
    for (int64_t i = 0; i < p->k; i++) {
        double x, product = weights[i], offset = 0;
        if (e->act == ACT_F32) {
            x = load_f32(acts + i * 4);
        } else {
            row_block w;
            int64_t b = i / e->block_k, in_block = i % e->block_k, act_k = act_block_k(e->act);
            const uint8_t *act = acts + i / act_k * act_block_bytes(e->act);
            x = (double)(int8_t)act[i % act_k] *
                load_f32(act + (e->act == ACT_Q8_32 ? (int)ACT_32_D : (int)ACT_256_D));
            decoders_ref[e->type].decode(&w, block + b * e->block_bytes * GROUP_ROWS,
                                         row % GROUP_ROWS);
            weight_terms(e, &w, (int32_t)in_block, &product, &offset);
        }
        *sum += (product + offset) * x;
        *magnitude += (fabs(product) + fabs(offset)) * fabs(x);
    }
    free(weights);
}

/* Each of the n additions (blocks; two with an offset) rounds a partial sum, which the magnitude
 * bounds, by half a unit; its factor has two roundings more. So |error| <= (n + 2) u magnitude,
 * where no factor is denormal: those of MXFP4's least scales are, and meet integers of 16 bits. */
TEST(test_dot_bound)
{
    for (int32_t i = 0; i < N_TYPES; i++) {
        const type_entry *e = &types[i];
        problem p = problem_make(e, 32, 2, 1024, FILL_RANDOM);
        uint8_t *acts = must_alloc(act_bytes(e->act, 1, p.k));
        for (int32_t t = 0; t < 2; t++) {
            float *y = problem_run(&p, "ref", t, 1);
            kernel_select("ref")->quantise[e->act](acts, p.x + t * p.k, p.k, 0, 1, 1, p.k);
            for (int32_t r = 0; r < 32; r++) {
                double sum, magnitude;
                dot_double(&p, acts, r, &sum, &magnitude);
                double n = 2.0 * (double)(e->block_k == 64 ? p.k / 16 : p.k / e->block_k);
                double bound = (n + 2) * 0x1p-24 * magnitude * 1.001 + n * 0x1p-133;
                if (!(fabs(y[r] - sum) <= bound))
                    fail_msg("dot of %s: row %d is off by %g, the bound is %g", e->name, r,
                             fabs(y[r] - sum), bound);
            }
            free(y);
        }
        free(acts);
        problem_free(&p);
    }
}

TEST(test_tables)
{
    assert_null(kernel_select("pentium"));
    assert_non_null(kernel_select("ref"));
    assert_string_equal(kernel_select(NULL)->tier, kernel_tiers()[0]);
    for (const char *const *tier = kernel_all_tiers(); *tier; tier++) {
        const kernel_table *table = kernel_select(*tier);
        print_message("tier %s: %s\n", *tier,
                      table ? "runs here" : "not run: this processor lacks it");
        for (int32_t i = 0; table && i < N_TYPES; i++)
            assert_non_null(table->matmul[types[i].type].dot);
    }
    for (const char *const *tier = test_tiers(); *tier; tier++)
        if (!kernel_select(*tier))
            print_message("test-only build: %s\n", *tier);
}
