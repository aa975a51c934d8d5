/* Filters, "x | NAME": see jinja_run.h. */
#include "template/jinja_run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "template/json.h"

typedef value filter_function(jinja *j, value v, const arguments *a);

/* ---- Of one value ---- */

static value filter_length(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "length", 0, 0, ""))
        return value_none();
    if (v.kind == VALUE_STRING)
        return value_int((int64_t)string_characters(j->r, v));
    if (v.kind == VALUE_LIST)
        return value_int(v.list->n);
    if (v.kind == VALUE_MAP)
        return value_int(v.map->n);
    if (v.kind != VALUE_UNDEFINED)
        room_fail(j->r, DREY_ERR_USAGE, "a %s has no length", value_type_name(v));
    return value_int(0);
}

static value filter_default(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "default", 0, 2, "default_value boolean"))
        return value_none();
    const value *other = argument(a, 0, "default_value");
    if (v.kind != VALUE_UNDEFINED && (!argument_flag(a, 1, "boolean") || value_true(v)))
        return v;
    return other ? *other : string_of("");
}

static value filter_string(jinja *j, value v, const arguments *a)
{
    return arguments_fit(j, a, "string", 0, 0, "") ? string_from(j->r, v) : v;
}

static value filter_safe(jinja *j, value v, const arguments *a)
{
    value s = filter_string(j, v, a);
    s.safe = true;
    return s;
}

static value filter_trim(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "trim", 0, 1, "chars"))
        return v;
    const value *characters = argument(a, 0, "chars");
    if (characters && characters->kind != VALUE_STRING)
        characters = NULL;
    return text_strip(j, string_from(j->r, v), characters, true, true);
}

static value filter_lower(jinja *j, value v, const arguments *a)
{
    return arguments_fit(j, a, "lower", 0, 0, "")
               ? text_in_case(j, string_from(j->r, v), CASE_LOWER)
               : v;
}

static value filter_upper(jinja *j, value v, const arguments *a)
{
    return arguments_fit(j, a, "upper", 0, 0, "")
               ? text_in_case(j, string_from(j->r, v), CASE_UPPER)
               : v;
}

static value filter_capitalize(jinja *j, value v, const arguments *a)
{
    return arguments_fit(j, a, "capitalize", 0, 0, "")
               ? text_in_case(j, string_from(j->r, v), CASE_CAPITAL)
               : v;
}

static value filter_replace(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "replace", 2, 3, "old new count"))
        return v;
    const value *old = argument(a, 0, "old"), *new = argument(a, 1, "new");
    const value *count = argument(a, 2, "count");
    if (!old || !new)
        return v;
    value s = string_from(j->r, v), from = string_from(j->r, *old), to = string_from(j->r, *new);
    return text_replace(j, s, from, to, count && is_whole(*count) ? number_int(*count) : -1);
}

static value filter_indent(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "indent", 0, 3, "width first blank"))
        return v;
    const value *width = argument(a, 0, "width");
    value s = string_from(j->r, v), lines = string_lines(j, s), blanks = string_of("    ");
    bool blank = argument_flag(a, 2, "blank"), first = argument_flag(a, 1, "first");
    if (width && width->kind == VALUE_STRING) {
        blanks = *width;
    } else if (width && is_whole(*width)) {
        size_t at = text_begin(j->r);
        for (int64_t i = 0; i < number_int(*width) && room_ok(j->r); i++)
            text_put(j->r, " ", 1);
        blanks = text_end(j->r, at);
    }
    size_t at = text_begin(j->r);
    for (uint32_t i = 0; i < lines.list->n && room_ok(j->r); i++) {
        value line = lines.list->items[i];
        if (i)
            text_put(j->r, "\n", 1);
        if (i ? blank || line.n > 0 : first)
            text_put_value(j->r, blanks);
        text_put_value(j->r, line);
    }
    bool ended = s.n > 0 && s.text[s.n - 1] == '\n'; /* then an empty line follows it */
    if (ended)
        text_put(j->r, "\n", 1);
    if ((ended && blank) || (s.n == 0 && first))
        text_put_value(j->r, blanks);
    return text_end(j->r, at);
}

static value filter_int(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "int", 0, 1, "default"))
        return v;
    const value *other = argument(a, 0, "default");
    value out = other ? *other : value_int(0);
    if (is_whole(v) || v.kind == VALUE_BIG)
        out = v.kind == VALUE_BIG ? v : value_int(number_int(v));
    else if (v.kind == VALUE_FLOAT && fabs(v.f) < 9e18)
        out = value_int((int64_t)v.f);
    else if (v.kind == VALUE_STRING)
        out = number_from_text(j, v, true, out);
    out.marked = v.marked;
    return out;
}

