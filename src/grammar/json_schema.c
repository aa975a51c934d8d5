/* JSON Schema: what values of a schema are written as.
 *
 * What cannot be held is left out, and its place is noted, so that a caller can say so or refuse
 * the schema; what contradicts itself is an error. Where several ways to write a value satisfy a
 * schema, fewer may be allowed: members come in the order of "properties", constants are written on
 * one line, and objects with "properties" have no others unless the schema says so. Words that JSON
 * Schema does not know, and those that only describe, are ignored, as it demands.
 *
 * A value often satisfies several schemas: that of "$ref", the parts of "allOf", and what is next
 * to them. They are read as one set, and each word looks at all of them. A choice ("anyOf") next to
 * other words becomes a choice of sets. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/hex.h"
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

/* ---- What is left out ---- */

/* The JSON pointer of a value below `at`. Returns its length; 0: it is not there, or too long. */
static size_t place_of(const json_value *at, const json_value *v, char *out, size_t n)
{
    int32_t index = 0;
    if (at == v)
        return n;
    if (at->type != JSON_OBJECT && at->type != JSON_ARRAY)
        return 0;
    for (const json_value *m = at->first; m; m = m->next, index++) {
        size_t end = n + 1, more = at->type == JSON_OBJECT ? 2 * m->n_key : 12;
        if (n + 1 + more + 1 > SCHEMA_PATH)
            continue;
        out[n] = '/';
        if (at->type == JSON_ARRAY)
            end += (size_t)snprintf(out + end, 12, "%d", index);
        for (size_t i = 0; at->type == JSON_OBJECT && i < m->n_key; i++) {
            const char c = m->key[i];
            if (c == '~' || c == '/')
                out[end++] = '~';
            out[end++] = (char)(c == '~' ? '0' : c == '/' ? '1' : c);
        }
        size_t found = place_of(m, v, out, end);
        if (found)
            return found;
    }
    return 0;
}

static const json_value *original(const schema_reader *r, const json_value *v)
{
    while (v >= r->made && v < r->made + r->n_made)
        v = r->made_of[v - r->made];
    return v;
}

void schema_leave_out(schema_reader *r, const json_value *schema, const char *word)
{
    char place[SCHEMA_PATH + 40];
    const json_value *of = original(r, schema);
    size_t n = 0;
    if (of && of != r->root) {
        n = place_of(r->root, of, place, 0);
        if (n == 0) { /* its path is long: where it was read */
            memcpy(place, r->path, r->n_path);
            n = r->n_path;
        }
    }
    if (word[0] != '\1' && schema == of)
        n += (size_t)snprintf(place + n, sizeof place - n, "/%.30s", word);
    grammar_rules_leave_out(r->g, n ? place : "/", n ? n : 1);
}

/* ---- References ---- */

/* The next byte of a JSON pointer's part in a URI: ~1 is a slash, ~0 a tilde, %41 an A. */
static char pointer_byte(const char *part, size_t n, size_t *i)
{
    if (part[*i] == '~' && *i + 1 < n && (part[*i + 1] == '0' || part[*i + 1] == '1'))
        return part[++*i] == '0' ? '~' : '/';
    int byte = hex_percent(part + *i, n - *i);
    if (byte < 0)
        return part[*i];
    *i += 2;
    return (char)byte;
}

static bool is_named(const json_value *v, const char *part, size_t n)
{
    size_t i = 0, k = 0;
    for (; i < n && k < v->n_key; i++, k++)
        if (pointer_byte(part, n, &i) != v->key[k])
            return false;
    return i == n && k == v->n_key;
}

/* The member of a JSON pointer's next part. */
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
    for (const json_value *v = at->type == JSON_OBJECT ? at->first : NULL; v; v = v->next)
        if (is_named(v, part, n))
            found = v;
    return found;
}

/* The first schema whose `word` is that name. */
static const json_value *named_by(const json_value *v, const char *word, const char *name, size_t n)
{
    if (v->type != JSON_OBJECT && v->type != JSON_ARRAY)
        return NULL;
    const json_value *own = json_member(v, word);
    if (own && own->type == JSON_STRING && own->n == n && memcmp(own->text, name, n) == 0)
        return v;
    for (const json_value *m = v->first; m; m = m->next) {
        const json_value *found = named_by(m, word, name, n);
        if (found)
            return found;
    }
    return NULL;
}

/* The schema of a document's address, without its fragment: this one's, or that of a part of it,
 * also by the last part of the address alone. */
