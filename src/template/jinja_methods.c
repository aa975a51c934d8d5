/* Methods of strings, lists and maps: see jinja_run.h.
 *
 * All of Python's names are known, because x.name is the method and not the key of that name. Those
 * that no chat template calls fail when they are called. */
#include "template/jinja_run.h"

#include <string.h>

static const char *const string_methods[] = {
    "split",   "strip",      "lstrip",       "rstrip",       "startswith",   "endswith",
    "replace", "upper",      "lower",        "title",        "capitalize",   "format",
    "join",    "find",       "count",        "removeprefix", "removesuffix", "splitlines",
    "isdigit", "rsplit",     "partition",    "rpartition",   "casefold",     "center",
    "encode",  "expandtabs", "format_map",   "index",        "isalnum",      "isalpha",
    "isascii", "isdecimal",  "isidentifier", "islower",      "isnumeric",    "isprintable",
    "isspace", "istitle",    "isupper",      "ljust",        "maketrans",    "rfind",
    "rindex",  "rjust",      "swapcase",     "translate",    "zfill",        NULL};
static const char *const list_methods[] = {"append",  "pop",    "index",  "count",
                                           "copy",    "insert", "extend", "remove",
                                           "reverse", "sort",   "clear",  NULL};
static const char *const map_methods[] = {"items",   "keys",  "values",     "get",
                                          "copy",    "pop",   "setdefault", "update",
                                          "popitem", "clear", "fromkeys",   NULL};

const char *method_find(value of, value name)
{
    static const char *const none[] = {NULL};
    const char *const *names = of.kind == VALUE_STRING ? string_methods
                               : of.kind == VALUE_LIST ? list_methods
                               : of.kind == VALUE_MAP  ? map_methods
                                                       : none;
    for (; *names; names++)
        if (string_is(name, *names))
            return *names;
    return NULL;
}

/* ---- Arguments ---- */

static bool is_string(jinja *j, const method *m, const value *v)
{
    if (v && v->kind != VALUE_STRING)
        heap_fail(j->r, DREY_ERR_USAGE, "\"%s\" wants a string, not a %s", m->name,
                  value_type_name(*v));
    return heap_ok(j->r);
}

/* ---- Strings ---- */

/* The next part without white space; false: none. */
static bool next_word(value s, size_t *at, value *word)
{
    size_t n;
    while (*at < s.n && (n = character_bytes(s.text + *at, s.n - *at)) > 0 &&
           is_space(character_code(s.text + *at, n)))
        *at += n;
    size_t begin = *at;
    while (*at < s.n && (n = character_bytes(s.text + *at, s.n - *at)) > 0 &&
           !is_space(character_code(s.text + *at, n)))
        *at += n;
    *word = string_part(s, begin, *at);
    return *at > begin;
}

static value split(jinja *j, value s, const value *by, int64_t most)
{
    value out = list_new(j->r, 0, STYLE_LIST), word;
    size_t at = 0;
    if (by && by->n == 0)
        heap_fail(j->r, DREY_ERR_USAGE, "\"split\" at an empty string");
    while (!by && heap_charge(j->r, 0) && (most < 0 || (int64_t)out.list->n < most)) {
        if (!next_word(s, &at, &word))
            return out;
        list_add(j->r, out, word);
    }
    if (!by) { /* the rest is one word, with its white space inside */
        value rest = text_strip(j, string_part(s, at, s.n), NULL, true, false);
        if (rest.n > 0)
            list_add(j->r, out, rest);
        return out;
    }
    while (heap_charge(j->r, 0) && (most < 0 || (int64_t)out.list->n < most)) {
        size_t n = text_find(s.text + at, s.n - at, by->text, by->n);
        if (n == SIZE_MAX)
            break;
        list_add(j->r, out, string_part(s, at, at + n));
        at += n + by->n;
    }
    list_add(j->r, out, string_part(s, at, s.n));
    return out;
}

