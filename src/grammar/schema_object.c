/* Objects of JSON Schema. */
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "grammar/schema_reader.h"

/* A word that gives schemas to names that match a pattern. */
typedef struct name_pattern {
    const json_value *schema; /* its key is the pattern */
    int32_t by;               /* index in the set of the schema that has it */
} name_pattern;

typedef struct object_shape {
    const schema_set *set;
    int32_t first; /* first member */
    name_pattern patterns[SCHEMA_MOST_PATTERNS];
    int32_t n_patterns, least, most;
    int32_t n_said;         /* members that may be there */
    const json_value *rest; /* a schema of "unevaluatedProperties"; NULL: none */
    bool open;              /* something is said about other members */
    bool closed;            /* there are none but what is said */
    bool names;             /* something is said about names */
} object_shape;

/* ---- Which members an object has ---- */

static schema_member *find(schema_reader *r, int32_t first, const char *key, size_t n)
{
    for (int32_t i = first; i < r->n_members; i++)
        if (r->members[i].n_key == n && memcmp(r->members[i].key, key, n) == 0)
            return &r->members[i];
    return NULL;
}

static drey_status member_named(schema_reader *r, int32_t first, const char *key, size_t n,
                                schema_member **out)
{
    schema_member *m = find(r, first, key, n);
    if (!m && r->n_members == SCHEMA_MOST_MEMBERS)
        SCHEMA_FAIL(r, "it has more than %d members", SCHEMA_MOST_MEMBERS);
    if (!m) {
        m = &r->members[r->n_members++];
        *m = (schema_member){.key = key, .n_key = n};
    }
    *out = m;
    return DREY_OK;
}

static drey_status add_schema(schema_reader *r, schema_member *m, const json_value *schema,
                              int32_t by)
{
    if (m->n_of == SCHEMA_MOST_TOGETHER)
        SCHEMA_FAIL(r, "the member \"%.60s\" has more than %d schemas", m->key,
                    SCHEMA_MOST_TOGETHER);
    m->of[m->n_of++] = schema;
    m->named_by |= UINT32_C(1) << by;
    return DREY_OK;
}

static drey_status gather_properties(schema_reader *r, object_shape *o, int32_t by)
{
    const json_value *members = json_member(o->set->of[by], "properties");
    schema_member *m;
    if (members && members->type != JSON_OBJECT)
        SCHEMA_FAIL(r, "\"properties\" is an object");
    for (const json_value *v = members ? members->first : NULL; v; v = v->next) {
        TRY(member_named(r, o->first, v->key, v->n_key, &m));
        TRY(add_schema(r, m, v, by));
    }
    return DREY_OK;
}

static drey_status gather_required(schema_reader *r, object_shape *o, const json_value *schema)
{
    const json_value *required = json_member(schema, "required");
    schema_member *m;
    if (required && required->type != JSON_ARRAY && required->type != JSON_FALSE &&
        required->type != JSON_TRUE) /* draft 3 has it in members */
        SCHEMA_FAIL(r, "\"required\" is a list of names");
    for (const json_value *v = json_member_array(schema, "required") ? required->first : NULL; v;
         v = v->next) {
        if (v->type != JSON_STRING)
            SCHEMA_FAIL(r, "\"required\" is a list of names");
        TRY(member_named(r, o->first, v->text, v->n, &m));
        m->required = true;
    }
    return DREY_OK;
}

/* names is used. */
static drey_status gather_patterns(schema_reader *r, object_shape *o, int32_t by, language *names)
{
    const json_value *patterns = json_member(o->set->of[by], "patternProperties");
    if (patterns && patterns->type != JSON_OBJECT)
        SCHEMA_FAIL(r, "\"patternProperties\" is an object");
    for (const json_value *v = patterns ? patterns->first : NULL; v; v = v->next) {
        bool held = o->n_patterns < SCHEMA_MOST_PATTERNS;
        if (held)
            TRY(schema_pattern(r, v->key, v->n_key, names, &held));
        if (held)
            o->patterns[o->n_patterns++] = (name_pattern){v, by};
        else
            schema_leave_out(r, patterns, v->key);
    }
    return DREY_OK;
}