static const json_value *with_id(const json_value *root, const char *reference, size_t n)
{
    const json_value *at = named_by(root, "$id", reference, n);
    if (!at)
        at = named_by(root, "id", reference, n);
    const char *id = json_member_text(root, "$id");
    const char *slash = id ? strrchr(id, '/') : NULL;
    if (!at && slash && strlen(slash + 1) == n && memcmp(slash + 1, reference, n) == 0)
        at = root;
    return at;
}

drey_status schema_target(schema_reader *r, const char *reference, const json_value **out)
{
    const json_value *at = r->root;
    const char *fragment = strchr(reference, '#'), *whole = reference;
    const size_t n_document = fragment ? (size_t)(fragment - reference) : strlen(reference);
    *out = NULL;
    if (n_document > 0)
        at = with_id(r->root, reference, n_document);
    if (!at)
        return DREY_OK;
    reference = fragment ? fragment : "#";
    if (reference[1] && reference[1] != '/') {
        const char *name = reference + 1;
        const json_value *named = named_by(at, "$anchor", name, strlen(name));
        at = named ? named : named_by(at, "$dynamicAnchor", name, strlen(name));
    } else {
        for (const char *part = reference + 1; at && *part == '/';) {
            size_t n = strcspn(part + 1, "/");
            at = step(at, part + 1, n);
            part += 1 + n;
        }
    }
    if (!at)
        SCHEMA_FAIL(r, "\"$ref\" names %.80s, which the schema does not have", whole);
    *out = at;
    return DREY_OK;
}

/* ---- Sets ---- */

static bool same_sets(const schema_set *a, const schema_set *b)
{
    bool same = a->n == b->n && a->of_one == b->of_one;
    for (int32_t i = 0; i < a->n && same; i++)
        same = a->of[i] == b->of[i] && a->taken[i] == b->taken[i];
    return same;
}

/* The rule of a set. It is read later, when nothing else is, so that it may contain itself. */
static drey_status refer(schema_reader *r, const schema_set *set, const char *name, expr *out)
{
    int32_t i = 0;
    while (i < r->n_references && !same_sets(&r->references[i].set, set))
        i++;
    if (i == SCHEMA_MOST_REFERENCES)
        SCHEMA_FAIL(r, "it refers to more than %d places", SCHEMA_MOST_REFERENCES);
    if (i == r->n_references)
        r->references[r->n_references++] = (schema_reference){*set, rule_new(r->g, name)};
    *out = expr_rule(r->g, r->references[i].rule);
    return DREY_OK;
}

static drey_status set_put(schema_reader *r, schema_set *set, const json_value *schema,
                           uint8_t taken)
{
    if (schema->type == JSON_FALSE)
        set->never = true;
    if (schema->type == JSON_TRUE || schema->type == JSON_FALSE)
        return DREY_OK;
    if (schema->type != JSON_OBJECT)
        SCHEMA_FAIL(r, "a schema is an object, true or false");
    for (int32_t i = 0; i < set->n; i++)
        if (set->of[i] == schema)
            return DREY_OK;
    if (set->n == SCHEMA_MOST_TOGETHER)
        SCHEMA_FAIL(r, "more than %d schemas are for one value: put them together",
                    SCHEMA_MOST_TOGETHER);
    set->of[set->n] = schema;
    set->taken[set->n++] = taken;
    return DREY_OK;
}

drey_status schema_set_add(schema_reader *r, schema_set *set, const json_value *schema)
{
    return set_put(r, set, schema, 0);
}

/* Words that take_parts takes. */
static int32_t n_parts(const json_value *schema)
{
    static const char *const parts[] = {
        "$ref", "$dynamicRef",       "$recursiveRef",    "allOf",       "not",
        "if",   "dependentRequired", "dependentSchemas", "dependencies"};
    int32_t n = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        n += schema_word(schema, parts[i]) != NULL;
    return n;
}

/* Only a reference: others that are the same share its rule. */
static const char *only_reference(const json_value *schema)
{
    const json_value *v = schema_word(schema, "$ref");
    return v && v->type == JSON_STRING && n_parts(schema) == 1 && !schema_says(schema, TAKEN_PARTS)
               ? v->text
               : NULL;
}

static drey_status take_reference(schema_reader *r, schema_set *set, const json_value *schema,
                                  const char *word)
{
    const json_value *reference = schema_word(schema, word), *target;
    if (!reference)
        return DREY_OK;
    if (reference->type != JSON_STRING)
        SCHEMA_FAIL(r, "\"%s\" is a text", word);
    TRY(schema_target(r, reference->text, &target));
    if (target)
        return schema_set_add(r, set, target);
    schema_leave_out(r, schema, word);
    return DREY_OK;
}

