/* Grammars that are large, or small and become large: each is read or refused, and what is read
 * has the texts that it should have. */
#include "support/grammar/grammar_text.h"

#include "support/scene.h"

enum { ROOM = 2 << 20 };

/* One text after the other. */
typedef struct writer {
    char *text;
    size_t n;
} writer;

static void add(writer *w, const char *format, int32_t i)
{
    int n = snprintf(w->text + w->n, ROOM - w->n, format, i, i);
    assert_true(n >= 0 && (size_t)n < ROOM - w->n);
    w->n += (size_t)n;
}

static writer with(const char *begin, const char *part, int32_t n, const char *end)
{
    writer w = {.text = malloc(ROOM)};
    assert_non_null(w.text);
    add(&w, begin, 0);
    for (int32_t i = 0; i < n; i++)
        add(&w, part, i);
    add(&w, end, n);
    return w;
}

static void refused(drey_grammar_kind kind, writer w, const char *words)
{
    test_grammar_refused(kind, w.text, words);
    free(w.text);
}

static void has(drey_grammar_kind kind, writer w, const char *text, const char *other)
{
    test_grammar *g = test_grammar_of(kind, w.text);
    if (!test_grammar_matches(g, text) || test_grammar_matches(g, other))
        fail_msg("%.60s...: %.40s or %.40s", w.text, text, other);
    free(g);
    free(w.text);
}

