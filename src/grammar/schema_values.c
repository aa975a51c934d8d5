/* "const" and "enum" of JSON Schema: values that are known, of which those stay that satisfy what
 * else is said about them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"
#include "grammar/schema_reader.h"

/* State while one value is looked at. */
typedef struct judge {
    schema_reader *r;
    schema_languages l;
    int depth;
    bool unsure; /* something could not be judged */
} judge;

static bool is_equal(const json_value *a, const json_value *b)
{
    if (a->type != b->type || (a->type != JSON_NUMBER && a->n != b->n))
        return false;
    switch (a->type) {
    case JSON_NUMBER:
        return a->number == b->number;
    case JSON_STRING:
        return memcmp(a->text, b->text, a->n) == 0;
    case JSON_ARRAY:
        for (const json_value *x = a->first, *y = b->first; x; x = x->next, y = y->next)
            if (!is_equal(x, y))
                return false;
        return true;
    case JSON_OBJECT:
        for (const json_value *x = a->first; x; x = x->next) {
            const json_value *y = schema_word(b, x->key);
            if (!y || !is_equal(x, y))
                return false;
        }
        return true;
    default:
        return true;
    }
}

static drey_status satisfies(judge *j, const json_value *v, const json_value *schema, bool *yes);

static int32_t type_of(const json_value *v)
{
    switch (v->type) {
    case JSON_NUMBER:
        return v->number == floor(v->number) ? TYPE_INTEGER : TYPE_NUMBER;
    case JSON_STRING:
        return TYPE_STRING;
    case JSON_ARRAY:
        return TYPE_ARRAY;
    case JSON_OBJECT:
        return TYPE_OBJECT;
    case JSON_NULL:
        return TYPE_NULL;
    default:
        return TYPE_BOOLEAN;
    }
}

/* ---- By type ---- */

static drey_status number_satisfies(judge *j, const json_value *v, const json_value *schema,
                                    bool *yes)
{
    const double x = v->number, low = json_member_number(schema, "minimum");
    const double high = json_member_number(schema, "maximum");
    const double above = json_member_number(schema, "exclusiveMinimum");
    const double below = json_member_number(schema, "exclusiveMaximum");
    const double step = json_member_number(schema, "multipleOf");
    bool strict = false;
    (void)j;
    *yes = !(x < low) && !(x > high) && !(x <= above) && !(x >= below);
    if (json_member_bool(schema, "exclusiveMinimum", &strict) && strict)
        *yes = *yes && x != low;
    if (json_member_bool(schema, "exclusiveMaximum", &strict) && strict)
        *yes = *yes && x != high;
    if (step > 0)
        *yes = *yes && fabs(x / step - round(x / step)) < 1e-9;
    return DREY_OK;
}

static void give_up(judge *j, const json_value *schema, const char *word)
{
    schema_leave_out(j->r, schema, word);
    j->unsure = true;
}

static drey_status pattern_satisfied(judge *j, const json_value *v, const json_value *schema,
                                     const char *word, bool *yes)
{
    const json_value *text = json_member(schema, word);
    bool held;
    *yes = true;
    if (!text)
        return DREY_OK;
    if (text->type != JSON_STRING)
        SCHEMA_FAIL(j->r, "\"pattern\" is a regular expression");
    TRY(schema_pattern(j->r, text->text, text->n, j->l.now, &held));
    if (held)
        *yes = language_has(j->l.now, v->text, v->n);
    else
        give_up(j, schema, word);
    return DREY_OK;
}

static drey_status text_satisfies(judge *j, const json_value *v, const json_value *schema,
                                  bool *yes)
{
    const int32_t length = (int32_t)utf8_count(v->text, v->n);
    const schema_set set = {.of = {schema}, .n = 1};
    const json_value *format = json_member(schema, "format");
    int32_t least, most;
    bool any, more;
    TRY(schema_counts(j->r, &set, "minLength", "maxLength", &least, &most));
    TRY(pattern_satisfied(j, v, schema, "pattern", yes));
    TRY(pattern_satisfied(j, v, schema, SCHEMA_UNLIKE, &more));
    *yes = *yes && (!schema_word(schema, SCHEMA_UNLIKE) || !more);
    *yes = *yes && length >= least && (most == REPEAT_FOREVER || length <= most);
    if (!*yes || !format)
        return DREY_OK;
    json_value only = *format, named = {.type = JSON_OBJECT, .n = 1, .first = &only};
    only.next = NULL;
    TRY(schema_texts(j->r, &named, &j->l, &any));
    *yes = any || language_has(j->l.now, v->text, v->n);
    return DREY_OK;
}

