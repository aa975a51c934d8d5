/* Functions that every template has: see jinja_run.h. */
#include "template/jinja_run.h"

#include <locale.h>
#include <string.h>
#include <time.h>

static const char *const names[] = {"namespace",       "range",        "dict",
                                    "raise_exception", "strftime_now", NULL};

const char *function_find(value name)
{
    for (const char *const *n = names; *n; n++)
        if (text_equal(name, string_of(*n)))
            return *n;
    return NULL;
}

/* A map of the keywords, added to a copy of a given map. */
static value make_map(jinja *j, const char *name, const arguments *a)
{
    value map = map_new(j->r, 0);
    if (a->n > 1 || (a->n == 1 && a->positional[0].kind != VALUE_MAP))
        heap_fail(j->r, DREY_ERR_UNSUPPORTED, "\"%s\" with other arguments than a map and keywords",
                  name);
    else if (a->n == 1)
        for (uint32_t i = 0; i < a->positional[0].map->n && heap_ok(j->r); i++)
            map_set(j->r, map, a->positional[0].map->pairs[i].key,
                    a->positional[0].map->pairs[i].item);
    for (int i = 0; i < a->n_keywords; i++)
        map_set(j->r, map, a->keyword[i].name, a->keyword[i].v);
    return map;
}

static value make_namespace(jinja *j, const char *name, const arguments *a)
{
    value space = make_map(j, name, a);
    space.kind = VALUE_NAMESPACE;
    return space;
}

/* The longest that Jinja's sandbox allows. */
static value make_range(jinja *j, const char *name, const arguments *a)
{
    enum { MOST_ITEMS = 100000 };
    value list = list_new(j->r, 0, STYLE_LIST);
    if (!arguments_fit(j, a, name, 1, 3, ""))
        return list;
    for (int i = 0; i < a->n; i++)
        if (!is_whole(a->positional[i]))
            heap_fail(j->r, DREY_ERR_USAGE, "\"range\" wants whole numbers");
    if (!heap_ok(j->r))
        return list;
    int64_t begin = a->n > 1 ? number_int(a->positional[0]) : 0;
    int64_t end = number_int(a->positional[a->n > 1]);
    int64_t step = a->n > 2 ? number_int(a->positional[2]) : 1;
    if (step == 0)
        heap_fail(j->r, DREY_ERR_USAGE, "\"range\" with a step of zero");
    for (int64_t i = begin; (step > 0 ? i < end : i > end) && heap_charge(j->r, 0);) {
        list_add(j->r, list, value_int(i));
        if (list.list->n > MOST_ITEMS)
            heap_fail(j->r, DREY_ERR_UNSUPPORTED, "\"range\" with more than %d numbers",
                      MOST_ITEMS);
        if (__builtin_add_overflow(i, step, &i))
            break;
    }
    return list;
}

static value refuse(jinja *j, const char *name, const arguments *a)
{
    if (!arguments_fit(j, a, name, 1, 1, ""))
        return value_none();
    value why = string_from(j->r, a->positional[0]);
    if (heap_ok(j->r)) {
        j->refused = true;
        j->r->line = 0;
        heap_fail(j->r, DREY_ERR_USAGE, "the chat template refuses these messages: %.*s",
                  (int)(why.n < 300 ? why.n : 300), why.text);
    }
    return value_none();
}

static value time_value(jinja *j, const char *name, const arguments *a)
{
    char format[100], out[400];
    struct tm parts;
    time_t now = (time_t)j->now_s;
    if (!arguments_fit(j, a, name, 1, 1, ""))
        return value_none();
    value wanted = a->positional[0];
    if (wanted.kind != VALUE_STRING || wanted.n >= sizeof format || !gmtime_r(&now, &parts)) {
        heap_fail(j->r, DREY_ERR_UNSUPPORTED, "\"strftime_now\" with this format is not supported");
        return value_none();
    }
    memcpy(format, wanted.text, wanted.n);
    format[wanted.n] = 0;
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant, nothing to free */
    size_t n = plain ? strftime_l(out, sizeof out, format, &parts, plain) : 0;
    return string_copy(j->r, out, n, false);
}

value function_call(jinja *j, const char *name, const arguments *a)
{
    if (strcmp(name, "namespace") == 0)
        return make_namespace(j, name, a);
    if (strcmp(name, "dict") == 0)
        return make_map(j, name, a);
    if (strcmp(name, "range") == 0)
        return make_range(j, name, a);
    if (strcmp(name, "raise_exception") == 0)
        return refuse(j, name, a);
    return time_value(j, name, a);
}
