/* Nested planes: what is split and joined again is what it was, on every tier; what stands for
 * missing bits, by hand; and products over planes are those of the joined blocks, to the bit. */
#include "kernel/kernel_test.h"
#include "kernel/planes.h"

static const tensor_type types[] = {TYPE_Q4_0, TYPE_Q4_1, TYPE_Q5_0, TYPE_Q5_1,
                                    TYPE_Q4_K, TYPE_Q5_K, TYPE_Q6_K};
enum { N_TYPES = COUNT_OF(types), K = 768 };

/* A group of random quants; all halves are small and finite. */
typedef struct split_group {
    const plane_layout *layout;
    int32_t n_blocks;
    size_t bytes;
    uint8_t *group, *plane[N_PLANES];
} split_group;

static split_group split_make(tensor_type type)
{
    const type_layout *packed = layout_find(type);
    split_group s = {.layout = plane_layout_find(type), .n_blocks = K / packed->block_k};
    size_t block = (size_t)packed->file_block_bytes * GROUP_ROWS, sum = 0;
    s.bytes = block * (size_t)s.n_blocks;
    s.group = must_alloc(s.bytes);
    for (size_t i = 0; i < s.bytes; i++)
        s.group[i] = (uint8_t)random_bits();
    for (int32_t b = 0; b < s.n_blocks; b++)
        for (int32_t i = 1; i < packed->n_scales * GROUP_ROWS * 2; i += 2)
            s.group[(size_t)b * block + (size_t)i] &= 0x83;
    for (int i = 0; i < N_PLANES; i++) {
        s.plane[i] = must_alloc((size_t)s.n_blocks * plane_block_bytes(s.layout, i));
        sum += plane_block_bytes(s.layout, i);
    }
    assert_int_equal(sum, block);
    plane_split(s.layout, s.plane, s.group, s.n_blocks);
    return s;
}

static void split_free(split_group *s)
{
    free(s->group);
    for (int i = 0; i < N_PLANES; i++)
        free(s->plane[i]);
}

TEST(test_joined_is_as_before)
{
    for (int t = 0; t < N_TYPES; t++) {
        split_group s = split_make(types[t]);
        guarded out = guard_alloc(s.bytes);
        for (const char *const *tier = test_tiers(); *tier; tier++) {
            memset(out.data, 0, s.bytes);
            test_table(*tier)->plane_join(
                out.data, s.layout, &(plane_blocks){{s.plane[0], s.plane[1], s.plane[2]}, {{0}}},
                s.n_blocks);
            if (memcmp(out.data, s.group, s.bytes) != 0)
                fail_msg("type %d on %s", (int)types[t], *tier);
            assert_true(guard_intact(&out));
        }
        guard_free(&out);
        split_free(&s);
    }
}

/* The 4-bit number `half` of byte i with its missing bits filled, as planes.h says. */
static uint8_t filled(uint8_t byte, int half, int32_t i, int n_there, const plane_means *m)
{
    uint8_t q = byte >> (4 * half) & 15;
    if (n_there == 1)
        return (uint8_t)((q & 12) | m->low[q >> 2]);
    return (uint8_t)((q & 14) | (i % 2 == 0));
}

static void check_filled(const split_group *s, tensor_type type, int n_there)
{
    const plane_means means = {{2, 3, 0, 1}};
    const plane_blocks blocks = {{s->plane[0], n_there > 1 ? s->plane[1] : NULL, NULL}, means};
    uint8_t *want = must_alloc(s->bytes), *got = must_alloc(s->bytes), *at = want;
    memcpy(want, s->group, s->bytes);
    for (int32_t b = 0; b < s->n_blocks; b++) {
        at += s->layout->front * PLANE_LINE;
        for (int32_t c = 0; c < s->layout->n_chunks; c++) {
            at += s->layout->kept * PLANE_LINE;
            for (int32_t i = 0; i < s->layout->split * PLANE_LINE; i++, at++)
                *at = (uint8_t)(filled(*at, 0, i, n_there, &means) |
                                filled(*at, 1, i, n_there, &means) << 4);
        }
    }
    for (const char *const *tier = test_tiers(); *tier; tier++) {
        test_table(*tier)->plane_join(got, s->layout, &blocks, s->n_blocks);
        if (memcmp(got, want, s->bytes) != 0)
            fail_msg("type %d, %d planes on %s", (int)type, n_there, *tier);
    }
    free(want);
    free(got);
}