static drey_status contained(judge *j, const json_value *v, const json_value *schema, bool *yes)
{
    const json_value *wanted = schema_word(schema, "contains");
    int32_t least, most, n = 0;
    TRY(schema_count(j->r, schema, "minContains", 1, &least));
    TRY(schema_count(j->r, schema, "maxContains", REPEAT_FOREVER, &most));
    for (const json_value *x = wanted ? v->first : NULL; x; x = x->next) {
        bool one;
        TRY(satisfies(j, x, wanted, &one));
        n += one;
    }
    *yes = *yes && (!wanted || (n >= least && (most == REPEAT_FOREVER || n <= most)));
    return DREY_OK;
}

static drey_status array_satisfies(judge *j, const json_value *v, const json_value *schema,
                                   bool *yes)
{
    const schema_set set = {.of = {schema}, .n = 1};
    const json_value *first = json_member(schema, "prefixItems");
    const json_value *others = json_member(schema, "items");
    int32_t least, most;
    bool unique = false, twice = false;
    TRY(schema_counts(j->r, &set, "minItems", "maxItems", &least, &most));
    *yes = (int32_t)v->n >= least && (most == REPEAT_FOREVER || (int32_t)v->n <= most);
    if (others && others->type == JSON_ARRAY) {
        first = others;
        others = json_member(schema, "additionalItems");
    }
    const json_value *next = first && first->type == JSON_ARRAY ? first->first : NULL;
    json_member_bool(schema, "uniqueItems", &unique);
    for (const json_value *x = v->first; x && *yes; x = x->next) {
        for (const json_value *y = x->next; y && unique; y = y->next)
            twice = twice || is_equal(x, y);
        const json_value *of = next ? next : others;
        if (of && *yes)
            TRY(satisfies(j, x, of, yes));
        next = next ? next->next : NULL;
    }
    *yes = *yes && !twice;
    return contained(j, v, schema, yes);
}

/* Checks a member against "properties" and the words for other names. */
static drey_status member_satisfies(judge *j, const json_value *m, const json_value *schema,
                                    bool *yes)
{
    const json_value *properties = json_member(schema, "properties");
    const json_value *of = properties ? schema_word(properties, m->key) : NULL;
    const json_value *patterns = json_member(schema, "patternProperties");
    const json_value *others = json_member(schema, "additionalProperties");
    bool named = of;
    if (of)
        TRY(satisfies(j, m, of, yes));
    for (const json_value *p = patterns && patterns->type == JSON_OBJECT ? patterns->first : NULL;
         p && *yes; p = p->next) {
        bool held;
        TRY(schema_pattern(j->r, p->key, p->n_key, j->l.now, &held));
        if (!held)
            give_up(j, patterns, p->key);
        if (!held || !language_has(j->l.now, m->key, m->n_key))
            continue;
        named = true;
        TRY(satisfies(j, m, p, yes));
    }
    if (!named && others && *yes)
        TRY(satisfies(j, m, others, yes));
    const json_value *names = json_member(schema, "propertyNames");
    const json_value name = {.type = JSON_STRING, .text = m->key, .n = m->n_key};
    return names && *yes ? satisfies(j, &name, names, yes) : DREY_OK;
}

/* Judges "dependentRequired", "dependentSchemas" or "dependencies": names, or a schema. */
static drey_status dependence(judge *j, const json_value *v, const json_value *schema,
                              const char *word, bool *yes)
{
    const json_value *all = json_member(schema, word);
    for (const json_value *d = all && all->type == JSON_OBJECT ? all->first : NULL; d && *yes;
         d = d->next) {
        if (!schema_word(v, d->key))
            continue;
        for (const json_value *x = d->type == JSON_ARRAY ? d->first : NULL; x && *yes; x = x->next)
            *yes = x->type == JSON_STRING && schema_word(v, x->text);
        if (d->type != JSON_ARRAY)
            TRY(satisfies(j, v, d, yes));
    }
    return DREY_OK;
}

