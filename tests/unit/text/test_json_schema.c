/* JSON Schema as a grammar: which texts satisfy a schema, and which words are refused. */
#include "common/json_value.h"
#include "support/grammar/grammar_text.h"
#include "support/test.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void schema(const char *text, const char *const *accepted, const char *const *refused)
{
    for (const char *const *t = accepted; *t; t++) { /* the test's own texts are JSON */
        json_document d;
        if (!json_load(&d, *t, strlen(*t)))
            fail_msg("not JSON: %s", *t);
        json_free(&d);
    }
    test_grammar_cases(DREY_GRAMMAR_JSON_SCHEMA, text, accepted, refused);
}

TEST(any_value)
{
    const char *const *good = LIST("1", "-0.5e+10", "\"a\"", "true", "false", "null", "[]", "{}",
                                   "[1, \"b\", [null]]", "{\"a\": {\"b\":[1,2]},\n  \"c\": 0}");
    const char *const *bad = LIST("", "01", "+1", "1.", ".5", "'a'", "tru", "[1,]", "{a:1}",
                                  "{\"a\":1,}", "[1 2]", "\"\\x\"", "\"\n\"", "1 ", " 1");
    schema("{}", good, bad);
    schema("true", good, bad);
    schema("{\"description\":\"anything\",\"title\":\"x\",\"x-mine\":[1]}", good, bad);
}

TEST(objects_of_any_kind)
{
    schema("{\"type\":\"object\"}", LIST("{}", "{\"a\":1}", "{ \"a\": [true], \"b\": {} }"),
           LIST("", "[]", "1", "{\"a\"}", "{1:2}"));
}

TEST(members_in_their_order)
{
    const char *text = "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
                       "\"b\":{\"type\":\"string\"},\"c\":{\"type\":\"boolean\"}},"
                       "\"required\":[\"b\"]}";
    schema(text,
           LIST("{\"b\":\"x\"}", "{\"a\":1,\"b\":\"\"}", "{\"a\": 1, \"b\": \"x\", \"c\": true}",
                "{\n  \"b\": \"x\",\n  \"c\": false\n}"),
           LIST("{}", "{\"a\":1}", "{\"b\":\"x\",\"a\":1}", "{\"b\":\"x\",\"d\":1}",
                "{,\"b\":\"x\"}", "{\"a\":1 \"b\":\"x\"}", "{\"b\":\"x\",}", "{\"b\":1}"));
    schema("{\"properties\":{\"a\":{},\"b\":{},\"c\":{}}}",
           LIST("{}", "{\"a\":1}", "{\"b\":1}", "{\"c\":[]}", "{\"a\":1,\"c\":2}",
                "{\"a\":1,\"b\":2,\"c\":3}"),
           LIST("{\"c\":1,\"a\":2}", "{\"d\":1}", "{\"a\":1,\"a\":2}"));
    schema("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"null\"}},\"required\":[\"a\","
           "\"z\"]}",
           LIST("{\"a\":null,\"z\":[1]}"), LIST("{\"a\":null}", "{\"z\":1}"));
    schema("{\"properties\":{\"a\\\"b\\\\\":{\"const\":1}},\"required\":[\"a\\\"b\\\\\"]}",
           LIST("{\"a\\\"b\\\\\":1}"), LIST("{\"a\"b\\\":1}", "{}"));
    schema("{\"properties\":{\"a\":{\"type\":\"null\"}},\"additionalProperties\":false}",
           LIST("{}", "{\"a\":null}"), LIST("{\"b\":1}"));
    schema("{\"type\":\"object\",\"additionalProperties\":false}", LIST("{}"), LIST("{\"b\":1}"));
}

TEST(members_that_are_not_named)
{
    schema("{\"type\":\"object\",\"additionalProperties\":{\"type\":\"integer\"}}",
           LIST("{}", "{\"a\":1}", "{\"a\":1, \"\":-2}"), LIST("{\"a\":\"x\"}", "{\"a\":1,}"));
    schema("{\"properties\":{\"ab\":{\"const\":0},\"ac\":{\"const\":0}},\"required\":[\"ab\"],"
           "\"additionalProperties\":{\"type\":\"string\"}}",
           LIST("{\"ab\":0}", "{\"ab\":0,\"ac\":0}", "{\"ab\":0,\"a\":\"\"}",
                "{\"ab\":0,\"abc\":\"\",\"\":\"\"}", "{\"ab\":0,\"b\":\"x\",\"aé\":\"\"}"),
           LIST("{\"ab\":\"\"}", "{\"ab\":0,\"ac\":\"\"}", "{}", "{\"a\":\"\"}",
                "{\"ab\":0,\"a\\u0062\":\"\"}"));
    schema("{\"properties\":{\"a\":{\"const\":0}},\"additionalProperties\":true}",
           LIST("{}", "{\"a\":0}", "{\"b\":[]}", "{\"a\":0,\"b\":1}"), LIST("{\"a\":1}"));
}