/* Words of schema i that are about other schemas become schemas of the set. */
static drey_status take_parts(schema_reader *r, schema_set *set, int32_t i)
{
    const json_value *schema = set->of[i], *all = schema_word(schema, "allOf");
    set->taken[i] |= TAKEN_PARTS;
    TRY(take_reference(r, set, schema, "$ref"));
    TRY(take_reference(r, set, schema, "$dynamicRef"));
    TRY(take_reference(r, set, schema, "$recursiveRef"));
    if (all && (all->type != JSON_ARRAY || all->n == 0))
        SCHEMA_FAIL(r, "\"allOf\" is a list of at least one schema");
    for (const json_value *v = all ? all->first : NULL; v; v = v->next)
        TRY(schema_set_add(r, set, v));
    return schema_conditions(r, set, schema);
}

/* All schemas that the value satisfies, without those that say nothing. */
static drey_status spread(schema_reader *r, schema_set *set)
{
    int32_t n = 0;
    for (int32_t i = 0; i < set->n; i++) {
        if (!(set->taken[i] & TAKEN_PARTS))
            TRY(take_parts(r, set, i));
    }
    for (int32_t i = 0; i < set->n; i++)
        if (schema_says(set->of[i], set->taken[i])) {
            set->of[n] = set->of[i];
            set->taken[n++] = set->taken[i];
        } else if (i == 0) {
            set->of_one = set->of_one && set->n == 2;
        }
    set->n = n;
    return DREY_OK;
}

/* ---- Choices ---- */

/* The list of choices that is not taken yet; NULL: there is none. */
static const json_value *next_choices(const schema_set *set, int32_t *at, uint8_t *taken)
{
    static const char *const words[] = {"anyOf", "oneOf"};
    for (int32_t i = 0; i < set->n; i++)
        for (int k = 0; k < 2; k++) {
            const json_value *v = schema_word(set->of[i], words[k]);
            *taken = k ? TAKEN_ONE_OF : TAKEN_ANY_OF;
            *at = i;
            if (v && !(set->taken[i] & *taken))
                return v;
        }
    return NULL;
}

static drey_status choose(schema_reader *r, const schema_set *set, const json_value *list,
                          int32_t at, uint8_t taken, expr *out)
{
    int32_t i = 0;
    size_t before = schema_enter(r, list->key, 0);
    if (list->type != JSON_ARRAY || list->n == 0)
        SCHEMA_FAIL(r, "\"%s\" is a list of at least one schema", list->key);
    *out = EXPR_NEVER;
    for (const json_value *v = list->first; v; v = v->next, i++) {
        schema_set one = *set;
        expr written;
        size_t above = schema_enter(r, NULL, i);
        one.taken[at] |= taken;
        if (!schema_says(one.of[at], one.taken[at])) { /* nothing else is next to the choice */
            one.of[at] = one.of[--one.n];
            one.taken[at] = one.taken[one.n];
            one.of_one = one.n == 0;
        }
        TRY(schema_set_add(r, &one, v));
        TRY(schema_set_expr(r, &one, &written));
        *out = expr_alt(r->g, *out, written);
        schema_leave(r, above);
    }
    schema_leave(r, before);
    return DREY_OK;
}

/* ---- Values ---- */

static drey_status value_of_type(schema_reader *r, const schema_set *set, int32_t type, expr *out)
{
    switch (type) {
    case TYPE_OBJECT:
        return schema_object(r, set, out);
    case TYPE_ARRAY:
        return schema_array(r, set, out);
    case TYPE_STRING:
        return schema_string(r, set, out);
    case TYPE_NUMBER:
    case TYPE_INTEGER:
        return schema_number(r, set, type == TYPE_INTEGER, out);
    case TYPE_BOOLEAN:
        *out = regex_known(r->g, "true|false");
        return DREY_OK;
    default:
        *out = expr_text(r->g, "null");
        return DREY_OK;
    }
}

/* Derives the types from the schemas' words if no schema has a type. */
static drey_status value_of_types(schema_reader *r, const schema_set *set, expr *out)
{
    int32_t types = TYPE_ANY, meant = 0;
    bool said = false;
    for (int32_t i = 0; i < set->n; i++) {
        int32_t one;
        TRY(schema_types(r, set->of[i], &one));
        said = said || schema_word(set->of[i], "type");
        types &= one;
        meant |= schema_types_meant(set->of[i]);
    }
    if (!said && meant)
        types &= meant | (meant & TYPE_NUMBER ? TYPE_INTEGER : 0);
    if (types == TYPE_ANY && !meant) {
        *out = written_value(r->g, &r->json);
        return DREY_OK;
    }
    if (types & TYPE_NUMBER)
        types &= ~TYPE_INTEGER;
    *out = EXPR_NEVER;
    for (int32_t type = TYPE_NULL; type <= TYPE_OBJECT; type *= 2)
        if (types & type) {
            expr one;
            TRY(value_of_type(r, set, type, &one));
            *out = expr_alt(r->g, *out, one);
        }
    return DREY_OK;
}

