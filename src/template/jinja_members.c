/* x.name, x[key] and slices: see jinja_run.h.
 *
 * With a point, Jinja looks for an attribute first; with brackets, for an item first. So m.items is
 * the method even if the map has a key "items", and m["items"] is the key. */
#include "template/jinja_run.h"

#include <string.h>

/* ---- Loops ---- */

static value loop_member(jinja *j, const loop_state *l, value name)
{
    const int64_t i = l->i, n = l->items.list->n;
    const value none = value_undefined(name.text, name.n), *items = l->items.list->items;
    const struct {
        const char *name;
        value v;
    } known[] = {
        {"index", value_int(i + 1)},
        {"index0", value_int(i)},
        {"revindex", value_int(n - i)},
        {"revindex0", value_int(n - i - 1)},
        {"first", value_bool(i == 0)},
        {"last", value_bool(i + 1 == n)},
        {"length", value_int(n)},
        {"depth", value_int(l->depth)},
        {"depth0", value_int(l->depth - 1)},
        {"previtem", i > 0 ? items[i - 1] : none},
        {"nextitem", i + 1 < n ? items[i + 1] : none},
    };
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (string_is(name, known[k].name))
            return known[k].v;
    heap_fail(j->r, DREY_ERR_UNSUPPORTED, "loop.%.*s is not supported", (int)name.n, name.text);
    return none;
}

/* ---- Items ---- */

/* The position of Python's index i of n; n: out of range. */
static uint32_t place(int64_t i, uint32_t n)
{
    if (i < 0)
        i += n;
    return i >= 0 && i < n ? (uint32_t)i : n;
}

static value character_at(jinja *j, value s, int64_t i)
{
    value name = value_undefined("a character", 11);
    if (!heap_charge(j->r, s.n))
        return name;
    if (i < 0)
        i += (int64_t)string_characters(j->r, s);
    for (size_t at = 0; at < s.n && i >= 0; i--) {
        size_t n = character_bytes(s.text + at, s.n - at);
        if (i == 0)
            return string_part(s, at, at + n);
        at += n;
    }
    return name;
}

static value method_value(jinja *j, value of, const char *name)
{
    method *m = heap_take(j->r, sizeof *m);
    if (!m)
        return value_none();
    *m = (method){of, name};
    return (value){.kind = VALUE_METHOD, .method = m};
}

/* An item, where it has one of this key: *found. */
static value item_of(jinja *j, value of, value key, bool *found)
{
    *found = true;
    if (of.kind == VALUE_MAP || of.kind == VALUE_NAMESPACE) {
        const value *item = map_get(j->r, of, key);
        if (item)
            return *item;
    } else if (of.kind == VALUE_LIST && of.style <= STYLE_TUPLE && is_whole(key)) {
        uint32_t i = place(number_int(key), of.list->n);
        if (i < of.list->n)
            return of.list->items[i];
    } else if (of.kind == VALUE_STRING && is_whole(key)) {
        value c = character_at(j, of, number_int(key));
        if (c.kind == VALUE_STRING)
            return c;
    }
    *found = false;
    return key.kind == VALUE_STRING ? value_undefined(key.text, key.n)
                                    : value_undefined("an item", 7);
}

static bool has_members(jinja *j, value of, value name)
{
    if (of.kind == VALUE_UNDEFINED)
        heap_fail(j->r, DREY_ERR_USAGE, "\"%.*s\" is not defined, so \"%.*s\" of it cannot be read",
                  (int)of.n, of.text, (int)name.n, name.kind == VALUE_STRING ? name.text : "");
    return heap_ok(j->r);
}

value member_get(jinja *j, value of, value name)
{
    bool found;
    if (!has_members(j, of, name))
        return value_none();
    if (of.kind == VALUE_LOOP)
        return loop_member(j, of.loop, name);
    const char *known = method_find(of, name);
    return known ? method_value(j, of, known) : item_of(j, of, name, &found);
}

value member_item(jinja *j, value of, value key)
{
    bool found;
    if (!has_members(j, of, key))
        return value_none();
    value item = item_of(j, of, key, &found);
    if (found || key.kind != VALUE_STRING)
        return item;
    if (of.kind == VALUE_LOOP)
        return loop_member(j, of.loop, key);
    const char *known = method_find(of, key);
    return known ? method_value(j, of, known) : item;
}

