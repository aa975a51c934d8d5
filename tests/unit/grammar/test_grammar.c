/* Grammars in GBNF, regular expressions and choices: which texts they have, and what is refused. */
#include "support/grammar/grammar_text.h"
#include "support/test.h"

TEST(cases)
{
    test_grammar_file(TEST_DATA "/grammars/grammars.txt", 300);
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

/* What has no end is not entered, if there is another way. */
TEST(endless_alternatives_are_left_out)
{
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
    g->states.held[0] = (held_states){&held, 1};
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