TEST(test_missing_planes_are_filled)
{
    for (int t = 0; t < N_TYPES; t++) {
        split_group s = split_make(types[t]);
        check_filled(&s, types[t], 1);
        check_filled(&s, types[t], 2);
        split_free(&s);
    }
}

/* Of a Q4_0 block whose bytes are 0x10, 0x21, ... by hand. */
TEST(test_means)
{
    uint8_t block[18 * GROUP_ROWS] = {0};
    for (int32_t i = Q4_0_QS; i < (int32_t)sizeof block; i++)
        block[i] = i % 4 == 0 ? 0x03 : i % 4 == 1 ? 0x76 : i % 4 == 2 ? 0x02 : 0xd8;
    /* High 0: 3 0 2 0, mean 1.25; high 1: 2 3, mean 2.5; high 2: 0; high 3: 1. */
    plane_counts c = {{{0}}};
    plane_count(plane_layout_find(TYPE_Q4_0), &c, block, 1);
    assert_int_equal(c.n[0][0], 256);
    assert_int_equal(c.n[0][3], 128);
    assert_int_equal(c.n[1][2], 128);
    plane_means m = plane_means_of(&c);
    assert_int_equal(m.low[0], 1);
    assert_int_equal(m.low[1], 3);
    assert_int_equal(m.low[2], 0);
    assert_int_equal(m.low[3], 1);
    m = plane_means_of(&(plane_counts){{{0}}});
    assert_int_equal(m.low[1] * 10 + m.low[2], 21);
}

static void check_dot(const split_group *s, tensor_type type, const kernel_table *table, int32_t n,
                      int n_there)
{
    const matmul_kernel *m = &table->matmul[type];
    float *x = must_alloc(sizeof(float) * (size_t)n * K), *want, *got;
    for (int32_t i = 0; i < n * K; i++)
        x[i] = uniform(-1, 1);
    want = must_alloc(sizeof(float) * (size_t)n * GROUP_ROWS);
    got = must_alloc(sizeof(float) * (size_t)n * GROUP_ROWS);
    void *acts = must_alloc(act_bytes(m->act, n, K)), *scratch = must_alloc(test_scratch_bytes(K));
    void *group = must_alloc(s->bytes), *joined = must_alloc(s->bytes);
    table->quantise[m->act](acts, x, K, 0, n, n, K);
    plane_blocks blocks = {
        {s->plane[0], n_there > 1 ? s->plane[1] : NULL, n_there > 2 ? s->plane[2] : NULL},
        {{2, 2, 1, 1}}};
    table->plane_join(joined, s->layout, &blocks, s->n_blocks);
    matmul_dot(m, want, GROUP_ROWS, joined, 1, acts, n, K, scratch);
    dot_planes(table, type, got, GROUP_ROWS, &blocks, acts, n, K, scratch, group);
    if (memcmp(want, got, sizeof(float) * (size_t)n * GROUP_ROWS) != 0)
        fail_msg("type %d, %d planes, %d rows on %s", (int)type, n_there, n, table->tier);
    void *all[] = {x, want, got, acts, scratch, group, joined};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

TEST(test_products_are_those_of_joined_blocks)
{
    static const int32_t counts[] = {1, 2, 7, 8, 9, 13, 33};
    for (int t = 0; t < N_TYPES; t++) {
        split_group s = split_make(types[t]);
        FOR_EACH_TEST_TIER(table)
        for (size_t i = 0; i < COUNT_OF(counts); i++)
            for (int n_there = 1; n_there <= N_PLANES; n_there++)
                check_dot(&s, types[t], table, counts[i], n_there);
        split_free(&s);
    }
}

TEST(test_what_is_split)
{
    assert_null(plane_layout_find(TYPE_F16));
    assert_null(plane_layout_find(TYPE_Q8_0));
    assert_null(plane_layout_find(TYPE_IQ4_XS)); /* its numbers are levels: bits have no order */
    assert_int_equal(plane_block_bytes(plane_layout_find(TYPE_Q4_K), 0), 512 + 2048);
    assert_int_equal(plane_block_bytes(plane_layout_find(TYPE_Q4_K), 2), 1024);
    assert_int_equal(plane_block_bytes(plane_layout_find(TYPE_Q6_K), 0), 576 + 2048 + 2048);
}