/* Names that no member has. */
static drey_status gather_absent(schema_reader *r, object_shape *o, int32_t by)
{
    static const json_value never = {.type = JSON_FALSE};
    const json_value *names = schema_word(o->set->of[by], SCHEMA_ABSENT);
    schema_member *m;
    for (const json_value *v = names ? names->first : NULL; v; v = v->next) {
        TRY(member_named(r, o->first, v->text, v->n, &m));
        TRY(add_schema(r, m, &never, by));
    }
    return DREY_OK;
}

static drey_status gather_others(schema_reader *r, object_shape *o, int32_t by)
{
    bool x;
    const json_value *schema = o->set->of[by];
    o->open = o->open || json_member(schema, "additionalProperties");
    o->names = o->names || json_member(schema, "propertyNames");
    const json_value *rest = json_member(schema, "unevaluatedProperties");
    if (rest && rest->type != JSON_TRUE && (by > 0 || !o->set->of_one))
        schema_leave_out(r, schema, "unevaluatedProperties");
    else if (rest && rest->type == JSON_OBJECT)
        o->rest = rest;
    o->open = o->open || o->rest;
    if (!json_member_bool(schema, "unevaluatedProperties", &x))
        return DREY_OK;
    o->open = o->open || x;
    o->closed = o->closed || !x;
    return DREY_OK;
}

static drey_status gather(schema_reader *r, object_shape *o, schema_languages *l)
{
    for (int32_t i = 0; i < o->set->n; i++) {
        TRY(gather_properties(r, o, i));
        TRY(gather_patterns(r, o, i, l->now));
        TRY(gather_others(r, o, i));
    }
    for (int32_t i = 0; i < o->set->n; i++)
        TRY(gather_required(r, o, o->set->of[i]));
    o->n_said = r->n_members - o->first;
    for (int32_t i = 0; i < o->set->n; i++)
        TRY(gather_absent(r, o, i));
    return schema_counts(r, o->set, "minProperties", "maxProperties", &o->least, &o->most);
}

/* ---- What is said about names ---- */

/* Reads the names of a pattern that was held when it was gathered. */
static bool pattern_names(schema_reader *r, const json_value *schema, language *out)
{
    bool held;
    return schema_pattern(r, schema->key, schema->n_key, out, &held) == DREY_OK && held;
}

/* Names that are listed. */
static bool listed_names(schema_reader *r, const json_value *list, language *out)
{
    expr all = EXPR_NEVER;
    for (const json_value *v = list->type == JSON_ARRAY ? list->first : list; v;
         v = list->type == JSON_ARRAY ? v->next : NULL)
        if (v->type == JSON_STRING)
            all = expr_alt(r->g, all, expr_bytes(r->g, v->text, v->n));
    return language_of(out, r->g, all);
}

/* The schema of names itself, of which a reference may be all. */
static drey_status names_schema(schema_reader *r, const json_value *schema, const json_value **out)
{
    const json_value *names = json_member(schema, "propertyNames");
    const char *reference = json_member_text(names, "$ref");
    *out = names;
    if (!reference || names->n != 1)
        return DREY_OK;
    TRY(schema_target(r, reference, out));
    if (!*out)
        schema_leave_out(r, names, "$ref");
    return DREY_OK;
}

/* l->now: the names that "propertyNames" of the schema allows; *any: all. What it says apart from
 * words of texts is left out. */