static value method_split(jinja *j, const method *m, const arguments *a)
{
    const value *by = argument(a, 0, "sep"), *most = argument(a, 1, "maxsplit");
    if (by && by->kind == VALUE_NONE)
        by = NULL;
    if (!is_string(j, m, by))
        return value_none();
    return split(j, m->of, by, most && is_whole(*most) ? number_int(*most) : -1);
}

static value method_strip(jinja *j, const method *m, const arguments *a)
{
    const value *characters = argument(a, 0, NULL);
    if (characters && characters->kind == VALUE_NONE)
        characters = NULL;
    if (!is_string(j, m, characters))
        return value_none();
    return text_strip(j, m->of, characters, m->name[0] != 'r', m->name[0] != 'l');
}

static bool is_affix(value s, value affix, bool front)
{
    return affix.kind == VALUE_STRING && affix.n <= s.n && affix.n > 0
               ? memcmp(front ? s.text : s.text + s.n - affix.n, affix.text, affix.n) == 0
               : affix.kind == VALUE_STRING && affix.n == 0;
}

/* startswith and endswith, of one string or a tuple of them. */
static value method_affix(jinja *j, const method *m, const arguments *a)
{
    bool front = m->name[0] == 's', is = false;
    value wanted = a->positional[0];
    if (wanted.kind == VALUE_LIST && wanted.style == STYLE_TUPLE) {
        for (uint32_t i = 0; i < wanted.list->n && heap_charge(j->r, 0); i++)
            is = is || is_affix(m->of, wanted.list->items[i], front);
    } else if (is_string(j, m, &wanted)) {
        is = is_affix(m->of, wanted, front);
    }
    return value_bool(is);
}

static value method_remove(jinja *j, const method *m, const arguments *a)
{
    bool front = m->name[6] == 'p';
    (void)j;
    value affix = a->positional[0];
    if (!is_affix(m->of, affix, front))
        return m->of;
    return string_part(m->of, front ? affix.n : 0, m->of.n - (front ? 0 : affix.n));
}

static value method_replace(jinja *j, const method *m, const arguments *a)
{
    const value *count = argument(a, 2, "count");
    return text_replace(j, m->of, a->positional[0], a->positional[1],
                        count && is_whole(*count) ? number_int(*count) : -1);
}

static value method_case(jinja *j, const method *m, const arguments *a)
{
    (void)a;
    return text_in_case(j, m->of,
                        m->name[0] == 'u'   ? CASE_UPPER
                        : m->name[0] == 'l' ? CASE_LOWER
                        : m->name[0] == 't' ? CASE_TITLE
                                            : CASE_CAPITAL);
}

/* Counts the bytes from `at` on that are none of these. */
static size_t plain_bytes(value s, size_t at, const char *stops)
{
    size_t n = 0;
    while (at + n < s.n && !memchr(stops, s.text[at + n], strlen(stops)))
        n++;
    return n;
}

/* The value of a format's {NAME}; NULL: there is none, or it is not simple. */
static const value *format_argument(const arguments *a, value name, int *next)
{
    if (name.n == 0)
        return argument(a, (*next)++, NULL);
    if (name.n == 1 && name.text[0] >= '0' && name.text[0] <= '9')
        return argument(a, name.text[0] - '0', NULL);
    for (int i = 0; i < a->n_keywords; i++)
        if (text_equal(a->keyword[i].name, name))
            return &a->keyword[i].v;
    return NULL;
}

/* {}, {0} and {name}, without a format specification. */
static value method_format(jinja *j, const method *m, const arguments *a)
{
    value s = m->of, list = list_new(j->r, 0, STYLE_LIST);
    int next = 0;
    for (size_t at = 0; at < s.n && heap_charge(j->r, 0);) {
        size_t plain = plain_bytes(s, at, "{}");
        list_add(j->r, list, string_part(s, at, at + plain));
        at += plain;
        if (at >= s.n)
            break;
        if (at + 1 < s.n && s.text[at + 1] == s.text[at]) { /* {{ is { */
            list_add(j->r, list, string_part(s, at, at + 1));
            at += 2;
            continue;
        }
        size_t n = plain_bytes(s, at, "}");
        const value *v = NULL;
        if (n > 0 && at + n < s.n)
            v = format_argument(a, string_part(s, at + 1, at + n), &next);
        if (!v) {
            heap_fail(j->r, DREY_ERR_UNSUPPORTED, "this form of \"format\" is not supported");
            break;
        }
        list_add(j->r, list, string_from(j->r, *v));
        at += n + 1;
    }
    return strings_between(j, list, string_of(""));
}

