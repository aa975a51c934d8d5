/* Grammars in GBNF, regular expressions and choices: which texts they have, and what is refused. */
#include "support/grammar/grammar_text.h"
#include "support/test.h"

#define LIST(...) ((const char *const[]){__VA_ARGS__, NULL})

static void gbnf(const char *grammar, const char *const *accepted, const char *const *refused)
{
    test_grammar_cases(DREY_GRAMMAR_GBNF, grammar, accepted, refused);
}

static void regex(const char *pattern, const char *const *accepted, const char *const *refused)
{
    test_grammar_cases(DREY_GRAMMAR_REGEX, pattern, accepted, refused);
}

TEST(rules_texts_and_alternatives)
{
    gbnf("root ::= \"a\" b | \"c\"\nb ::= \"b\" # a comment\n", LIST("ab", "c"),
         LIST("", "a", "b", "abc", "cb"));
    gbnf("root ::= expr\nexpr ::= term (\"+\" term)*\nterm ::= [0-9]+ | \"(\" expr \")\"",
         LIST("1", "1+2", "(1+23)+4", "((5))"), LIST("", "+", "1+", "(1", "1)", "(1+2"));
    gbnf("root ::= (\n  \"x\" # within brackets lines do not matter\n  | \"y\"\n)\n",
         LIST("x", "y"), LIST("xy"));
    gbnf("root ::= \"a\" |\n \"b\"\n", LIST("a", "b"), LIST("ab"));
    gbnf("root::=  \"a\"\r\n\r\n# nothing\n", LIST("a"), LIST(""));
    gbnf("root ::= x-1 x_2\nx-1 ::= \"1\"\nx_2 ::= \"2\"", LIST("12"), LIST("21"));
}

TEST(words_of_our_own)
{
    gbnf("root ::= %json {\"type\": \"object\", \"properties\": {\"a\": {\"const\": \"}\"}}, "
         "\"required\": [\"a\"]} b\nb ::= \"!\"",
         LIST("{\"a\": \"}\"}!", "{\"a\":\"}\"}!"), LIST("{}!", "{\"a\": \"}\"}"));
    gbnf("root ::= %without \"<a>\" \"<ab\"\n", LIST("", "<", "<<a", "x<a b>", "é<"),
         LIST("<a>", "<<a>", "<ab", "x<aby"));
    gbnf("root ::= text \"aab\"\ntext ::= %without \"aab\"", LIST("aab", "aaab", "baaab"),
         LIST("aabaab", "ab", "aabb"));
    gbnf("root ::= %token \"[A]\" \"x\"", LIST("[A]x", "\xff[A]x"), LIST("x", "\xff[A]"));
    test_grammar_refused(DREY_GRAMMAR_GBNF, "root ::= %json [1]", "an object");
    test_grammar_refused(DREY_GRAMMAR_GBNF, "root ::= %json {\"contains\": 3}", "a schema is");
    test_grammar_refused(DREY_GRAMMAR_GBNF, "root ::= %token x", "text was expected");
    test_grammar_refused(DREY_GRAMMAR_GBNF, "root ::= %without \"\"", "1 to 63 bytes");
}

TEST(repetitions)
{
    gbnf("root ::= \"a\"*", LIST("", "a", "aaaa"), LIST("b", "ab"));
    gbnf("root ::= \"a\"+ \"b\"?", LIST("a", "ab", "aab"), LIST("", "b", "abb"));
    gbnf("root ::= \"a\"{3}", LIST("aaa"), LIST("aa", "aaaa"));
    gbnf("root ::= \"a\"{2,}", LIST("aa", "aaaaaa"), LIST("a", ""));
    gbnf("root ::= \"a\"{ 1 , 3 } ", LIST("a", "aa", "aaa"), LIST("", "aaaa"));
    gbnf("root ::= \"b\" \"a\"{,2}", LIST("b", "baa"), LIST("baaa"));
    gbnf("root ::= (\"a\" | \"b\"*)* \"c\"", LIST("c", "aabbc", "bc"), LIST("", "ab"));
    gbnf("root ::= (\"a\"{2}){2,3}?\"x\"", LIST("x", "aaaax", "aaaaaax"), LIST("aax", "aaaaaaaax"));
    gbnf("root ::= \"a\" \"b\"{0}", LIST("a"), LIST("ab"));
    gbnf("root ::= [a-c]{0,500}", LIST("", "abcabc"), LIST("d"));
}

