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

drey_status schema_too_large(schema_reader *r, const char *word)
{
    SCHEMA_FAIL(r, "\"%s\" is too large together with what else is said there: shorten it", word);
}

drey_status schema_languages_both(schema_reader *r, schema_languages *l, bool but_not,
                                  const char *word)
{
    if (!language_both(l->next, l->now, l->other, but_not))
        return schema_too_large(r, word);
    language *now = l->now;
    l->now = l->next;
    l->next = now;
    return DREY_OK;
}

drey_status schema_pattern(schema_reader *r, const json_value *pattern, language *out)
{
    expr e;
    if (pattern->type != JSON_STRING)
        SCHEMA_FAIL(r, "\"pattern\" is a regular expression");
    TRY(regex_part(r->g, pattern->text, pattern->n, false, &e, r->err));
    return language_of(out, r->g, e) ? DREY_OK : schema_too_large(r, "pattern");
}

/* ---- Texts ---- */

/* What drey writes for a format, which is at most so long: a limit above that says nothing. */
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
#define NAME  "[A-Za-z0-9](?:-?[A-Za-z0-9]){0,31}" /* of at most 63 characters */
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
     3, 62}};
enum { N_FORMATS = sizeof formats / sizeof *formats };
_Static_assert((int)N_FORMATS == (int)SCHEMA_FORMATS, "their rules");

static const text_format *format_named(const char *name)
{
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
        expr body = regex_known(r->g, format->pattern);
        if (!r->g->full)
            r->g->rules[*rule].body = body;
    }
    return expr_rule(r->g, *rule);
}

/* What is said about texts: each of these alone, or the first with the others. */
typedef struct text_rules {
    const json_value *patterns[SCHEMA_MOST_TOGETHER];
    const text_format *formats[SCHEMA_MOST_TOGETHER];
    int32_t n_patterns, n_formats, least, most;
    bool measured;
} text_rules;

static drey_status text_rules_of(schema_reader *r, const schema_set *set, text_rules *t)
{
    *t = (text_rules){.n_patterns = 0};
    TRY(schema_counts(r, set, "minLength", "maxLength", &t->least, &t->most));
    for (int32_t i = 0; i < set->n; i++) {
        const json_value *pattern = json_member(set->of[i], "pattern");
        const text_format *format = format_named(json_member_text(set->of[i], "format"));
        bool known = false;
        if (pattern && pattern->type != JSON_STRING)
            SCHEMA_FAIL(r, "\"pattern\" is a regular expression");
        if (pattern)
            t->patterns[t->n_patterns++] = pattern;
        for (int32_t k = 0; k < t->n_formats; k++)
            known = known || t->formats[k] == format;
        if (format && !known)
            t->formats[t->n_formats++] = format;
    }
    for (int32_t k = 0; k < t->n_formats; k++) {
        if (t->least <= t->formats[k]->shortest)
            t->least = 0;
        if (t->most >= t->formats[k]->longest)
            t->most = REPEAT_FOREVER;
    }
    t->measured = t->least > 0 || t->most != REPEAT_FOREVER;
    return DREY_OK;
}

/* All of them together, in l->now. */
static drey_status together(schema_reader *r, const text_rules *t, schema_languages *l)
{
    int32_t n = 0;
    for (int32_t i = 0; i < t->n_patterns; i++, n++) {
        TRY(schema_pattern(r, t->patterns[i], n ? l->other : l->now));
        if (n)
            TRY(schema_languages_both(r, l, false, "pattern"));
    }
    for (int32_t i = 0; i < t->n_formats; i++, n++) {
        if (!language_of(n ? l->other : l->now, r->g, regex_known(r->g, t->formats[i]->pattern)))
            return schema_too_large(r, "format");
        if (n)
            TRY(schema_languages_both(r, l, false, "format"));
    }
    if (!t->measured && n > 0)
        return DREY_OK;
    if (!language_of_length(n ? l->other : l->now, t->least, t->most))
        return schema_too_large(r, "maxLength");
    return n ? schema_languages_both(r, l, false, "maxLength") : DREY_OK;
}

drey_status schema_texts(schema_reader *r, const json_value *schema, schema_languages *l, bool *any)
{
    schema_set set = {.of = {schema}, .n = 1};
    text_rules t;
    TRY(text_rules_of(r, &set, &t));
    *any = t.n_patterns + t.n_formats + t.measured == 0;
    return *any ? DREY_OK : together(r, &t, l);
}

static drey_status written_together(schema_reader *r, const text_rules *t, bool alone, expr *out)
{
    schema_languages l = {NULL, NULL, NULL};
    TRY(schema_languages_init(r, &l));
    drey_status status = together(r, t, &l);
    *out = status == DREY_OK ? language_written(r->g, l.now) : EXPR_NEVER;
    schema_languages_free(&l);
    TRY(status);
    if (*out == EXPR_NEVER && alone && !r->g->full)
        SCHEMA_FAIL(r, "no text has its pattern, format and length");
    return DREY_OK;
}

