/* Objects and arrays of JSON Schema. */
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "grammar/schema_reader.h"

/* ---- Which members an object has ---- */

typedef struct object_shape {
    int32_t first;                /* of its members */
    const json_value *additional; /* NULL: not said */
    bool closed;                  /* there are no other members */
} object_shape;

static schema_member *find(schema_reader *r, int32_t first, const char *key, size_t n)
{
    for (int32_t i = first; i < r->n_members; i++)
        if (r->members[i].n_key == n && memcmp(r->members[i].key, key, n) == 0)
            return &r->members[i];
    return NULL;
}

static drey_status add_member(schema_reader *r, int32_t first, const char *key, size_t n,
                              const json_value *schema, bool required)
{
    schema_member *m = find(r, first, key, n);
    if (!m && r->n_members == SCHEMA_MOST_MEMBERS)
        SCHEMA_FAIL(r, "it has more than %d members", SCHEMA_MOST_MEMBERS);
    if (!m) {
        m = &r->members[r->n_members++];
        *m = (schema_member){.key = key, .n_key = n, .schema = schema};
    } else if (schema && m->schema && m->schema != schema) {
        SCHEMA_FAIL(r, "the member \"%.60s\" is described twice", key);
    }
    m->schema = m->schema ? m->schema : schema;
    m->required = m->required || required;
    return DREY_OK;
}

static drey_status gather(schema_reader *r, object_shape *o, const json_value *schema, int depth);

static drey_status gather_all(schema_reader *r, object_shape *o, const json_value *list, int depth)
{
    if (list->type != JSON_ARRAY)
        SCHEMA_FAIL(r, "\"allOf\" is a list of schemas");
    for (const json_value *v = list->first; v; v = v->next) {
        const json_value *part = v;
        const char *reference = json_member_text(v, "$ref");
        if (reference)
            TRY(schema_target(r, reference, &part));
        TRY(gather(r, o, part, depth + 1));
    }
    return DREY_OK;
}

/* All parts of "allOf" describe one object together. */
static drey_status check_part(schema_reader *r, const json_value *schema, int depth)
{
    static const char *const refused[] = {"anyOf", "oneOf", "enum", "const", "$ref"};
    const char *type = json_member_text(schema, "type");
    if (depth > 16)
        SCHEMA_FAIL(r, "\"allOf\" is nested too deeply, or in a circle");
    if (schema->type != JSON_OBJECT || (type && strcmp(type, "object") != 0) ||
        json_member_array(schema, "type"))
        SCHEMA_FAIL(r, "\"allOf\" is supported for objects alone");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (json_member(schema, refused[i]))
            SCHEMA_FAIL(r, "\"%s\" within \"allOf\" is not supported", refused[i]);
    return DREY_OK;
}

static drey_status gather(schema_reader *r, object_shape *o, const json_value *schema, int depth)
{
    const json_value *all = json_member(schema, "allOf");
    const json_value *members = json_member(schema, "properties");
    const json_value *required = json_member(schema, "required");
    const json_value *additional = json_member(schema, "additionalProperties");
    if (all || depth > 0)
        TRY(check_part(r, schema, depth));
    if (members && members->type != JSON_OBJECT)
        SCHEMA_FAIL(r, "\"properties\" is an object");
    for (const json_value *v = members ? members->first : NULL; v; v = v->next)
        TRY(add_member(r, o->first, v->key, v->n_key, v, false));
    if (all)
        TRY(gather_all(r, o, all, depth));
    if (required && required->type != JSON_ARRAY && required->type != JSON_FALSE &&
        required->type != JSON_TRUE) /* draft 3 has it in members */
        SCHEMA_FAIL(r, "\"required\" is a list of names");
    for (const json_value *v = json_member_array(schema, "required") ? required->first : NULL; v;
         v = v->next) {
        if (v->type != JSON_STRING)
            SCHEMA_FAIL(r, "\"required\" is a list of names");
        TRY(add_member(r, o->first, v->text, v->n, NULL, true));
    }
    if (additional && additional->type == JSON_FALSE)
        o->closed = true;
    else if (additional && !o->additional)
        o->additional = additional;
    return DREY_OK;
}

/* ---- Members that are not named ---- */

/* Names that begin with prefix[0 .. n) of some members' names, but are none of those: what follows
 * the prefix. */