static value filter_float(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "float", 0, 1, "default"))
        return v;
    const value *other = argument(a, 0, "default");
    value out = other ? *other : value_float(0);
    if (is_number(v))
        out = value_float(number_float(v));
    else if (v.kind == VALUE_STRING)
        out = number_from_text(j, v, false, out);
    out.marked = v.marked;
    return out;
}

static value filter_abs(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "abs", 0, 0, ""))
        return v;
    if (v.kind == VALUE_FLOAT)
        v.f = fabs(v.f);
    else if (is_whole(v) && number_int(v) != INT64_MIN)
        v.i = number_int(v) < 0 ? -number_int(v) : number_int(v), v.kind = VALUE_INT;
    else
        room_fail(j->r, DREY_ERR_USAGE, "a %s has no absolute value", value_type_name(v));
    return v;
}

/* ---- JSON ---- */

static value filter_tojson(jinja *j, value v, const arguments *a)
{
    json_style style = {0};
    static const char known[] = "ensure_ascii indent separators sort_keys";
    if (!arguments_fit(j, a, "tojson", 0, 4, known))
        return v;
    const value *indent = argument(a, 1, "indent"), *separators = argument(a, 2, "separators");
    style.ascii = argument_flag(a, 0, "ensure_ascii");
    style.sorted = argument_flag(a, 3, "sort_keys");
    if (indent && indent->kind == VALUE_STRING) {
        style.indent = *indent;
    } else if (indent && is_whole(*indent)) {
        size_t at = text_begin(j->r);
        for (int64_t i = 0; i < number_int(*indent) && room_ok(j->r); i++)
            text_put(j->r, " ", 1);
        style.indent = text_end(j->r, at);
    }
    if (separators && separators->kind == VALUE_LIST && separators->list->n == 2) {
        style.item = separators->list->items[0];
        style.key = separators->list->items[1];
    }
    size_t at = text_begin(j->r);
    text_put_json(j->r, v, &style);
    return text_end(j->r, at);
}

static value filter_from_json(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "from_json", 0, 0, ""))
        return v;
    value s = string_from(j->r, v);
    return value_from_json(j->r, s.text, s.n, false, "the text that from_json reads");
}

/* ---- Of lists ---- */

static value filter_list(jinja *j, value v, const arguments *a)
{
    value items = jinja_items(j, v), out = list_new(j->r, items.list->n, STYLE_LIST);
    if (!arguments_fit(j, a, "list", 0, 0, ""))
        return v;
    out.marked = v.marked;
    for (uint32_t i = 0; i < items.list->n && room_charge(j->r, 0); i++)
        list_add(j->r, out, items.list->items[i]);
    return out;
}

static value filter_items(jinja *j, value v, const arguments *a)
{
    value none = list_new(j->r, 0, STYLE_GENERATOR);
    if (!arguments_fit(j, a, "items", 0, 0, "") || v.kind == VALUE_UNDEFINED)
        return none;
    if (v.kind != VALUE_MAP) {
        room_fail(j->r, DREY_ERR_USAGE, "\"items\" wants a map, not a %s", value_type_name(v));
        return none;
    }
    const arguments nothing = {.n = 0};
    const method m = {v, "items"};
    value list = method_call(j, &m, &nothing);
    list.style = STYLE_GENERATOR;
    return list;
}

static value filter_join(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "join", 0, 2, "d attribute"))
        return v;
    const value *between = argument(a, 0, "d"), *attribute = argument(a, 1, "attribute");
    value items = jinja_items(j, v), texts = list_new(j->r, items.list->n, STYLE_LIST);
    for (uint32_t i = 0; i < items.list->n && room_ok(j->r); i++) {
        value item = items.list->items[i];
        if (attribute)
            item = member_path(j, item, *attribute);
        list_add(j->r, texts, string_from(j->r, item));
    }
    value separator = between ? string_from(j->r, *between) : string_of("");
    return strings_between(j, texts, separator);
}

static value first_or_last(jinja *j, value v, bool last)
{
    value items = jinja_items(j, v);
    if (items.list->n == 0)
        return value_undefined("an item of an empty list", 24);
    return items.list->items[last ? items.list->n - 1 : 0];
}

static value filter_first(jinja *j, value v, const arguments *a)
{
    return arguments_fit(j, a, "first", 0, 0, "") ? first_or_last(j, v, false) : v;
}

