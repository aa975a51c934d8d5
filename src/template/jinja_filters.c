/* Filters, "x | NAME": see jinja_run.h. */
#include "template/jinja_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/json.h"

/* One call; v: what the filter is applied to. */
typedef struct filter_call {
    jinja *j;
    heap *r;
    value v;
    const arguments *a;
    /* number of a filter among those that share a function: which one (the table at the end) */
    int how;
} filter_call;

static const value *given(const filter_call *c, int i, const char *name)
{
    return argument(c->a, i, name);
}

/* A text, or the number of blanks that it is made of; else `usual`. */
static value text_or_blanks(heap *r, const value *v, value usual)
{
    if (!v || v->kind == VALUE_STRING || !is_whole(*v))
        return v && v->kind == VALUE_STRING ? *v : usual;
    size_t at = text_begin(r);
    for (int64_t i = 0; i < number_int(*v) && heap_ok(r); i++)
        text_put(r, " ", 1);
    return text_end(r, at);
}

/* ---- Of one value ---- */

static value filter_length(const filter_call *c)
{
    value v = c->v;
    if (v.kind == VALUE_STRING)
        return value_int((int64_t)string_characters(c->r, v));
    if (v.kind == VALUE_LIST)
        return value_int(v.list->n);
    if (v.kind == VALUE_MAP)
        return value_int(v.map->n);
    if (v.kind != VALUE_UNDEFINED)
        heap_fail(c->r, DREY_ERR_USAGE, "a %s has no length", value_type_name(v));
    return value_int(0);
}

static value filter_default(const filter_call *c)
{
    const value *other = given(c, 0, "default_value");
    if (c->v.kind != VALUE_UNDEFINED && (!argument_flag(c->a, 1, "boolean") || value_true(c->v)))
        return c->v;
    return other ? *other : string_of("");
}

static value filter_string(const filter_call *c)
{
    return string_from(c->r, c->v);
}

static value filter_safe(const filter_call *c)
{
    value s = string_from(c->r, c->v);
    s.safe = true;
    return s;
}

static value filter_trim(const filter_call *c)
{
    const value *characters = given(c, 0, "chars");
    if (characters && characters->kind != VALUE_STRING)
        characters = NULL;
    return text_strip(c->j, string_from(c->r, c->v), characters, true, true);
}

static value filter_case(const filter_call *c)
{
    return text_in_case(c->j, string_from(c->r, c->v), (text_case)c->how);
}

static value filter_replace(const filter_call *c)
{
    const value *old = given(c, 0, "old"), *new = given(c, 1, "new"), *count = given(c, 2, "count");
    if (!old || !new)
        return c->v;
    value s = string_from(c->r, c->v), from = string_from(c->r, *old);
    value to = string_from(c->r, *new);
    return text_replace(c->j, s, from, to, count && is_whole(*count) ? number_int(*count) : -1);
}

static value filter_indent(const filter_call *c)
{
    value s = string_from(c->r, c->v), lines = string_lines(c->j, s);
    bool blank = argument_flag(c->a, 2, "blank"), first = argument_flag(c->a, 1, "first");
    value blanks = text_or_blanks(c->r, given(c, 0, "width"), string_of("    "));
    size_t at = text_begin(c->r);
    for (uint32_t i = 0; i < lines.list->n && heap_ok(c->r); i++) {
        value line = lines.list->items[i];
        if (i)
            text_put(c->r, "\n", 1);
        if (i ? blank || line.n > 0 : first)
            text_put_value(c->r, blanks);
        text_put_value(c->r, line);
    }
    bool ended = s.n > 0 && s.text[s.n - 1] == '\n'; /* then an empty line follows it */
    if (ended)
        text_put(c->r, "\n", 1);
    if ((ended && blank) || (s.n == 0 && first))
        text_put_value(c->r, blanks);
    return text_end(c->r, at);
}

