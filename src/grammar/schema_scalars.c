/* Texts and numbers of JSON Schema. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "grammar/schema_reader.h"

/* ---- Languages ---- */

drey_status schema_languages_init(schema_reader *r, schema_languages *l)
{
    l->now = malloc(3 * sizeof *l->now);
    if (!l->now)
        FAIL(r->err, DREY_ERR_MEMORY, "not enough memory for a pattern");
    l->other = l->now + 1;
    l->next = l->now + 2;
    return DREY_OK;
}

void schema_languages_free(schema_languages *l)
{
    language *first = l->now < l->other ? l->now : l->other; /* they change places */
    free(first < l->next ? first : l->next);
}

bool schema_languages_both(schema_languages *l, bool but_not)
{
    if (!language_both(l->next, l->now, l->other, but_not))
        return false;
    language *now = l->now;
    l->now = l->next;
    l->next = now;
    return true;
}

drey_status schema_pattern(schema_reader *r, const char *text, size_t n, language *out, bool *held)
{
    regex_pattern p;
    TRY(pattern_read(r->g, text, n, false, &p, r->err));
    *held = !p.loose && !p.unknown && pattern_language(r->g, &p, out);
    return DREY_OK;
}

/* ---- Texts ---- */

/* Text that drey writes for a format, with its longest length: a limit above that says nothing. */
typedef struct text_format {
    const char *name, *pattern;
    int32_t shortest, longest;
} text_format;

#define YEAR "[1-9][0-9]{3}"
#define LEAP "(?:[1-9][0-9](?:0[48]|[2468][048]|[13579][26])|(?:[2468][048]|[13579][26])00)-02-29"
#define DATE                                                                                       \
    "(?:" YEAR "-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|"                                \
    "(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)|02-(?:0[1-9]|1[0-9]|2[0-8]))|" LEAP ")"
#define TIME  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?"
#define ZONE  "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define BYTE  "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define NAME  "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,31}" /* labels of at most 63 characters */
#define H     "[0-9a-fA-F]{1,4}"
#define PATH  "(?:[A-Za-z0-9._~!$&'()*+,;=:@/-]|%[0-9a-fA-F]{2})"
#define N     "[0-9]{1,9}"
#define USER  "(?:(?:[A-Za-z0-9._~!$&'()*+,;=:-]|%[0-9a-fA-F]{2})*@)?"
#define LOCAL "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]{1,20}"
#define IPV6                                                                                       \
    "(?:(?:" H ":){7}" H "|(?:" H ":){1,7}:|(?:" H ":){1,6}:" H "|(?:" H ":){1,5}(?::" H           \
    "){1,2}|(?:" H ":){1,4}(?::" H "){1,3}|(?:" H ":){1,3}(?::" H "){1,4}|(?:" H ":){1,2}(?::" H   \
    "){1,5}|" H ":(?::" H "){1,6}|:(?:(?::" H "){1,7}|:))"
#define HOST "(?:" NAME "(?:\\." NAME "){0,3}|\\[" IPV6 "\\])"
static const text_format formats[] = {
    {"date", DATE, 10, 10},
    {"time", TIME ZONE, 9, 21},
    {"date-time", DATE "T" TIME ZONE, 20, 32},
    {"uuid", "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", 36, 36},
    {"ipv4", BYTE "(?:\\." BYTE "){3}", 7, 15},
    {"ipv6", IPV6, 2, 39},
    {"hostname", NAME "(?:\\." NAME "){0,3}", 1, 255},
    {"email", LOCAL "(?:\\." LOCAL "){0,2}@" NAME "(?:\\." NAME "){1,3}", 5, 318},
    {"uri",
     "[a-z][a-z0-9+.-]{0,19}:(?://(?:" USER HOST "(?::[0-9]{1,5})?)?(?:/" PATH
     "{0,80})?|(?:[A-Za-z0-9._~!$&'()*+,;=:@-]" PATH "{0,80}))(?:\\?(?:[?]|" PATH
     "){0,80})?(?:#(?:[?]|" PATH "){0,30})?",
     3, 922},
    {"duration",
     "P(?:" N "W|(?:" N "Y(?:" N "M(?:" N "D)?)?|" N "M(?:" N "D)?|" N "D)(?:T(?:" N "H(?:" N
     "M(?:" N "S)?)?|" N "M(?:" N "S)?|" N "S))?|T(?:" N "H(?:" N "M(?:" N "S)?)?|" N "M(?:" N
     "S)?|" N "S))",
     3, 62},
    {"json-pointer", "(?:/(?:[^/~\\x00-\\x1F]|~[01])*)*", 0, INT32_MAX},
    {"relative-json-pointer", "(?:0|[1-9][0-9]{0,5})(?:#|(?:/(?:[^/~\\x00-\\x1F]|~[01])*)*)", 1,
     INT32_MAX}};
