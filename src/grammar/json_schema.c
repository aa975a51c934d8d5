/* JSON Schema: what values of a schema are written as.
 *
 * What cannot be held to is refused by its name and place, so that no answer is less than the
 * schema asks for. Where several ways to write a value satisfy a schema, fewer may be allowed:
 * members come in the order of "properties", constants are written on one line, and objects with
 * "properties" have no others unless the schema says so. Words that JSON Schema does not know, and
 * those that only describe, are ignored, as it demands. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "grammar/schema_reader.h"

size_t schema_enter(schema_reader *r, const char *part, int32_t index)
{
    size_t before = r->n_path, room = sizeof r->path - before;
    int n = part ? snprintf(r->path + before, room, "/%s", part)
                 : snprintf(r->path + before, room, "/%d", index);
    r->n_path = min_size(before + (size_t)max_i32(n, 0), sizeof r->path - 1);
    return before;
}

void schema_leave(schema_reader *r, size_t n_path)
{
    r->n_path = n_path;
    r->path[n_path] = 0;
}

/* ---- Words that are not supported ---- */

static bool is_trivial(const json_value *v)
{
    bool empty = (v->type == JSON_OBJECT || v->type == JSON_ARRAY) && v->n == 0;
    return v->type == JSON_FALSE || v->type == JSON_NULL || empty ||
           (v->type == JSON_NUMBER && v->number == 0);
}

static drey_status check_words(schema_reader *r, const json_value *schema)
{
    static const char *const refused[] = {"not",
                                          "if",
                                          "then",
                                          "else",
                                          "patternProperties",
                                          "propertyNames",
                                          "minProperties",
                                          "maxProperties",
                                          "uniqueItems",
                                          "contains",
                                          "minContains",
                                          "maxContains",
                                          "dependentRequired",
                                          "dependentSchemas",
                                          "dependencies",
                                          "unevaluatedItems",
                                          "multipleOf",
                                          "$dynamicRef",
                                          "$recursiveRef"};
    for (const json_value *v = schema->first; v; v = v->next)
        for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
            if (strcmp(v->key, refused[i]) == 0 && !is_trivial(v))
                SCHEMA_FAIL(r, "\"%s\" is not supported; leave it out", refused[i]);
    return DREY_OK;
}

/* Next to a word that says everything, only descriptions may be. */
static drey_status check_alone(schema_reader *r, const json_value *schema, const char *word)
{
    static const char *const constrain[] = {"$ref",
                                            "const",
                                            "enum",
                                            "anyOf",
                                            "oneOf",
                                            "allOf",
                                            "items",
                                            "pattern",
                                            "minimum",
                                            "maximum",
                                            "properties",
                                            "required",
                                            "minLength",
                                            "minItems",
                                            "prefixItems",
                                            "maxLength",
                                            "maxItems",
                                            "exclusiveMinimum",
                                            "exclusiveMaximum"};
    for (size_t i = 0; i < sizeof constrain / sizeof *constrain; i++)
        if (strcmp(constrain[i], word) != 0 && json_member(schema, constrain[i]))
            SCHEMA_FAIL(r, "\"%s\" next to \"%s\" is not supported", constrain[i], word);
    return DREY_OK;
}

/* ---- References ---- */

/* The member of a JSON pointer's next part. ~1 is a slash, ~0 a tilde. */
static const json_value *step(const json_value *at, const char *part, size_t n)
{
    if (at->type == JSON_ARRAY) {
        char *end;
        unsigned long index = strtoul(part, &end, 10);
        const json_value *v = end == part + n && n > 0 ? at->first : NULL;
        while (v && index-- > 0)
            v = v->next;
        return v;
    }
    const json_value *found = NULL;
    for (const json_value *v = at->type == JSON_OBJECT ? at->first : NULL; v; v = v->next) {
        size_t i = 0, k = 0;
        for (; i < n && k < v->n_key; i++, k++) {
            char c = part[i];
            if (c == '~' && i + 1 < n && (part[i + 1] == '0' || part[i + 1] == '1'))
                c = part[++i] == '0' ? '~' : '/';
            if (c != v->key[k])
                break;
        }
        if (i == n && k == v->n_key)
            found = v;
    }
    return found;
}

drey_status schema_target(schema_reader *r, const char *reference, const json_value **out)
{
    const json_value *at = r->root;
    if (reference[0] != '#' || (reference[1] && reference[1] != '/'))
        SCHEMA_FAIL(r,
                    "\"$ref\" to %.80s is not supported: give a place in the same schema, as "
                    "#/$defs/name",
                    reference);
    for (const char *part = reference + 1; at && *part == '/';) {
        size_t n = strcspn(part + 1, "/");
        at = step(at, part + 1, n);
        part += 1 + n;
    }
    if (!at)
        SCHEMA_FAIL(r, "\"$ref\" names %.80s, which the schema does not have", reference);
    *out = at;
    return DREY_OK;
}