static value filter_int(const filter_call *c)
{
    const value *other = given(c, 0, "default");
    value v = c->v, out = other ? *other : value_int(0);
    if (is_whole(v) || v.kind == VALUE_BIG)
        out = v.kind == VALUE_BIG ? v : value_int(number_int(v));
    else if (v.kind == VALUE_FLOAT && fabs(v.f) < 9e18)
        out = value_int((int64_t)v.f);
    else if (v.kind == VALUE_STRING)
        out = number_from_text(c->j, v, true, out);
    out.marked = v.marked;
    return out;
}

static value filter_float(const filter_call *c)
{
    const value *other = given(c, 0, "default");
    value out = other ? *other : value_float(0);
    if (is_number(c->v))
        out = value_float(number_float(c->v));
    else if (c->v.kind == VALUE_STRING)
        out = number_from_text(c->j, c->v, false, out);
    out.marked = c->v.marked;
    return out;
}

static value filter_abs(const filter_call *c)
{
    value v = c->v;
    if (v.kind == VALUE_FLOAT)
        v.f = fabs(v.f);
    else if (is_whole(v) && number_int(v) != INT64_MIN)
        v.i = number_int(v) < 0 ? -number_int(v) : number_int(v), v.kind = VALUE_INT;
    else
        heap_fail(c->r, DREY_ERR_USAGE, "a %s has no absolute value", value_type_name(v));
    return v;
}

/* ---- JSON ---- */

static value filter_tojson(const filter_call *c)
{
    const value *separators = given(c, 2, "separators");
    json_style style = {.indent = text_or_blanks(c->r, given(c, 1, "indent"), (value){0}),
                        .ascii = argument_flag(c->a, 0, "ensure_ascii"),
                        .sorted = argument_flag(c->a, 3, "sort_keys")};
    if (separators && separators->kind == VALUE_LIST && separators->list->n == 2) {
        style.item = separators->list->items[0];
        style.key = separators->list->items[1];
    }
    size_t at = text_begin(c->r);
    text_put_json(c->r, c->v, &style);
    return text_end(c->r, at);
}

static value filter_from_json(const filter_call *c)
{
    value s = string_from(c->r, c->v);
    return value_from_json(c->r, s.text, s.n, false, "the text that from_json reads");
}

/* ---- Of lists ---- */

static value filter_list(const filter_call *c)
{
    value items = jinja_items(c->j, c->v), out = list_new(c->r, items.list->n, STYLE_LIST);
    out.marked = c->v.marked;
    for (uint32_t i = 0; i < items.list->n && heap_charge(c->r, 0); i++)
        list_add(c->r, out, items.list->items[i]);
    return out;
}

/* Returns v.items(); an empty list with a failure if v is no map. */
static value items_of_map(const filter_call *c, const char *filter)
{
    static const arguments nothing = {.n = 0};
    const method m = {c->v, "items"};
    if (c->v.kind == VALUE_MAP)
        return method_call(c->j, &m, &nothing);
    heap_fail(c->r, DREY_ERR_USAGE, "\"%s\" wants a map, not a %s", filter, value_type_name(c->v));
    return list_new(c->r, 0, STYLE_LIST);
}

static value filter_items(const filter_call *c)
{
    if (c->v.kind == VALUE_UNDEFINED)
        return list_new(c->r, 0, STYLE_GENERATOR);
    value list = items_of_map(c, "items");
    list.style = STYLE_GENERATOR;
    return list;
}

static value filter_join(const filter_call *c)
{
    const value *between = given(c, 0, "d"), *attribute = given(c, 1, "attribute");
    value items = jinja_items(c->j, c->v), texts = list_new(c->r, items.list->n, STYLE_LIST);
    for (uint32_t i = 0; i < items.list->n && heap_ok(c->r); i++) {
        value item = items.list->items[i];
        if (attribute)
            item = member_path(c->j, item, *attribute);
        list_add(c->r, texts, string_from(c->r, item));
    }
    value separator = between ? string_from(c->r, *between) : string_of("");
    return strings_between(c->j, texts, separator);
}

enum { FIRST, LAST };