static value filter_last(jinja *j, value v, const arguments *a)
{
    return arguments_fit(j, a, "last", 0, 0, "") ? first_or_last(j, v, true) : v;
}

static value filter_reverse(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "reverse", 0, 0, ""))
        return v;
    if (v.kind == VALUE_STRING) {
        value step = value_int(-1);
        return member_slice(j, v, NULL, NULL, &step);
    }
    value items = jinja_items(j, v), out = list_new(j->r, items.list->n, STYLE_GENERATOR);
    for (uint32_t i = items.list->n; i-- > 0 && room_charge(j->r, 0);)
        list_add(j->r, out, items.list->items[i]);
    return out;
}

/* ---- Order ---- */

typedef struct keyed {
    value key, item;
} keyed;

/* Stable, by merging: [n] at `from`, with `spare` of the same size. */
static void sort(jinja *j, keyed *from, keyed *spare, uint32_t n)
{
    for (uint32_t width = 1; width < n && room_ok(j->r); width *= 2) {
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
    keyed *all = room_take(j->r, n * sizeof *all), *spare = room_take(j->r, n * sizeof *all);
    if (!all || !spare)
        return NULL;
    for (uint32_t i = 0; i < n && room_ok(j->r); i++) {
        value key = items.list->items[i];
        if (attribute)
            key = member_path(j, key, *attribute);
        all[i] = (keyed){exact_case ? key : text_folded(j, key), items.list->items[i]};
    }
    if (room_ok(j->r))
        sort(j, all, spare, n);
    return room_ok(j->r) ? all : NULL;
}

static value listed(jinja *j, const keyed *all, uint32_t n, bool backwards)
{
    value out = list_new(j->r, n, STYLE_LIST);
    for (uint32_t i = 0; all && i < n; i++)
        list_add(j->r, out, all[i].item);
    if (!backwards || !room_ok(j->r)) /* without room the list has no items */
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

static value filter_sort(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "sort", 0, 3, "reverse case_sensitive attribute"))
        return v;
    value items = jinja_items(j, v);
    const keyed *all =
        sorted_items(j, items, argument(a, 2, "attribute"), argument_flag(a, 1, "case_sensitive"));
    return listed(j, all, items.list->n, argument_flag(a, 0, "reverse"));
}

static value filter_dictsort(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "dictsort", 0, 3, "case_sensitive by reverse"))
        return v;
    const value *by = argument(a, 1, "by");
    const value place = value_int(by && string_is(*by, "value"));
    if (v.kind != VALUE_MAP) {
        room_fail(j->r, DREY_ERR_USAGE, "\"dictsort\" wants a map, not a %s", value_type_name(v));
        return v;
    }
    const arguments nothing = {.n = 0};
    const method m = {v, "items"};
    value items = method_call(j, &m, &nothing);
    const keyed *all = sorted_items(j, items, &place, argument_flag(a, 0, "case_sensitive"));
    return listed(j, all, items.list->n, argument_flag(a, 2, "reverse"));
}

static value extreme(jinja *j, value v, const arguments *a, bool most)
{
    value items = jinja_items(j, v);
    const value *attribute = argument(a, 1, "attribute");
    value best = value_undefined("the extreme of an empty list", 28), best_key = best;
    for (uint32_t i = 0; i < items.list->n && room_ok(j->r); i++) {
        value item = items.list->items[i];
        value key = attribute ? member_path(j, item, *attribute) : item;
        if (!argument_flag(a, 0, "case_sensitive"))
            key = text_folded(j, key);
        int order = i ? value_order(j->r, key, best_key) : 0;
        if (i && (most ? order <= 0 : order >= 0))
            continue;
        best = item;
        best_key = key;
    }
    return best;
}

static value filter_min(jinja *j, value v, const arguments *a)
{
    return arguments_fit(j, a, "min", 0, 2, "case_sensitive attribute") ? extreme(j, v, a, false)
                                                                        : v;
}

static value filter_max(jinja *j, value v, const arguments *a)
{
    return arguments_fit(j, a, "max", 0, 2, "case_sensitive attribute") ? extreme(j, v, a, true)
                                                                        : v;
}