TEST(arrays)
{
    schema("{\"type\":\"array\"}", LIST("[]", "[1,\"a\"]", "[\n  1,\n  2\n]"), LIST("[,]", "{}"));
    schema("{\"type\":\"array\",\"items\":{\"type\":\"integer\"},\"minItems\":2,\"maxItems\":3}",
           LIST("[1,2]", "[1, 2, 3]"), LIST("[]", "[1]", "[1,2,3,4]", "[1,\"a\"]"));
    schema("{\"items\":{\"const\":1},\"minItems\":1}", LIST("[1]", "[1,1,1,1]"), LIST("[]"));
    schema("{\"items\":{\"const\":1},\"maxItems\":1}", LIST("[]", "[1]"), LIST("[1,1]"));
    schema("{\"type\":\"array\",\"maxItems\":0}", LIST("[]"), LIST("[1]"));
    schema("{\"prefixItems\":[{\"const\":1},{\"type\":\"string\"}]}", LIST("[1,\"a\"]"),
           LIST("[]", "[1]", "[1,\"a\",2]"));
    schema("{\"prefixItems\":[{\"const\":1}],\"items\":{\"type\":\"null\"},\"minItems\":2}",
           LIST("[1,null]", "[1,null,null]"), LIST("[1]", "[1,2]"));
    schema("{\"items\":[{\"const\":1},{\"const\":2}],\"additionalItems\":false}", LIST("[1,2]"),
           LIST("[1]", "[1,2,3]"));
    schema("{\"items\":[{\"const\":1}],\"additionalItems\":{\"const\":2}}", LIST("[1]", "[1,2,2]"),
           LIST("[2]"));
    schema("{\"type\":\"array\",\"items\":false}", LIST("[]"), LIST("[1]"));
}

TEST(strings)
{
    schema("{\"type\":\"string\"}",
           LIST("\"\"", "\"é\\n\\u00e9\\\"\\\\\"", "\"\\ud83d\\ude00\"", "\"\xf0\x9f\x98\x80\""),
           LIST("\"", "\"\\ud83d\"", "\"\\ude00\"", "\"\x01\"", "\"a\"b\""));
    schema("{\"type\":\"string\",\"minLength\":2,\"maxLength\":3}",
           LIST("\"ab\"", "\"aéc\"", "\"中中\"", "\"\\n\\u0041\"", "\"\\ud83d\\ude00a\""),
           LIST("\"a\"", "\"abcd\"", "\"\\ud83d\\ude00\""));
    schema("{\"type\":\"string\",\"minLength\":1}", LIST("\"a\"", "\"abc\""), LIST("\"\""));
    schema("{\"pattern\":\"^[a-c]{2}$\"}", LIST("\"ab\""), LIST("\"a\"", "\"abc\"", "ab"));
    schema("{\"pattern\":\"b\"}", LIST("\"b\"", "\"abc\"", "\"\\nb\""), LIST("\"ac\""));
    schema("{\"type\":\"string\",\"pattern\":\"^\\\"\\\\\\\\\\\\n.$\"}",
           LIST("\"\\\"\\\\\\nx\"", "\"\\\"\\\\\\n\\\"\""),
           LIST("\"\"\\\\\\nx\"", "\"\\\"\\\\\\n\n\""));
    schema("{\"pattern\":\"^[^a\\\"]$\"}", LIST("\"b\"", "\"\\\\\"", "\"\\u0001\"", "\"é\""),
           LIST("\"a\"", "\"\\\"\"", "\"\"\""));
    schema("{\"type\":\"string\",\"format\":\"something of mine\"}", LIST("\"x\""), LIST("x"));
}

