/* Rendering a tree: what statements, expressions, filters, tests and methods share.
 *
 * Everything that a rendering makes is in its room, including a failure: functions then return
 * something harmless, and loops check heap_ok. */
#pragma once

#include "template/jinja_tree.h"

typedef struct variable {
    value name, v;
    struct variable *next;
} variable;

typedef struct scope {
    variable *first;
    struct scope *outer;
} scope;

typedef struct piece {
    value text;
    struct piece *next;
} piece;

/* Destination of written text: the template's own, a macro's, a block's. */
typedef struct capture {
    piece *first, **end;
    size_t n_bytes;
    struct capture *outer;
} capture;

typedef struct macro {
    const node *definition;
    scope *scope; /* scope in which it was defined */
} macro;

/* The value of "x.name" if x has a method of that name. */
typedef struct method {
    value of;
    const char *name; /* a constant */
} method;

typedef struct loop_state {
    value items; /* VALUE_LIST */
    uint32_t i;  /* index of the present item */
    int depth;   /* loops around it */
} loop_state;

typedef struct jinja {
    heap *r;
    scope *scope;
    capture *out;
    int depth, loop_depth;
    bool has_clock;
    int64_t now_s; /* seconds since 1970, UTC */
    bool refused;  /* raise_exception was called */
} jinja;

/* Renders a template with the given variables. The text is the pieces of j->out, which the caller
 * has set to its own capture. */
void jinja_run(jinja *j, const node *body, value variables);

/* Enters a level; the caller does j->depth-- at its end. False: too deep, or a failure. */
bool jinja_deeper(jinja *j);

/* ---- Names and output (jinja_run.c) ---- */

value jinja_look_up(jinja *j, value name);
/* The list for a loop: items, characters or keys; empty for an undefined value. */
value jinja_items(jinja *j, value v);

/* ---- Arguments ---- */

enum { MOST_ARGUMENTS = 16 };

typedef struct arguments {
    value positional[MOST_ARGUMENTS];
    int n;
    struct {
        value name, v;
    } keyword[MOST_ARGUMENTS];
    int n_keywords;
} arguments;

/* Argument i, or the one with this name; NULL: not given. */
const value *argument(const arguments *a, int i, const char *name);
bool argument_flag(const arguments *a, int i, const char *name); /* false if it is not given */
/* Returns false, with a failure that names `what`, if there are more than `most` positional
 * arguments, or keywords that are not in `known` (names separated by blanks). */
bool arguments_fit(jinja *j, const arguments *a, const char *what, int least, int most,
                   const char *known);

value macro_call(jinja *j, const macro *m, const arguments *a);

/* ---- Expressions (jinja_expression.c) ---- */

value jinja_eval(jinja *j, const node *n);
void jinja_arguments(jinja *j, const node *list, arguments *out);
bool jinja_contains(jinja *j, value in, value what); /* evaluates "what in in" */

/* ---- Members (jinja_members.c) ---- */

value member_get(jinja *j, value of, value name); /* evaluates of.name */
value member_item(jinja *j, value of, value key); /* evaluates of[key] */
/* evaluates of.a.b, as in the attribute= of filters */
value member_path(jinja *j, value of, value path);
value member_slice(jinja *j, value of, const value *begin, const value *end, const value *step);

/* ---- What has a name (jinja_methods.c, jinja_filters.c, jinja_tests.c, jinja_functions.c) ---- */

/* The constant that names a method of this kind of value; NULL: it has none of this name. */
const char *method_find(value of, value name);
value method_call(jinja *j, const method *m, const arguments *a);
value filter_apply(jinja *j, value name, value v, const arguments *a);
bool test_apply(jinja *j, value name, value v, const arguments *a);
const char *function_find(value name);
value function_call(jinja *j, const char *name, const arguments *a);

/* ---- Ways of strings that filters and methods have in common (string_ways.c) ---- */

/* characters NULL: white space. */
value text_strip(jinja *j, value s, const value *characters, bool front, bool back);
/* most < 0: wherever `what` stands. */
value text_replace(jinja *j, value s, value what, value with, int64_t most);
typedef enum text_case { CASE_LOWER, CASE_UPPER, CASE_TITLE, CASE_CAPITAL } text_case;
value text_in_case(jinja *j, value s, text_case wanted);
/* Lower case of strings, for comparing; other values are unchanged. */
value text_folded(jinja *j, value v);
value strings_between(jinja *j, value strings, value between);
value string_lines(jinja *j, value s); /* as str.splitlines */
/* The result of int() and float() for a string; otherwise: the result if it is no number. */
value number_from_text(jinja *j, value s, bool whole, value otherwise);
