/* JSON Schema as a grammar: which texts satisfy a schema, and which words are refused. */
#include "support/grammar/grammar_text.h"
#include "support/test.h"

TEST(cases)
{
    test_grammar_file(TEST_DATA "/grammars/schemas.txt", 490);
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
