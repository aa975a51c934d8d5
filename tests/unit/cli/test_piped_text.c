/* Texts from pipes, byte by byte, are those that text_to_utf8 makes of the whole. */
#include "cli/typing/piped_text.h"
#include "support/test.h"

#define BYTES(text) text, sizeof text - 1

static void becomes(const char *bytes, size_t n, const char *wanted)
{
    char in[64], out[64];
    size_t n_out = 0;
    piped_text t = {0};
    memcpy(in, bytes, n);
    FILE *file = fmemopen(in, n + 1, "r"); /* the NUL at its end is not read */
    assert_non_null(file);
    for (size_t i = 0; n_out < sizeof out; i++) {
        int c = ftell(file) < (long)n || t.taken < t.n_ahead ? piped_text_byte(&t, file) : EOF;
        if (c == EOF)
            break;
        out[n_out++] = (char)c;
    }
    fclose(file);
    assert_int_equal(n_out, strlen(wanted));
    assert_memory_equal(out, wanted, n_out);
}

TEST(texts)
{
    becomes(BYTES("H"), "H");
    becomes(BYTES("Hello\n"), "Hello\n");
    becomes(BYTES("\xEF\xBB\xBFHello\n"), "Hello\n");
    becomes(BYTES("\xEF\xBBx"), "\xEF\xBBx");
    becomes(BYTES("\xFFx"), "\xFFx");
    becomes(BYTES("\xFF\xFEg\0\xE9\0\n\0"), "g\xC3\xA9\n");
    becomes(BYTES("\xFE\xFF\0g\0\xE9\0\n"), "g\xC3\xA9\n");
    becomes(BYTES("\xFF\xFE\x3D\xD8\x00\xDE!\0"), "\xF0\x9F\x98\x80!");
    becomes(BYTES("\xFF\xFEg\0\x3D\xD8"), "g\xEF\xBF\xBD");
}
