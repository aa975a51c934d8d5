/* Writing JSON: see json.h. A string's bytes have their own marks, all else has the mark of its
 * value. */
#include "template/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/json_writer.h"

enum { MOST_NESTED = 100 };

typedef struct to_json {
    heap *r;
    json_writer out;
    bool marked, sorted; /* marked: what is written now */
} to_json;

static void put(void *user, const char *bytes, size_t n, const char *from)
{
    to_json *j = user;
    if (!heap_ok(j->r))
        return;
    if (bytes == from)
        text_put(j->r, bytes, n);
    else
        text_put_marked(j->r, bytes, n, from ? text_is_marked(j->r, from) : j->marked);
}

static void put_string(to_json *j, value s)
{
    j->marked = s.n > 0 && text_is_marked(j->r, s.text);
    json_raw_string(&j->out, s.text, s.n);
}

static void put_value(to_json *j, value v, int depth);

static void put_list(to_json *j, value v, int depth)
{
    json_open(&j->out, '[');
    for (uint32_t i = 0; i < v.list->n && heap_ok(j->r); i++) {
        j->marked = v.marked;
        json_item(&j->out);
        put_value(j, v.list->items[i], depth);
    }
    j->marked = v.marked;
    json_close(&j->out, ']');
}

static void put_key(to_json *j, value key)
{
    static const char *const constants[] = {"false", "true", "null"};
    if (key.kind == VALUE_STRING) {
        put_string(j, key);
        return;
    }
    j->marked = key.marked;
    json_raw(&j->out, "\"");
    if (key.kind == VALUE_BOOL || key.kind == VALUE_NONE)
        json_raw(&j->out, constants[key.kind == VALUE_NONE ? 2 : key.b]);
    else if (key.kind == VALUE_INT || key.kind == VALUE_FLOAT || key.kind == VALUE_BIG)
        text_put_repr(j->r, key);
    else
        heap_fail(j->r, DREY_ERR_USAGE, "a %s cannot be a key in JSON", value_type_name(key));
    json_raw(&j->out, "\"");
}

static int by_key(const void *a, const void *b)
{
    const value_pair *const *x = a, *const *y = b;
    return text_order((*x)->key, (*y)->key);
}

/* [n] pairs in the order in which they are written; NULL: a failure. */
static const value_pair **ordered(heap *r, const value_map *m, bool sorted)
{
    const value_pair **pairs = heap_take(r, m->n * sizeof *pairs);
    for (uint32_t i = 0; pairs && i < m->n; i++) {
        pairs[i] = &m->pairs[i];
        if (sorted && m->pairs[i].key.kind != VALUE_STRING) {
            heap_fail(r, DREY_ERR_UNSUPPORTED, "sort_keys with keys that are not strings");
            return NULL;
        }
    }
    if (pairs && sorted)
        qsort(pairs, m->n, sizeof *pairs, by_key);
    return pairs;
}

static void put_map(to_json *j, value v, int depth)
{
    const value_pair **pairs = ordered(j->r, v.map, j->sorted);
    json_open(&j->out, '{');
    for (uint32_t i = 0; pairs && i < v.map->n && heap_ok(j->r); i++) {
        j->marked = v.marked;
        json_item(&j->out);
        put_key(j, pairs[i]->key);
        j->marked = v.marked;
        json_after_key(&j->out);
        put_value(j, pairs[i]->item, depth);
    }
    j->marked = v.marked;
    json_close(&j->out, '}');
}

static void put_value(to_json *j, value v, int depth)
{
    heap *r = j->r;
    if (depth == 0)
        heap_fail(r, DREY_ERR_UNSUPPORTED, "values that are nested too deep to be written");
    if (!heap_charge(r, 0))
        return;
    j->marked = v.marked;
    if (v.kind == VALUE_STRING)
        put_string(j, v);
    else if (v.kind == VALUE_NONE)
        json_raw(&j->out, "null");
    else if (v.kind == VALUE_BOOL)
        json_raw(&j->out, v.b ? "true" : "false");
    else if (v.kind == VALUE_INT || v.kind == VALUE_BIG)
        text_put_repr(r, v);
    else if (v.kind == VALUE_FLOAT && isfinite(v.f))
        text_put_float(r, v.f, v.marked);
    else if (v.kind == VALUE_FLOAT)
        json_raw(&j->out, isnan(v.f) ? "NaN" : v.f < 0 ? "-Infinity" : "Infinity");
    else if (v.kind == VALUE_LIST && v.style <= STYLE_GENERATOR)
        put_list(j, v, depth - 1);
    else if (v.kind == VALUE_MAP)
        put_map(j, v, depth - 1);
    else if (v.kind == VALUE_UNDEFINED)
        heap_fail(r, DREY_ERR_USAGE, "\"%.*s\" is not defined, and cannot be written as JSON",
                  (int)v.n, v.text);
    else
        heap_fail(r, DREY_ERR_USAGE, "a %s cannot be written as JSON", value_type_name(v));
}

static json_span span_of(value v, const char *usual)
{
    if (v.kind == VALUE_STRING)
        return (json_span){v.text, v.n};
    return (json_span){usual, usual ? strlen(usual) : 0};
}

void text_put_json(heap *r, value v, const json_style *style)
{
    bool lines = style->indent.kind == VALUE_STRING;
    to_json j = {.r = r, .sorted = style->sorted};
    j.out = (json_writer){.put = put,
                          .user = &j,
                          .indent = span_of(style->indent, NULL),
                          .item = span_of(style->item, lines ? "," : ", "),
                          .key = span_of(style->key, ": "),
                          .ascii = style->ascii,
                          .broken_utf8 = true};
    put_value(&j, v, MOST_NESTED);
}