TEST(formats)
{
    static const char *const cases[][3] = {
        {"date", "\"2026-11-24\"", "\"2026-13-24\""},
        {"time", "\"23:59:59.5Z\"", "\"24:00:00Z\""},
        {"date-time", "\"2026-11-24T04:00:00+01:00\"", "\"2026-11-24 04:00:00\""},
        {"uuid", "\"123e4567-e89b-12d3-a456-426614174000\"", "\"123e4567\""},
        {"ipv4", "\"192.168.0.255\"", "\"256.1.1.1\""},
        {"ipv6", "\"2001:db8:0:0:0:0:0:1\"", "\"2001:db8\""},
        {"email", "\"a.b+c@d.example\"", "\"a.b\""},
        {"hostname", "\"a-b.example\"", "\"-a\""},
        {"uri", "\"https://a.example/b?c=d#e\"", "\"a b\""},
        {"duration", "\"P1DT2H\"", "\"1D\""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[128];
        snprintf(text, sizeof text, "{\"type\":\"string\",\"format\":\"%s\"}", cases[i][0]);
        schema(text, LIST(cases[i][1]), LIST(cases[i][2], "\"\""));
    }
}

TEST(constants_and_choices)
{
    schema("{\"const\":null}", LIST("null"), LIST("1"));
    schema("{\"const\":{\"a\":[1,2.5,\"x\"]}}", LIST("{\"a\":[1,2.5,\"x\"]}"), LIST("{}"));
    schema("{\"enum\":[\"red\",\"green\",1,null,\"re\"]}",
           LIST("\"red\"", "\"green\"", "1", "null", "\"re\""), LIST("\"r\"", "red", "2"));
    schema("{\"type\":\"string\",\"enum\":[\"a\\nb\"]}", LIST("\"a\\nb\""), LIST("\"ab\""));
    schema("{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"null\"}]}", LIST("1", "null"),
           LIST("\"1\""));
    schema("{\"oneOf\":[{\"const\":\"a\"},{\"type\":\"array\"}]}", LIST("\"a\"", "[]"), LIST("{}"));
    schema("{\"type\":[\"string\",\"null\"],\"maxLength\":1}", LIST("\"a\"", "null"),
           LIST("\"ab\"", "1"));
    schema("{\"type\":\"boolean\"}", LIST("true", "false"), LIST("null"));
}

/* More values than one state has places for. */
TEST(a_thousand_choices)
{
    static char text[64000], one[32];
    strcpy(text, "{\"enum\":[");
    for (int i = 0; i < 1500; i++)
        sprintf(text + strlen(text), "%s\"the-value-%d\"", i ? "," : "", i * 7);
    strcat(text, "]}");
    test_grammar *g = test_grammar_of(DREY_GRAMMAR_JSON_SCHEMA, text);
    for (int i = 0; i < 1500 * 7; i++) {
        sprintf(one, "\"the-value-%d\"", i);
        assert_int_equal(test_grammar_matches(g, one), i % 7 == 0);
    }
    free(g);
}

TEST(parts_put_together)
{
    schema("{\"allOf\":[{\"properties\":{\"a\":{\"const\":1}},\"required\":[\"a\"]},"
           "{\"$ref\":\"#/$defs/more\"}],\"$defs\":{\"more\":{\"type\":\"object\","
           "\"properties\":{\"b\":{\"const\":2}}}}}",
           LIST("{\"a\":1}", "{\"a\":1,\"b\":2}"), LIST("{}", "{\"b\":2}"));
    schema("{\"allOf\":[{\"type\":\"string\"}],\"description\":\"one alone\"}", LIST("\"a\""),
           LIST("1"));
}

/* Each word looks at all schemas that are for a value. */
TEST(schemas_together)
{
    schema("{\"allOf\":[{\"type\":\"string\"},{\"minLength\":2},{\"maxLength\":3}]}",
           LIST("\"ab\"", "\"abc\""), LIST("\"a\"", "\"abcd\"", "12"));
    schema("{\"$ref\":\"#/$defs/n\",\"maximum\":9,\"$defs\":{\"n\":{\"type\":\"integer\","
           "\"minimum\":7}}}",
           LIST("7", "9"), LIST("6", "10", "8.5"));
    schema("{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{}},"
           "\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}",
           LIST("{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"b\":2}"), LIST("{}", "{\"a\":\"x\"}"));
    schema("{\"type\":[\"integer\",\"string\"],\"enum\":[1,\"a\",null,2.5]}", LIST("1", "\"a\""),
           LIST("null", "2.5"));
    schema("{\"enum\":[1,2,3,4,\"ab\",[1],{\"x\":1}],\"allOf\":[{\"minimum\":3},{\"minLength\":3},"
           "{\"minItems\":2},{\"required\":[\"y\"]}]}",
           LIST("3", "4"), LIST("1", "\"ab\"", "[1]", "{\"x\":1}"));
    schema("{\"properties\":{\"a\":{\"minimum\":3}},\"allOf\":[{\"properties\":{\"a\":{\"type\":"
           "\"integer\"}},\"required\":[\"a\"]}]}",
           LIST("{\"a\":3}"), LIST("{\"a\":2}", "{\"a\":3.5}", "{}"));
    schema(
        "{\"type\":\"object\",\"required\":[\"z\"],\"additionalProperties\":{\"type\":\"null\"}}",
        LIST("{\"z\":null}", "{\"z\":null,\"a\":null}"), LIST("{\"z\":1}", "{\"a\":null}"));
    schema("{\"anyOf\":[{\"type\":\"object\",\"required\":[\"z\"],\"additionalProperties\":false},"
           "{\"type\":\"null\"}]}",
           LIST("null"), LIST("{\"z\":1}", "{}"));
    schema("{\"type\":\"string\",\"nullable\":true,\"maxLength\":1}", LIST("null", "\"a\""),
           LIST("\"ab\"", "1"));
    schema("{\"not\":{\"type\":[\"object\",\"array\"]}}", LIST("1", "\"a\"", "null"),
           LIST("{}", "[]"));
    schema("{\"allOf\":[{\"$ref\":\"#\"}],\"properties\":{\"a\":{\"const\":1}}}",
           LIST("{}", "{\"a\":1}"), LIST("{\"a\":2}"));
    /* A list whose items are the list and nothing more, or more. */
    schema("{\"$ref\":\"#/$defs/l\","
           "\"$defs\":{\"l\":{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"array\","
           "\"items\":{\"allOf\":[{\"$ref\":\"#/$defs/l\"},{}]}}]}}}",
           LIST("1", "[]", "[1, [2]]"), LIST("a", "[a]"));
    schema("{\"$ref\":\"#/$defs/l\",\"$defs\":{\"l\":{\"type\":\"array\",\"items\":{\"allOf\":["
           "{\"$ref\":\"#/$defs/l\"},{\"maxItems\":1}]}}}}",
           LIST("[]", "[[],[]]", "[[[]]]"), LIST("[[[],[]]]", "[1]"));
}

TEST(patterns_together)
{
    schema("{\"type\":\"string\",\"pattern\":\"^[a-z]+$\",\"minLength\":2,\"maxLength\":3}",
           LIST("\"ab\"", "\"abc\""), LIST("\"a\"", "\"abcd\"", "\"aB\""));
    schema("{\"type\":\"string\",\"pattern\":\"b\",\"maxLength\":40,\"allOf\":[{\"pattern\":"
           "\"^a.*\\\\\\\\$\"}]}",
           LIST("\"ab\\\\\"", "\"a中b\\\\\""), LIST("\"b\"", "\"a\\\\\"", "\"ab\""));
    schema("{\"format\":\"date\",\"pattern\":\"^2026\"}", LIST("\"2026-02-28\""),
           LIST("\"2025-02-28\"", "\"2026-02-29\""));
    schema("{\"format\":\"date\"}", LIST("\"2024-02-29\"", "\"2000-02-29\"", "\"2026-04-30\""),
           LIST("\"2026-04-31\"", "\"2100-02-29\"", "\"2026-02-29\""));
}

TEST(names_by_pattern)
{
    schema("{\"patternProperties\":{\"^x_\":{\"type\":\"integer\"}},\"properties\":{\"x_a\":"
           "{\"minimum\":5},\"b\":{}},\"required\":[\"b\"]}",
           LIST("{\"b\":1}", "{\"x_a\":5,\"b\":1,\"x_b\":-1}"),
           LIST("{\"x_a\":4,\"b\":1}", "{\"x_a\":5.5,\"b\":1}", "{\"b\":1,\"y\":1}",
                "{\"b\":1,\"x_b\":\"\"}"));
    schema("{\"type\":\"object\",\"patternProperties\":{\"a\":{\"type\":\"integer\"},\"b\":"
           "{\"minimum\":3}},\"additionalProperties\":{\"type\":\"null\"}}",
           LIST("{}", "{\"xa\":1}", "{\"ab\":3,\"b\":3.5}", "{\"c\":null}"),
           LIST("{\"ab\":2}", "{\"ba\":3.5}", "{\"c\":1}", "{\"b\":2.5}"));
    schema(
        "{\"propertyNames\":{\"pattern\":\"^[a-z]{1,3}$\"},\"additionalProperties\":{\"const\":1}}",
        LIST("{}", "{\"abc\":1}"), LIST("{\"abcd\":1}", "{\"A\":1}", "{\"a\":2}"));
    schema("{\"propertyNames\":{\"maxLength\":1},\"properties\":{\"a\":{},\"bb\":{}}}",
           LIST("{}", "{\"a\":1}"), LIST("{\"bb\":1}"));
}

TEST(members_are_counted)
{
    schema("{\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"minProperties\":1,\"maxProperties\":2}",
           LIST("{\"a\":1}", "{\"b\":1,\"c\":1}", "{\"a\":1,\"c\":1}"),
           LIST("{}", "{\"a\":1,\"b\":1,\"c\":1}"));
    schema("{\"properties\":{\"a\":{}},\"required\":[\"a\"],\"minProperties\":2,"
           "\"additionalProperties\":true}",
           LIST("{\"a\":1,\"b\":1}", "{\"a\":1,\"b\":1,\"c\":1}"), LIST("{\"a\":1}", "{}"));
    schema("{\"type\":\"object\",\"minProperties\":1,\"maxProperties\":2}",
           LIST("{\"a\":1}", "{\"a\":1,\"b\":1}"), LIST("{}", "{\"a\":1,\"b\":1,\"c\":1}"));
    schema("{\"type\":\"object\",\"maxProperties\":0}", LIST("{}"), LIST("{\"a\":1}"));
    schema("{\"type\":\"object\",\"unevaluatedProperties\":false}", LIST("{}"), LIST("{\"a\":1}"));
}

static void check_multiples(const char *text, double step, double low)
{
    char shown[32];
    test_grammar *g = test_grammar_of(DREY_GRAMMAR_JSON_SCHEMA, text);
    int n = 0;
    for (int i = -3000; i <= 3000; i++) {
        double x = i / 100.0, times = x / step;
        snprintf(shown, sizeof shown, "%g", x);
        bool want = x >= low && fabs(times - round(times)) < 1e-6;
        n += want;
        if (test_grammar_matches(g, shown) != want)
            fail_msg("%s: %s", text, shown);
    }
    assert_true(n > 3);
    free(g);
}

TEST(multiples)
{
    check_multiples("{\"type\":\"integer\",\"multipleOf\":7}", 7, -1e9);
    check_multiples("{\"type\":\"number\",\"multipleOf\":7,\"minimum\":-14}", 7, -14);
    check_multiples("{\"type\":\"number\",\"multipleOf\":0.25}", 0.25, -1e9);
    check_multiples("{\"multipleOf\":0.5,\"allOf\":[{\"multipleOf\":1.5}]}", 1.5, -1e9);
    check_multiples("{\"type\":\"number\",\"multipleOf\":0.01,\"minimum\":12.5}", 0.01, 12.5);
    schema("{\"type\":\"integer\",\"multipleOf\":1000,\"minimum\":0,\"maximum\":5000}",
           LIST("0", "1000", "5000"), LIST("6000", "10", "1001", "01000"));
    schema("{\"maximum\":1e300}", LIST("1", "-5.5"), LIST("1e301"));
}

TEST(references)
{
    schema("{\"$ref\":\"#/$defs/x\",\"$defs\":{\"x\":{\"type\":\"integer\"}}}", LIST("1"),
           LIST("\"a\""));
    schema("{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"anyOf\":"
           "[{\"$ref\":\"#\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]}",
           LIST("{\"v\":1,\"next\":null}", "{\"v\":1,\"next\":{\"v\":2,\"next\":null}}"),
           LIST("{\"v\":1}", "{\"v\":1,\"next\":1}"));
    schema("{\"$ref\":\"#/definitions/a~1b~0c/items/1\",\"definitions\":{\"a/b~c\":{\"items\":"
           "[{},{\"const\":5}]}}}",
           LIST("5"), LIST("1"));
    schema("{\"properties\":{\"kids\":{\"type\":\"array\",\"items\":{\"$ref\":\"#\"}}},"
           "\"required\":[\"kids\"]}",
           LIST("{\"kids\":[]}", "{\"kids\":[{\"kids\":[]},{\"kids\":[]}]}"),
           LIST("{\"kids\":[1]}"));
}

/* Numbers at and around each bound, compared with arithmetic. */
static void check_numbers(bool whole, const char *low, const char *high, bool strict)
{
    static const char *const shown[] = {
        "-1000", "-101",  "-100", "-99",   "-12.5",  "-12",   "-10.01", "-10",  "-9.99",
        "-9",    "-2",    "-1.5", "-1",    "-0.5",   "-0.25", "-0.001", "0",    "0.0",
        "0.001", "0.1",   "0.25", "0.250", "0.3",    "0.5",   "0.99",   "1",    "1.0",
        "1.01",  "1.5",   "2",    "5",     "9",      "9.99",  "10",     "10.0", "10.5",
        "11",    "12.25", "12.3", "19",    "20",     "99",    "99.5",   "100",  "100.001",
        "101",   "123",   "999",  "1000",  "1000.5", "12345"};
    char text[200];
    snprintf(text, sizeof text, "{\"type\":\"%s\"%s%s%s%s}", whole ? "integer" : "number",
             !low     ? ""
             : strict ? ",\"exclusiveMinimum\":"
                      : ",\"minimum\":",
             low ? low : "",
             !high    ? ""
             : strict ? ",\"exclusiveMaximum\":"
                      : ",\"maximum\":",
             high ? high : "");
    drey_error err;
    test_grammar *g = test_grammar_open(DREY_GRAMMAR_JSON_SCHEMA, text, &err);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        double x = atof(shown[i]), a = low ? atof(low) : -1e300, b = high ? atof(high) : 1e300;
        bool within = strict ? x > a && x < b : x >= a && x <= b;
        bool want = within && (!whole || !strchr(shown[i], '.'));
        if ((g && test_grammar_matches(g, shown[i])) != want)
            fail_msg("%s: %s", text, shown[i]);
    }
    free(g);
}