/* The rule of a schema that is referred to. It is read later, when nothing else is. */
static drey_status refer(schema_reader *r, const char *reference, expr *out)
{
    const json_value *target;
    TRY(schema_target(r, reference, &target));
    int32_t i = 0;
    while (i < r->n_references && r->references[i].schema != target)
        i++;
    if (i == SCHEMA_MOST_REFERENCES)
        SCHEMA_FAIL(r, "it refers to more than %d places", SCHEMA_MOST_REFERENCES);
    if (i == r->n_references)
        r->references[r->n_references++] = (schema_reference){target, rule_new(r->g, reference)};
    *out = expr_rule(r->g, r->references[i].rule);
    return DREY_OK;
}

/* ---- Values ---- */

static drey_status any_of(schema_reader *r, const json_value *list, const char *word, expr *out)
{
    int32_t i = 0;
    size_t before = schema_enter(r, word, 0);
    if (list->type != JSON_ARRAY || list->n == 0)
        SCHEMA_FAIL(r, "\"%s\" is a list of at least one schema", word);
    *out = EXPR_NEVER;
    for (const json_value *v = list->first; v; v = v->next, i++) {
        expr one;
        size_t above = schema_enter(r, NULL, i);
        TRY(schema_expr(r, v, &one));
        *out = expr_alt(r->g, *out, one);
        schema_leave(r, above);
    }
    schema_leave(r, before);
    return DREY_OK;
}

static drey_status one_of_values(schema_reader *r, const json_value *list, expr *out)
{
    if (list->type != JSON_ARRAY || list->n == 0)
        SCHEMA_FAIL(r, "\"enum\" is a list of at least one value");
    expr *texts = malloc(list->n * sizeof *texts);
    int32_t n = 0;
    if (!texts)
        FAIL(r->err, DREY_ERR_MEMORY, "not enough memory for %u values", list->n);
    for (const json_value *v = list->first; v; v = v->next)
        texts[n++] = written_literal(r->g, v);
    *out = expr_one_of(r->g, texts, n);
    free(texts);
    return DREY_OK;
}

drey_status schema_count(schema_reader *r, const json_value *schema, const char *key,
                         int32_t otherwise, int32_t *out)
{
    const json_value *v = json_member(schema, key);
    *out = otherwise;
    if (!v)
        return DREY_OK;
    if (v->type != JSON_NUMBER || !(v->number >= 0) || v->number != floor(v->number))
        SCHEMA_FAIL(r, "\"%s\" is a whole number that is not negative", key);
    *out = (int32_t)min_f64(v->number, RULES_MOST_REPEATS);
    return DREY_OK;
}