static expr other_names(schema_reader *r, int32_t first, const char *prefix, size_t n)
{
    grammar_rules *g = r->g;
    enum { MOST_NEXT = 128 };
    char_range next[MOST_NEXT + 4] = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
    int32_t n_next = 3;
    bool is_name = false, part = false; /* part: of a character, which decides nothing alone */
    expr out = EXPR_NEVER, rest = expr_repeat(g, written_character(g, &r->json), 0, REPEAT_FOREVER);
    for (int32_t i = first; i < r->n_members; i++) {
        const schema_member *m = &r->members[i];
        if (m->n_key < n || memcmp(m->key, prefix, n) != 0)
            continue;
        is_name = is_name || m->n_key == n;
        if (m->n_key == n || n_next == MOST_NEXT + 3)
            continue;
        uint32_t c = (uint8_t)m->key[n];
        part = part || c >= 0x80;
        bool seen = c >= 0x80 || c < 0x20 || c == '"' || c == '\\';
        for (int32_t k = 3; k < n_next; k++)
            seen = seen || next[k].from == c;
        if (seen)
            continue;
        next[n_next++] = (char_range){c, c};
        expr one = expr_bytes(g, &m->key[n], 1);
        out = expr_alt(g, out, expr_seq(g, one, other_names(r, first, m->key, n + 1)));
    }
    if (part)
        next[n_next++] = (char_range){0x80, 0x10FFFF};
    expr other = expr_seq(g, expr_class(g, next, n_next, true), rest);
    out = expr_alt(g, out, other);
    return is_name ? out : expr_alt(g, out, EXPR_EMPTY);
}

/* Such a member, with its value; EXPR_NEVER: there are none. */
static drey_status other_member(schema_reader *r, const object_shape *o, expr *out)
{
    grammar_rules *g = r->g;
    expr name, value;
    bool open = o->additional || o->first == r->n_members;
    *out = EXPR_NEVER;
    if (!open || o->closed)
        return DREY_OK;
    size_t before = schema_enter(r, "additionalProperties", 0);
    if (o->additional)
        TRY(schema_expr(r, o->additional, &value));
    else
        value = written_value(g, &r->json);
    schema_leave(r, before);
    name = written_string(g, &r->json);
    for (int32_t i = o->first; i < r->n_members; i++)
        if (r->members[i].n_key > 200)
            SCHEMA_FAIL(r, "names next to others are supported up to 200 bytes");
    if (o->first < r->n_members) {
        name = expr_seq(g, expr_text(g, "\""), other_names(r, o->first, "", 0));
        name = expr_seq(g, name, expr_text(g, "\""));
    }
    name = expr_seq(g, name, expr_text(g, ":"));
    name = expr_seq(g, name, expr_repeat(g, expr_text(g, " "), 0, 1));
    *out = expr_seq(g, name, value);
    return DREY_OK;
}

/* ---- Objects ---- */

static drey_status member_of(schema_reader *r, const schema_member *m, expr *out)
{
    expr value;
    size_t above = schema_enter(r, "properties", 0);
    schema_enter(r, m->key, 0);
    if (m->schema)
        TRY(schema_expr(r, m->schema, &value));
    else
        value = written_value(r->g, &r->json);
    schema_leave(r, above);
    *out = expr_seq(r->g, written_key(r->g, m->key, m->n_key), value);
    return DREY_OK;
}

static expr as_rule(grammar_rules *g, const char *name, expr body)
{
    int32_t rule = rule_new(g, name);
    if (!g->full)
        g->rules[rule].body = body;
    return expr_rule(g, rule);
}

/* Members in their order. `rest` is what may follow a member, with its comma; `begun` is what an
 * object may begin with.
 *
 *     a?, b, c?    rest: (, c)?     (, b) (, c)?     (, a)? (, b) (, c)?
 *                  begun: nothing   b (, c)?         a (, b) (, c)?  or  b (, c)? */
static drey_status members_of(schema_reader *r, const object_shape *o, expr *out)
{
    grammar_rules *g = r->g;
    expr other, rest = EXPR_EMPTY, begun = EXPR_EMPTY;
    const int32_t n_members = r->n_members; /* schemas of members use what comes after */
    TRY(other_member(r, o, &other));
    if (other != EXPR_NEVER) {
        other = as_rule(g, "another member", other);
        rest = expr_repeat(g, expr_seq(g, written_comma(g, &r->json), other), 0, REPEAT_FOREVER);
        begun = expr_repeat(g, expr_seq(g, other, rest), 0, 1);
    }
    for (int32_t i = n_members - 1; i >= o->first; i--) {
        const schema_member m = r->members[i];
        expr one;
        TRY(member_of(r, &m, &one));
        r->n_members = n_members;
        one = as_rule(g, m.key, one);
        if (rest != EXPR_EMPTY)
            rest = as_rule(g, "members", rest);
        expr first = expr_seq(g, one, rest);
        begun = m.required ? first : expr_alt(g, begun, first);
        expr next = expr_seq(g, written_comma(g, &r->json), one);
        rest = expr_seq(g, m.required ? next : expr_repeat(g, next, 0, 1), rest);
    }
    *out = begun;
    return DREY_OK;
}