TEST(characters)
{
    gbnf("root ::= [a-cx]", LIST("a", "c", "x"), LIST("d", "", "ab", "-"));
    gbnf("root ::= [^a-c\\n]", LIST("d", "é", "中", "\xf0\x9f\x98\x80", "\""),
         LIST("a", "\n", "", "\x80", "\xc3", "\xed\xa0\x80"));
    gbnf("root ::= [a-]", LIST("a", "-"), LIST("b"));
    gbnf("root ::= [à-ü]+ [\\u4e00-\\u9fff]", LIST("é中", "àü龥"), LIST("é", "e中", "中中"));
    gbnf("root ::= .", LIST("a", "\n", "é", "\xf4\x8f\xbf\xbf"),
         LIST("", "\xff", "\xc0\x80", "\xf4\x90\x80\x80", "ab"));
    gbnf("root ::= \"\\x41\\u00e9\\U0001F600\\t\\\"\\\\\\]\"", LIST("Aé\xf0\x9f\x98\x80\t\"\\]"),
         LIST("A"));
    gbnf("root ::= [\\x00-\\x7f]", LIST("a", "\x7f"), LIST("\xc2\x80"));
    gbnf("root ::= [\\u07ff-\\u0801]", LIST("\xdf\xbf", "\xe0\xa0\x80", "\xe0\xa0\x81"),
         LIST("\xdf\xbe", "\xe0\xa0\x82"));
}

/* Every code point of a range, and none outside, for ranges around the edges of UTF-8. */
TEST(ranges_of_characters_are_exact)
{
    static const uint32_t edges[] = {0,       0x40,    0x7F,    0x80,     0x7FF,   0x800,
                                     0xFFF,   0x1000,  0xD7FF,  0xE000,   0xFFFF,  0x10000,
                                     0x3FFFF, 0x40000, 0xFFFFF, 0x100000, 0x10FFFF};
    enum { N = sizeof edges / sizeof *edges };
    for (int i = 0; i < N; i++)
        for (int k = i; k < N; k += 3) {
            char text[64];
            snprintf(text, sizeof text, "root ::= [\\U%08x-\\U%08x]", edges[i], edges[k]);
            test_grammar *g = test_grammar_of(DREY_GRAMMAR_GBNF, text);
            for (int at = 0; at < N; at++)
                for (int off = -1; off <= 1; off++) {
                    uint32_t c = edges[at] + (uint32_t)off;
                    bool whole, want = c >= edges[i] && c <= edges[k];
                    if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000))
                        continue;
                    char bytes[4];
                    size_t n = 0;
                    if (c < 0x80)
                        bytes[n++] = (char)c;
                    else if (c < 0x800)
                        bytes[n++] = (char)(0xC0 | c >> 6);
                    else if (c < 0x10000)
                        bytes[n++] = (char)(0xE0 | c >> 12);
                    else
                        bytes[n++] = (char)(0xF0 | c >> 18);
                    for (int bits = c < 0x80      ? 0
                                    : c < 0x800   ? 6
                                    : c < 0x10000 ? 12
                                                  : 18;
                         bits > 0; bits -= 6)
                        bytes[n++] = (char)(0x80 | (c >> (bits - 6) & 0x3F));
                    test_grammar_takes(g, bytes, n, &whole);
                    if (whole != want)
                        fail_msg("%s: U+%04X", text, c);
                }
            free(g);
        }
}

