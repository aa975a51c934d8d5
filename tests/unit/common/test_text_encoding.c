/* Byte order marks and UTF-16 become UTF-8; what has no mark stays as it is. */
#include "common/json_value.h"
#include "common/text_encoding.h"
#include "support/test.h"

#define BYTES(text) text, sizeof text - 1

static const char *decoded(const char *bytes, size_t n, char **out, size_t *n_out)
{
    *out = malloc(n + 1);
    assert_non_null(*out);
    memcpy(*out, bytes, n);
    (*out)[n] = '\0';
    *n_out = n;
    return text_to_utf8(out, n_out);
}

TEST(texts)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *text;
        size_t n_text;
    } cases[] = {
        {BYTES(""), BYTES("")},
        {BYTES("\xEF\xBB"), BYTES("\xEF\xBB")},
        {BYTES("\xEF\xBB\xBF"), BYTES("")},
        {BYTES("\xEF\xBB\xBFg\xC3\xA9"), BYTES("g\xC3\xA9")},
        {BYTES("\xEF\xBB\xBF\xEF\xBB\xBF"), BYTES("\xEF\xBB\xBF")},
        {BYTES("\xFF"), BYTES("\xFF")},
        {BYTES("\xFF\xFE"), BYTES("")},
        {BYTES("\xFF\xFEg\0\xE9\0"), BYTES("g\xC3\xA9")},
        {BYTES("\xFE\xFF\0g\0\xE9"), BYTES("g\xC3\xA9")},
        {BYTES("\xFF\xFE\xAC\x20"), BYTES("\xE2\x82\xAC")},
        {BYTES("\xFF\xFE\x3D\xD8\x00\xDE"), BYTES("\xF0\x9F\x98\x80")},
        {BYTES("\xFE\xFF\xD8\x3D\xDE\x00"), BYTES("\xF0\x9F\x98\x80")},
        {BYTES("\xFE\xFF\xFF\xFF"), BYTES("\xEF\xBF\xBF")},
        {BYTES("\xFF\xFEg\0\0\0"), BYTES("g\0")},
        {BYTES("\x80\0\xFF\xFE"), BYTES("\x80\0\xFF\xFE")},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;
        size_t n;
        assert_null(decoded(cases[i].bytes, cases[i].n, &text, &n));
        assert_int_equal(n, cases[i].n_text);
        assert_memory_equal(text, cases[i].text, n + 1);
        free(text);
    }
}

TEST(broken)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *why;
    } cases[] = {
        {BYTES("\xFF\xFEg"), "in the middle of a character"},
        {BYTES("\xFF\xFE\x3D\xD8"), "half a character"},
        {BYTES("\xFF\xFE\x3D\xD8g\0"), "half a character"},
        {BYTES("\xFF\xFE\x00\xDEg\0"), "half a character"},
        {BYTES("\xFE\xFF\xDE\x00\xD8\x3D"), "half a character"},
        {BYTES("\xFF\xFE\0\0g\0\0\0"), "UTF-32"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *text;
        size_t n;
        const char *why = decoded(cases[i].bytes, cases[i].n, &text, &n);
        assert_non_null(why);
        assert_non_null(strstr(why, cases[i].why));
        assert_int_equal(n, cases[i].n);
        assert_memory_equal(text, cases[i].bytes, n);
        free(text);
    }
}

TEST(values_that_are_the_same)
{
    static const struct {
        const char *a, *b;
        bool same;
    } cases[] = {{"1", "1.0", true},
                 {"1", "\"1\"", false},
                 {"[1,2]", "[1,2]", true},
                 {"[1,2]", "[2,1]", false},
                 {"{\"a\":1,\"b\":[]}", "{\"b\":[],\"a\":1}", true},
                 {"{\"a\":1}", "{\"b\":1}", false},
                 {"{\"a\":1}", "{\"a\":2}", false},
                 {"9007199254740993", "9007199254740992", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        json_document a, b;
        assert_non_null(json_load(&a, cases[i].a, strlen(cases[i].a)));
        assert_non_null(json_load(&b, cases[i].b, strlen(cases[i].b)));
        assert_int_equal(json_same(a.root, b.root), cases[i].same);
        json_free(&a);
        json_free(&b);
    }
}