static drey_status object_satisfies(judge *j, const json_value *v, const json_value *schema,
                                    bool *yes)
{
    const schema_set set = {.of = {schema}, .n = 1};
    const json_value *required = json_member_array(schema, "required");
    int32_t least, most;
    TRY(schema_counts(j->r, &set, "minProperties", "maxProperties", &least, &most));
    *yes = (int32_t)v->n >= least && (most == REPEAT_FOREVER || (int32_t)v->n <= most);
    for (const json_value *x = required ? required->first : NULL; x && *yes; x = x->next)
        *yes = x->type == JSON_STRING && schema_word(v, x->text);
    for (const json_value *m = v->first; m && *yes; m = m->next)
        TRY(member_satisfies(j, m, schema, yes));
    const json_value *absent = schema_word(schema, SCHEMA_ABSENT);
    for (const json_value *x = absent ? absent->first : NULL; x && *yes; x = x->next)
        *yes = !schema_word(v, x->text);
    if (*yes && schema_word(schema, "unevaluatedProperties"))
        give_up(j, schema, "unevaluatedProperties");
    TRY(dependence(j, v, schema, "dependentRequired", yes));
    TRY(dependence(j, v, schema, "dependentSchemas", yes));
    return dependence(j, v, schema, "dependencies", yes);
}

/* ---- All of it ---- */

/* Checks that some (word anyOf), one (oneOf) or all (allOf) of a list are satisfied. */
static drey_status list_satisfied(judge *j, const json_value *v, const json_value *schema,
                                  const char *word, bool *yes)
{
    const json_value *list = json_member_array(schema, word);
    uint32_t n = 0;
    if (!list)
        return DREY_OK;
    for (const json_value *x = list->first; x; x = x->next) {
        bool one;
        TRY(satisfies(j, v, x, &one));
        n += one;
    }
    *yes = *yes && (strcmp(word, "allOf") == 0   ? n == list->n
                    : strcmp(word, "oneOf") == 0 ? n == 1
                                                 : n > 0);
    return DREY_OK;
}

static drey_status is_among(judge *j, const json_value *v, const json_value *schema, bool *yes)
{
    const json_value *same = schema_word(schema, "const"),
                     *list = json_member_array(schema, "enum");
    bool found = !list;
    int32_t types;
    TRY(schema_types(j->r, schema, &types));
    if (types & TYPE_NUMBER)
        types |= TYPE_INTEGER;
    for (const json_value *x = list ? list->first : NULL; x && !found; x = x->next)
        found = is_equal(v, x);
    *yes = found && (!same || is_equal(v, same)) && types & type_of(v);
    const json_value *but = schema_word(schema, SCHEMA_BUT);
    for (const json_value *x = but ? but->first : NULL; x; x = x->next)
        *yes = *yes && !is_equal(v, x);
    *yes = *yes && (!schema_word(schema, SCHEMA_FRACTION) || type_of(v) == TYPE_NUMBER);
    return DREY_OK;
}

/* "not", and "if" with what it asks for. */
static drey_status conditions_met(judge *j, const json_value *v, const json_value *schema,
                                  bool *yes)
{
    const json_value *none = schema_word(schema, "not"), *condition = schema_word(schema, "if");
    bool is;
    if (none && *yes) {
        TRY(satisfies(j, v, none, &is));
        *yes = !is;
    }
    if (!condition || !*yes)
        return DREY_OK;
    TRY(satisfies(j, v, condition, &is));
    const json_value *then = schema_word(schema, is ? "then" : "else");
    return then ? satisfies(j, v, then, yes) : DREY_OK;
}

static drey_status reference_satisfied(judge *j, const json_value *v, const json_value *schema,
                                       const char *word, bool *yes)
{
    const char *reference = json_member_text(schema, word);
    const json_value *target;
    if (!reference || !*yes)
        return DREY_OK;
    TRY(schema_target(j->r, reference, &target));
    if (target)
        return satisfies(j, v, target, yes);
    give_up(j, schema, word);
    return DREY_OK;
}

static drey_status satisfies(judge *j, const json_value *v, const json_value *schema, bool *yes)
{
    bool more = true;
    *yes = schema->type != JSON_FALSE;
    if (schema->type != JSON_OBJECT)
        return DREY_OK;
    if (++j->depth > 2 * JSON_MOST_DEPTH || ++j->r->n_steps > SCHEMA_MOST_STEPS)
        SCHEMA_FAIL(j->r, "it refers to itself without end");
    TRY(is_among(j, v, schema, yes));
    TRY(reference_satisfied(j, v, schema, "$ref", yes));
    TRY(reference_satisfied(j, v, schema, "$dynamicRef", yes));
    TRY(reference_satisfied(j, v, schema, "$recursiveRef", yes));
    TRY(conditions_met(j, v, schema, yes));
    TRY(list_satisfied(j, v, schema, "allOf", yes));
    TRY(list_satisfied(j, v, schema, "anyOf", yes));
    TRY(list_satisfied(j, v, schema, "oneOf", yes));
    if (v->type == JSON_NUMBER)
        TRY(number_satisfies(j, v, schema, &more));
    else if (v->type == JSON_STRING)
        TRY(text_satisfies(j, v, schema, &more));
    else if (v->type == JSON_ARRAY)
        TRY(array_satisfies(j, v, schema, &more));
    else if (v->type == JSON_OBJECT)
        TRY(object_satisfies(j, v, schema, &more));
    *yes = *yes && more;
    j->depth--;
    return DREY_OK;
}