/* A set without parts and choices. */
static drey_status value_of(schema_reader *r, const schema_set *set, expr *out)
{
    bool is_list;
    if (set->n == 0) {
        *out = written_value(r->g, &r->json);
        return DREY_OK;
    }
    if (schema_known_values(set, &is_list))
        return schema_values(r, set, out);
    return value_of_types(r, set, out);
}

/* is_body: it is read to be a rule's body. Otherwise several schemas get a rule, and so does one
 * that is not the schema that was given: a reference led to it, and it may contain itself. Where
 * choices are made for conditions, each has the same members. */
static drey_status set_expr(schema_reader *r, const schema_set *from, bool is_body, expr *out)
{
    schema_set set = *from;
    int32_t at;
    uint8_t taken;
    const char *reference = set.n == 1 ? only_reference(set.of[0]) : NULL;
    const json_value *target;
    *out = EXPR_NEVER;
    if (set.never || r->g->full)
        return DREY_OK;
    if (++r->n_steps > SCHEMA_MOST_STEPS)
        SCHEMA_FAIL(r, "it has too many choices next to each other");
    if (reference) {
        schema_set one = {.n = 0, .of_one = true};
        TRY(schema_target(r, reference, &target));
        if (target)
            TRY(schema_set_add(r, &one, target));
        else
            schema_leave_out(r, set.of[0], "$ref");
        return one.never ? DREY_OK : refer(r, &one, reference, out);
    }
    TRY(spread(r, &set));
    if (set.never)
        return DREY_OK;
    const bool shared = set.n > 1 || (set.n == 1 && (set.of[0] != from->of[0] || r->n_made > 0));
    if (!is_body && shared)
        return refer(r, &set, r->path[0] ? r->path : "#", out);
    const json_value *list = next_choices(&set, &at, &taken);
    return list ? choose(r, &set, list, at, taken, out) : value_of(r, &set, out);
}

/* Equal texts are there once. */
static int32_t each_once(const grammar_rules *g, expr *texts, int32_t n)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < n; i++) {
        const expr_node *a = &g->exprs[texts[i]];
        bool seen = false;
        for (int32_t k = 0; k < kept && !seen; k++) {
            const expr_node *b = &g->exprs[texts[k]];
            seen = a->b == b->b && memcmp(g->bytes + a->a, g->bytes + b->a, (size_t)a->b) == 0;
        }
        if (!seen)
            texts[kept++] = texts[i];
    }
    return kept;
}

/* The values of a set without parts and choices, if it has few. */
static drey_status finite_values(schema_reader *r, const schema_set *set, expr *texts, int32_t most,
                                 int32_t *n)
{
    bool is_list;
    int32_t types = TYPE_ANY;
    const json_value *known = schema_known_values(set, &is_list);
    *n = -1;
    if (known && is_list && (known->type != JSON_ARRAY || (int32_t)known->n > most))
        return DREY_OK;
    if (known)
        return schema_values_kept(r, set, texts, n);
    for (int32_t i = 0; i < set->n; i++) {
        int32_t one;
        TRY(schema_types(r, set->of[i], &one));
        types &= one;
    }
    if (types == TYPE_INTEGER)
        return schema_integers(r, set, texts, most, n);
    if (types & ~(TYPE_NULL | TYPE_BOOLEAN) || most < 3)
        return DREY_OK;
    *n = 0;
    if (types & TYPE_NULL)
        texts[(*n)++] = expr_text(r->g, "null");
    if (types & TYPE_BOOLEAN) {
        texts[(*n)++] = expr_text(r->g, "true");
        texts[(*n)++] = expr_text(r->g, "false");
    }
    return DREY_OK;
}

