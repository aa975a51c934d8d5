/* Sets of texts as deterministic automata over characters, where expressions do not suffice: what
 * two patterns have in common, what a pattern does not match, how many characters a text has.
 *
 * State 0 is the one after which nothing matches, state 1 is the beginning. Characters that no
 * state distinguishes have the same class. Those of a class are in some ranges:
 *
 *     range 0          range 1      range 2 ...
 *     first[0] = 0 ..  first[1] ..  first[2] ..  up to U+10FFFF, and marks
 *     of[0]            of[1]        of[2]
 *
 * Marks are no characters: a pattern has them where a word has to begin or end, or must not, and
 * where the text has to, until language_keep_marks has compared them with the characters around and
 * left them out.
 *
 * Languages are of fixed size and made in memory of the caller's. Each function that makes one
 * returns false where there is no room in it. */
#pragma once

#include "grammar/grammar_rules.h"

enum { MARK_OF_WORD = 0x110000, MARK_NOT_OF_WORD, MARK_BEGIN, MARK_END };
enum {
    LANGUAGE_MOST_STATES = 6000,
    LANGUAGE_MOST_CLASSES = 256,
    LANGUAGE_MOST_RANGES = 3072,
    LANGUAGE_MOST_CELLS = 64 << 10 /* cells of the table: states times classes */
};

typedef struct language {
    int32_t n_states, n_classes, n_ranges;
    uint32_t first[LANGUAGE_MOST_RANGES + 1];
    uint8_t of[LANGUAGE_MOST_RANGES]; /* their classes */
    bool ends[LANGUAGE_MOST_STATES];
    int16_t to[LANGUAGE_MOST_CELLS]; /* [n_states][n_classes] */
} language;

/* Makes the language of an expression. It is over characters and has no rules. */
bool language_of(language *out, const grammar_rules *g, expr e);
/* The texts of which no beginning is what the expression matches, which is not the empty text. */
bool language_unlike(language *out, const grammar_rules *g, expr e);
/* Makes the intersection of two languages; but_not: what a matches and b does not. out is neither
 * of them. */
bool language_both(language *out, const language *a, const language *b, bool but_not);
/* The texts of l all of whose marks are true, without these. `other` is used. */
bool language_keep_marks(language *out, const language *l, language *other);
/* All texts of at least `least` characters, and at most `most` (REPEAT_FOREVER: of any number). */
bool language_of_length(language *out, int32_t least, int32_t most);
/* Decimal numbers without an exponent that are multiples of step / 10^digits, digits at most 9:
 * [-]whole[.fraction]. */
bool language_of_multiples(language *out, int32_t step, int32_t digits);
bool language_has(const language *l, const char *text, size_t n);
/* The texts are all of the same characters, and of any number of them or of all but the empty one:
 * one such character, as language_written has it; *least is 0 or 1. EXPR_NEVER: they are not. */
expr language_repeated(grammar_rules *g, const language *l, bool in_json, int32_t *least);
/* The same as an expression; in_json: what is written for the texts in a JSON string. EXPR_NEVER:
 * there are none. */
expr language_written(grammar_rules *g, const language *l, bool in_json);
/* The same of the characters themselves, each of which ticks (expr_counted), in rules that end with
 * each other. */
expr language_ticking(grammar_rules *g, const language *l);