static const char *format_pattern(const char *format)
{
#define DATE "[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
#define TIME "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,6})?"
#define ZONE "(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
#define BYTE "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
#define NAME "[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
    static const char *const known[][2] = {
        {"date", DATE},
        {"time", TIME ZONE},
        {"date-time", DATE "T" TIME ZONE},
        {"uuid", "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"},
        {"ipv4", BYTE "(?:\\." BYTE "){3}"},
        {"ipv6", "[0-9a-fA-F]{1,4}(?::[0-9a-fA-F]{1,4}){7}"},
        {"hostname", NAME "(?:\\." NAME ")*"},
        {"email", "[A-Za-z0-9_+-]+(?:\\.[A-Za-z0-9_+-]+)*@" NAME "(?:\\." NAME ")+"},
        {"uri", "[a-z][a-z0-9+.-]*:[A-Za-z0-9._~:/?#@!$&'()*+,;=%\\[\\]-]+"},
        {"duration", "P(?:[0-9]{1,9}W|(?:[0-9]{1,9}[YMD]){1,3}(?:T(?:[0-9]{1,9}[HMS]){1,3})?|"
                     "T(?:[0-9]{1,9}[HMS]){1,3})"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (format && strcmp(format, known[i][0]) == 0)
            return known[i][1];
    return NULL;
}

static drey_status string_of(schema_reader *r, const json_value *schema, expr *out)
{
    const char *format = format_pattern(json_member_text(schema, "format"));
    const json_value *pattern = json_member(schema, "pattern");
    grammar_rules *g = r->g;
    int32_t least, most;
    expr inside;
    TRY(schema_count(r, schema, "minLength", 0, &least));
    TRY(schema_count(r, schema, "maxLength", REPEAT_FOREVER, &most));
    bool measured = least > 0 || most != REPEAT_FOREVER;
    if (measured && (pattern || format))
        SCHEMA_FAIL(r, "lengths next to \"pattern\" or \"format\" are not supported: write them "
                       "into the pattern");
    if (most != REPEAT_FOREVER && most < least)
        SCHEMA_FAIL(r, "\"maxLength\" is less than \"minLength\"");
    if (pattern && pattern->type != JSON_STRING)
        SCHEMA_FAIL(r, "\"pattern\" is a regular expression");
    if (pattern)
        TRY(regex_in_json(g, pattern->text, pattern->n, &inside, r->err));
    else if (format)
        inside = regex_known(g, format);
    else if (measured)
        inside = expr_repeat(g, written_character(g, &r->json), least, most);
    else
        inside = EXPR_EMPTY;
    if (!pattern && !format && !measured)
        *out = written_string(g, &r->json);
    else
        *out = expr_seq(g, expr_seq(g, expr_text(g, "\""), inside), expr_text(g, "\""));
    return DREY_OK;
}

static drey_status bound(schema_reader *r, const json_value *schema, bool low, json_bound *out)
{
    const char *key = low ? "minimum" : "maximum";
    const char *strict = low ? "exclusiveMinimum" : "exclusiveMaximum";
    const json_value *x = json_member(schema, key), *y = json_member(schema, strict);
    *out = (json_bound){.set = false};
    if ((x && x->type != JSON_NUMBER) || (y && y->type == JSON_STRING))
        SCHEMA_FAIL(r, "\"%s\" and \"%s\" are numbers", key, strict);
    if (x)
        *out =
            (json_bound){.set = true, .value = x->number, .exclusive = y && y->type == JSON_TRUE};
    bool tighter = y && y->type == JSON_NUMBER &&
                   (!x || (low ? y->number >= x->number : y->number <= x->number));
    if (tighter)
        *out = (json_bound){.set = true, .value = y->number, .exclusive = true};
    const double most = 1e15; /* numbers have so many digits at most */
    if (out->set && fabs(out->value) >= most) {
        if (low == (out->value > 0))
            SCHEMA_FAIL(r, "the bound %g is not supported: numbers have 15 digits", out->value);
        out->set = false;
    }
    return DREY_OK;
}

static drey_status number_of(schema_reader *r, const json_value *schema, bool whole, expr *out)
{
    json_bound low, high;
    TRY(bound(r, schema, true, &low));
    TRY(bound(r, schema, false, &high));
    if (!low.set && !high.set)
        *out = whole ? written_integer(r->g, &r->json) : written_number(r->g, &r->json);
    else
        *out = json_number_between(r->g, whole, low, high);
    if (*out == EXPR_NEVER && !r->g->full)
        SCHEMA_FAIL(r, "no number is within its bounds");
    return DREY_OK;
}

static drey_status value_of_type(schema_reader *r, const json_value *schema, const char *type,
                                 expr *out)
{
    if (strcmp(type, "object") == 0)
        return schema_object(r, schema, out);
    if (strcmp(type, "array") == 0)
        return schema_array(r, schema, out);
    if (strcmp(type, "string") == 0)
        return string_of(r, schema, out);
    if (strcmp(type, "number") == 0 || strcmp(type, "integer") == 0)
        return number_of(r, schema, type[0] == 'i', out);
    if (strcmp(type, "boolean") == 0)
        *out = regex_known(r->g, "true|false");
    else if (strcmp(type, "null") == 0)
        *out = expr_text(r->g, "null");
    else
        SCHEMA_FAIL(r, "there is no type \"%.40s\"", type);
    return DREY_OK;
}

static drey_status value_of_types(schema_reader *r, const json_value *schema,
                                  const json_value *types, expr *out)
{
    *out = EXPR_NEVER;
    if (types->type == JSON_STRING)
        return value_of_type(r, schema, types->text, out);
    if (types->type != JSON_ARRAY || types->n == 0)
        SCHEMA_FAIL(r, "\"type\" is a name or a list of names");
    for (const json_value *v = types->first; v; v = v->next) {
        expr one;
        if (v->type != JSON_STRING)
            SCHEMA_FAIL(r, "\"type\" is a name or a list of names");
        TRY(value_of_type(r, schema, v->text, &one));
        *out = expr_alt(r->g, *out, one);
    }
    return DREY_OK;
}

/* What a schema without a type is about. */
static const char *type_meant(const json_value *schema)
{
    static const char *const words[][2] = {{"properties", "object"},
                                           {"required", "object"},
                                           {"additionalProperties", "object"},
                                           {"items", "array"},
                                           {"prefixItems", "array"},
                                           {"minItems", "array"},
                                           {"maxItems", "array"},
                                           {"pattern", "string"},
                                           {"minLength", "string"},
                                           {"maxLength", "string"},
                                           {"format", "string"},
                                           {"minimum", "number"},
                                           {"maximum", "number"},
                                           {"exclusiveMinimum", "number"},
                                           {"exclusiveMaximum", "number"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (json_member(schema, words[i][0]))
            return words[i][1];
    return NULL;
}

static drey_status value_of(schema_reader *r, const json_value *schema, expr *out)
{
    static const char *const lists[] = {"anyOf", "oneOf"};
    const json_value *v;
    if ((v = json_member(schema, "$ref"))) {
        TRY(check_alone(r, schema, "$ref"));
        if (v->type != JSON_STRING)
            SCHEMA_FAIL(r, "\"$ref\" is a text");
        return refer(r, v->text, out);
    }
    for (const json_value *m = schema->first; m; m = m->next)
        if (strcmp(m->key, "const") == 0) { /* which may be null */
            *out = written_literal(r->g, m);
            return check_alone(r, schema, "const");
        }
    if ((v = json_member(schema, "enum"))) {
        TRY(check_alone(r, schema, "enum"));
        return one_of_values(r, v, out);
    }
    for (int i = 0; i < 2; i++)
        if ((v = json_member(schema, lists[i]))) {
            TRY(check_alone(r, schema, lists[i]));
            return any_of(r, v, lists[i], out);
        }
    if ((v = json_member(schema, "allOf")) && v->type == JSON_ARRAY && v->n == 1 &&
        !type_meant(schema))
        return schema_expr(r, v->first, out);
    if (v)
        return schema_object(r, schema, out);
    if ((v = json_member(schema, "type")))
        return value_of_types(r, schema, v, out);
    const char *type = type_meant(schema);
    if (type)
        return value_of_type(r, schema, type, out);
    *out = written_value(r->g, &r->json);
    return DREY_OK;
}

drey_status schema_expr(schema_reader *r, const json_value *schema, expr *out)
{
    *out = EXPR_NEVER;
    if (schema->type == JSON_TRUE)
        *out = written_value(r->g, &r->json);
    if (schema->type == JSON_TRUE || schema->type == JSON_FALSE || r->g->full)
        return DREY_OK;
    if (schema->type != JSON_OBJECT)
        SCHEMA_FAIL(r, "a schema is an object, true or false");
    TRY(check_words(r, schema));
    return value_of(r, schema, out);
}

/* ---- The whole document ---- */

static drey_status read_all(schema_reader *r, int32_t *root)
{
    expr body;
    *root = rule_new(r->g, "#");
    r->references[r->n_references++] = (schema_reference){r->root, *root};
    for (int32_t i = 0; i < r->n_references && !r->g->full; i++) {
        TRY(schema_expr(r, r->references[i].schema, &body));
        if (!r->g->full)
            r->g->rules[r->references[i].rule].body = body;
        schema_leave(r, 0);
    }
    return grammar_rules_check(r->g, r->err);
}

drey_status json_schema_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                             drey_error *err)
{
    json_document d;
    if (!json_load(&d, text, n))
        FAIL(err, DREY_ERR_USAGE, "the schema is no JSON, or is nested deeper than %d",
             JSON_MOST_DEPTH);
    schema_reader *r = calloc(1, sizeof *r);
    drey_status status = DREY_OK;
    if (r) {
        r->g = g;
        r->root = d.root;
        r->err = err;
        json_rules_init(&r->json);
        status = read_all(r, root);
    } else {
        status = error_set(err, DREY_ERR_MEMORY, "not enough memory for a schema");
    }
    free(r);
    json_free(&d);
    return status;
}

/* ---- Choices ---- */

static drey_status take_choices(grammar_rules *g, const json_value *list, expr *texts,
                                int32_t *root, drey_error *err)
{
    int32_t n = 0;
    for (const json_value *v = list->first; v; v = v->next) {
        if (v->type != JSON_STRING || v->n == 0)
            FAIL(err, DREY_ERR_USAGE, "choices are texts that are not empty");
        texts[n++] = expr_bytes(g, v->text, v->n);
    }
    expr body = expr_one_of(g, texts, n);
    *root = rule_new(g, "choices");
    if (!g->full)
        g->rules[*root].body = body;
    return DREY_OK;
}

drey_status choices_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                         drey_error *err)
{
    json_document d;
    if (!json_load(&d, text, n))
        FAIL(err, DREY_ERR_USAGE, "the choices are no JSON");
    expr *texts =
        d.root->type == JSON_ARRAY && d.root->n > 0 ? malloc(d.root->n * sizeof *texts) : NULL;
    drey_status status =
        texts ? take_choices(g, d.root, texts, root, err)
              : error_set(err, DREY_ERR_USAGE, "the choices are a JSON list of at least one text");
    free(texts);
    json_free(&d);
    return status;
}