TEST(numbers_between_bounds)
{
    static const char *const bounds[] = {NULL, "-100", "-10", "-9", "-1",  "0",   "1",   "9",
                                         "10", "11",   "12",  "99", "100", "101", "1000"};
    static const char *const fractions[] = {NULL,    "-12.5", "-1",  "-0.25", "0",
                                            "0.001", "0.25",  "0.5", "1",     "1.5",
                                            "10",    "12.25", "99.5"};
    for (int strict = 0; strict < 2; strict++) {
        for (int i = 0; i < 15; i++)
            for (int k = i ? i : 0; k < 15; k++)
                check_numbers(true, bounds[i], k || !i ? bounds[k] : NULL, strict);
        for (int i = 0; i < 13; i++)
            for (int k = i; k < 13; k++)
                check_numbers(false, fractions[i], fractions[k], strict);
        for (int i = 1; i < 13; i++)
            check_numbers(false, fractions[i], NULL, strict);
    }
}

/* The places of what is left out. */
static void left_out(const char *text, const char *places)
{
    test_grammar *g = test_grammar_of(DREY_GRAMMAR_JSON_SCHEMA, text);
    if (strcmp(g->not_held, places) != 0)
        fail_msg("%s\nleaves out \"%s\", not \"%s\"", text, g->not_held, places);
    free(g);
}