/* Formats for which texts of another one are written, which are some of theirs. */
static const char *const format_names[][2] = {{"idn-email", "email"},
                                              {"idn-hostname", "hostname"},
                                              {"iri", "uri"},
                                              {"uri-reference", "uri"},
                                              {"iri-reference", "uri"}};
enum { N_FORMATS = sizeof formats / sizeof *formats };
_Static_assert((int)N_FORMATS == (int)SCHEMA_FORMATS, "their rules");

static const text_format *format_named(const char *name)
{
    for (size_t i = 0; name && i < sizeof format_names / sizeof *format_names; i++)
        if (strcmp(name, format_names[i][0]) == 0)
            return format_named(format_names[i][1]);
    for (int i = 0; i < N_FORMATS; i++)
        if (name && strcmp(name, formats[i].name) == 0)
            return &formats[i];
    return NULL;
}

/* All uses of a format share its rule. */
static expr written_format(schema_reader *r, const text_format *format)
{
    int32_t *rule = &r->format_rule[format - formats];
    if (*rule == 0) {
        *rule = rule_new(r->g, format->name);
        expr body = regex_in_json(r->g, format->pattern);
        if (!r->g->full)
            r->g->rules[*rule].body = body;
    }
    return expr_rule(r->g, *rule);
}

/* Rules for texts: each of these alone, or the first with the others. */
typedef struct text_rule {
    const json_value *schema; /* schema that says it, by its */
    const char *word;
    const text_format *format;
    regex_pattern pattern; /* pattern of "pattern" and SCHEMA_UNLIKE */
} text_rule;

typedef struct text_rules {
    text_rule of[2 * SCHEMA_MOST_TOGETHER];
    int32_t n, least, most;
    const json_value *shortest, *longest; /* schemas that say `least` and `most` */
    bool measured, simple;                /* simple: none needs a language */
} text_rules;

static text_rule *add_rule(text_rules *t, const json_value *schema, const char *word)
{
    text_rule *rule = &t->of[t->n++];
    *rule = (text_rule){.schema = schema, .word = word};
    return rule;
}

/* "pattern", or what texts must not match; inside of a JSON string, as long as that suffices. */
static drey_status add_pattern(schema_reader *r, text_rules *t, const json_value *schema,
                               const char *word)
{
    const json_value *text = json_member(schema, word);
    if (!text || t->n == 2 * SCHEMA_MOST_TOGETHER)
        return DREY_OK;
    if (text->type != JSON_STRING)
        SCHEMA_FAIL(r, "\"pattern\" is a regular expression");
    text_rule *rule = add_rule(t, schema, word);
    TRY(pattern_read(r->g, text->text, text->n, true, &rule->pattern, r->err));
    if (rule->pattern.loose || rule->pattern.unknown)
        schema_leave_out(r, schema, word);
    t->n -= rule->pattern.unknown;
    t->simple = t->simple && !rule->pattern.marked && rule->pattern.n_around == 0 &&
                strcmp(word, "pattern") == 0;
    return DREY_OK;
}

static void add_format(schema_reader *r, text_rules *t, const json_value *schema)
{
    /* Formats of JSON Schema that no expression here has; others are nobody's. */
    static const char *const unheld[] = {"regex", "uri-template"};
    const char *name = json_member_text(schema, "format");
    const text_format *format = format_named(name);
    for (size_t i = 0; name && i < sizeof unheld / sizeof *unheld; i++)
        if (strcmp(name, unheld[i]) == 0)
            schema_leave_out(r, schema, "format");
    for (int32_t k = 0; k < t->n; k++)
        if (format && t->of[k].format == format)
            return;
    if (format && t->n < 2 * SCHEMA_MOST_TOGETHER)
        add_rule(t, schema, "format")->format = format;
}

static const json_value *who_says(const schema_set *set, const char *word, int32_t value)
{
    for (int32_t i = 0; i < set->n; i++)
        if (json_member_number(set->of[i], word) == value)
            return set->of[i];
    return set->of[0];
}

