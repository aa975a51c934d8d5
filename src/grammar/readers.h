/* The readers of grammars: each fills rules from a text, and returns the rule that whole texts
 * match. DREY_ERR_USAGE: what is wrong, in one sentence. Texts are untrusted. */
#pragma once

#include "common/json_value.h"
#include "grammar/grammar_rules.h"

enum { GRAMMAR_MOST_BRACKETS = 100 };

drey_status gbnf_read(grammar_rules *g, const char *text, size_t n, int32_t *root, drey_error *err);
drey_status json_schema_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                             drey_error *err);
/* The same for one of several schemas in a grammar: parts of JSON that they have in common are
 * there once. */
struct json_rules;
drey_status json_schema_add(grammar_rules *g, struct json_rules *json, const char *text, size_t n,
                            int32_t *root, drey_error *err);
/* A whole text must match. */
drey_status regex_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                       drey_error *err);
/* A JSON array of texts: one of them. */
drey_status choices_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                         drey_error *err);

/* A pattern of JSON Schema, which may match anywhere unless it has anchors. */
enum { PATTERN_MOST_AROUND = 8 };
typedef struct regex_pattern {
    expr texts; /* inside of a JSON string, or over the characters themselves */
    /* Over characters: what whole texts match as well, or must not. */
    expr around[PATTERN_MOST_AROUND];
    bool around_not[PATTERN_MOST_AROUND];
    int32_t n_around;
    bool marked;     /* they have marks (languages.h), or would have over characters */
    bool loose;      /* the expression matches more than the pattern, */
    const char *why; /* because of this */
    bool unknown;    /* its meaning is not known here: it matches any text */
} regex_pattern;
drey_status pattern_read(grammar_rules *g, const char *text, size_t n, bool in_json,
                         regex_pattern *out, drey_error *err);
/* Makes the language of a pattern over characters. False: there is no room. */
struct language;
bool pattern_language(const grammar_rules *g, const regex_pattern *p, struct language *out);
/* A pattern of our own, which is right, and which a whole text matches. */
expr regex_known(grammar_rules *g, const char *pattern);
expr regex_in_json(grammar_rules *g, const char *pattern);

/* Makes the JSON string notation of these characters: some need an escape. */
expr json_class(grammar_rules *g, char_range *ranges, int32_t n, bool but_not);

/* Texts in which none of these words occurs; words are UTF-8 of up to GRAMMAR_WORD_CHARACTERS - 1
 * characters. */
enum { GRAMMAR_MOST_WORDS = 6, GRAMMAR_WORD_CHARACTERS = 64 };
typedef struct grammar_word {
    const char *text;
    size_t n;
} grammar_word;
expr text_without(grammar_rules *g, const grammar_word *words, int32_t n);

/* Texts as they are, no JSON: of which no beginning is what one expression matches, and which
 * another one (EXPR_NEVER: none) does not match. */
typedef struct raw_texts {
    struct language *all; /* NULL: any text */
    int32_t counting;     /* the rule in which each character ticks; -1: not made yet */
} raw_texts;
/* Begins texts that are the caller's, who frees them. The expressions are over characters and have
 * no rules. */
drey_status raw_texts_init(raw_texts *t, grammar_rules *g, expr begins, expr but_not,
                           drey_error *err);
void raw_texts_free(raw_texts *t);
expr raw_texts_expr(grammar_rules *g, const raw_texts *t);
/* Adds the texts that satisfy a schema of texts: its pattern, format and lengths. */
drey_status raw_texts_add(raw_texts *t, grammar_rules *g, const char *schema, size_t n, expr *out,
                          drey_error *err);
