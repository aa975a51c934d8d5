/* Grammars over bytes, without a vocabulary. */
#pragma once

#include "grammar/states.h"

typedef struct test_grammar {
    automaton automaton;
    states states;
    int32_t rows[STATES_ROW_BYTES / 4];
    char not_held[RULES_LEFT_OUT_BYTES]; /* places of its schema */
} test_grammar;

/* NULL: it is refused, see err. The caller frees with free(). */
test_grammar *test_grammar_open(drey_grammar_kind kind, const char *text, drey_error *err);
/* Fails the test if it is refused. */
test_grammar *test_grammar_of(drey_grammar_kind kind, const char *text);
/* Returns how many bytes of the text are the beginning of a text of the grammar. */
size_t test_grammar_takes(test_grammar *g, const char *text, size_t n, bool *whole);
/* Returns whether the text is one of the grammar. */
bool test_grammar_matches(test_grammar *g, const char *text);

/* The reading must be refused with a sentence that has these words. */
void test_grammar_refused(drey_grammar_kind kind, const char *grammar, const char *words);
/* Checks the cases of a file, which has at least so many lines; its first ones say how they are
 * written. */
void test_grammar_file(const char *path, int least);
