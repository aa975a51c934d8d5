/* Values with Python's meaning: truth, equality, order, lists and maps. See value.h. */
#include "template/value.h"

#include <string.h>

value value_none(void)
{
    return (value){.kind = VALUE_NONE};
}

value value_bool(bool b)
{
    return (value){.kind = VALUE_BOOL, .b = b};
}

value value_int(int64_t i)
{
    return (value){.kind = VALUE_INT, .i = i};
}

value value_float(double f)
{
    return (value){.kind = VALUE_FLOAT, .f = f};
}

value value_undefined(const char *name, size_t n)
{
    return (value){.kind = VALUE_UNDEFINED, .text = name, .n = (uint32_t)n};
}

bool value_true(value v)
{
    switch (v.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return false;
    case VALUE_BOOL:
        return v.b;
    case VALUE_INT:
        return v.i != 0;
    case VALUE_FLOAT:
        return v.f != 0;
    case VALUE_STRING:
        return v.n > 0;
    case VALUE_LIST:
        return v.style == STYLE_GENERATOR || v.list->n > 0;
    case VALUE_MAP:
        return v.map->n > 0;
    default:
        return true;
    }
}

double number_float(value v)
{
    return v.kind == VALUE_FLOAT ? v.f : (double)number_int(v);
}

int64_t number_int(value v)
{
    return v.kind == VALUE_BOOL ? v.b : v.i;
}

const char *value_type_name(value v)
{
    static const char *const names[] = {[VALUE_UNDEFINED] = "Undefined",
                                        [VALUE_NONE] = "NoneType",
                                        [VALUE_BOOL] = "bool",
                                        [VALUE_INT] = "int",
                                        [VALUE_FLOAT] = "float",
                                        [VALUE_BIG] = "int",
                                        [VALUE_STRING] = "str",
                                        [VALUE_LIST] = "list",
                                        [VALUE_MAP] = "dict",
                                        [VALUE_NAMESPACE] = "Namespace",
                                        [VALUE_MACRO] = "Macro",
                                        [VALUE_METHOD] = "method",
                                        [VALUE_FUNCTION] = "function",
                                        [VALUE_LOOP] = "LoopContext"};
    static const char *const lists[] = {[STYLE_LIST] = "list",
                                        [STYLE_TUPLE] = "tuple",
                                        [STYLE_VIEW] = "dict_items",
                                        [STYLE_GENERATOR] = "generator"};
    return v.kind == VALUE_LIST ? lists[v.style] : names[v.kind];
}

/* ---- Equality and order ---- */

enum { MOST_NESTED = 100 }; /* lists in lists, as deep as they are looked into */

static bool equal_within(heap *r, value a, value b, int depth);

static bool lists_equal(heap *r, const value_list *a, const value_list *b, int depth)
{
    if (a == b)
        return true;
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!equal_within(r, a->items[i], b->items[i], depth))
            return false;
    return true;
}

static bool maps_equal(heap *r, value a, value b, int depth)
{
    if (a.map == b.map)
        return true;
    if (a.map->n != b.map->n)
        return false;
    for (uint32_t i = 0; i < a.map->n; i++) {
        const value *item = map_get(r, b, a.map->pairs[i].key);
        if (!item || !equal_within(r, a.map->pairs[i].item, *item, depth))
            return false;
    }
    return true;
}

/* a.kind == b.kind, no numbers. */
static bool same_kind_equal(heap *r, value a, value b, int depth)
{
    switch (a.kind) {
    case VALUE_UNDEFINED:
    case VALUE_NONE:
        return true;
    case VALUE_BIG:
    case VALUE_STRING:
        return heap_charge(r, a.n) && text_equal(a, b);
    case VALUE_LIST:
        return (a.style == b.style || a.list == b.list) && lists_equal(r, a.list, b.list, depth);
    case VALUE_MAP:
        return maps_equal(r, a, b, depth);
    case VALUE_METHOD:
        return a.method == b.method;
    default:
        return a.text == b.text && a.n == b.n;
    }
}

static bool equal_within(heap *r, value a, value b, int depth)
{
    if (depth == 0)
        heap_fail(r, DREY_ERR_UNSUPPORTED, "values that are nested more than %d deep", MOST_NESTED);
    if (!heap_charge(r, 0))
        return false;
    if (is_whole(a) && is_whole(b))
        return number_int(a) == number_int(b);
    if (is_number(a) && is_number(b))
        return number_float(a) == number_float(b);
    return a.kind == b.kind && same_kind_equal(r, a, b, depth - 1);
}