drey_status schema_finite(schema_reader *r, const schema_set *from, expr *texts, int32_t most,
                          int32_t *n)
{
    schema_set set = *from;
    int32_t at;
    uint8_t taken;
    *n = set.never ? 0 : -1;
    if (set.never || set.n == 0 || r->g->full || ++r->n_steps > SCHEMA_MOST_STEPS)
        return DREY_OK;
    TRY(spread(r, &set));
    const json_value *list = next_choices(&set, &at, &taken);
    if (set.never || !list)
        return set.never ? (*n = 0, DREY_OK) : finite_values(r, &set, texts, most, n);
    *n = 0;
    for (const json_value *v = list->type == JSON_ARRAY ? list->first : NULL; v; v = v->next) {
        schema_set one = set;
        int32_t more;
        one.taken[at] |= taken;
        TRY(schema_set_add(r, &one, v));
        TRY(schema_finite(r, &one, texts + *n, most - *n, &more));
        *n = more < 0 ? -1 : each_once(r->g, texts, *n + more);
        if (more < 0)
            return DREY_OK;
    }
    return DREY_OK;
}

drey_status schema_set_expr(schema_reader *r, const schema_set *set, expr *out)
{
    return set_expr(r, set, false, out);
}

/* ---- The whole document ---- */

/* A rule's name is the place that it is for. */
static void enter_rule(schema_reader *r, int32_t rule)
{
    const grammar_rule *x = &r->g->rules[rule];
    const char *name = (const char *)r->g->bytes + x->name;
    size_t skipped = x->n_name > 0 && name[0] == '#';
    r->n_path = min_size((size_t)x->n_name - skipped, sizeof r->path - 1);
    memcpy(r->path, name + skipped, r->n_path);
    r->path[r->n_path] = 0;
}

static drey_status read_all(schema_reader *r, int32_t *root)
{
    schema_set all = {.n = 0, .of_one = true};
    expr body;
    *root = rule_new(r->g, "#");
    TRY(schema_set_add(r, &all, r->root));
    if (!r->g->full)
        r->references[r->n_references++] = (schema_reference){all, *root};
    for (int32_t i = 0; i < r->n_references && !r->g->full; i++) {
        const schema_set set = r->references[i].set;
        enter_rule(r, r->references[i].rule);
        TRY(set_expr(r, &set, true, &body));
        if (!r->g->full)
            r->g->rules[r->references[i].rule].body = body;
    }
    return grammar_rules_check(r->g, r->err);
}

/* Reads it; where it has no room, again with fewer choices that are made for conditions, which else
 * double what is said of a value. */
static drey_status read_fitting(schema_reader *r, json_rules *json, int32_t *root)
{
    enum { MOST_CHOICES = 8 };
    grammar_rules *g = r->g;
    const int32_t n_exprs = g->n_exprs, n_ranges = g->n_ranges, n_bytes = g->n_bytes,
                  n_rules = g->n_rules;
    const size_t n_left_out = g->n_left_out;
    const json_value *document = r->root;
    drey_error *err = r->err;
    for (int32_t most = g->plainly ? 0 : MOST_CHOICES;; most /= 2) {
        memset(r, 0, sizeof *r);
        r->g = g;
        r->root = document;
        r->err = err;
        r->json = *json;
        r->most_choices = most;
        drey_status status = read_all(r, root);
        if (status == DREY_OK || most == 0 || r->n_made == 0) {
            g->widened = g->widened || r->n_made > 0;
            *json = r->json;
            return status;
        }
        g->n_exprs = n_exprs;
        g->n_ranges = n_ranges;
        g->n_bytes = n_bytes;
        g->n_rules = n_rules;
        g->n_left_out = n_left_out;
        g->left_out[n_left_out] = 0;
        g->full = false;
    }
}

drey_status schema_reader_open(schema_reader **out, json_document *d, grammar_rules *g,
                               const char *text, size_t n, drey_error *err)
{
    if (!json_load(d, text, n))
        FAIL(err, DREY_ERR_USAGE, "the schema is no JSON, or is nested deeper than %d",
             JSON_MOST_DEPTH);
    schema_reader *r = *out = calloc(1, sizeof *r);
    if (!r) {
        json_free(d);
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a schema");
    }
    r->g = g;
    r->root = d->root;
    r->err = err;
    return DREY_OK;
}

void schema_reader_close(schema_reader **r, json_document *d)
{
    free(*r);
    *r = NULL;
    json_free(d);
}

drey_status json_schema_add(grammar_rules *g, json_rules *json, const char *text, size_t n,
                            int32_t *root, drey_error *err)
{
    json_document d;
    schema_reader *r;
    TRY(schema_reader_open(&r, &d, g, text, n, err));
    drey_status status = read_fitting(r, json, root);
    schema_reader_close(&r, &d);
    return status;
}

drey_status json_schema_read(grammar_rules *g, const char *text, size_t n, int32_t *root,
                             drey_error *err)
{
    json_rules json;
    json_rules_init(&json);
    return json_schema_add(g, &json, text, n, root, err);
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