/* The same, and nothing is left out. */
static void held(const char *text, const char *const *accepted, const char *const *refused)
{
    left_out(text, "");
    schema(text, accepted, refused);
}

TEST(items_that_differ)
{
    held("{\"items\":{\"enum\":[\"a\",\"b\",1]},\"uniqueItems\":true}",
         LIST("[]", "[\"a\"]", "[1, \"b\", \"a\"]"), LIST("[\"a\",\"a\"]", "[1,\"a\",1]"));
    held("{\"items\":{\"$ref\":\"#/$defs/c\"},\"uniqueItems\":true,\"minItems\":1,\"maxItems\":2,"
         "\"$defs\":{\"c\":{\"enum\":[\"r\",\"g\",\"b\"]}}}",
         LIST("[\"b\"]", "[\"b\",\"r\"]"), LIST("[]", "[\"r\",\"r\"]", "[\"r\",\"g\",\"b\"]"));
    held("{\"items\":{\"anyOf\":[{\"type\":\"boolean\"},{\"const\":null},{\"const\":true}]},"
         "\"uniqueItems\":true}",
         LIST("[null,true,false]"), LIST("[true,true]"));
    held("{\"items\":{\"type\":\"integer\",\"minimum\":1,\"exclusiveMaximum\":6,\"multipleOf\":2},"
         "\"uniqueItems\":true}",
         LIST("[4,2]"), LIST("[2,2]", "[3]", "[6]"));
    /* Of many values each set can be written, in their order. */
    held("{\"items\":{\"enum\":[1,2,3,4,5,6,7,8,9,10,11,12]},\"uniqueItems\":true,\"minItems\":2}",
         LIST("[1,2]", "[1,5,12]"), LIST("[1]", "[1,1]", "[2,1,2]"));
    held("{\"type\":\"array\",\"maxItems\":1,\"uniqueItems\":true}", LIST("[]", "[1]"),
         LIST("[1,1]"));
}

