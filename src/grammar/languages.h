/* Sets of texts as deterministic automata over characters, where expressions do not suffice: what
 * two patterns have in common, what a pattern does not match, how many characters a text has.
 *
 * State 0 is the one after which nothing matches, state 1 is the beginning. Characters that no
 * state distinguishes have the same class:
 *
 *     class 0          class 1      class 2 ...
 *     first[0] = 0 ..  first[1] ..  first[2] ..  up to U+10FFFF
 *
 * Languages are of fixed size and made in memory of the caller's. Each function that makes one
 * returns false where there is no room in it. */
#pragma once

#include "grammar/grammar_rules.h"

enum {
    LANGUAGE_MOST_STATES = 6000,
    LANGUAGE_MOST_CLASSES = 256,
    LANGUAGE_MOST_CELLS = 64 << 10 /* of the table: states times classes */
};

typedef struct language {
    int32_t n_states, n_classes;
    uint32_t first[LANGUAGE_MOST_CLASSES + 1];
    bool ends[LANGUAGE_MOST_STATES];
    int16_t to[LANGUAGE_MOST_CELLS]; /* [n_states][n_classes] */
} language;

/* What the expression matches. It is over characters and has no rules. */
bool language_of(language *out, const grammar_rules *g, expr e);
/* The texts of which no beginning is what the expression matches, which is not the empty text. */
bool language_unlike(language *out, const grammar_rules *g, expr e);
/* What both match; but_not: what a matches and b does not. out is neither of them. */
bool language_both(language *out, const language *a, const language *b, bool but_not);
/* All texts of at least `least` characters, and at most `most` (REPEAT_FOREVER: of any number). */
bool language_of_length(language *out, int32_t least, int32_t most);
/* Decimal numbers without an exponent that are multiples of step / 10^digits, digits at most 9:
 * [-]whole[.fraction]. */
bool language_of_multiples(language *out, int32_t step, int32_t digits);
bool language_has(const language *l, const char *text, size_t n);
bool language_is_empty(const language *l);
/* The same as an expression: what is written for the texts in a JSON string. EXPR_NEVER: there are
 * none. */
expr language_written(grammar_rules *g, const language *l);
/* The same of the characters themselves, in rules that end with each other; ticks: each character
 * ticks (expr_counted). */
expr language_raw(grammar_rules *g, const language *l, bool ticks);