static value method_join(jinja *j, const method *m, const arguments *a)
{
    value items = jinja_items(j, a->positional[0]);
    for (uint32_t i = 0; i < items.list->n && heap_ok(j->r); i++)
        is_string(j, m, &items.list->items[i]);
    return strings_between(j, items, m->of);
}

static value method_find_text(jinja *j, const method *m, const arguments *a)
{
    value what = a->positional[0];
    size_t n = text_find(m->of.text, m->of.n, what.text, what.n);
    if (n == SIZE_MAX)
        return value_int(-1);
    return value_int((int64_t)string_characters(j->r, string_part(m->of, 0, n)));
}

static value method_count(jinja *j, const method *m, const arguments *a)
{
    int64_t n = 0;
    value what = a->positional[0], s = m->of;
    if (what.n == 0)
        return value_int((int64_t)string_characters(j->r, s) + 1);
    for (size_t found; (found = text_find(s.text, s.n, what.text, what.n)) != SIZE_MAX; n++)
        s = string_part(s, found + what.n, s.n);
    return value_int(n);
}

static value method_lines(jinja *j, const method *m, const arguments *a)
{
    (void)a;
    return string_lines(j, m->of);
}

static value method_digits(jinja *j, const method *m, const arguments *a)
{
    bool digits = m->of.n > 0;
    (void)a;
    for (uint32_t i = 0; i < m->of.n; i++) {
        if ((uint8_t)m->of.text[i] >= 0x80)
            heap_fail(j->r, DREY_ERR_UNSUPPORTED, "\"isdigit\" of more than ASCII");
        digits = digits && m->of.text[i] >= '0' && m->of.text[i] <= '9';
    }
    return value_bool(digits);
}

/* ---- Lists ---- */

static value method_append(jinja *j, const method *m, const arguments *a)
{
    list_add(j->r, m->of, a->positional[0]);
    return value_none();
}

static value method_pop(jinja *j, const method *m, const arguments *a)
{
    value_list *l = m->of.list;
    int64_t i = a->n && is_whole(a->positional[0]) ? number_int(a->positional[0]) : -1;
    i += i < 0 ? l->n : 0;
    if (i < 0 || i >= l->n) {
        heap_fail(j->r, DREY_ERR_USAGE, "\"pop\" from a list that has no such item");
        return value_none();
    }
    value v = l->items[i];
    heap_charge(j->r, l->n * sizeof v);
    memmove(l->items + i, l->items + i + 1, (l->n - 1 - (size_t)i) * sizeof v);
    l->n--;
    return v;
}

static value method_index(jinja *j, const method *m, const arguments *a)
{
    for (uint32_t i = 0; i < m->of.list->n && heap_ok(j->r); i++)
        if (value_equal(j->r, m->of.list->items[i], a->positional[0]))
            return value_int(i);
    heap_fail(j->r, DREY_ERR_USAGE, "\"index\" of something that is not in the list");
    return value_none();
}

/* ---- Maps ---- */

static value map_view(jinja *j, value map, bool keys, bool items)
{
    value list = list_new(j->r, map.map->n, STYLE_VIEW);
    list.marked = map.marked;
    for (uint32_t i = 0; i < map.map->n && heap_charge(j->r, 0); i++) {
        const value_pair *pair = &map.map->pairs[i];
        value both = keys && items ? list_new(j->r, 2, STYLE_TUPLE) : value_none();
        if (keys && items) {
            list_add(j->r, both, pair->key);
            list_add(j->r, both, pair->item);
        }
        list_add(j->r, list, keys && items ? both : keys ? pair->key : pair->item);
    }
    return list;
}