TEST(items_that_a_list_contains)
{
    held("{\"contains\":{\"const\":1}}", LIST("[1]", "[2,1,3]"), LIST("[]", "[2]"));
    held("{\"items\":{\"type\":\"integer\"},\"contains\":{\"minimum\":5},\"minContains\":2,"
         "\"maxItems\":3}",
         LIST("[5,6]", "[1,5,7]"), LIST("[5]", "[5,1]", "[1,1,5,5]", "[5,\"a\",5]"));
    held("{\"items\":{\"type\":\"integer\"},\"contains\":{\"minimum\":5},\"maxContains\":1}",
         LIST("[5]", "[1,9,2]"), LIST("[]", "[1]", "[5,6]"));
    held("{\"contains\":{\"type\":\"string\"},\"minContains\":0}", LIST("[]", "[\"a\"]"),
         LIST("1"));
}

TEST(what_is_not)
{
    held("{\"not\":{\"const\":\"a\"}}", LIST("\"b\"", "\"\"", "1", "null", "{}", "[1]"),
         LIST("\"a\""));
    held("{\"type\":\"string\",\"not\":{\"enum\":[\"a\",\"bc\"]}}", LIST("\"b\"", "\"bcd\""),
         LIST("\"a\"", "\"bc\"", "1"));
    held("{\"type\":\"integer\",\"not\":{\"enum\":[0,5]}}", LIST("1", "50", "-5"),
         LIST("0", "5", "-0"));
    held("{\"type\":\"number\",\"not\":{\"type\":\"integer\"}}", LIST("0.5", "-1.25"),
         LIST("1", "1.0"));
    held("{\"not\":{\"minimum\":5}}", LIST("4", "-1"), LIST("5", "6"));
    held("{\"type\":\"string\",\"not\":{\"pattern\":\"^x\"}}", LIST("\"ax\"", "\"\""),
         LIST("\"xa\""));
    held("{\"enum\":[\"a\",\"b\"],\"not\":{\"const\":\"b\"}}", LIST("\"a\""), LIST("\"b\""));
    held("{\"properties\":{\"a\":{},\"b\":{}},\"not\":{\"required\":[\"a\",\"b\"]}}",
         LIST("{}", "{\"a\":1}", "{\"b\":1}"), LIST("{\"a\":1,\"b\":1}"));
    held("{\"type\":\"object\",\"not\":{\"required\":[\"a\"]}}", LIST("{}", "{\"b\":1}"),
         LIST("{\"a\":1}"));
    held("{\"$ref\":\"#/$defs/"
         "s\",\"not\":{\"const\":\"a\"},\"$defs\":{\"s\":{\"type\":\"string\"}}}",
         LIST("\"b\""), LIST("\"a\"", "1"));
    held("{\"not\":{\"anyOf\":[{\"type\":\"string\"},{\"not\":{\"type\":\"array\"}}]}}", LIST("[]"),
         LIST("1", "\"a\""));
}