static drey_status names_allowed(schema_reader *r, const json_value *schema, schema_languages *l,
                                 bool *any)
{
    static const char known[] = " type pattern format minLength maxLength enum const title "
                                "description $defs $id $schema $comment $anchor ";
    const json_value *names;
    char word[32];
    TRY(names_schema(r, schema, &names));
    *any = !names || names->type == JSON_TRUE;
    if (*any)
        return DREY_OK;
    if (names->type == JSON_FALSE ||
        (json_member_text(names, "type") && !json_member_is(names, "type", "string")))
        return language_of(l->now, r->g, EXPR_NEVER) ? DREY_OK : (*any = true, DREY_OK);
    for (const json_value *v = names->type == JSON_OBJECT ? names->first : NULL; v; v = v->next) {
        snprintf(word, sizeof word, " %.24s ", v->key);
        if (!strstr(known, word))
            schema_leave_out(r, names, v->key);
    }
    const json_value *list = schema_word(names, "enum");
    if (!list)
        list = schema_word(names, "const");
    TRY(schema_texts(r, names, l, any));
    if (!list)
        return DREY_OK;
    if (*any)
        *any = !listed_names(r, list, l->now);
    else if (!listed_names(r, list, l->other) || !schema_languages_both(l, false))
        schema_leave_out(r, names, list->key);
    return DREY_OK;
}