TEST(a_grammar_that_is_wrong_is_refused_with_its_line)
{
    static const char *const cases[][2] = {
        {"root ::= \"a", "line 1"},
        {"root ::= \"a\"\nx ::= [a", "line 2"},
        {"root ::= (\"a\"", "bracket is not closed"},
        {"root ::= \"a\"{2,1}", "repetition"},
        {"root ::= \"a\"{", "repetition"},
        {"root ::= *", "expected"},
        {"root := \"a\"", "::="},
        {"x ::= \"a\"", "no rule \"root\""},
        {"", "no rule \"root\""},
        {"root ::= x", "does not define"},
        {"root ::= x\nx ::= \"a\"\nx ::= \"b\"", "defined twice"},
        {"root ::= \"\\q\"", "escape"},
        {"root ::= \"\\ud800\"", "no character"},
        {"root ::= \"\\xg0\"", "hexadecimal"},
        {"root ::= [b-a]", "before it begins"},
        {"root ::= \"a\" )", "is not part"},
        {"root ::= <[100]>", "need a model"},
        {"root ::= <name", "<[number]> or <name>"},
        {"root ::= root \"a\" | \"b\"", "begins with itself"},
        {"root ::= x\nx ::= y? z\ny ::= \"a\"\nz ::= x \"b\" | \"c\"", "begins with itself"},
        {"root ::= \"a\" root", "none ever ends"},
        {"root ::= []", "none ever ends"},
        {"root ::= \"\"", "empty text"},
        {"root ::= \"\xff\"", "UTF-8"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (strcmp(cases[i][1], "empty text") != 0) /* seen where a grammar gets its vocabulary */
            test_grammar_refused(DREY_GRAMMAR_GBNF, cases[i][0], cases[i][1]);
}

/* What has no end is not entered, if there is another way. */
TEST(endless_alternatives_are_left_out)
{
    gbnf("root ::= \"a\" x | \"b\"\nx ::= \"c\" x", LIST("b"), LIST("a", "ac"));
    test_grammar *g = test_grammar_of(DREY_GRAMMAR_GBNF, "root ::= \"a\" x | \"b\"\nx ::= \"c\" x");
    bool whole;
    assert_int_equal(test_grammar_takes(g, "ac", 2, &whole), 0);
    free(g);
}

/* Nesting up to the limit, and repetition by recursion at the end without one. */
TEST(stacks_are_as_deep_as_texts_need)
{
    char text[8192];
    bool whole;
    test_grammar *g = test_grammar_of(DREY_GRAMMAR_GBNF, "root ::= \"(\" root \")\" | \"x\"");
    memset(text, '(', 150);
    text[150] = 'x';
    memset(text + 151, ')', 150);
    assert_int_equal(test_grammar_takes(g, text, 301, &whole), 301);
    assert_true(whole);
    memset(text, '(', sizeof text);
    size_t deep = test_grammar_takes(g, text, sizeof text, &whole);
    assert_in_range(deep, GRAMMAR_MOST_DEPTH - 1, GRAMMAR_MOST_DEPTH + 1);
    free(g);
    g = test_grammar_of(DREY_GRAMMAR_GBNF, "root ::= \"a\" root | \"b\"");
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 'b';
    assert_int_equal(test_grammar_takes(g, text, sizeof text, &whole), sizeof text);
    assert_true(whole);
    free(g);
}

/* More states than the tables have: they are forgotten, and texts are taken as before. */
TEST(states_are_forgotten_and_found_again)
{
    test_grammar *g =
        test_grammar_of(DREY_GRAMMAR_GBNF, "root ::= x{0,9000}\nx ::= [ab] | \"(\" x{0,3} \")\"");
    static char text[9000];
    int32_t held;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = "ab"[i * i % 7 < 3];
    g->states.held[0] = (held_places){&held, 1};
    for (int round = 0; round < 3; round++) {
        held = states_first(&g->states);
        for (size_t i = 0; i < sizeof text; i++) {
            held = states_step(&g->states, &held, (uint8_t)text[i]);
            assert_int_not_equal(held, GRAMMAR_NOWHERE);
        }
        assert_true(g->states.all[held].ends);
        assert_int_equal(states_step(&g->states, &held, 'a'), GRAMMAR_NOWHERE);
    }
    assert_true(g->states.n_compacted >= 3);
    free(g);
}

TEST(regular_expressions)
{
    regex("a|b", LIST("a", "b"), LIST("", "ab"));
    regex("^ab+c?$", LIST("ab", "abbc"), LIST("a", "xab", "abcc"));
    regex("(?:ab|c)*d", LIST("d", "ababcd"), LIST("ab", "abd ", "ad"));
    regex("(?P<year>\\d{4})-(?<m>\\d\\d)", LIST("2026-11"), LIST("2026-1", "a026-11"));
    regex("[\\w.-]+@\\w+\\.(com|org)", LIST("a.b-c@d.com"), LIST("@d.com", "a@d.net"));
    regex("[^\\d\\s]+", LIST("abc", "é"), LIST("a1", "a b"));
    regex("\\D\\S\\W", LIST("ab "), LIST("1b ", "a  ", "abc"));
    regex("a.c", LIST("abc", "aéc"), LIST("a\nc", "ac"));
    regex("a{2}b{,3}", LIST("aab{,3}"), LIST("aabbb"));
    regex("a{0,2}?", LIST("", "a", "aa"), LIST("aaa"));
    regex("[]a]+[a\\]-]", LIST("]a]", "]-"), LIST("b", "-"));
    regex("\\x41\\u00e9\\.\\/", LIST("Aé./"), LIST("Aéx/"));
    regex("^a$|^b$", LIST("a", "b"), LIST("ab"));
    regex("", LIST(""), LIST("a"));
}

TEST(a_regular_expression_that_is_wrong_is_refused)
{
    static const char *const cases[][2] = {{"(a", "not closed"},
                                           {"a)", "not opened"},
                                           {"[a", "not closed"},
                                           {"*a", "nothing to repeat"},
                                           {"a(?=b)b", "look-around"},
                                           {"(?=a)b|c", "look-around"},
                                           {"(?=a)", "ends"},
                                           {"(?i)a", "flags"},
                                           {"(a)\\1", "back-references"},
                                           {"\\p{Klingon}", "no class of characters"},
                                           {"\\p{L", "not closed"},
                                           {"a\\bb", "ends"},
                                           {"a{3,1}", "before it begins"},
                                           {"a++", "possessive"},
                                           {"a^b", "ends"},
                                           {"a)", "not opened"},
                                           {"[[:alpha:]]", "by name"},
                                           {"\\", "escape"},
                                           {"a(", "not closed"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        test_grammar_refused(DREY_GRAMMAR_REGEX, cases[i][0], cases[i][1]);
}

static void expression(const char *text, const char *const *accepted, const char *const *refused)
{
    test_grammar_cases(DREY_GRAMMAR_REGEX, text, accepted, refused);
}

/* As Python's "regex" has them. */
TEST(classes_of_unicode)
{
    expression("\\p{L}+",
               LIST("a", "\xc3\xa4\xc3\x9f", "\xd0\x96", "\xe4\xb8\xad", "\xf0\x9d\x90\x80",
                    "\xf0\xa0\x80\x80"),
               LIST("1", "_", "\xcc\x81", "a b", "\xf0\x9f\x98\x80"));
    expression("\\p{Lu}\\p{Ll}*", LIST("A", "\xc3\x84\xc3\xa4"), LIST("a", "AA", "\xc7\x85"));
    expression("\\P{L}+", LIST("12 _", "\xf0\x9f\x98\x80"), LIST("a", "\xe4\xb8\xad"));
    expression("\\p{Nd}", LIST("7", "\xd9\xa3"), LIST("\xc2\xbd", "x"));
    expression("\\p{N}", LIST("7", "\xc2\xbd", "\xe2\x85\xa7"), LIST("x"));
    expression("[\\p{P}\\p{S}]+", LIST("!", "+", "\xe2\x82\xac", "\xe3\x80\x82"),
               LIST("a", "1", " "));
    expression("\\p{Z}", LIST(" ", "\xc2\xa0", "\xe2\x80\xa8"), LIST("\t", "a"));
    expression("\\p{Script=Han}+", LIST("\xe4\xb8\xad\xe3\x80\x85"), LIST("a", "\xe3\x81\x82"));
    expression("[^\\p{Latin}]", LIST("\xce\xb1", "1"), LIST("a", "\xc3\xa9"));
    expression("\\p{Greek}\\p{Cyrillic}", LIST("\xce\xb1\xd0\xb6"), LIST("\xd0\xb6\xce\xb1"));
    expression("\\p{Uppercase_Letter}\\pL\\p{^L}\\p{gc=Nd}", LIST("Aa-1"), LIST("aa-1", "Aab1"));
    expression("\\u00e9\\u{1F600}\\ud83d\\ude00\\cJ",
               LIST("\xc3\xa9\xf0\x9f\x98\x80\xf0\x9f\x98\x80\n"), LIST("\xc3\xa9"));
}

TEST(words_and_what_is_around)
{
    expression("[a-z ]*\\bend\\b[a-z ]*", LIST("end", "the end", "end of"), LIST("bend", "ends"));
    expression("\\Band\\B|[a-z]\\Bx", LIST("ax"), LIST("and", "x"));
    expression("(?:^a|b$|c)+", LIST("a", "b", "ac", "cb", "acb"), LIST("ba", "bc", "ca"));
    expression("(?=.*[A-Z])(?=.*\\d)(?!.* ).{4,}", LIST("abC1", "1Cab!"),
               LIST("abc1", "aB 1", "B1"));
    expression("(?!con$|nul$)[a-z]+", LIST("cons", "aux"), LIST("con", "nul"));
    expression("[a-z]+(?<!ing)", LIST("go", "in"), LIST("going"));
    expression("\\A[a-z]+(?<=s)\\Z", LIST("as"), LIST("a"));
}

TEST(choices)
{
    test_grammar_cases(DREY_GRAMMAR_CHOICES, "[\"yes\", \"no\", \"not at all\", \"é\", \"no\"]",
                       LIST("yes", "no", "not at all", "é"), LIST("", "n", "not", "noo"));
    test_grammar_refused(DREY_GRAMMAR_CHOICES, "[]", "at least one");
    test_grammar_refused(DREY_GRAMMAR_CHOICES, "[1]", "texts");
    test_grammar_refused(DREY_GRAMMAR_CHOICES, "{", "no JSON");
}

TEST(each_of_a_list_in_any_order)
{
    static const char *const accepted[] = {"ac", "ca", "abc", "cab", "bca", NULL};
    static const char *const refused[] = {"", "a", "ab", "aca", "acbb", "acc", NULL};
    test_grammar_cases(DREY_GRAMMAR_GBNF, "root ::= %each (a \"b\"? c)\na ::= \"a\"\nc ::= \"c\"",
                       accepted, refused);
    test_grammar_refused(DREY_GRAMMAR_GBNF, "root ::= %each (a)\na ::= \"a\" a", "ends");
}

TEST(members_in_any_order)
{
    static const char schema[] =
        "root ::= %unordered {\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},"
        "\"b\":{\"type\":\"object\",\"properties\":{\"c\":{},\"d\":{}},\"required\":[\"c\",\"d\"]}}"
        ","
        "\"required\":[\"a\"]}";
    static const char *const accepted[] = {"{\"a\": 1}", "{\"b\": {\"d\": 1, \"c\": 2}, \"a\": 1}",
                                           "{\"a\":1,\"b\":{\"c\":{\"c\":1},\"d\":2}}", NULL};
    static const char *const refused[] = {"{}",
                                          "{\"a\": 1, \"a\": 2}",
                                          "{\"a\": 1, }",
                                          "{\"b\": {\"d\": 1}, \"a\": 1}",
                                          "{\"a\": 1, \"x\": 2}",
                                          "{, \"a\": 1}",
                                          NULL};
    test_grammar_cases(DREY_GRAMMAR_GBNF, schema, accepted, refused);
}

TEST(texts_unlike_an_expression)
{
    static const char *const refused[] = {"<c 1", "a<c1", "<<c  12", NULL};
    test_grammar_cases(DREY_GRAMMAR_GBNF, "root ::= %unlike ((.* [^d])? \"<c\" \" \"* [0-9])",
                       (const char *const[]){"", "ab", "a<b", "<<c ", "d<c1", NULL}, refused);
    test_grammar_cases(
        DREY_GRAMMAR_GBNF,
        "text ::= %unlike (.* \"/\") (.* \" \")\nroot ::= text | \"-\" %text {\"maxLength\":3}",
        (const char *const[]){"", "ab", "a b", "-abc", "-\xC3\xA9", NULL},
        (const char *const[]){"a ", "a/", "-a/", NULL});
    test_grammar_refused(DREY_GRAMMAR_GBNF, "root ::= %text {}", "comes after");
    test_grammar_refused(DREY_GRAMMAR_GBNF, "root ::= %unlike (a)\na ::= \"a\"", "has rules");
}
