/* JSON events, the parts of strings, and what the writer makes of numbers and lines. Broken texts
 * are in test_template and in the server's tests; any bytes in fuzz_json. */

#include "common/json_buffer.h"
#include "common/json_template.h"
#include "support/test.h"

TEST(events)
{
    static const char text[] = " {\"a\" : [1, -2.5e3, \"x\\n\"], \"\": {}} ";
    static const json_event wanted[] = {
        JSON_OBJECT, JSON_KEY,    JSON_ARRAY, JSON_NUMBER, JSON_NUMBER, JSON_STRING, JSON_CLOSE,
        JSON_KEY,    JSON_OBJECT, JSON_CLOSE, JSON_CLOSE,  JSON_DONE,   JSON_DONE};
    json_reader r;
    json_reader_init(&r, text, sizeof text - 1, 2);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        assert_int_equal(json_next(&r), wanted[i]);
    json_reader_init(&r, text, sizeof text - 1, 1);
    while (json_next(&r) < JSON_DONE)
        ;
    assert_non_null(strstr(r.why, "too deep"));
    assert_int_equal(r.why_at, 8);
}

TEST(parts)
{
    static const char text[] = "\"ab\\u00e9\\ud83d\\ude00c\"";
    static const struct {
        const char *bytes;
        size_t from;
    } wanted[] = {{"ab", 1}, {"\u00e9", 4}, {"\U0001F600", 10}, {"c", 21}};
    json_reader r;
    json_part part;
    json_reader_init(&r, text, sizeof text - 1, 1);
    assert_int_equal(json_next(&r), JSON_STRING);
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(json_next_part(&r, &part));
        assert_int_equal(part.n, strlen(wanted[i].bytes));
        assert_memory_equal(part.bytes, wanted[i].bytes, part.n);
        assert_int_equal(part.from - text, wanted[i].from);
    }
    assert_false(json_next_part(&r, &part));
    assert_int_equal(json_next(&r), JSON_DONE);
}

TEST(numbers_and_lines)
{
    static const double numbers[] = {0.1, 1e300, 3, -0.0, 1 / 3.0};
    json_buffer b;
    json_writer *w = json_buffer_begin(&b);
    json_put_numbers(w, "n", numbers, 5);
    json_put_array(w, "empty");
    json_close(w, ']');
    json_put_text(w, "t", "a\"\x01\xFF");
    char *text = json_buffer_end(&b);
    assert_string_equal(text, "{\n\t\"n\":\t[0.1, 1e+300, 3, -0.0, 0.3333333333333333],\n"
                              "\t\"empty\":\t[],\n\t\"t\":\t\"a\\\"\\u0001\uFFFD\"\n}");
    json_document d;
    double again[5];
    const json_value *root = json_load(&d, text, strlen(text));
    assert_int_equal(json_member_numbers(root, "n", again, 5), 5);
    assert_memory_equal(again, numbers, sizeof again);
    assert_int_equal(json_member_numbers(root, "n", again, 4), -1);
    assert_true(json_member_is(root, "t", "a\"\x01\uFFFD"));
    assert_null(json_member(root, "none"));
    json_free(&d);
    free(text);
}

static void add(void *user, const char *bytes, size_t n, const char *from)
{
    strncat(user, bytes, n);
}

TEST(templates)
{
    const char *volatile none = NULL; /* compilers warn of one that they know */
    char text[400] = "";
    json_writer w = {.put = add, .user = text, .digits = 9};
    json_put(&w, "[{a:%d,b:[],'c d':{},%s:'v-%s-%d'", -1, "k\"", "\n", 2);
    json_put(&w, "none:%s,part:%.*s,open:'", none, 2, "xyz");
    json_raw_escaped(&w, "t\"", 2);
    json_put(&w, "\"}%lld,%zu,%llu,%g,%g,%hhd,%hhd,null]", -5LL, (size_t)6, 18446744073709551615ULL,
             0.1, (double)NAN, (bool)true, (bool)false);
    assert_string_equal(text, "[{\"a\":-1,\"b\":[],\"c d\":{},\"k\\\"\":\"v-\\n-2\",\"none\":null,"
                              "\"part\":\"xy\",\"open\":\"t\\\"\"},-5,6,18446744073709551615,0.1,"
                              "null,true,false,null]");
}
