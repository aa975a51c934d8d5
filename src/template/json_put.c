/* Writing JSON: see json.h. */
#include "template/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NESTED = 100 };

static void put(room *r, const char *s, bool marked)
{
    text_put_marked(r, s, strlen(s), marked);
}

/* What stands for a character that JSON does not take as it is; 0: it does. */
static int escape(char out[16], uint32_t c, bool ascii)
{
    static const char meanings[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *known = c && c < 0x80 ? strchr(meanings, (int)c) : NULL;
    if (known)
        return snprintf(out, 16, "\\%c", names[known - meanings]);
    if (c < 0x20 || (ascii && c >= 0x80 && c < 0x10000))
        return snprintf(out, 16, "\\u%04" PRIx32, c);
    if (ascii && c >= 0x10000 && c <= 0x10FFFF)
        return snprintf(out, 16, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + ((c - 0x10000) >> 10),
                        0xDC00 + ((c - 0x10000) & 0x3FF));
    return 0;
}

static void put_string(room *r, value s, bool ascii)
{
    bool marked = s.n > 0 && text_is_marked(r, s.text);
    size_t done = 0;
    put(r, "\"", marked);
    for (size_t at = 0; at < s.n && room_ok(r);) {
        char out[16];
        size_t n = character_bytes(s.text + at, s.n - at);
        int n_out = escape(out, character_code(s.text + at, n), ascii);
        if (n_out) {
            text_put(r, s.text + done, at - done);
            text_put_marked(r, out, (size_t)n_out, text_is_marked(r, s.text + at));
            done = at + n;
        }
        at += n;
    }
    text_put(r, s.text + done, s.n - done);
    put(r, "\"", marked);
}

static void put_value(room *r, value v, const json_style *style, int depth);

/* In front of an item or a closing bracket. */
static void put_line(room *r, const json_style *style, int depth, bool marked)
{
    if (style->indent.kind != VALUE_STRING)
        return;
    put(r, "\n", marked);
    for (int i = depth; i < MOST_NESTED; i++)
        text_put_marked(r, style->indent.text, style->indent.n, marked);
}

static void put_between(room *r, const json_style *style, bool marked)
{
    if (style->item.kind == VALUE_STRING)
        text_put_marked(r, style->item.text, style->item.n, marked);
    else
        put(r, style->indent.kind == VALUE_STRING ? "," : ", ", marked);
}

static void put_list(room *r, value v, const json_style *style, int depth)
{
    const value_list *l = v.list;
    put(r, "[", v.marked);
    for (uint32_t i = 0; i < l->n && room_ok(r); i++) {
        if (i)
            put_between(r, style, v.marked);
        put_line(r, style, depth, v.marked);
        put_value(r, l->items[i], style, depth);
    }
    if (l->n)
        put_line(r, style, depth + 1, v.marked);
    put(r, "]", v.marked);
}

static void put_key(room *r, value key, const json_style *style)
{
    static const char *const constants[] = {"false", "true", "null"};
    if (key.kind == VALUE_STRING) {
        put_string(r, key, style->ascii);
    } else if (key.kind == VALUE_BOOL || key.kind == VALUE_NONE) {
        put(r, "\"", key.marked);
        put(r, constants[key.kind == VALUE_NONE ? 2 : key.b], key.marked);
        put(r, "\"", key.marked);
    } else if (key.kind == VALUE_INT || key.kind == VALUE_FLOAT || key.kind == VALUE_BIG) {
        put(r, "\"", key.marked);
        text_put_repr(r, key);
        put(r, "\"", key.marked);
    } else {
        room_fail(r, DREY_ERR_USAGE, "a %s cannot be a key in JSON", value_type_name(key));
    }
}

static int by_key(const void *a, const void *b)
{
    const value_pair *const *x = a, *const *y = b;
    return text_order((*x)->key, (*y)->key);
}

/* [n] pairs in the order in which they are written; NULL: a failure. */
static const value_pair **ordered(room *r, const value_map *m, bool sorted)
{
    const value_pair **pairs = room_take(r, m->n * sizeof *pairs);
    for (uint32_t i = 0; pairs && i < m->n; i++) {
        pairs[i] = &m->pairs[i];
        if (sorted && m->pairs[i].key.kind != VALUE_STRING) {
            room_fail(r, DREY_ERR_UNSUPPORTED, "sort_keys with keys that are not strings");
            return NULL;
        }
    }
    if (pairs && sorted)
        qsort(pairs, m->n, sizeof *pairs, by_key);
    return pairs;
}

static void put_map(room *r, value v, const json_style *style, int depth)
{
    const value_map *m = v.map;
    const value_pair **pairs = ordered(r, m, style->sorted);
    put(r, "{", v.marked);
    for (uint32_t i = 0; pairs && i < m->n && room_ok(r); i++) {
        if (i)
            put_between(r, style, v.marked);
        put_line(r, style, depth, v.marked);
        put_key(r, pairs[i]->key, style);
        if (style->key.kind == VALUE_STRING)
            text_put_marked(r, style->key.text, style->key.n, v.marked);
        else
            put(r, ": ", v.marked);
        put_value(r, pairs[i]->item, style, depth);
    }
    if (m->n)
        put_line(r, style, depth + 1, v.marked);
    put(r, "}", v.marked);
}

static void put_float(room *r, value v)
{
    if (isfinite(v.f))
        text_put_float(r, v.f, v.marked);
    else
        put(r, isnan(v.f) ? "NaN" : v.f < 0 ? "-Infinity" : "Infinity", v.marked);
}

static void put_value(room *r, value v, const json_style *style, int depth)
{
    if (depth == 0)
        room_fail(r, DREY_ERR_UNSUPPORTED, "values that are nested too deep to be written");
    if (!room_charge(r, 0))
        return;
    if (v.kind == VALUE_STRING)
        put_string(r, v, style->ascii);
    else if (v.kind == VALUE_NONE)
        put(r, "null", v.marked);
    else if (v.kind == VALUE_BOOL)
        put(r, v.b ? "true" : "false", v.marked);
    else if (v.kind == VALUE_INT || v.kind == VALUE_BIG)
        text_put_repr(r, v);
    else if (v.kind == VALUE_FLOAT)
        put_float(r, v);
    else if (v.kind == VALUE_LIST && v.style <= STYLE_TUPLE)
        put_list(r, v, style, depth - 1);
    else if (v.kind == VALUE_MAP)
        put_map(r, v, style, depth - 1);
    else if (v.kind == VALUE_UNDEFINED)
        room_fail(r, DREY_ERR_USAGE, "\"%.*s\" is not defined, and cannot be written as JSON",
                  (int)v.n, v.text);
    else
        room_fail(r, DREY_ERR_USAGE, "a %s cannot be written as JSON", value_type_name(v));
}

void json_put(room *r, value v, const json_style *style)
{
    put_value(r, v, style, MOST_NESTED);
}
