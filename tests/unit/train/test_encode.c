/* Weights in 4.25 and 4.5 bits: bytes worked out by hand, a row holds afterwards what kernels make
 * of its bytes, and the error is that of the levels. */
#include "gguf/types.h"
#include "kernel/kernel.h"
#include "kernel/packing.h"
#include "support/rng.h"
#include "support/test.h"
#include "train/encode.h"

enum { NL_BYTES = 18, XS_BYTES = 136 };

TEST(types_by_width)
{
    assert_int_equal(encode_type(1536), TYPE_IQ4_XS);
    assert_int_equal(encode_type(576), TYPE_IQ4_NL);
    assert_int_equal(encode_type(48), TYPE_F16);
}

/* Half of each level, rising in the first half of the block and falling in the second. */
TEST(a_block_by_hand)
{
    float x[32], want[32];
    uint8_t got[NL_BYTES];
    for (int i = 0; i < 32; i++)
        want[i] = x[i] = 0.5f * (float)iq4_levels[i < 16 ? i : 31 - i];
    encode_row(TYPE_IQ4_NL, got, x, 32);
    assert_int_equal(got[0], 0x00); /* 0.5 */
    assert_int_equal(got[1], 0x38);
    for (int i = 0; i < 16; i++)
        assert_int_equal(got[2 + i], i | (15 - i) << 4);
    assert_memory_equal(x, want, sizeof x);
}

/* Factors of a sixteenth; -32 is the largest, whatever its sign. */
TEST(a_super_block_by_hand)
{
    static const int factor[8] = {3, -32, 31, 0, -7, 16, 1, -1};
    float x[256], want[256];
    uint8_t got[XS_BYTES];
    for (int i = 0; i < 256; i++)
        want[i] = x[i] = (float)(factor[i / 32] * iq4_levels[i % 16]) / 16;
    encode_row(TYPE_IQ4_XS, got, x, 256);
    assert_int_equal(got[0] | got[1] << 8, 0x2c00); /* 1 / 16 */
    for (int b = 0; b < 8; b++) {
        int low = got[4 + b / 2] >> (b % 2 * 4) & 15, high = (got[2] | got[3] << 8) >> 2 * b & 3;
        assert_int_equal((high << 4 | low) - 32, factor[b]);
        for (int i = 0; i < 16 && factor[b]; i++)
            assert_int_equal(got[8 + b * 16 + i], i | i << 4);
    }
    assert_memory_equal(x, want, sizeof x);
}

TEST(halves_by_hand)
{
    float x[2] = {1, 1 + 1.0f / 4096}; /* a quarter of the last place */
    uint8_t got[4];
    encode_row(TYPE_F16, got, x, 2);
    assert_int_equal(got[0] | got[1] << 8, 0x3c00);
    assert_int_equal(got[2] | got[3] << 8, 0x3c00);
    assert_true(x[1] == 1);
}

/* Normal numbers, of which some blocks are all but 0. */
static void check_rows(uint32_t type, double most)
{
    enum { N = 1024 };
    static float x[N], before[N], unpacked[N];
    static uint8_t bytes[N * 2];
    const matmul_kernel *k = &kernel_select("ref")->matmul[type];
    void *group = aligned_alloc(64, k->group_bytes(N));
    rng r = rng_from(type);
    double error = 0, square = 0;
    for (int i = 0; i < N; i++)
        before[i] = x[i] = (float)rng_normal(&r) * (i / 32 % 7 == 3 ? 1e-33f : 0.02f);
    encode_row(type, bytes, x, N);
    assert_true(k->pack(group, bytes, type_row_bytes(type_find(type), N), 1, N));
    k->unpack_row(unpacked, group, 0, N);
    for (int i = 0; i < N; i++) {
        assert_true(unpacked[i] == x[i]);
        error += pow((double)x[i] - (double)before[i], 2);
        square += pow((double)before[i], 2);
    }
    free(group);
    if (sqrt(error / square) > most)
        fail_msg("type %d is off by %g of what it encodes", (int)type, sqrt(error / square));
}

TEST(kernels_read_what_rows_hold)
{
    check_rows(TYPE_IQ4_XS, 0.09);
    check_rows(TYPE_IQ4_NL, 0.09);
    check_rows(TYPE_F16, 0.0005);
}
