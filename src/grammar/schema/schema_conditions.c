/* "not", "if" and the words of dependence, as schemas that are made of their parts:
 *
 *     {"if": A, "then": B, "else": C}       {"anyOf": [{"allOf": [A, B]}, {"allOf": [not A, C]}]}
 *     {"dependentRequired": {"a": ["b"]}}   {"anyOf": [no "a", {"required": ["b"]}]} */
#include <stdio.h>
#include <string.h>

#include "grammar/schema_reader.h"

/* Room for one more choice. */
static bool has_room(const schema_reader *r, const schema_set *set)
{
    int32_t n = 0;
    for (int32_t i = 0; i < set->n; i++)
        n += set->of[i] >= r->made && set->of[i] < r->made + SCHEMA_MOST_MADE;
    return n < r->most_choices && set->n + 3 < SCHEMA_MOST_TOGETHER &&
           r->n_known < SCHEMA_MOST_KNOWN;
}

/* Both, each of which may be NULL. */
static json_value *both(schema_reader *r, const json_value *of, const json_value *a,
                        const json_value *b)
{
    json_value *one = schema_make(r, of, JSON_OBJECT, NULL);
    json_value *all = schema_make(r, of, JSON_ARRAY, "allOf");
    if (!one || !all || (a && !schema_put(all, schema_copy(r, a, NULL))) ||
        (b && !schema_put(all, schema_copy(r, b, NULL))))
        return NULL;
    return schema_put(one, all) ? one : NULL;
}

static const json_value *either(schema_reader *r, const json_value *of, json_value *a,
                                json_value *b)
{
    json_value *one = schema_make(r, of, JSON_OBJECT, NULL);
    json_value *list = schema_make(r, of, JSON_ARRAY, "anyOf");
    return schema_put(list, a) && schema_put(list, b) && schema_put(one, list) ? one : NULL;
}

/* Returns the place of the schema that a word asks for, which is made once. *known: it was. */
static int32_t known_of(schema_reader *r, const json_value *word, bool *known)
{
    for (int32_t i = 0; i < r->n_known; i++)
        if (r->known[i].of == word && !r->known[i].negated) {
            *known = true;
            return i;
        }
    *known = false;
    r->known[r->n_known].of = word;
    r->known[r->n_known].is = NULL;
    r->known[r->n_known].negated = false;
    return r->n_known++;
}

static drey_status add_or_leave_out(schema_reader *r, schema_set *set, const json_value *schema,
                                    const char *word, const json_value *is)
{
    if (is)
        return schema_set_add(r, set, is);
    schema_leave_out(r, schema, word);
    return DREY_OK;
}

/* ---- "not" and "if" ---- */

static drey_status take_not(schema_reader *r, schema_set *set, const json_value *schema)
{
    const json_value *v = schema_word(schema, "not");
    if (!v)
        return DREY_OK;
    if (v->type != JSON_OBJECT && v->type != JSON_TRUE && v->type != JSON_FALSE)
        SCHEMA_FAIL(r, "a schema is an object, true or false");
    const json_value *is = has_room(r, set) || v->type != JSON_OBJECT ? schema_negated(r, v) : NULL;
    return add_or_leave_out(r, set, schema, "not", is);
}

static const json_value *make_if(schema_reader *r, const json_value *condition,
                                 const json_value *then, const json_value *other)
{
    const json_value *negated = schema_negated(r, condition);
    if (!negated)
        return NULL;
    json_value *met = both(r, condition, condition, then);
    json_value *not_met = both(r, condition, negated, other);
    return met && not_met ? either(r, condition, met, not_met) : NULL;
}

static drey_status take_if(schema_reader *r, schema_set *set, const json_value *schema)
{
    const json_value *condition = schema_word(schema, "if"), *then = schema_word(schema, "then");
    const json_value *other = schema_word(schema, "else");
    bool known;
    if (!condition || (!then && !other))
        return DREY_OK;
    if (!has_room(r, set))
        return add_or_leave_out(r, set, schema, "if", NULL);
    int32_t i = known_of(r, condition, &known);
    if (!known) {
        const json_value *is = make_if(r, condition, then, other);
        r->known[i].is = is;
    }
    return add_or_leave_out(r, set, schema, "if", r->known[i].is);
}

/* ---- Members that depend on each other ---- */

static const json_value *make_dependence(schema_reader *r, const json_value *member)
{
    json_value *absent = schema_make(r, member, JSON_OBJECT, NULL);
    json_value *names = schema_make(r, member, JSON_ARRAY, SCHEMA_ABSENT);
    json_value *name = schema_make(r, member, JSON_STRING, NULL);
    json_value *required = schema_make(r, member, JSON_ARRAY, "required");
    json_value *itself = schema_make(r, member, JSON_STRING, NULL);
    json_value *there = schema_make(r, member, JSON_OBJECT, NULL);
    if (!name || !schema_put(required, itself) || !schema_put(there, required) ||
        !schema_put(names, name) || !schema_put(absent, names))
        return NULL;
    name->text = itself->text = member->key;
    name->n = itself->n = member->n_key;
    if (member->type == JSON_ARRAY)
        for (const json_value *v = member->first; v; v = v->next)
            if (!schema_put(required, schema_copy(r, v, NULL)))
                return NULL;
    json_value *then = there;
    if (member->type != JSON_ARRAY)
        then = both(r, member, there, member);
    return then ? either(r, member, absent, then) : NULL;
}

static drey_status take_dependences(schema_reader *r, schema_set *set, const json_value *schema,
                                    const char *word)
{
    const json_value *members = schema_word(schema, word);
    bool known;
    if (!members)
        return DREY_OK;
    if (members->type != JSON_OBJECT)
        SCHEMA_FAIL(r, "\"%s\" is an object", word);
    for (const json_value *v = members->first; v; v = v->next) {
        const bool right = v->type == JSON_ARRAY || v->type == JSON_OBJECT ||
                           v->type == JSON_TRUE || v->type == JSON_FALSE;
        if (!right)
            SCHEMA_FAIL(r, "\"%s\" has lists of names, or schemas", word);
        if ((v->type == JSON_ARRAY && v->n == 0) || v->type == JSON_TRUE)
            continue;
        if (!has_room(r, set)) {
            TRY(add_or_leave_out(r, set, members, v->key, NULL));
            continue;
        }
        int32_t i = known_of(r, v, &known);
        if (!known) {
            const json_value *is = make_dependence(r, v);
            r->known[i].is = is;
        }
        TRY(add_or_leave_out(r, set, members, v->key, r->known[i].is));
    }
    return DREY_OK;
}

drey_status schema_conditions(schema_reader *r, schema_set *set, const json_value *schema)
{
    TRY(take_not(r, set, schema));
    TRY(take_if(r, set, schema));
    TRY(take_dependences(r, set, schema, "dependentRequired"));
    TRY(take_dependences(r, set, schema, "dependentSchemas"));
    return take_dependences(r, set, schema, "dependencies");
}