/* A request's text is measured before it is read. */
TEST(a_text_of_a_megabyte_is_refused)
{
    toy_options toy = toy_default();
    drey_model *m = toy_open("limits.gguf", &toy);
    static const struct {
        drey_grammar_kind kind;
        const char *begin, *part, *end;
    } cases[] = {{DREY_GRAMMAR_JSON_SCHEMA, "{\"properties\":{\"a\":{}",
                  ",\"p%d\":{\"type\":\"string\"}", "}}"},
                 {DREY_GRAMMAR_GBNF, "root ::= \"a\"\n", "rule%d ::= \"b\" root\n", ""},
                 {DREY_GRAMMAR_REGEX, "a", "|b%d", ""},
                 {DREY_GRAMMAR_CHOICES, "[\"a\"", ",\"choice %d\"", "]"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        drey_grammar *g = NULL;
        drey_error err = {0};
        writer w = with(cases[i].begin, cases[i].part, 60000, cases[i].end);
        assert_int_equal(drey_grammar_open(&g, m, cases[i].kind, w.text, w.n, &err),
                         DREY_ERR_USAGE);
        assert_non_null(strstr(err.message, "at most"));
        assert_null(g);
        free(w.text);
    }
    drey_model_close(&m);
}

TEST(many_parts_are_read_or_too_large)
{
    has(DREY_GRAMMAR_CHOICES, with("[\"a\"", ",\"choice %d\"", 400, "]"), "choice 399",
        "choice 400");
    refused(DREY_GRAMMAR_CHOICES, with("[\"a\"", ",\"choice %d of many\"", 60000, "]"),
            "too large");
    refused(DREY_GRAMMAR_REGEX, with("a", "|b%dccccccccc", 60000, ""), "too large");
    refused(DREY_GRAMMAR_GBNF, with("root ::= r0\n", "r%d ::= \"a\" | \"b\" r%d\n", 60000, ""),
            "too large");
    refused(DREY_GRAMMAR_JSON_SCHEMA,
            with("{\"properties\":{\"a\":{}", ",\"p%d\":{\"type\":\"string\"}", 2200, "}}"),
            "members");
}

/* Each of 40 rules has the one before twice: 2^40 readings of one text are one place, and as many
 * different texts are a few nodes. */
TEST(readings_that_double)
{
    static const char *const ways[][3] = {
        {"r%1$d ::= r%2$d | r%2$d\n", "a", "b"},
        {"r%1$d ::= r%2$d \"\" | \"\" r%2$d\n", "a", "aa"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        writer w = with("root ::= r40\nr0 ::= \"a\"\n", "", 0, "");
        for (int32_t n = 1; n <= 40; n++)
            w.n += (size_t)snprintf(w.text + w.n, ROOM - w.n, ways[i][0], n, n - 1);
        has(DREY_GRAMMAR_GBNF, w, ways[i][1], ways[i][2]);
    }
}

/* On which readers that go back need exponential time: one reading of each place is enough. */
TEST(patterns_that_others_try_for_ever)
{
    char text[64];
    memset(text, 'a', 40);
    text[40] = 0;
    static const char *const patterns[] = {"(a+)+",          "(a|a)*",        "(a|aa)+",
                                           "((((a*)*)*)*)*", "(a?){40}a{40}", "(.*a){3}"};
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        test_grammar *g = test_grammar_of(DREY_GRAMMAR_REGEX, patterns[i]);
        assert_true(test_grammar_matches(g, text));
        text[39] = '\n';
        assert_false(test_grammar_matches(g, text));
        text[39] = 'a';
        free(g);
    }
}

/* Counts copies that have no room: they are counted. */
static void count(drey_grammar_kind kind, const char *grammar, const char *begin, const char *part,
                  const char *end, const int32_t *good, const int32_t *bad)
{
    test_grammar *g = test_grammar_of(kind, grammar);
    for (int bads = 0; bads < 2; bads++)
        for (const int32_t *n = bads ? bad : good; *n >= 0; n++) {
            writer w = with(begin, part, *n, end);
            bool whole = test_grammar_matches(g, w.text);
            if (whole != !bads)
                fail_msg("%s %s %d times", grammar, whole ? "takes" : "refuses", *n);
            free(w.text);
        }
    free(g);
}
#define TIMES(...) ((const int32_t[]){__VA_ARGS__, -1})

TEST(large_counts_are_held)
{
    count(DREY_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"maxLength\":32768}", "\"", "a", "\"",
          TIMES(0, 1, 32767, 32768), TIMES(32769, 40000));
    count(DREY_GRAMMAR_JSON_SCHEMA,
          "{\"type\":\"string\",\"minLength\":10000,\"maxLength\":100000}", "\"", "\xc3\xa9", "\"",
          TIMES(10000, 99999, 100000), TIMES(0, 9999, 100001));
    count(DREY_GRAMMAR_JSON_SCHEMA,
          "{\"type\":\"array\",\"minItems\":10001,\"maxItems\":20001,\"items\":{\"type\":"
          "\"integer\"}}",
          "[1", ",2", "]", TIMES(10000, 20000), TIMES(1, 9999, 20001));
    count(DREY_GRAMMAR_JSON_SCHEMA, "{\"type\":\"string\",\"pattern\":\"^a{0,100000}$\"}", "\"",
          "a", "\"", TIMES(0, 100000), TIMES(100001));
    count(DREY_GRAMMAR_REGEX, "(ab|c){100000}", "", "ab", "", TIMES(100000), TIMES(99999, 100001));
    count(DREY_GRAMMAR_REGEX, "x{20000,}", "", "x", "", TIMES(20000, 60000), TIMES(0, 19999));
    count(DREY_GRAMMAR_GBNF, "root ::= (\"a\" b){1000,30000} \"!\"\nb ::= \"b\"?", "", "ab", "!",
          TIMES(1000, 30000), TIMES(999, 30001));
    count(DREY_GRAMMAR_REGEX, "[é-ü]{2,10000}", "", "\xc3\xa9", "", TIMES(2, 10000),
          TIMES(1, 10001));
    /* Within each other. */
    count(DREY_GRAMMAR_REGEX, "(((a{99}){99}){99}){99}", "", "a", "b", TIMES(-1), TIMES(98, 9900));
    count(DREY_GRAMMAR_REGEX, "((x{300}|y){300},){2,400}", "", "yxxx", ",", TIMES(-1), TIMES(150));
    count(DREY_GRAMMAR_REGEX, "((a{3}|b){2,3}c){1000}", "", "aaabc", "", TIMES(1000),
          TIMES(999, 1001));
    /* Of characters, whatever else is said of a text. */
    count(DREY_GRAMMAR_GBNF,
          "text ::= %unlike (.* \"/a\")\n"
          "root ::= \"<\" %text {\"minLength\":10000,\"maxLength\":20000} \"/a\"",
          "<", "/", "/a", TIMES(10000, 20000), TIMES(0, 9999, 20001));
}

/* How often nothing was written is not counted. */
TEST(large_counts_of_what_may_be_empty)
{
    count(DREY_GRAMMAR_REGEX, "(a?b?){1000,2000}c", "", "ab", "c", TIMES(0, 1, 2000), TIMES(2001));
    count(DREY_GRAMMAR_REGEX, "((a*)?(b?|c){0,3}){1000}", "", "abb", "c", TIMES(0, 1, 999, 1000),
          TIMES(1002));
    count(DREY_GRAMMAR_GBNF, "root ::= x{0,100000} \"!\"\nx ::= y?\ny ::= z | \"\"\nz ::= \"ba\"",
          "", "ba", "!", TIMES(0, 100000), TIMES(100001));
    count(DREY_GRAMMAR_GBNF, "root ::= (%each (\"a\"? b)){1000,2000} \"!\"\nb ::= \"b\"?", "", "ab",
          "!", TIMES(0, 1, 2000), TIMES(2001));
    count(DREY_GRAMMAR_GBNF,
          "text ::= %unlike (.* [^a-c])\nroot ::= (%text {\"maxLength\":1}){1000,2000} \"!\"", "",
          "a", "!", TIMES(0, 1, 2000), TIMES(2001));
}

TEST_GROUP(temp_dir_set_up, temp_dir_tear_down)