static drey_status text_rules_of(schema_reader *r, const schema_set *set, text_rules *t)
{
    t->n = 0;
    t->simple = true;
    TRY(schema_counts(r, set, "minLength", "maxLength", &t->least, &t->most));
    t->shortest = who_says(set, "minLength", t->least);
    t->longest = who_says(set, "maxLength", t->most);
    for (int32_t i = 0; i < set->n; i++) {
        TRY(add_pattern(r, t, set->of[i], "pattern"));
        TRY(add_pattern(r, t, set->of[i], SCHEMA_UNLIKE));
        add_format(r, t, set->of[i]);
        if (schema_word(set->of[i], SCHEMA_BUT) && t->n < 2 * SCHEMA_MOST_TOGETHER) {
            add_rule(t, set->of[i], SCHEMA_BUT);
            t->simple = false;
        }
    }
    for (int32_t k = 0; k < t->n; k++) {
        if (t->of[k].format && t->least <= t->of[k].format->shortest)
            t->least = 0;
        if (t->of[k].format && t->most >= t->of[k].format->longest)
            t->most = REPEAT_FOREVER;
    }
    t->measured = t->least > 0 || t->most != REPEAT_FOREVER;
    return DREY_OK;
}

/* The texts of a list of values. */
static bool language_of_values(const schema_reader *r, const json_value *list, language *out)
{
    expr all = EXPR_NEVER;
    for (const json_value *v = list->first; v; v = v->next)
        if (v->type == JSON_STRING)
            all = expr_alt(r->g, all, expr_bytes(r->g, v->text, v->n));
    return language_of(out, r->g, all);
}

/* *held: there was room for it, in `out`. *but_not: texts must not be of it. */
static drey_status rule_language(schema_reader *r, const text_rule *rule, language *out,
                                 bool *but_not, bool *held)
{
    bool exact;
    *but_not = strcmp(rule->word, SCHEMA_BUT) == 0 || strcmp(rule->word, SCHEMA_UNLIKE) == 0;
    *held = true;
    if (rule->format)
        *held = language_of(out, r->g, regex_known(r->g, rule->format->pattern));
    else if (strcmp(rule->word, SCHEMA_BUT) == 0)
        *held = language_of_values(r, schema_word(rule->schema, SCHEMA_BUT), out);
    else {
        const json_value *text = json_member(rule->schema, rule->word);
        regex_pattern p;
        TRY(pattern_read(r->g, text->text, text->n, false, &p, r->err));
        exact = !p.loose && !p.unknown;
        *held = (exact || (!*but_not && !p.unknown)) && pattern_language(r->g, &p, out);
    }
    return DREY_OK;
}

/* All rules together, in l->now, as far as there is room; the others are left out. */
static drey_status rules_together(schema_reader *r, const text_rules *t, schema_languages *l)
{
    if (!language_of_length(l->now, 0, REPEAT_FOREVER))
        SCHEMA_FAIL(r, "it has no texts");
    for (int32_t i = 0; i < t->n; i++) {
        bool but_not, held;
        TRY(rule_language(r, &t->of[i], l->other, &but_not, &held));
        if (!held || !schema_languages_both(l, but_not))
            schema_leave_out(r, t->of[i].schema, t->of[i].word);
    }
    return DREY_OK;
}

/* Texts of l->now that are as long as they should be, where that fits. */
static bool measure(schema_languages *l, int32_t least, int32_t most)
{
    return language_of_length(l->other, least, most) && schema_languages_both(l, false);
}

static expr measured(schema_reader *r, const text_rules *t, schema_languages *l)
{
    int32_t least, of = t->least;
    if (!t->measured)
        return language_written(r->g, l->now, true);
    expr one = language_repeated(r->g, l->now, true, &least);
    if (one != EXPR_NEVER) { /* counted, however long */
        of = max_i32(of, least);
        return t->most == REPEAT_FOREVER || of <= t->most ? expr_repeat(r->g, one, of, t->most)
                                                          : EXPR_NEVER;
    }
    if (!measure(l, t->least, t->most)) {
        if (t->most != REPEAT_FOREVER && !measure(l, 0, t->most))
            schema_leave_out(r, t->longest, "maxLength");
        if (t->least > 0 && !measure(l, t->least, REPEAT_FOREVER))
            schema_leave_out(r, t->shortest, "minLength");
    }
    return language_written(r->g, l->now, true);
}

