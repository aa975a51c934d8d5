/* "const" and "enum" of JSON Schema: values that are known, of which those stay that satisfy what
 * else is said about them. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "grammar/schema_reader.h"

/* While one value is looked at. */
typedef struct judge {
    schema_reader *r;
    schema_languages l;
    int depth;
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

static drey_status text_satisfies(judge *j, const json_value *v, const json_value *schema,
                                  bool *yes)
{
    bool any;
    TRY(schema_texts(j->r, schema, &j->l, &any));
    *yes = any || language_has(j->l.now, v->text, v->n);
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
    return DREY_OK;
}

/* What "properties" and what is for other names say about a member. */
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
        const json_value pattern = {.type = JSON_STRING, .text = p->key, .n = p->n_key};
        TRY(schema_pattern(j->r, &pattern, j->l.now));
        if (!language_has(j->l.now, m->key, m->n_key))
            continue;
        named = true;
        TRY(satisfies(j, m, p, yes));
    }
    if (!named && others && *yes)
        TRY(satisfies(j, m, others, yes));
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
    if (*yes && json_member(schema, "propertyNames"))
        SCHEMA_FAIL(j->r, "\"propertyNames\" next to known values is not supported");
    return DREY_OK;
}

/* ---- All of it ---- */

/* Whether some (word anyOf), one (oneOf) or all (allOf) of a list are satisfied. */
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
    return DREY_OK;
}

static drey_status satisfies(judge *j, const json_value *v, const json_value *schema, bool *yes)
{
    const char *reference = json_member_text(schema, "$ref");
    const json_value *target;
    bool more = true;
    *yes = schema->type != JSON_FALSE;
    if (schema->type != JSON_OBJECT)
        return DREY_OK;
    if (++j->depth > 2 * JSON_MOST_DEPTH || ++j->r->n_steps > SCHEMA_MOST_STEPS)
        SCHEMA_FAIL(j->r, "it refers to itself without end");
    TRY(schema_check_words(j->r, schema));
    TRY(is_among(j, v, schema, yes));
    if (*yes && reference) {
        TRY(schema_target(j->r, reference, &target));
        TRY(satisfies(j, v, target, yes));
    }
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

static drey_status keep_values(judge *j, const schema_set *set, const json_value *first,
                               bool is_list, expr *texts, int32_t *n)
{
    for (const json_value *v = first; v; v = is_list ? v->next : NULL) {
        bool all = true, yes;
        for (int32_t i = 0; i < set->n && all; i++) {
            TRY(satisfies(j, v, set->of[i], &yes));
            all = yes;
        }
        if (all)
            texts[(*n)++] = written_literal(j->r->g, v);
    }
    return DREY_OK;
}

drey_status schema_values(schema_reader *r, const schema_set *set, expr *out)
{
    bool is_list;
    const json_value *known = schema_known_values(set, &is_list);
    judge j = {.r = r};
    int32_t n = 0;
    if (is_list && (known->type != JSON_ARRAY || known->n == 0))
        SCHEMA_FAIL(r, "\"enum\" is a list of at least one value");
    TRY(schema_languages_init(r, &j.l));
    expr *texts = malloc((is_list ? known->n : 1) * sizeof *texts);
    drey_status status =
        texts ? keep_values(&j, set, is_list ? known->first : known, is_list, texts, &n)
              : error_set(r->err, DREY_ERR_MEMORY, "not enough memory for %u values", known->n);
    *out = status == DREY_OK ? expr_one_of(r->g, texts, n) : EXPR_NEVER;
    free(texts);
    schema_languages_free(&j.l);
    TRY(status);
    if (n == 0 && set->n == 1)
        SCHEMA_FAIL(r, "none of its values satisfies the rest of it");
    return DREY_OK;
}
