/* The readers of grammars: each fills rules from a text, and returns the rule that whole texts
 * match. DREY_ERR_USAGE: what is wrong, in one sentence. Texts are untrusted. */
#pragma once

#include "common/json_value.h"
#include "grammar/grammar_rules.h"

enum { GRAMMAR_MOST_BRACKETS = 100 };

drey_status gbnf_read(grammar_rules *g, const char *text, size_t n, int32_t *root, drey_error *err);
drey_status json_schema_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                             drey_error *err);
/* A whole text must match. */
drey_status regex_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                       drey_error *err);
/* A JSON array of texts: one of them. */
drey_status choices_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                         drey_error *err);

/* A pattern of JSON Schema, as the inside of a JSON string: it may match anywhere unless it has
 * anchors. */
drey_status regex_in_json(grammar_rules *g, const char *pattern, size_t n, expr *out,
                          drey_error *err);
/* The same of a pattern of our own, which is right. */
expr regex_known(grammar_rules *g, const char *pattern);

/* What is written in a JSON string for these characters: some need an escape. */
expr json_class(grammar_rules *g, char_range *ranges, int32_t n, bool but_not);