static value method_view(jinja *j, const method *m, const arguments *a)
{
    (void)a;
    return map_view(j, m->of, m->name[0] != 'v', m->name[0] != 'k');
}

static value method_get(jinja *j, const method *m, const arguments *a)
{
    const value *there = map_get(j->r, m->of, a->positional[0]);
    return there ? *there : a->n > 1 ? a->positional[1] : value_none();
}

/* ---- All of them ---- */

typedef value method_function(jinja *j, const method *m, const arguments *a);

static const struct known_method {
    value_kind of;
    const char *name;
    method_function *call;
    int least, most;   /* arguments, as in arguments_fit */
    int n_strings;     /* the first so many are strings */
    const char *known; /* arguments that may be given by name; most of Python's methods have none */
} known_methods[] = {
    {VALUE_STRING, "split", method_split, 0, 2, 0, "sep maxsplit"},
    {VALUE_STRING, "strip", method_strip, 0, 1, 0, ""},
    {VALUE_STRING, "lstrip", method_strip, 0, 1, 0, ""},
    {VALUE_STRING, "rstrip", method_strip, 0, 1, 0, ""},
    {VALUE_STRING, "startswith", method_affix, 1, 1, 0, ""},
    {VALUE_STRING, "endswith", method_affix, 1, 1, 0, ""},
    {VALUE_STRING, "removeprefix", method_remove, 1, 1, 1, ""},
    {VALUE_STRING, "removesuffix", method_remove, 1, 1, 1, ""},
    {VALUE_STRING, "replace", method_replace, 2, 3, 2, "count"},
    {VALUE_STRING, "upper", method_case, 0, 0, 0, ""},
    {VALUE_STRING, "lower", method_case, 0, 0, 0, ""},
    {VALUE_STRING, "title", method_case, 0, 0, 0, ""},
    {VALUE_STRING, "capitalize", method_case, 0, 0, 0, ""},
    {VALUE_STRING, "format", method_format, 0, MOST_ARGUMENTS, 0, NULL},
    {VALUE_STRING, "join", method_join, 1, 1, 0, ""},
    {VALUE_STRING, "find", method_find_text, 1, 1, 1, ""},
    {VALUE_STRING, "count", method_count, 1, 1, 1, ""},
    {VALUE_STRING, "splitlines", method_lines, 0, 0, 0, ""},
    {VALUE_STRING, "isdigit", method_digits, 0, 0, 0, ""},
    {VALUE_LIST, "append", method_append, 1, 1, 0, ""},
    {VALUE_LIST, "pop", method_pop, 0, 1, 0, ""},
    {VALUE_LIST, "index", method_index, 1, 1, 0, ""},
    {VALUE_MAP, "items", method_view, 0, 0, 0, ""},
    {VALUE_MAP, "keys", method_view, 0, 0, 0, ""},
    {VALUE_MAP, "values", method_view, 0, 0, 0, ""},
    {VALUE_MAP, "get", method_get, 1, 2, 0, ""},
};

static value call_known(jinja *j, const struct known_method *k, const method *m, const arguments *a)
{
    if (k->known && !arguments_fit(j, a, m->name, k->least, k->most, k->known))
        return value_none();
    for (int i = 0; i < k->n_strings; i++)
        if (i >= a->n || !is_string(j, m, &a->positional[i]))
            return value_none();
    return k->call(j, m, a);
}

value method_call(jinja *j, const method *m, const arguments *a)
{
    if (m->of.kind == VALUE_STRING && !heap_charge(j->r, m->of.n)) /* most look at all of it */
        return value_none();
    for (size_t i = 0; i < sizeof known_methods / sizeof *known_methods; i++) {
        const struct known_method *k = &known_methods[i];
        if (k->of == (value_kind)m->of.kind && strcmp(k->name, m->name) == 0)
            return call_known(j, k, m, a);
    }
    heap_fail(j->r, DREY_ERR_UNSUPPORTED, "the method \"%s\" of a %s is not supported", m->name,
              value_type_name(m->of));
    return value_none();
}