static value filter_unique(jinja *j, value v, const arguments *a)
{
    if (!arguments_fit(j, a, "unique", 0, 2, "case_sensitive attribute"))
        return v;
    const value *attribute = argument(a, 1, "attribute");
    value items = jinja_items(j, v), seen = list_new(j->r, 0, STYLE_LIST);
    value out = list_new(j->r, 0, STYLE_GENERATOR);
    for (uint32_t i = 0; i < items.list->n && room_ok(j->r); i++) {
        value item = items.list->items[i];
        value key = attribute ? member_path(j, item, *attribute) : item;
        if (!argument_flag(a, 0, "case_sensitive"))
            key = text_folded(j, key);
        if (jinja_contains(j, seen, key))
            continue;
        list_add(j->r, seen, key);
        list_add(j->r, out, item);
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

static value filter_map(jinja *j, value v, const arguments *a)
{
    value items = items_of_true(j, v), out = list_new(j->r, 0, STYLE_GENERATOR);
    const value *attribute = argument(a, -1, "attribute"), *other = argument(a, -1, "default");
    const arguments rest = rest_of(a, 1);
    if (a->n == 0 && !attribute)
        room_fail(j->r, DREY_ERR_UNSUPPORTED, "\"map\" without a filter or an attribute");
    if (a->n > 0 && a->positional[0].kind != VALUE_STRING)
        room_fail(j->r, DREY_ERR_USAGE, "\"map\" with a filter that is no name");
    for (uint32_t i = 0; i < items.list->n && room_ok(j->r); i++) {
        value item = items.list->items[i];
        if (a->n == 0) {
            item = member_path(j, item, *attribute);
            item = item.kind == VALUE_UNDEFINED && other ? *other : item;
        } else {
            item = filter_apply(j, a->positional[0], item, &rest);
        }
        list_add(j->r, out, item);
    }
    return out;
}

/* Items for which a test is true, or false; the test may be of an attribute. */
static value chosen(jinja *j, value v, const arguments *a, bool by_attribute, bool wanted)
{
    value items = items_of_true(j, v), out = list_new(j->r, 0, STYLE_GENERATOR);
    int at = by_attribute;
    if (by_attribute && a->n == 0)
        room_fail(j->r, DREY_ERR_UNSUPPORTED, "an attribute's name is missing");
    if (a->n > at && a->positional[at].kind != VALUE_STRING)
        room_fail(j->r, DREY_ERR_USAGE, "a test that is no name");
    const arguments rest = rest_of(a, at + 1);
    for (uint32_t i = 0; i < items.list->n && room_ok(j->r); i++) {
        value item = items.list->items[i];
        value seen = by_attribute ? member_path(j, item, a->positional[0]) : item;
        bool is = a->n > at ? test_apply(j, a->positional[at], seen, &rest) : value_true(seen);
        if (is == wanted)
            list_add(j->r, out, item);
    }
    return out;
}

static value filter_select(jinja *j, value v, const arguments *a)
{
    return chosen(j, v, a, false, true);
}

static value filter_reject(jinja *j, value v, const arguments *a)
{
    return chosen(j, v, a, false, false);
}

static value filter_selectattr(jinja *j, value v, const arguments *a)
{
    return chosen(j, v, a, true, true);
}

static value filter_rejectattr(jinja *j, value v, const arguments *a)
{
    return chosen(j, v, a, true, false);
}

/* ---- All of them ---- */

value filter_apply(jinja *j, value name, value v, const arguments *a)
{
    static const struct {
        const char *name;
        filter_function *apply;
    } known[] = {
        {"tojson", filter_tojson},
        {"length", filter_length},
        {"count", filter_length},
        {"trim", filter_trim},
        {"string", filter_string},
        {"default", filter_default},
        {"d", filter_default},
        {"join", filter_join},
        {"items", filter_items},
        {"list", filter_list},
        {"selectattr", filter_selectattr},
        {"rejectattr", filter_rejectattr},
        {"select", filter_select},
        {"reject", filter_reject},
        {"safe", filter_safe},
        {"dictsort", filter_dictsort},
        {"lower", filter_lower},
        {"upper", filter_upper},
        {"capitalize", filter_capitalize},
        {"map", filter_map},
        {"replace", filter_replace},
        {"from_json", filter_from_json},
        {"min", filter_min},
        {"max", filter_max},
        {"indent", filter_indent},
        {"unique", filter_unique},
        {"sort", filter_sort},
        {"int", filter_int},
        {"float", filter_float},
        {"abs", filter_abs},
        {"first", filter_first},
        {"last", filter_last},
        {"reverse", filter_reverse},
    };
    if (!jinja_deeper(j)) {
        j->depth--;
        return v;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (string_is(name, known[i].name)) {
            v = known[i].apply(j, v, a);
            j->depth--;
            return v;
        }
    }
    room_fail(j->r, DREY_ERR_UNSUPPORTED, "the filter \"%.*s\" is not supported",
              (int)(name.n < 60 ? name.n : 60), name.text);
    j->depth--;
    return v;
}
