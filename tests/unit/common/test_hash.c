/* XXH64 against xxhsum -H1 of xxHash 0.8, and the same whatever the pieces it comes in. */
#include "common/hash.h"
#include "support/test.h"

enum { MOST = 1000 };

static void fill(uint8_t bytes[static MOST])
{
    for (int i = 0; i < MOST; i++)
        bytes[i] = (uint8_t)(i * 7 + 3);
}

TEST(known_values)
{
    static const struct {
        size_t n;
        uint64_t hash;
    } cases[] = {{0, 0xef46db3751d8e999},   {31, 0xa2aa5f33cc4a6119},  {32, 0x23c3c17ef790fd97},
                 {33, 0x50a7cfc7ba588784},  {63, 0x5e3e54b431c7493c},  {64, 0x0eb64b3ef6eeb01f},
                 {100, 0xa61f8d4c170fe531}, {1000, 0x5f235fa033f1a3fb}};
    uint8_t bytes[MOST];
    fill(bytes);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(hash64_of(bytes, cases[i].n) == cases[i].hash);
    assert_true(hash64_of("abc", 3) == 0x44bc2cf5ad770999);
}

TEST(pieces_make_no_difference)
{
    uint8_t bytes[MOST];
    fill(bytes);
    for (size_t step = 1; step < 100; step++) {
        hash64 h;
        hash64_init(&h);
        for (size_t at = 0; at < MOST; at += step) {
            hash64_add(&h, bytes + at, MOST - at < step ? MOST - at : step);
            (void)hash64_get(&h); /* changes nothing */
        }
        assert_true(hash64_get(&h) == hash64_of(bytes, MOST));
    }
}