bool value_equal(heap *r, value a, value b)
{
    return equal_within(r, a, b, MOST_NESTED);
}

static int order_within(heap *r, value a, value b, int depth)
{
    if (depth == 0)
        heap_fail(r, DREY_ERR_UNSUPPORTED, "values that are nested more than %d deep", MOST_NESTED);
    if (!heap_charge(r, 0))
        return 0;
    if (is_whole(a) && is_whole(b))
        return (number_int(a) > number_int(b)) - (number_int(a) < number_int(b));
    if (is_number(a) && is_number(b))
        return (number_float(a) > number_float(b)) - (number_float(a) < number_float(b));
    if (a.kind == VALUE_STRING && b.kind == VALUE_STRING)
        return heap_charge(r, a.n) ? text_order(a, b) : 0;
    if (a.kind != VALUE_LIST || b.kind != VALUE_LIST || a.style != b.style) {
        heap_fail(r, DREY_ERR_USAGE, "a %s and a %s cannot be ordered", value_type_name(a),
                  value_type_name(b));
        return 0;
    }
    for (uint32_t i = 0; i < a.list->n && i < b.list->n; i++)
        if (!value_equal(r, a.list->items[i], b.list->items[i]))
            return order_within(r, a.list->items[i], b.list->items[i], depth - 1);
    return (a.list->n > b.list->n) - (a.list->n < b.list->n);
}

int value_order(heap *r, value a, value b)
{
    return order_within(r, a, b, MOST_NESTED);
}

/* ---- Lists ---- */

value list_new(heap *r, uint32_t capacity, list_style style)
{
    value_list *list = heap_take(r, sizeof *list);
    static value_list none;
    if (!list)
        return (value){.kind = VALUE_LIST, .style = (uint8_t)style, .list = &none};
    *list = (value_list){.items = capacity ? heap_take(r, capacity * sizeof(value)) : NULL};
    list->capacity = list->items ? capacity : 0;
    return (value){.kind = VALUE_LIST, .style = (uint8_t)style, .list = list};
}

/* A place for one more of n things of `size` bytes; the old ones are copied. NULL: no room. */
static void *grown(heap *r, void *items, uint32_t n, uint32_t *capacity, size_t size)
{
    uint32_t wanted = n < 4 ? 4 : 2 * n;
    if (!heap_charge(r, n * size))
        return NULL;
    void *larger = n > UINT32_MAX / 4 ? NULL : heap_take(r, wanted * size);
    if (!larger)
        return NULL;
    if (n)
        memcpy(larger, items, n * size);
    *capacity = wanted;
    return larger;
}

void list_add(heap *r, value list, value item)
{
    value_list *l = list.list;
    if (!heap_ok(r))
        return;
    if (l->n == l->capacity) {
        value *items = grown(r, l->items, l->n, &l->capacity, sizeof *items);
        if (!items)
            return;
        l->items = items;
    }
    l->items[l->n++] = item;
}

/* ---- Maps ---- */

value map_new(heap *r, uint32_t capacity)
{
    value_map *map = heap_take(r, sizeof *map);
    static value_map none;
    if (!map)
        return (value){.kind = VALUE_MAP, .map = &none};
    *map = (value_map){.pairs = capacity ? heap_take(r, capacity * sizeof(value_pair)) : NULL};
    map->capacity = map->pairs ? capacity : 0;
    return (value){.kind = VALUE_MAP, .map = map};
}

value *map_get(heap *r, value map, value key)
{
    value_map *m = map.map;
    for (uint32_t i = 0; i < m->n; i++) {
        const value *k = &m->pairs[i].key;
        bool same = k->kind == VALUE_STRING && key.kind == VALUE_STRING ? text_equal(*k, key)
                                                                        : value_equal(r, *k, key);
        if (same)
            return &m->pairs[i].item;
        if (i % 16 == 15 && !heap_charge(r, 16 * (uint64_t)key.n))
            return NULL;
    }
    return NULL;
}

value *map_get_text(heap *r, value map, const char *key)
{
    return map_get(r, map, string_of(key));
}

void map_set(heap *r, value map, value key, value item)
{
    value *there = map_get(r, map, key);
    if (!heap_ok(r))
        return;
    if (there) {
        *there = item;
        return;
    }
    value_map *m = map.map;
    if (m->n == m->capacity) {
        value_pair *pairs = grown(r, m->pairs, m->n, &m->capacity, sizeof *pairs);
        if (!pairs)
            return;
        m->pairs = pairs;
    }
    m->pairs[m->n++] = (value_pair){key, item};
}