drey_status schema_texts(schema_reader *r, const json_value *schema, schema_languages *l, bool *any)
{
    schema_set set = {.of = {schema}, .n = 1};
    text_rules *t = malloc(sizeof *t);
    *any = true;
    if (!t)
        FAIL(r->err, DREY_ERR_MEMORY, "not enough memory for the rules of a text");
    drey_status status = text_rules_of(r, &set, t);
    *any = status == DREY_OK && t->n + t->measured == 0;
    if (status == DREY_OK && !*any) {
        status = rules_together(r, t, l);
        if (status == DREY_OK && t->measured && !measure(l, t->least, t->most))
            schema_leave_out(r, schema, t->most == REPEAT_FOREVER ? "minLength" : "maxLength");
    }
    free(t);
    return status;
}

static drey_status written_together(schema_reader *r, const text_rules *t, bool alone, expr *out)
{
    schema_languages l = {NULL, NULL, NULL};
    TRY(schema_languages_init(r, &l));
    drey_status status = rules_together(r, t, &l);
    *out = status == DREY_OK ? measured(r, t, &l) : EXPR_NEVER;
    schema_languages_free(&l);
    TRY(status);
    if (*out == EXPR_NEVER && alone && !r->g->full)
        SCHEMA_FAIL(r, "no text has its pattern, format and length");
    return DREY_OK;
}

static drey_status string_of(schema_reader *r, const schema_set *set, text_rules *t, expr *out)
{
    grammar_rules *g = r->g;
    expr inside = EXPR_EMPTY;
    TRY(text_rules_of(r, set, t));
    if (t->n + t->measured == 0) {
        *out = written_string(g, &r->json);
        return DREY_OK;
    }
    if (t->n + t->measured > 1 || !t->simple)
        TRY(written_together(r, t, set->n == 1, &inside));
    else if (t->n && t->of[0].format)
        inside = written_format(r, t->of[0].format);
    else if (t->n)
        inside = t->of[0].pattern.texts;
    else if (t->most == REPEAT_FOREVER || t->least <= t->most)
        inside = expr_repeat(g, written_character(g, &r->json), t->least, t->most);
    else
        inside = EXPR_NEVER;
    *out = expr_seq(g, expr_seq(g, expr_text(g, "\""), inside), expr_text(g, "\""));
    return DREY_OK;
}

drey_status schema_string(schema_reader *r, const schema_set *set, expr *out)
{
    text_rules *t = malloc(sizeof *t);
    if (!t)
        FAIL(r->err, DREY_ERR_MEMORY, "not enough memory for the rules of a text");
    drey_status status = string_of(r, set, t, out);
    free(t);
    return status;
}

/* ---- Numbers ---- */

/* Narrows *out, from below if `low`, by one schema. */
static drey_status bound(schema_reader *r, const json_value *schema, bool low, json_bound *out)
{
    const char *keys[] = {low ? "minimum" : "maximum",
                          low ? "exclusiveMinimum" : "exclusiveMaximum"};
    const json_value *strict = json_member(schema, keys[1]);
    const double most = 999999999999999; /* numbers have 15 digits at most */
    for (int i = 0; i < 2; i++) {
        const json_value *v = json_member(schema, keys[i]);
        bool is_word = i == 1 && v && (v->type == JSON_TRUE || v->type == JSON_FALSE);
        if (!v || is_word) /* draft 4: "exclusiveMinimum": true */
            continue;
        if (v->type != JSON_NUMBER)
            SCHEMA_FAIL(r, "\"%s\" is a number", keys[i]);
        bool beyond = fabs(v->number) > most;
        if (beyond && low == (v->number > 0)) { /* no number that is written is beyond it */
            schema_leave_out(r, schema, keys[i]);
            continue;
        }
        bool exclusive = !beyond && (i == 1 || (strict && strict->type == JSON_TRUE));
        double value = beyond ? copysign(most, v->number) : v->number;
        if (out->set && value == out->value)
            out->exclusive = out->exclusive || exclusive;
        else if (!out->set || (low ? value > out->value : value < out->value))
            *out = (json_bound){.set = true, .exclusive = exclusive, .value = value};
    }
    return DREY_OK;
}

/* multipleOf as step / 10^digits. False: it is too fine, or too large. */
static bool step_of(const json_value *v, int32_t *step, int32_t *digits)
{
    enum { MOST_DIGITS = 9, MOST_STEP = 1500 };
    char text[40];
    snprintf(text, sizeof text, "%.*f", MOST_DIGITS, v->number < 1e9 ? v->number : 1e9);
    size_t n = strlen(text);
    char *point = strchr(text, '.');
    if (v->number >= 1e9 || strtod(text, NULL) != v->number)
        return false;
    while (text[n - 1] == '0')
        text[--n] = 0;
    *digits = (int32_t)(text + n - point - 1);
    memmove(point, point + 1, strlen(point));
    double whole = strtod(text, NULL);
    *step = whole <= MOST_STEP ? (int32_t)whole : 0;
    return *step > 0;
}