TEST(conditions)
{
    static const char kind[] =
        "{\"type\":\"object\",\"properties\":{\"k\":{\"enum\":[\"a\",\"b\"]},\"x\":{\"type\":"
        "\"integer\"},\"y\":{}},\"required\":[\"k\"],\"if\":{\"properties\":{\"k\":{\"const\":"
        "\"a\"}}}"
        ",\"then\":{\"required\":[\"x\"]},\"else\":{\"required\":[\"y\"]}}";
    held(kind,
         LIST("{\"k\":\"a\",\"x\":1}", "{\"k\":\"b\",\"y\":2}", "{\"k\":\"b\",\"x\":1,\"y\":2}"),
         LIST("{\"k\":\"a\"}", "{\"k\":\"a\",\"y\":1}", "{\"k\":\"b\",\"x\":1}"));
    held(
        "{\"if\":{\"type\":\"string\"},\"then\":{\"minLength\":2},\"else\":{\"type\":\"integer\"}}",
        LIST("\"ab\"", "1"), LIST("\"a\"", "null"));
    held("{\"properties\":{\"a\":{},\"b\":{},\"c\":{}},\"dependentRequired\":{\"a\":[\"b\"],\"b\":"
         "[\"c\"]}}",
         LIST("{}", "{\"c\":1}", "{\"a\":1,\"b\":1,\"c\":1}", "{\"b\":1,\"c\":1}"),
         LIST("{\"a\":1}", "{\"b\":1}", "{\"a\":1,\"b\":1}"));
    held("{\"properties\":{\"a\":{},\"b\":{}},\"dependentSchemas\":{\"a\":{\"properties\":{\"b\":"
         "{\"type\":\"integer\"}},\"required\":[\"b\"]}}}",
         LIST("{}", "{\"a\":1,\"b\":1}", "{\"b\":\"x\"}"),
         LIST("{\"a\":1}", "{\"a\":1,\"b\":\"x\"}"));
    held("{\"enum\":[\"x\",\"yy\",\"zzz\"],\"if\":{\"minLength\":2},\"then\":{\"maxLength\":2}}",
         LIST("\"x\"", "\"yy\""), LIST("\"zzz\""));
    /* A list that contains itself, with a condition. */
    held(
        "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{\"$ref\":\"#"
        "\"}},"
        "\"required\":[\"v\"],\"if\":{\"properties\":{\"v\":{\"const\":0}}},\"else\":{\"required\":"
        "[\"next\"]}}",
        LIST("{\"v\":0}", "{\"v\":1,\"next\":{\"v\":0}}"), LIST("{\"v\":1}"));
}

TEST(patterns_of_words_and_unicode)
{
    held("{\"pattern\":\"^\\\\p{L}+$\"}", LIST("\"\xc3\xa4\x62\""), LIST("\"1\"", "\"\""));
    held("{\"pattern\":\"^\\\\p{L}+$\",\"minLength\":2,\"maxLength\":3}", LIST("\"\xc3\xa4\x62\""),
         LIST("\"a\"", "\"abcd\""));
    held("{\"pattern\":\"\\\\bfoo\\\\b\"}", LIST("\"foo\"", "\"a foo.\""), LIST("\"food\""));
    held("{\"pattern\":\"^(?=.*\\\\d)(?=.*[a-z]).{3,}$\",\"maxLength\":5}", LIST("\"a1b\""),
         LIST("\"abc\"", "\"a1bcdef\"", "\"a1\""));
    held("{\"pattern\":\"^(\\\\\\\"|^b$)\"}", LIST("\"\\\"x\"", "\"b\""), LIST("\"bb\""));
}

TEST(names_that_are_listed_and_other_members)
{
    held("{\"propertyNames\":{\"enum\":[\"a\",\"b\"]}}", LIST("{}", "{\"a\":1}"),
         LIST("{\"c\":1}"));
    held("{\"propertyNames\":{\"$ref\":\"#/$defs/n\"},\"$defs\":{\"n\":{\"maxLength\":1}}}",
         LIST("{\"a\":1}"), LIST("{\"ab\":1}"));
    held("{\"properties\":{\"a\":{}},\"unevaluatedProperties\":{\"type\":\"integer\"}}",
         LIST("{\"a\":\"\"}", "{\"a\":1,\"b\":2}"), LIST("{\"b\":\"\"}"));
    held("{\"type\":\"object\",\"maxProperties\":20000}", LIST("{}", "{\"a\":1}"), LIST("[]"));
    held("{\"$id\":\"https://a.example/s.json\",\"properties\":{\"a\":{\"$ref\":\"s.json#/$defs/"
         "x\"}},"
         "\"$defs\":{\"x\":{\"type\":\"integer\"}}}",
         LIST("{\"a\":1}"), LIST("{\"a\":\"\"}"));
}