static value filter_end(const filter_call *c)
{
    value items = jinja_items(c->j, c->v);
    if (items.list->n == 0)
        return value_undefined("an item of an empty list", 24);
    return items.list->items[c->how == LAST ? items.list->n - 1 : 0];
}

static value filter_reverse(const filter_call *c)
{
    if (c->v.kind == VALUE_STRING) {
        value step = value_int(-1);
        return member_slice(c->j, c->v, NULL, NULL, &step);
    }
    value items = jinja_items(c->j, c->v), out = list_new(c->r, items.list->n, STYLE_GENERATOR);
    for (uint32_t i = items.list->n; i-- > 0 && heap_charge(c->r, 0);)
        list_add(c->r, out, items.list->items[i]);
    return out;
}

/* ---- Order ---- */

typedef struct keyed {
    value key, item;
} keyed;

/* attribute: what an item is compared by; NULL: all of it. */
static keyed keyed_by(jinja *j, value item, const value *attribute, bool exact_case)
{
    value key = attribute ? member_path(j, item, *attribute) : item;
    return (keyed){exact_case ? key : text_folded(j, key), item};
}

/* Stable, by merging: [n] at `from`, with `spare` of the same size. */
static void sort(jinja *j, keyed *from, keyed *spare, uint32_t n)
{
    for (uint32_t width = 1; width < n && heap_ok(j->r); width *= 2) {
        for (uint32_t begin = 0; begin < n; begin += 2 * width) {
            uint32_t middle = n - begin < width ? n : begin + width;
            uint32_t end = n - begin < 2 * width ? n : begin + 2 * width;
            uint32_t a = begin, b = middle;
            for (uint32_t i = begin; i < end; i++) {
                bool left =
                    b >= end || (a < middle && value_order(j->r, from[a].key, from[b].key) <= 0);
                spare[i] = left ? from[a++] : from[b++];
            }
        }
        memcpy(from, spare, n * sizeof *from);
    }
}

/* Items with their sort keys, sorted. NULL: a failure. */
static keyed *sorted_items(jinja *j, value items, const value *attribute, bool exact_case)
{
    uint32_t n = items.list->n;
    keyed *all = heap_take(j->r, n * sizeof *all), *spare = heap_take(j->r, n * sizeof *all);
    if (!all || !spare)
        return NULL;
    for (uint32_t i = 0; i < n && heap_ok(j->r); i++)
        all[i] = keyed_by(j, items.list->items[i], attribute, exact_case);
    if (heap_ok(j->r))
        sort(j, all, spare, n);
    return heap_ok(j->r) ? all : NULL;
}

static value listed(jinja *j, const keyed *all, uint32_t n, bool backwards)
{
    value out = list_new(j->r, n, STYLE_LIST);
    for (uint32_t i = 0; all && i < n; i++)
        list_add(j->r, out, all[i].item);
    if (!backwards || !heap_ok(j->r)) /* without room the list has no items */
        return out;
    /* Equal items keep their order, as with Python's reverse=True. */
    for (uint32_t end = n; end > 0;) {
        uint32_t begin = end - 1;
        while (begin > 0 && value_equal(j->r, all[begin - 1].key, all[end - 1].key))
            begin--;
        for (uint32_t i = begin; i < end; i++)
            out.list->items[n - end + i - begin] = all[i].item;
        end = begin;
    }
    return out;
}

static value filter_sort(const filter_call *c)
{
    value items = jinja_items(c->j, c->v);
    const keyed *all = sorted_items(c->j, items, given(c, 2, "attribute"),
                                    argument_flag(c->a, 1, "case_sensitive"));
    return listed(c->j, all, items.list->n, argument_flag(c->a, 0, "reverse"));
}

static value filter_dictsort(const filter_call *c)
{
    const value *by = given(c, 1, "by");
    const value place = value_int(by && string_is(*by, "value")),
                items = items_of_map(c, "dictsort");
    const keyed *all = sorted_items(c->j, items, &place, argument_flag(c->a, 0, "case_sensitive"));
    return listed(c->j, all, items.list->n, argument_flag(c->a, 2, "reverse"));
}