/* A number as it may be written, with zeros after it: in l->other. */
static bool language_of_number(const schema_reader *r, double x, language *out)
{
    char text[64];
    snprintf(text, sizeof text, "%.15f", x);
    size_t n = strlen(text);
    while (text[n - 1] == '0')
        n--;
    const bool whole = text[n - 1] == '.';
    expr zeros = expr_repeat(r->g, expr_text(r->g, "0"), whole, REPEAT_FOREVER);
    expr all = expr_seq(r->g, expr_bytes(r->g, text, n), zeros);
    if (whole)
        all = expr_alt(r->g, all, expr_bytes(r->g, text, n - 1));
    if (x == 0)
        all = expr_seq(r->g, expr_repeat(r->g, expr_text(r->g, "-"), 0, 1), all);
    return language_of(out, r->g, all);
}

/* l->now without the numbers of a list. */
static bool without_numbers(const schema_reader *r, const json_value *list, schema_languages *l)
{
    bool fits = true;
    for (const json_value *v = list->first; v && fits; v = v->next)
        if (v->type == JSON_NUMBER)
            fits = language_of_number(r, v->number, l->other) && schema_languages_both(l, true);
    return fits;
}

/* The numbers of `in` of which all is true that needs a language. */
static drey_status narrowed(schema_reader *r, const schema_set *set, expr in, schema_languages *l)
{
    int32_t step = 0, digits = 0;
    bool fits = language_of(l->now, r->g, in);
    for (int32_t i = 0; i < set->n; i++) {
        const json_value *v = json_member(set->of[i], "multipleOf");
        const json_value *but = schema_word(set->of[i], SCHEMA_BUT);
        if (v && (v->type != JSON_NUMBER || !(v->number > 0)))
            SCHEMA_FAIL(r, "\"multipleOf\" is a number that is more than 0");
        if (v &&
            !(fits && step_of(v, &step, &digits) && language_of_multiples(l->other, step, digits) &&
              schema_languages_both(l, false)))
            schema_leave_out(r, set->of[i], "multipleOf");
        if (but && !(fits && without_numbers(r, but, l)))
            schema_leave_out(r, set->of[i], SCHEMA_BUT);
        if (schema_word(set->of[i], SCHEMA_FRACTION) &&
            !(fits &&
              language_of(l->other, r->g, regex_known(r->g, "-?[0-9]+\\.[0-9]*[1-9][0-9]*")) &&
              schema_languages_both(l, false)))
            schema_leave_out(r, set->of[i], SCHEMA_FRACTION);
    }
    return DREY_OK;
}

static drey_status narrow(schema_reader *r, const schema_set *set, bool whole, bool bounded,
                          expr *out)
{
    schema_languages l = {NULL, NULL, NULL};
    if (!bounded) /* few digits, so that their number times the step stays small */
        *out = regex_known(r->g, whole ? "-?(?:0|[1-9][0-9]*)"
                                       : "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]{1,16})?");
    TRY(schema_languages_init(r, &l));
    drey_status status = narrowed(r, set, *out, &l);
    *out = status == DREY_OK ? language_written(r->g, l.now, true) : EXPR_NEVER;
    schema_languages_free(&l);
    return status;
}

drey_status schema_number(schema_reader *r, const schema_set *set, bool whole, expr *out)
{
    json_bound low = {.set = false}, high = {.set = false};
    bool more = false;
    for (int32_t i = 0; i < set->n; i++) {
        TRY(bound(r, set->of[i], true, &low));
        TRY(bound(r, set->of[i], false, &high));
        more = more || json_member(set->of[i], "multipleOf") ||
               schema_word(set->of[i], SCHEMA_BUT) || schema_word(set->of[i], SCHEMA_FRACTION);
    }
    bool bounded = low.set || high.set;
    *out = EXPR_EMPTY;
    if (bounded)
        *out = json_number_between(r->g, whole, low, high);
    else if (!more)
        *out = whole ? written_integer(r->g, &r->json) : written_number(r->g, &r->json);
    if (more && *out != EXPR_NEVER)
        TRY(narrow(r, set, whole, bounded, out));
    if (*out == EXPR_NEVER && set->n == 1 && !r->g->full)
        SCHEMA_FAIL(r, "no number is within its bounds");
    return DREY_OK;
}
