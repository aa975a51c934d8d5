/* Names of files on a hub: which are refused, and how they are written in a URL. */
#include "cli/pull/remote_name.h"

#include "support/test.h"

TEST(usual_names_are_accepted)
{
    static const char *const names[] = {"model-Q4_K_M.gguf",
                                        "folder/deep er/a-00001-of-00002.gguf",
                                        "my model [v1] {a,b} Q4.gguf",
                                        "100%.gguf",
                                        "a%2fb.gguf",
                                        "\xc3\xbc-\xe6\xa8\xa1\xe5\x9e\x8b-\xf0\x9f\xa6\x99.gguf",
                                        "...gguf",
                                        "a..b.gguf",
                                        "-o.gguf",
                                        "it's \"one\";$(x)`y`&<>|*.gguf"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_null(remote_name_fault(names[i]));
}

TEST(names_that_are_no_files_here_are_refused)
{
    static const char *const names[] = {"",
                                        "/a.gguf",
                                        "a//b.gguf",
                                        "a/",
                                        ".",
                                        "..",
                                        "../a.gguf",
                                        "a/../b.gguf",
                                        "a/..",
                                        "./a.gguf",
                                        "a?b.gguf",
                                        "a#b.gguf",
                                        "a\\b.gguf",
                                        "a\nb.gguf",
                                        "a\x1b[2Jb.gguf",
                                        "a\x7f.gguf",
                                        "a\xc2\x9b.gguf",
                                        "a\x9b.gguf",
                                        "a\xc0\xaf.gguf",
                                        "a\xe2\x80\xae-b.gguf",
                                        "a\xe2\x81\xa6.gguf",
                                        "a\xe2\x80\xa8.gguf",
                                        "a\xe6\xa8"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_non_null(remote_name_fault(names[i]));
    char long_one[4096];
    memset(long_one, 'a', sizeof long_one);
    long_one[241] = '\0';
    assert_non_null(remote_name_fault(long_one));
    long_one[240] = '\0';
    assert_null(remote_name_fault(long_one));
    for (size_t i = 0; i < sizeof long_one; i++)
        long_one[i] = i % 2 ? '/' : 'a';
    long_one[sizeof long_one - 1] = '\0';
    assert_non_null(remote_name_fault(long_one));
}

static void check_encoded(const char *text, const char *plain, const char *want)
{
    char *got = remote_name_encode(text, plain);
    assert_non_null(got);
    assert_string_equal(got, want);
    assert_true(remote_name_decode(got));
    assert_string_equal(got, text);
    free(got);
}

TEST(encoded_names_are_decoded_to_themselves)
{
    check_encoded("a b/c", "/", "a%20b/c");
    check_encoded("100%41.gguf", ".", "100%2541.gguf");
    check_encoded("[v1]{a,b}#1?", "", "%5Bv1%5D%7Ba%2Cb%7D%231%3F");
    check_encoded("\xc3\xbc\x1b", "", "%C3%BC%1B");
}

TEST(what_is_no_code_stays)
{
    char text[] = "%zz%4%41%6x%", none[] = "a%00b";
    assert_true(remote_name_decode(text));
    assert_string_equal(text, "%zz%4A%6x%");
    assert_false(remote_name_decode(none));
}
