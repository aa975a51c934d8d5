/* Arguments as values between marks: whether a value is a text or JSON is in the tool's schema
 * alone. The form remembers it for each parameter, by a hash of its name and the tool's, so that
 * readers need no schema; and which tools there are, where nothing else says that a text is a
 * call. */
#include "reply/reply_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/json_writer.h"

/* the most schemas to which a value's schema is followed; those after them may be anything */
enum { MOST_SCHEMAS = 256 };

/* ---- What a schema's values are ---- */

enum { MAY_BE_TEXT = 1, MAY_BE_NULL = 2, MAY_BE_OTHER = 4, MAY_BE_ALL = 7 };

static int of_type(const json_value *type)
{
    if (strcmp(type->text, "string") == 0)
        return MAY_BE_TEXT;
    return strcmp(type->text, "null") == 0 ? MAY_BE_NULL : MAY_BE_OTHER;
}

static int of_data(const json_value *v)
{
    return v->type == JSON_STRING ? MAY_BE_TEXT : v->type == JSON_NULL ? MAY_BE_NULL : MAY_BE_OTHER;
}

const json_value *reply_schema_target(const json_value *root, const char *text)
{
    static const char *const places[] = {"$defs", "definitions"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        size_t n = strlen(places[i]);
        if (strncmp(text, "#/", 2) == 0 && strncmp(text + 2, places[i], n) == 0 &&
            text[2 + n] == '/')
            return json_member(json_member(root, places[i]), text + 3 + n);
    }
    return NULL;
}

/* *left: how many more schemas may be looked at. References can go in circles. */
static int kinds_of(const json_value *root, const json_value *schema, int *left);

static int of_each(const json_value *root, const json_value *list, int *left)
{
    int kinds = 0;
    for (const json_value *one = list->first; one; one = one->next)
        kinds |= kinds_of(root, one, left);
    return kinds;
}

static int kinds_of(const json_value *root, const json_value *schema, int *left)
{
    static const char *const alternatives[] = {"anyOf", "oneOf"};
    const json_value *type = json_member(schema, "type"), *v;
    int kinds = 0;
    if (!schema || schema->type != JSON_OBJECT || --*left < 0)
        return MAY_BE_ALL;
    if ((v = json_member(schema, "const")))
        return of_data(v);
    if ((v = json_member_array(schema, "enum"))) {
        for (const json_value *one = v->first; one; one = one->next)
            kinds |= of_data(one);
        return kinds;
    }
    if (type && type->type == JSON_STRING)
        return of_type(type);
    if (type && type->type == JSON_ARRAY) {
        for (const json_value *one = type->first; one; one = one->next)
            kinds |= one->type == JSON_STRING ? of_type(one) : MAY_BE_ALL;
        return kinds;
    }
    for (size_t i = 0; i < sizeof alternatives / sizeof *alternatives; i++)
        if ((v = json_member_array(schema, alternatives[i])))
            return of_each(root, v, left);
    if ((v = json_member_array(schema, "allOf")) && v->first) {
        kinds = MAY_BE_ALL;
        for (const json_value *one = v->first; one; one = one->next)
            kinds &= kinds_of(root, one, left);
        return kinds;
    }
    if ((v = json_member(schema, "$ref")) && v->type == JSON_STRING)
        return kinds_of(root, reply_schema_target(root, v->text), left);
    return MAY_BE_ALL;
}

reply_value_kind reply_value_kind_of(const json_value *parameters, const json_value *schema)
{
    int left = MOST_SCHEMAS;
    switch (kinds_of(parameters, schema, &left)) {
    case MAY_BE_TEXT:
        return VALUE_OF_TEXT;
    case MAY_BE_TEXT | MAY_BE_NULL:
        return VALUE_OF_TEXT_OR_NULL;
    case MAY_BE_OTHER:
    case MAY_BE_OTHER | MAY_BE_NULL:
    case MAY_BE_NULL:
        return VALUE_OF_JSON;
    default:
        return VALUE_OF_EITHER;
    }
}

/* ---- What comes after them ---- */

bool reply_values_apart(const reply_family *f)
{
    const char *key = strchr(f->parameter, REPLY_KEY);
    return memchr(key, '<', (size_t)(strchr(key, REPLY_VALUE) - key)) != NULL;
}

