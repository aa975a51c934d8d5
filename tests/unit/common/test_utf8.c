/* UTF-8 against its definition: every code point there and back, every sequence of three bytes. */

#include "common/utf8.h"
#include "support/test.h"

/* Writes a code point, also one that UTF-8 has not; returns the length. */
static int put(uint32_t c, uint8_t out[4])
{
    int length = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const uint8_t leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (int i = length - 1; i > 0; i--, c >>= 6)
        out[i] = (uint8_t)(0x80 | (c & 0x3F));
    out[0] = (uint8_t)(leads[length] | c);
    return length;
}

TEST(every_code_point)
{
    for (uint32_t c = 0; c < 0x120000; c++) {
        uint8_t bytes[4];
        int length = put(c, bytes);
        if ((c >= 0xD800 && c < 0xE000) || c > 0x10FFFF) {
            assert_int_equal(utf8_length(bytes, (size_t)length), UTF8_BROKEN);
            assert_int_equal(utf8_length(bytes, 2), UTF8_BROKEN);
            continue;
        }
        assert_int_equal(utf8_length(bytes, (size_t)length), length);
        assert_int_equal(utf8_code_point(bytes, length), c);
        for (int n = 1; n < length; n++)
            assert_int_equal(utf8_length(bytes, (size_t)n), UTF8_UNFINISHED);
    }
}

/* A sequence is a character exactly if writing its code point gives it again. */
TEST(every_three_bytes)
{
    for (uint32_t i = 0; i < 1u << 24; i += 1 + i % 3) {
        uint8_t b[3] = {(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}, again[4];
        int length = utf8_length(b, 3);
        if (length > 0) {
            uint32_t c = utf8_code_point(b, length);
            if (put(c, again) != length || (c >= 0xD800 && c < 0xE000))
                fail_msg("%06x is no character", i);
            for (int k = 0; k < length; k++)
                assert_int_equal(b[k], again[k]);
        } else if (length == UTF8_UNFINISHED) {
            assert_true(b[0] >= 0xF0 && b[0] <= 0xF4);
        } else {
            /* Neither a character nor the beginning of one: the bits read as a code point are
             * written otherwise, or are none. */
            uint32_t two = (b[0] & 0x1Fu) << 6 | (b[1] & 0x3Fu);
            uint32_t three = (b[0] & 0xFu) << 12 | (b[1] & 0x3Fu) << 6 | (b[2] & 0x3Fu);
            assert_true(b[0] >= 0x80);
            if (put(two, again) == 2)
                assert_false(b[0] == again[0] && b[1] == again[1]);
            if (put(three, again) == 3 && (three < 0xD800 || three >= 0xE000))
                assert_false(b[0] == again[0] && b[1] == again[1] && b[2] == again[2]);
        }
    }
}