const json_value *schema_known_values(const schema_set *set, bool *is_list)
{
    for (int32_t i = 0; i < set->n; i++)
        for (int k = 0; k < 2; k++) {
            const json_value *v = schema_word(set->of[i], k ? "enum" : "const");
            *is_list = k;
            if (v)
                return v;
        }
    return NULL;
}

/* Keeps the values that satisfy the set, and those that cannot be judged. */
static drey_status keep_values(judge *j, const schema_set *set, const json_value *first,
                               bool is_list, expr *texts, int32_t *n)
{
    *n = 0;
    for (const json_value *v = first; v; v = is_list ? v->next : NULL) {
        bool all = true, yes;
        for (int32_t i = 0; i < set->n && all; i++) {
            j->unsure = false;
            TRY(satisfies(j, v, set->of[i], &yes));
            all = yes || j->unsure;
        }
        if (all)
            texts[(*n)++] = written_literal(j->r->g, v);
    }
    return DREY_OK;
}

drey_status schema_values_kept(schema_reader *r, const schema_set *set, expr *texts, int32_t *n)
{
    bool is_list;
    const json_value *known = schema_known_values(set, &is_list);
    judge j = {.r = r};
    TRY(schema_languages_init(r, &j.l));
    drey_status status = keep_values(&j, set, is_list ? known->first : known, is_list, texts, n);
    schema_languages_free(&j.l);
    return status;
}

/* The whole numbers of a type, of that few. */
drey_status schema_integers(schema_reader *r, const schema_set *set, expr *texts, int32_t most,
                            int32_t *n)
{
    double low = -INFINITY, high = INFINITY;
    judge j = {.r = r};
    *n = -1;
    for (int32_t i = 0; i < set->n; i++) { /* NAN, where there is no such bound, is never more */
        const double bounds[] = {json_member_number(set->of[i], "minimum"),
                                 json_member_number(set->of[i], "exclusiveMinimum"),
                                 json_member_number(set->of[i], "maximum"),
                                 json_member_number(set->of[i], "exclusiveMaximum")};
        low = fmax(low, fmax(bounds[0], bounds[1]));
        high = fmin(high, fmin(bounds[2], bounds[3]));
    }
    if (!(high - low < most) || fabs(low) > 1e15)
        return DREY_OK;
    *n = 0;
    TRY(schema_languages_init(r, &j.l));
    drey_status status = DREY_OK;
    for (double x = ceil(low); x <= high && *n < most && status == DREY_OK; x++) {
        const json_value v = {
            .type = JSON_NUMBER, .number = x, .is_integer = true, .integer = (int64_t)x};
        int32_t kept = 0;
        status = keep_values(&j, set, &v, false, texts + *n, &kept);
        *n += kept;
    }
    schema_languages_free(&j.l);
    return status;
}

drey_status schema_values(schema_reader *r, const schema_set *set, expr *out)
{
    bool is_list;
    const json_value *known = schema_known_values(set, &is_list);
    int32_t n = 0;
    if (is_list && (known->type != JSON_ARRAY || known->n == 0))
        SCHEMA_FAIL(r, "\"enum\" is a list of at least one value");
    expr *texts = malloc((is_list ? known->n : 1) * sizeof *texts);
    drey_status status =
        texts ? schema_values_kept(r, set, texts, &n)
              : error_set(r->err, DREY_ERR_MEMORY, "not enough memory for %u values", known->n);
    *out = status == DREY_OK ? expr_one_of(r->g, texts, n) : EXPR_NEVER;
    free(texts);
    TRY(status);
    if (n == 0 && set->n == 1)
        SCHEMA_FAIL(r, "none of its values satisfies the rest of it");
    return DREY_OK;
}