drey_status schema_object(schema_reader *r, const json_value *schema, expr *out)
{
    object_shape o = {.first = r->n_members};
    expr inside;
    TRY(gather(r, &o, schema, 0));
    if (o.first == r->n_members && !o.closed &&
        (!o.additional || o.additional->type == JSON_TRUE)) {
        *out = written_object(r->g, &r->json);
        return DREY_OK;
    }
    TRY(members_of(r, &o, &inside));
    r->n_members = o.first;
    *out = written_between(r->g, &r->json, "{", inside, "}");
    return DREY_OK;
}

/* ---- Arrays ---- */

typedef struct array_shape {
    const json_value *first, *items; /* NULL: none; any */
    int32_t n_first, least, most;
    bool closed; /* nothing after the first ones */
} array_shape;

static drey_status shape_of(schema_reader *r, const json_value *schema, array_shape *a)
{
    const json_value *items = json_member(schema, "items");
    const json_value *first = json_member(schema, "prefixItems");
    if (items && items->type == JSON_ARRAY) { /* before draft 2020-12 */
        first = items;
        items = json_member(schema, "additionalItems");
    }
    *a = (array_shape){.items = items};
    if (first && first->type != JSON_ARRAY)
        SCHEMA_FAIL(r, "\"prefixItems\" is a list of schemas");
    TRY(schema_count(r, schema, "minItems", 0, &a->least));
    TRY(schema_count(r, schema, "maxItems", REPEAT_FOREVER, &a->most));
    if (a->most != REPEAT_FOREVER && a->most < a->least)
        SCHEMA_FAIL(r, "\"maxItems\" is less than \"minItems\"");
    if (first) {
        a->first = first->first;
        a->n_first = (int32_t)first->n;
        a->closed = !items;
    }
    a->closed = a->closed || (items && items->type == JSON_FALSE);
    return DREY_OK;
}

static drey_status item_of(schema_reader *r, const json_value *schema, const char *word,
                           int32_t index, expr *out)
{
    size_t above = schema_enter(r, word, 0);
    if (index >= 0)
        schema_enter(r, NULL, index);
    if (schema)
        TRY(schema_expr(r, schema, out));
    else
        *out = written_value(r->g, &r->json);
    schema_leave(r, above);
    return DREY_OK;
}

/* The first items, all of which are written, then the others. */
drey_status schema_array(schema_reader *r, const json_value *schema, expr *out)
{
    grammar_rules *g = r->g;
    array_shape a;
    expr inside = EXPR_EMPTY, item;
    int32_t n = 0;
    TRY(shape_of(r, schema, &a));
    for (const json_value *v = a.first; v && n != a.most; v = v->next, n++) {
        TRY(item_of(r, v, "prefixItems", n, &item));
        inside =
            expr_seq(g, n ? expr_seq(g, inside, written_comma(g, &r->json)) : EXPR_EMPTY, item);
    }
    int32_t least = max_i32(a.least - n, 0);
    int32_t most = a.most == REPEAT_FOREVER ? REPEAT_FOREVER : a.most - n;
    if (a.closed && least > 0)
        SCHEMA_FAIL(r, "\"minItems\" is %d, but it can have %d alone", a.least, n);
    if (!a.closed && most != 0) {
        TRY(item_of(r, a.items, "items", -1, &item));
        item = as_rule(g, "item", item);
        expr more = expr_seq(g, written_comma(g, &r->json), item);
        if (n > 0) {
            inside = expr_seq(g, inside, expr_repeat(g, more, least, most));
        } else {
            most = most == REPEAT_FOREVER ? REPEAT_FOREVER : most - 1;
            inside = expr_seq(g, item, expr_repeat(g, more, max_i32(least - 1, 0), most));
            inside = expr_repeat(g, inside, least > 0, 1);
        }
    }
    *out = written_between(g, &r->json, "[", inside, "]");
    return DREY_OK;
}