/* Members get what patterns say of their names, then what is said of other members. */
static drey_status match_members(schema_reader *r, const object_shape *o, schema_languages *l)
{
    static const json_value never = {.type = JSON_FALSE};
    for (int32_t k = 0; k < o->n_patterns; k++) {
        if (!pattern_names(r, o->patterns[k].schema, l->now))
            continue;
        for (int32_t i = o->first; i < r->n_members; i++)
            if (language_has(l->now, r->members[i].key, r->members[i].n_key))
                TRY(add_schema(r, &r->members[i], o->patterns[k].schema, o->patterns[k].by));
    }
    for (int32_t k = 0; k < o->set->n; k++) {
        const json_value *others = json_member(o->set->of[k], "additionalProperties");
        bool any;
        TRY(names_allowed(r, o->set->of[k], l, &any));
        for (int32_t i = o->first; i < r->n_members; i++) {
            schema_member *m = &r->members[i];
            if (others && !(m->named_by >> k & 1))
                TRY(add_schema(r, m, others, k));
            if (!any && !language_has(l->now, m->key, m->n_key))
                TRY(add_schema(r, m, &never, k));
        }
    }
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

/* Handles names that are like each other: any name, any but the members', or those in l->now. */
static drey_status plain_names(schema_reader *r, const object_shape *o, expr *out)
{
    *out = expr_repeat(r->g, written_character(r->g, &r->json), 0, REPEAT_FOREVER);
    for (int32_t i = o->first; i < r->n_members; i++)
        if (r->members[i].n_key > 200)
            SCHEMA_FAIL(r, "names next to others are supported up to 200 bytes");
    if (o->first < r->n_members)
        *out = other_names(r, o->first, "", 0);
    return DREY_OK;
}

/* l->now: names that match the patterns of `matched` (bits) and no others, that no member has, and
 * that are allowed. */
static drey_status names_matching(schema_reader *r, const object_shape *o, uint32_t matched,
                                  schema_languages *l)
{
    expr members = EXPR_NEVER;
    bool any;
    if (!language_of_length(l->now, 0, REPEAT_FOREVER))
        SCHEMA_FAIL(r, "it has no names");
    for (int32_t k = 0; k < o->n_patterns; k++)
        if (!pattern_names(r, o->patterns[k].schema, l->other) ||
            !schema_languages_both(l, !(matched >> k & 1)))
            schema_leave_out(r, o->patterns[k].schema, "");
    for (int32_t i = o->first; i < r->n_members; i++)
        members = expr_alt(r->g, members, expr_bytes(r->g, r->members[i].key, r->members[i].n_key));
    if (!language_of(l->other, r->g, members) || !schema_languages_both(l, true))
        schema_leave_out(r, o->set->of[0], "properties");
    for (int32_t k = 0; k < o->set->n; k++) {
        schema_languages names = {NULL, NULL, NULL};
        if (!json_member(o->set->of[k], "propertyNames"))
            continue;
        TRY(schema_languages_init(r, &names));
        drey_status status = names_allowed(r, o->set->of[k], &names, &any);
        if (status == DREY_OK && !any)
            memcpy(l->other, names.now, sizeof *l->other);
        schema_languages_free(&names);
        TRY(status);
        if (!any && !schema_languages_both(l, false))
            schema_leave_out(r, o->set->of[k], "propertyNames");
    }
    return DREY_OK;
}

/* Collects everything that the schemas say about such a member's value. */
static drey_status value_matching(schema_reader *r, const object_shape *o, uint32_t matched,
                                  expr *out)
{
    schema_set set = {.n = 0};
    uint32_t by = 0;
    bool evaluated = matched;
    for (int32_t k = 0; k < o->n_patterns; k++)
        if (matched >> k & 1) {
            TRY(schema_set_add(r, &set, o->patterns[k].schema));
            by |= UINT32_C(1) << o->patterns[k].by;
        }
    for (int32_t k = 0; k < o->set->n; k++) {
        const json_value *others = json_member(o->set->of[k], "additionalProperties");
        if (others && !(by >> k & 1))
            TRY(schema_set_add(r, &set, others));
        evaluated = evaluated || others;
    }
    if (o->rest && !evaluated)
        TRY(schema_set_add(r, &set, o->rest));
    size_t before = schema_enter(r, matched ? "patternProperties" : "additionalProperties", 0);
    TRY(schema_set_expr(r, &set, out));
    schema_leave(r, before);
    return DREY_OK;
}

static drey_status others_matching(schema_reader *r, const object_shape *o, uint32_t matched,
                                   schema_languages *l, expr *out)
{
    grammar_rules *g = r->g;
    expr name, value;
    TRY(value_matching(r, o, matched, &value));
    if (value == EXPR_NEVER)
        return DREY_OK;
    if (o->n_patterns > 0 || o->names) {
        TRY(names_matching(r, o, matched, l));
        name = language_written(g, l->now, true);
    } else {
        TRY(plain_names(r, o, &name));
    }
    name = expr_seq(g, expr_text(g, "\""), expr_seq(g, name, expr_text(g, "\":")));
    name = expr_seq(g, name, expr_repeat(g, expr_text(g, " "), 0, 1));
    *out = expr_alt(g, *out, expr_seq(g, name, value));
    return DREY_OK;
}

/* A member that is not named, with its value; EXPR_NEVER: there are none. */
static drey_status other_member(schema_reader *r, const object_shape *o, schema_languages *l,
                                expr *out)
{
    *out = EXPR_NEVER;
    for (uint32_t matched = 0; matched < UINT32_C(1) << o->n_patterns; matched++)
        if (matched || o->open || (o->n_said == 0 && o->n_patterns == 0 && !o->closed))
            TRY(others_matching(r, o, matched, l, out));
    return DREY_OK;
}

/* ---- Objects ---- */

static drey_status member_of(schema_reader *r, const schema_member *m, expr *out)
{
    schema_set set = {.n = 0};
    expr value;
    size_t above = schema_enter(r, "properties", 0);
    schema_enter(r, m->key, 0);
    for (int32_t i = 0; i < m->n_of; i++)
        TRY(schema_set_add(r, &set, m->of[i]));
    TRY(schema_set_expr(r, &set, &value));
    schema_leave(r, above);
    *out = expr_seq(r->g, written_key(r->g, m->key, m->n_key), value);
    return DREY_OK;
}

static expr as_rule(grammar_rules *g, const char *name, expr body)
{
    if (body == EXPR_NEVER || body == EXPR_EMPTY)
        return body;
    int32_t rule = rule_new(g, name);
    if (!g->full)
        g->rules[rule].body = body;
    return expr_rule(g, rule);
}

/* Members in their order, from the last one. `rest[c]` is what may follow the c-th member, with its
 * comma; `begun` is what an object may begin with. Members are counted only where their number is
 * limited, up to `most`.
 *
 *     a?, b, c?    rest: (, c)?     (, b) (, c)?     (, a)? (, b) (, c)?
 *                  begun: nothing   b (, c)?         a (, b) (, c)?  or  b (, c)? */
enum { MOST_COUNTED = 64 };
typedef struct members {
    expr rest[MOST_COUNTED + 1], begun;
    int32_t most; /* counted */
    bool counted, limited;
} members;

/* Others after c members: several of them may have the same name, and count once. */
static expr others_after(schema_reader *r, const object_shape *o, const members *m, expr other,
                         int32_t c)
{
    grammar_rules *g = r->g;
    int32_t least = m->counted ? max_i32(o->least - c, 0) : 0;
    int32_t most = m->limited ? o->most - c : REPEAT_FOREVER;
    if (least > (other != EXPR_NEVER))
        return EXPR_NEVER;
    if (other == EXPR_NEVER)
        return EXPR_EMPTY;
    if (c > 0 || !m->counted)
        return expr_repeat(g, expr_seq(g, written_comma(g, &r->json), other), least, most);
    if (most == 0)
        return EXPR_EMPTY;
    return expr_repeat(g, expr_seq(g, other, m->rest[m->most > 0]), least, 1);
}

static void leave_out_count(schema_reader *r, const object_shape *o, const char *word)
{
    for (int32_t i = 0; i < o->set->n; i++)
        if (json_member(o->set->of[i], word))
            schema_leave_out(r, o->set->of[i], word);
}

/* Leaves out what is not counted: which names that no schema names were written is not known,
 * so that several of them may be one member. */
static void limit_counts(schema_reader *r, object_shape *o, expr other)
{
    const int32_t named = r->n_members - o->first;
    if (o->most >= named && other == EXPR_NEVER)
        o->most = REPEAT_FOREVER;
    if (other != EXPR_NEVER && o->least > 1 + named) {
        leave_out_count(r, o, "minProperties");
        o->least = 1 + named;
    }
    if (o->least > MOST_COUNTED && o->least <= named) {
        leave_out_count(r, o, "minProperties");
        o->least = MOST_COUNTED;
    }
    if (o->most > MOST_COUNTED && named > 0) {
        leave_out_count(r, o, "maxProperties");
        o->most = REPEAT_FOREVER;
    }
}

static void begin_members(schema_reader *r, const object_shape *o, expr other, members *m)
{
    m->limited = o->most != REPEAT_FOREVER;
    m->counted = m->limited || o->least > 0;
    m->most = m->limited ? o->most : o->least;
    for (int32_t c = m->most; c >= 0; c--)
        m->rest[c] = others_after(r, o, m, other, c);
    m->begun = m->rest[0];
    if (!m->counted && other != EXPR_NEVER)
        m->begun = expr_repeat(r->g, expr_seq(r->g, other, m->rest[0]), 0, 1);
}

/* Members none of which is named: each may be any, as many as one likes. */
static expr all_others(schema_reader *r, const object_shape *o, expr other)
{
    grammar_rules *g = r->g;
    if (other == EXPR_NEVER || o->most == 0)
        return o->least > 0 ? EXPR_NEVER : EXPR_EMPTY;
    expr more = expr_seq(g, written_comma(g, &r->json), other);
    const int32_t most = o->most == REPEAT_FOREVER ? REPEAT_FOREVER : o->most - 1;
    return expr_repeat(g, expr_seq(g, other, expr_repeat(g, more, 0, most)), o->least > 0, 1);
}

/* One more member in front of the others. */
static void put_member(schema_reader *r, members *m, expr one, bool required)
{
    grammar_rules *g = r->g;
    for (int32_t c = 0; c <= m->most; c++)
        m->rest[c] = as_rule(g, "members", m->rest[c]);
    expr next = expr_seq(g, written_comma(g, &r->json), one);
    int32_t first = m->limited && m->most == 0 ? -1 : min_i32(1, m->most);
    expr alone = first < 0 ? EXPR_NEVER : expr_seq(g, one, m->rest[first]);
    m->begun = required ? alone : expr_alt(g, m->begun, alone);
    for (int32_t c = 0; c <= m->most; c++) { /* rest[c + 1] is still of those after it */
        bool more = c < m->most || !m->limited;
        expr after = m->rest[min_i32(c + 1, m->most)], with = EXPR_NEVER;
        if (!m->counted) {
            m->rest[c] = expr_seq(g, required ? next : expr_repeat(g, next, 0, 1), after);
            continue;
        }
        if (more)
            with = expr_seq(g, next, after);
        m->rest[c] = required ? with : expr_alt(g, with, m->rest[c]);
    }
}

/* Makes members in any order, where they are few and not counted. */
static drey_status members_unordered(schema_reader *r, const object_shape *o, expr other, expr *out)
{
    grammar_rules *g = r->g;
    const int32_t n_members = r->n_members;
    each_set set = {.separator = written_comma(g, &r->json), .other = other};
    expr items[EACH_MOST];
    for (int32_t i = o->first; i < n_members; i++) {
        const schema_member member = r->members[i];
        expr one;
        TRY(member_of(r, &member, &one));
        r->n_members = n_members;
        if (one == EXPR_NEVER && !member.required)
            continue;
        if (member.required)
            set.required |= UINT64_C(1) << set.n;
        items[set.n++] = as_rule(g, member.key, one);
    }
    *out = set.n == 0 && other == EXPR_NEVER ? EXPR_EMPTY : expr_each(g, &set, items);
    return DREY_OK;
}

static drey_status members_of(schema_reader *r, object_shape *o, expr other, expr *out)
{
    grammar_rules *g = r->g;
    const int32_t n_members = r->n_members; /* schemas of members use what comes after */
    members m = {.begun = EXPR_NEVER};
    if (other != EXPR_NEVER)
        other = as_rule(g, "another member", other);
    limit_counts(r, o, other);
    if (n_members == o->first) {
        *out = all_others(r, o, other);
        return DREY_OK;
    }
    if (r->json.unordered && o->least == 0 && o->most == REPEAT_FOREVER &&
        n_members - o->first <= EACH_MOST)
        return members_unordered(r, o, other, out);
    begin_members(r, o, other, &m);
    for (int32_t i = o->first; i < n_members; i++) { /* what is left out is noted in this order */
        const schema_member member = r->members[i];
        expr one;
        TRY(member_of(r, &member, &one));
        r->n_members = n_members;
        r->members[i].written = as_rule(g, member.key, one);
    }
    for (int32_t i = n_members - 1; i >= o->first; i--) {
        const schema_member *member = &r->members[i];
        if (member->written != EXPR_NEVER || member->required)
            put_member(r, &m, member->written, member->required);
    }
    *out = m.begun;
    return DREY_OK;
}

/* Reads everything that is said about the object; *any: nothing. *other: a member that is not
 * named. */
static drey_status object_shape_of(schema_reader *r, object_shape *o, schema_languages *l,
                                   bool *any, expr *other)
{
    TRY(gather(r, o, l));
    *any = o->first == r->n_members && !o->open && !o->closed && !o->names && !o->n_patterns &&
           o->least == 0 && o->most == REPEAT_FOREVER;
    if (*any)
        return DREY_OK;
    TRY(match_members(r, o, l));
    return other_member(r, o, l, other);
}

drey_status schema_object(schema_reader *r, const schema_set *set, expr *out)
{
    object_shape o = {.set = set, .first = r->n_members};
    schema_languages l = {NULL, NULL, NULL};
    expr inside = EXPR_NEVER, other = EXPR_NEVER;
    bool any = false;
    TRY(schema_languages_init(r, &l));
    drey_status status = object_shape_of(r, &o, &l, &any, &other);
    schema_languages_free(&l); /* before members are read, which may have their own */
    TRY(status);
    if (any) {
        *out = written_object(r->g, &r->json);
        return DREY_OK;
    }
    TRY(members_of(r, &o, other, &inside));
    r->n_members = o.first;
    *out = inside == EXPR_NEVER ? EXPR_NEVER : written_between(r->g, &r->json, "{", inside, "}");
    return DREY_OK;
}
