/* Parts of JSON as expressions, for the reader of schemas. */
#pragma once

#include "grammar/readers.h"

/* Rules that are made when they are first used; -1 before. */
typedef struct json_rules {
    int32_t any, object, array, string, character, number, integer, space;
    bool unordered; /* members of objects come in any order */
} json_rules;
void json_rules_init(json_rules *j);

/* A character of a string as it is written there. */
expr written_character(grammar_rules *g, json_rules *j);
expr written_string(grammar_rules *g, json_rules *j);
expr written_number(grammar_rules *g, json_rules *j);
expr written_integer(grammar_rules *g, json_rules *j);
expr written_object(grammar_rules *g, json_rules *j);
expr written_value(grammar_rules *g, json_rules *j);

/* begin, then what is between, then end, with blanks inside. */
expr written_between(grammar_rules *g, json_rules *j, const char *begin, expr inside,
                     const char *end);
/* A comma with the blanks after it. */
expr written_comma(grammar_rules *g, json_rules *j);
/* A value as JSON writes it on one line. */
expr written_literal(grammar_rules *g, const json_value *v);
/* "key": with a blank or none after it. */
expr written_key(grammar_rules *g, const char *key, size_t n);

/* Digits of a bound of a number. Exclusive ones do not belong to the range. */
typedef struct json_bound {
    bool set, exclusive;
    double value;
} json_bound;
/* Numbers from low to high, without exponents. EXPR_NEVER: there is none. A bound must be less than
 * 1e15 away from 0. */
expr json_number_between(grammar_rules *g, bool whole, json_bound low, json_bound high);