enum { LEAST, MOST };

static value filter_extreme(const filter_call *c)
{
    value items = jinja_items(c->j, c->v);
    keyed best = {.item = value_undefined("the extreme of an empty list", 28)};
    for (uint32_t i = 0; i < items.list->n && heap_ok(c->r); i++) {
        keyed next = keyed_by(c->j, items.list->items[i], given(c, 1, "attribute"),
                              argument_flag(c->a, 0, "case_sensitive"));
        int order = i ? value_order(c->r, next.key, best.key) : 0;
        if (i == 0 || (c->how == MOST ? order > 0 : order < 0))
            best = next;
    }
    return best.item;
}

static value filter_unique(const filter_call *c)
{
    value items = jinja_items(c->j, c->v), seen = list_new(c->r, 0, STYLE_LIST);
    value out = list_new(c->r, 0, STYLE_GENERATOR);
    for (uint32_t i = 0; i < items.list->n && heap_ok(c->r); i++) {
        keyed next = keyed_by(c->j, items.list->items[i], given(c, 1, "attribute"),
                              argument_flag(c->a, 0, "case_sensitive"));
        if (jinja_contains(c->j, seen, next.key))
            continue;
        list_add(c->r, seen, next.key);
        list_add(c->r, out, next.item);
    }
    return out;
}

/* ---- Choosing and changing items ---- */

/* a's arguments after the first `skipped`. */
static arguments rest_of(const arguments *a, int skipped)
{
    arguments rest = *a;
    rest.n = a->n > skipped ? a->n - skipped : 0;
    memmove(rest.positional, a->positional + (a->n - rest.n), (size_t)rest.n * sizeof(value));
    return rest;
}

/* A false value has no items, whether it is a list or not. */
static value items_of_true(jinja *j, value v)
{
    return value_true(v) ? jinja_items(j, v) : list_new(j->r, 0, STYLE_LIST);
}

static value filter_map(const filter_call *c)
{
    const arguments *a = c->a;
    value items = items_of_true(c->j, c->v), out = list_new(c->r, 0, STYLE_GENERATOR);
    const value *attribute = given(c, -1, "attribute"), *other = given(c, -1, "default");
    const arguments rest = rest_of(a, 1);
    if (a->n == 0 && !attribute)
        heap_fail(c->r, DREY_ERR_UNSUPPORTED, "\"map\" without a filter or an attribute");
    if (a->n > 0 && a->positional[0].kind != VALUE_STRING)
        heap_fail(c->r, DREY_ERR_USAGE, "\"map\" with a filter that is no name");
    for (uint32_t i = 0; i < items.list->n && heap_ok(c->r); i++) {
        value item = items.list->items[i];
        if (a->n == 0) {
            item = member_path(c->j, item, *attribute);
            item = item.kind == VALUE_UNDEFINED && other ? *other : item;
        } else {
            item = filter_apply(c->j, a->positional[0], item, &rest);
        }
        list_add(c->r, out, item);
    }
    return out;
}

enum { WANTED = 1, BY_ATTRIBUTE = 2 }; /* bits of `how` */

/* Items for which a test is true, or false; the test may be of an attribute. */
static value filter_chosen(const filter_call *c)
{
    const arguments *a = c->a;
    value items = items_of_true(c->j, c->v), out = list_new(c->r, 0, STYLE_GENERATOR);
    bool by_attribute = c->how & BY_ATTRIBUTE, wanted = c->how & WANTED;
    int at = by_attribute;
    if (by_attribute && a->n == 0)
        heap_fail(c->r, DREY_ERR_UNSUPPORTED, "an attribute's name is missing");
    if (a->n > at && a->positional[at].kind != VALUE_STRING)
        heap_fail(c->r, DREY_ERR_USAGE, "a test that is no name");
    const arguments rest = rest_of(a, at + 1);
    for (uint32_t i = 0; i < items.list->n && heap_ok(c->r); i++) {
        value item = items.list->items[i];
        value seen = by_attribute ? member_path(c->j, item, a->positional[0]) : item;
        bool is = a->n > at ? test_apply(c->j, a->positional[at], seen, &rest) : value_true(seen);
        if (is == wanted)
            list_add(c->r, out, item);
    }
    return out;
}