value member_path(jinja *j, value of, value path)
{
    if (is_whole(path))
        return member_item(j, of, path);
    if (path.kind != VALUE_STRING) {
        heap_fail(j->r, DREY_ERR_USAGE, "an attribute's name is a string, not a %s",
                  value_type_name(path));
        return value_none();
    }
    for (size_t at = 0; at <= path.n && heap_ok(j->r);) {
        size_t n = text_find(path.text + at, path.n - at, ".", 1);
        size_t end = n == SIZE_MAX ? path.n : at + n;
        value part = string_part(path, at, end);
        bool digits = part.n > 0 && part.n < 9;
        for (uint32_t i = 0; i < part.n; i++)
            digits = digits && part.text[i] >= '0' && part.text[i] <= '9';
        of = member_item(j, of, digits ? int_from_text(part) : part);
        at = end + 1;
    }
    return of;
}

/* ---- Slices ---- */

typedef struct bounds {
    int64_t begin, end, step;
} bounds;

/* Computes what Python's slice.indices returns. */
static bool find_bounds(jinja *j, int64_t n, const value *begin, const value *end,
                        const value *step, bounds *out)
{
    const value *given[] = {begin, end, step};
    for (int i = 0; i < 3; i++) {
        if (given[i] && !is_whole(*given[i])) {
            heap_fail(j->r, DREY_ERR_USAGE, "a slice's bounds are whole numbers, not a %s",
                      value_type_name(*given[i]));
            return false;
        }
    }
    int64_t s = step ? number_int(*step) : 1;
    int64_t low = s > 0 ? 0 : -1, high = s > 0 ? n : n - 1;
    int64_t at[2] = {s > 0 ? low : high, s > 0 ? high : low};
    if (s == 0)
        heap_fail(j->r, DREY_ERR_USAGE, "a slice's step is zero");
    for (int i = 0; i < 2; i++) {
        if (!given[i])
            continue;
        int64_t wanted = number_int(*given[i]);
        wanted += wanted < 0 ? n : 0;
        at[i] = wanted < low ? low : wanted > high ? high : wanted;
    }
    *out = (bounds){at[0], at[1], s};
    return heap_ok(j->r);
}

/* The positions of all characters, then the end. */
static uint32_t *character_places(jinja *j, value s, int64_t *n)
{
    *n = (int64_t)string_characters(j->r, s);
    uint32_t *places = heap_take(j->r, (size_t)(*n + 1) * sizeof *places);
    size_t at = 0;
    for (int64_t i = 0; places && i <= *n; i++) {
        places[i] = (uint32_t)at;
        at += at < s.n ? character_bytes(s.text + at, s.n - at) : 0;
    }
    return places;
}

static value string_slice(jinja *j, value s, const value *begin, const value *end,
                          const value *step)
{
    int64_t n = 0;
    bounds b;
    const uint32_t *places = character_places(j, s, &n);
    value none = string_of("");
    none.safe = s.safe;
    if (!places || !find_bounds(j, n, begin, end, step, &b))
        return none;
    if (b.step == 1)
        return b.begin < b.end ? string_part(s, places[b.begin], places[b.end]) : none;
    size_t at = text_begin(j->r);
    for (int64_t i = b.begin; (b.step > 0 ? i < b.end : i > b.end) && heap_ok(j->r);) {
        text_put(j->r, s.text + places[i], places[i + 1] - places[i]);
        if (__builtin_add_overflow(i, b.step, &i))
            break;
    }
    return text_end(j->r, at);
}

value member_slice(jinja *j, value of, const value *begin, const value *end, const value *step)
{
    bounds b;
    if (of.kind == VALUE_STRING)
        return string_slice(j, of, begin, end, step);
    if (of.kind == VALUE_UNDEFINED)
        has_members(j, of, string_of("a slice"));
    else if (of.kind != VALUE_LIST || of.style > STYLE_TUPLE)
        return value_undefined("a slice", 7);
    if (!heap_ok(j->r) || !find_bounds(j, of.list->n, begin, end, step, &b))
        return value_none();
    value out = list_new(j->r, 0, (list_style)of.style);
    out.marked = of.marked;
    for (int64_t i = b.begin; (b.step > 0 ? i < b.end : i > b.end) && heap_ok(j->r);) {
        list_add(j->r, out, of.list->items[i]);
        if (__builtin_add_overflow(i, b.step, &i))
            break;
    }
    return out;
}