TEST(what_cannot_be_held_is_left_out_and_its_place_is_noted)
{
    static const char *const cases[][2] = {
        {"{\"properties\":{\"ids\":{\"type\":\"array\",\"items\":{\"type\":\"integer\"},"
         "\"uniqueItems\":true}},\"required\":[\"ids\"]}",
         "/properties/ids/uniqueItems"},
        {"{\"anyOf\":[{\"not\":{\"multipleOf\":2}},{\"$ref\":\"other.json\"}]}",
         "/anyOf/0/not, /anyOf/1/$ref"},
        {"{\"properties\":{\"a/b, ~\\u00e9\":{\"pattern\":\"(a)\\\\1\"}}}",
         "/properties/a~1b%2C%20~0%C3%A9/pattern"},
        {"{\"pattern\":\"(?i)a\"}", "/pattern"},
        {"{\"pattern\":\"a(?=b)\"}", "/pattern"},
        {"{\"format\":\"uri-template\"}", "/format"},
        {"{\"type\":\"number\",\"multipleOf\":0.12345678912}", "/multipleOf"},
        {"{\"minimum\":1e20}", "/minimum"},
        {"{\"type\":\"object\",\"minProperties\":2}", "/minProperties"},
        {"{\"maxProperties\":1000,\"properties\":{\"a\":{}},\"additionalProperties\":true}",
         "/maxProperties"},
        {"{\"patternProperties\":{\"^a\":{},\"^b\":{},\"^c\":{},\"^d\":{},\"^e\":{}}}",
         "/patternProperties/^e"},
        {"{\"patternProperties\":{\"(?i)x\":{}}}", "/patternProperties/(?i)x"},
        {"{\"propertyNames\":{\"not\":{\"const\":\"a\"}}}", "/propertyNames/not"},
        {"{\"propertyNames\":{\"$ref\":\"#/$defs/n\",\"maxLength\":2},\"$defs\":{\"n\":{}}}",
         "/propertyNames/$ref"},
        {"{\"allOf\":[{\"properties\":{\"a\":{}}},{\"unevaluatedProperties\":false}]}",
         "/allOf/1/unevaluatedProperties"},
        {"{\"unevaluatedItems\":{}}", "/unevaluatedItems"},
        {"{\"prefixItems\":[{},{}],\"uniqueItems\":true}", "/uniqueItems"},
        {"{\"prefixItems\":[{},{}],\"contains\":{\"type\":\"null\"}}", "/contains"},
        {"{\"pattern\":\"^a[a-z]*$\",\"maxLength\":100000}", "/maxLength"},
        {"{\"if\":{\"format\":\"date\"},\"then\":{\"minLength\":3}}", "/if"},
        {"{\"properties\":{\"b\":{\"properties\":{\"y\":{\"format\":\"uri-template\"},"
         "\"x\":{\"format\":\"uri-template\"}}},\"a\":{\"format\":\"uri-template\"}}}",
         "/properties/b/properties/y/format, /properties/b/properties/x/format, "
         "/properties/a/format"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        left_out(cases[i][0], cases[i][1]);
    /* The rest of it holds. */
    schema(cases[0][0], LIST("{\"ids\":[1, 2]}", "{\"ids\":[]}"), LIST("{\"ids\":[\"a\"]}", "{}"));
    schema("{\"pattern\":\"^(a|b)\\\\1$\",\"maxLength\":3}", LIST("\"aa\""),
           LIST("\"c\"", "\"aaaa\""));
}

/* Conditions that have no room together are left out, not the schema. */
TEST(conditions_without_room)
{
    static char text[40000];
    strcpy(text, "{\"type\":\"object\",\"properties\":{");
    for (int i = 0; i < 100; i++)
        sprintf(text + strlen(text), "%s\"p%d\":{\"type\":\"string\",\"pattern\":\"^[a-z]{%d}$\"}",
                i ? "," : "", i, i + 1);
    strcat(text, "},\"dependentRequired\":{");
    for (int i = 0; i < 30; i++)
        sprintf(text + strlen(text), "%s\"p%d\":[\"p%d\"]", i ? "," : "", i, i + 1);
    strcat(text, "}}");
    test_grammar *g = test_grammar_of(DREY_GRAMMAR_JSON_SCHEMA, text);
    assert_non_null(strstr(g->not_held, "/dependentRequired/p"));
    assert_true(test_grammar_matches(g, "{\"p4\":\"abcde\"}"));
    assert_false(test_grammar_matches(g, "{\"p3\":\"abcd\"}"));
    assert_false(test_grammar_matches(g, "{\"p2\":\"ab\"}"));
    free(g);
}

TEST(what_is_wrong_is_refused_with_its_place)
{
    static const char *const cases[][2] = {
        {"{\"not\":{}}", "ends"},
        {"{\"type\":\"number\",\"multipleOf\":0}", "more than 0"},
        {"{\"if\":{},\"then\":false}", "ends"},
        {"{\"type\":\"string\",\"not\":{\"type\":\"string\"}}", "ends"},
        {"{\"contains\":3}", "a schema is"},
        {"{\"contains\":{},\"minContains\":3,\"maxContains\":2}", "maxContains"},
        {"{\"dependentRequired\":[]}", "dependentRequired"},
        {"{\"type\":\"string\",\"enum\":[1]}", "none of its values"},
        {"{\"type\":\"string\",\"pattern\":\"^a$\",\"minLength\":2}", "no text has"},
        {"{\"anyOf\":[]}", "anyOf"},
        {"{\"anyOf\":[{\"type\":\"what\"}]}", "#/anyOf/0"},
        {"{\"type\":\"string\",\"minLength\":-1}", "minLength"},
        {"{\"type\":\"string\",\"minLength\":3,\"maxLength\":2}", "maxLength"},
        {"{\"pattern\":\"(a\"}", "not closed"},
        {"{\"$ref\":\"#/nowhere\"}", "does not have"},
        {"{\"$ref\":\"#\"}", "ends"},
        {"{\"$ref\":\"#/$defs/a\",\"$defs\":{\"a\":{\"$ref\":\"#/$defs/b\"},\"b\":{\"$ref\":"
         "\"#/$defs/a\"}}}",
         "ends"},
        {"{\"properties\":{\"a\":{\"$ref\":\"#\"}},\"required\":[\"a\"]}", "ends"},
        {"{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}", "no number"},
        {"{\"enum\":[]}", "enum"},
        {"false", "ends"},
        {"1", "a schema is"},
        {"{", "no JSON"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        test_grammar_refused(DREY_GRAMMAR_JSON_SCHEMA, cases[i][0], cases[i][1]);
}