/* ---- All of them ---- */

enum { ANY = -1 };

static const struct filter {
    const char *name;
    value (*apply)(const filter_call *c);
    int how, least, most; /* most: positional arguments; ANY: the filter checks all arguments */
    const char *known;    /* their names, separated by blanks */
} filters[] = {
    {"tojson", filter_tojson, 0, 0, 4, "ensure_ascii indent separators sort_keys"},
    {"length", filter_length, 0, 0, 0, ""},
    {"count", filter_length, 0, 0, 0, ""},
    {"trim", filter_trim, 0, 0, 1, "chars"},
    {"string", filter_string, 0, 0, 0, ""},
    {"default", filter_default, 0, 0, 2, "default_value boolean"},
    {"d", filter_default, 0, 0, 2, "default_value boolean"},
    {"join", filter_join, 0, 0, 2, "d attribute"},
    {"items", filter_items, 0, 0, 0, ""},
    {"list", filter_list, 0, 0, 0, ""},
    {"selectattr", filter_chosen, BY_ATTRIBUTE | WANTED, 0, ANY, ""},
    {"rejectattr", filter_chosen, BY_ATTRIBUTE, 0, ANY, ""},
    {"select", filter_chosen, WANTED, 0, ANY, ""},
    {"reject", filter_chosen, 0, 0, ANY, ""},
    {"safe", filter_safe, 0, 0, 0, ""},
    {"dictsort", filter_dictsort, 0, 0, 3, "case_sensitive by reverse"},
    {"lower", filter_case, CASE_LOWER, 0, 0, ""},
    {"upper", filter_case, CASE_UPPER, 0, 0, ""},
    {"capitalize", filter_case, CASE_CAPITAL, 0, 0, ""},
    {"map", filter_map, 0, 0, ANY, ""},
    {"replace", filter_replace, 0, 2, 3, "old new count"},
    {"from_json", filter_from_json, 0, 0, 0, ""},
    {"min", filter_extreme, LEAST, 0, 2, "case_sensitive attribute"},
    {"max", filter_extreme, MOST, 0, 2, "case_sensitive attribute"},
    {"indent", filter_indent, 0, 0, 3, "width first blank"},
    {"unique", filter_unique, 0, 0, 2, "case_sensitive attribute"},
    {"sort", filter_sort, 0, 0, 3, "reverse case_sensitive attribute"},
    {"int", filter_int, 0, 0, 1, "default"},
    {"float", filter_float, 0, 0, 1, "default"},
    {"abs", filter_abs, 0, 0, 0, ""},
    {"first", filter_end, FIRST, 0, 0, ""},
    {"last", filter_end, LAST, 0, 0, ""},
    {"reverse", filter_reverse, 0, 0, 0, ""},
};

static value apply(jinja *j, const struct filter *f, value v, const arguments *a)
{
    const filter_call call = {j, j->r, v, a, f->how};
    if (f->most != ANY && !arguments_fit(j, a, f->name, f->least, f->most, f->known))
        return v;
    return f->apply(&call);
}

value filter_apply(jinja *j, value name, value v, const arguments *a)
{
    if (jinja_deeper(j)) {
        const struct filter *f = filters, *end = f + sizeof filters / sizeof *filters;
        while (f < end && !string_is(name, f->name))
            f++;
        if (f < end)
            v = apply(j, f, v, a);
        else
            heap_fail(j->r, DREY_ERR_UNSUPPORTED, "the filter \"%.*s\" is not supported",
                      (int)(name.n < 60 ? name.n : 60), name.text);
    }
    j->depth--;
    return v;
}