drey_status schema_string(schema_reader *r, const schema_set *set, expr *out)
{
    grammar_rules *g = r->g;
    text_rules t;
    expr inside = EXPR_EMPTY;
    TRY(text_rules_of(r, set, &t));
    if (t.n_patterns + t.n_formats + t.measured == 0) {
        *out = written_string(g, &r->json);
        return DREY_OK;
    }
    if (t.n_patterns + t.n_formats + t.measured > 1)
        TRY(written_together(r, &t, set->n == 1, &inside));
    else if (t.n_patterns)
        TRY(regex_part(g, t.patterns[0]->text, t.patterns[0]->n, true, &inside, r->err));
    else if (t.n_formats)
        inside = written_format(r, t.formats[0]);
    else if (t.most == REPEAT_FOREVER || t.least <= t.most)
        inside = expr_repeat(g, written_character(g, &r->json), t.least, t.most);
    else
        inside = EXPR_NEVER;
    *out = expr_seq(g, expr_seq(g, expr_text(g, "\""), inside), expr_text(g, "\""));
    return DREY_OK;
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
        if (beyond && low == (v->number > 0))
            SCHEMA_FAIL(r, "the bound %g is not supported: numbers have 15 digits", v->number);
        bool exclusive = !beyond && (i == 1 || (strict && strict->type == JSON_TRUE));
        double value = beyond ? copysign(most, v->number) : v->number;
        if (out->set && value == out->value)
            out->exclusive = out->exclusive || exclusive;
        else if (!out->set || (low ? value > out->value : value < out->value))
            *out = (json_bound){.set = true, .exclusive = exclusive, .value = value};
    }
    return DREY_OK;
}

/* multipleOf as step / 10^digits. */
static drey_status step_of(schema_reader *r, const json_value *v, int32_t *step, int32_t *digits)
{
    enum { MOST_DIGITS = 9, MOST_STEP = 1500 };
    char text[40];
    if (v->type != JSON_NUMBER || !(v->number > 0))
        SCHEMA_FAIL(r, "\"multipleOf\" is a number that is more than 0");
    snprintf(text, sizeof text, "%.*f", MOST_DIGITS, v->number);
    size_t n = strlen(text);
    char *point = strchr(text, '.');
    if (v->number < 1e9 && strtod(text, NULL) == v->number) {
        while (text[n - 1] == '0')
            text[--n] = 0;
        *digits = (int32_t)(text + n - point - 1);
        memmove(point, point + 1, strlen(point));
        double whole = strtod(text, NULL);
        *step = whole <= MOST_STEP ? (int32_t)whole : 0;
        if (*step > 0)
            return DREY_OK;
    }
    SCHEMA_FAIL(r,
                "\"multipleOf\" %g is not supported: it may be a whole number up to %d, or that "
                "with a point in it",
                v->number, MOST_STEP);
}

/* The numbers of `in` that are multiples. */
static drey_status multiples(schema_reader *r, const schema_set *set, expr in, schema_languages *l)
{
    int32_t step = 0, digits = 0;
    if (!language_of(l->now, r->g, in))
        return schema_too_large(r, "multipleOf");
    for (int32_t i = 0; i < set->n; i++) {
        const json_value *v = json_member(set->of[i], "multipleOf");
        if (!v)
            continue;
        TRY(step_of(r, v, &step, &digits));
        if (!language_of_multiples(l->other, step, digits))
            return schema_too_large(r, "multipleOf");
        TRY(schema_languages_both(r, l, false, "multipleOf"));
    }
    return DREY_OK;
}

static drey_status multiples_of(schema_reader *r, const schema_set *set, bool whole, bool bounded,
                                expr *out)
{
    schema_languages l = {NULL, NULL, NULL};
    if (!bounded) /* few digits, so that their number times the step stays small */
        *out = regex_known(r->g, whole ? "-?(?:0|[1-9][0-9]*)"
                                       : "-?(?:0|[1-9][0-9]*)(?:\\.[0-9]{1,16})?");
    TRY(schema_languages_init(r, &l));
    drey_status status = multiples(r, set, *out, &l);
    *out = status == DREY_OK ? language_written(r->g, l.now) : EXPR_NEVER;
    schema_languages_free(&l);
    return status;
}

drey_status schema_number(schema_reader *r, const schema_set *set, bool whole, expr *out)
{
    json_bound low = {.set = false}, high = {.set = false};
    bool has_multiples = false;
    for (int32_t i = 0; i < set->n; i++) {
        TRY(bound(r, set->of[i], true, &low));
        TRY(bound(r, set->of[i], false, &high));
        has_multiples = has_multiples || json_member(set->of[i], "multipleOf");
    }
    bool bounded = low.set || high.set;
    *out = EXPR_EMPTY;
    if (bounded)
        *out = json_number_between(r->g, whole, low, high);
    else if (!has_multiples)
        *out = whole ? written_integer(r->g, &r->json) : written_number(r->g, &r->json);
    if (has_multiples && *out != EXPR_NEVER)
        TRY(multiples_of(r, set, whole, bounded, out));
    if (*out == EXPR_NEVER && set->n == 1 && !r->g->full)
        SCHEMA_FAIL(r, "no number is within its bounds");
    return DREY_OK;
}