int32_t reply_value_ends(const reply_family *f, reply_mark out[static REPLY_MOST_ENDS])
{
    const char *const texts[] = {strchr(f->call, REPLY_ARGUMENTS) + 1, f->close ? f->close : ""};
    int32_t n = 0;
    for (int i = 0; i < 2; i++)
        for (const char *p = texts[i] + strspn(texts[i], "\n"); *p; p += strspn(p, "\n")) {
            size_t length = strcspn(p, "\n");
            if (n < REPLY_MOST_ENDS)
                out[n++] = (reply_mark){p, length};
            p += length;
        }
    return n;
}

/* ---- In the form ---- */

uint32_t reply_values_tool(const char *name, size_t n)
{
    return (uint32_t)hash64_of(name, n);
}

/* The two lowest bits are free. */
static uint32_t hash_of(uint32_t tool, const char *key, size_t n)
{
    hash64 h;
    hash64_init(&h);
    hash64_add(&h, &tool, sizeof tool);
    hash64_add(&h, key, n);
    return (uint32_t)hash64_get(&h) << 2;
}

static void take(reply_form *form, uint32_t value)
{
    if (form->n_values < REPLY_MOST_VALUES)
        form->values[form->n_values++] = value;
}

bool reply_tool_is_open(const json_value *function)
{
    const json_value *parameters = json_member(function, "parameters");
    const json_value *all = json_member(parameters, "properties");
    const json_value *others = json_member(parameters, "additionalProperties");
    bool none = !all || all->type != JSON_OBJECT;
    return (parameters && none) || (others && others->type != JSON_FALSE);
}

/* A tool itself is the parameter without a name. */
void reply_values_take(reply_form *form, const reply_tools *tools)
{
    for (int32_t i = 0; i < tools->n; i++)
        take(form, hash_of(reply_values_tool(tools->names[i]->text, tools->names[i]->n), "", 0) |
                       reply_tool_is_open(tools->functions[i]));
    for (int32_t i = 0; i < tools->n; i++) {
        const json_value *name = tools->names[i];
        const json_value *parameters = json_member(tools->functions[i], "parameters");
        const json_value *all = json_member(parameters, "properties");
        uint32_t tool = reply_values_tool(name->text, name->n);
        if (!all || all->type != JSON_OBJECT)
            continue;
        for (const json_value *p = all->first; p; p = p->next)
            take(form, hash_of(tool, p->key, p->n_key) | reply_value_kind_of(parameters, p));
    }
}

int32_t reply_values_index(const reply_form *form, uint32_t tool, const char *key, size_t n)
{
    uint32_t hash = hash_of(tool, key, n);
    for (int32_t i = 0; i < form->n_values; i++)
        if ((form->values[i] & ~3u) == hash)
            return i;
    return -1;
}

reply_value_kind reply_values_find(const reply_form *form, uint32_t tool, const char *key, size_t n)
{
    int32_t i = reply_values_index(form, tool, key, n);
    return i < 0 ? VALUE_OF_EITHER : form->values[i] & 3u;
}

bool reply_values_open(const reply_form *form, uint32_t tool)
{
    int32_t i = reply_values_index(form, tool, "", 0);
    return form->n_values == REPLY_MOST_VALUES || (i >= 0 && form->values[i] & 1);
}

bool reply_values_are_of(const reply_form *form, const char *name, size_t n)
{
    uint32_t hash = hash_of(reply_values_tool(name, n), "", 0);
    for (int32_t i = 0; i < form->n_values; i++)
        if ((form->values[i] & ~3u) == hash)
            return true;
    return form->n_values == REPLY_MOST_VALUES;
}

/* ---- Schemas of parameters ---- */

/* References go to the whole schema's definitions: those come along. */
char *reply_parameter_schema(const json_value *parameters, const json_value *schema)
{
    static const char *const places[] = {"$defs", "definitions"};
    char *text = NULL;
    size_t n;
    FILE *out = open_memstream(&text, &n);
    if (!out)
        return NULL;
    json_writer w = {.put = reply_to_file, .user = out};
    json_open(&w, '{');
    reply_put_members(&w, schema);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        const json_value *v = json_member(parameters, places[i]);
        if (!v || json_member(schema, places[i]))
            continue;
        json_item(&w);
        json_raw_string(&w, places[i], strlen(places[i]));
        json_after_key(&w);
        reply_put_schemas(&w, v);
    }
    json_close(&w, '}');
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
