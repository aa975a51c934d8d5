/* Reads numbers and writes values in Python's way: str and repr. Floats take the fewest digits that
 * read back as the same number; nothing depends on the locale. See value.h. */
#include "template/value.h"

#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

value int_from_text(value digits)
{
    value v = digits;
    bool negative = digits.n > 0 && digits.text[0] == '-';
    int64_t i = 0;
    for (uint32_t at = negative; at < digits.n; at++) {
        if (__builtin_mul_overflow(i, 10, &i) ||
            __builtin_sub_overflow(i, digits.text[at] - '0', &i)) {
            v.kind = VALUE_BIG;
            return v;
        }
    }
    if (!negative && i == INT64_MIN) {
        v.kind = VALUE_BIG;
        return v;
    }
    return value_int(negative ? i : -i);
}

value float_from_text(heap *r, value digits)
{
    size_t at = text_begin(r);
    text_put_value(r, digits);
    text_put(r, "", 1);                                        /* strtod wants an end */
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant, nothing to free */
    return value_float(heap_ok(r) && plain ? strtod_l(r->text + at, NULL, plain) : 0);
}

static void put_int(heap *r, int64_t i, bool marked)
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRId64, i);
    text_put_marked(r, digits, (size_t)n, marked);
}

/* The digits of a finite positive number without the point, and the point's position: 0.D * 10^p.
 * As few as read back as f. */
static int shortest_digits(double f, char digits[24], int *point)
{
    char text[40];
    for (int wanted = 15; wanted <= 17; wanted++) {
        snprintf(text, sizeof text, "%.*e", wanted - 1, f);
        if (wanted == 17 || strtod(text, NULL) == f)
            break;
    }
    int n = 0;
    const char *at = text; /* the locale's point may be any bytes that are no digits */
    for (; *at && *at != 'e'; at++)
        if (*at >= '0' && *at <= '9')
            digits[n++] = *at;
    *point = atoi(at + 1) + 1;
    while (n > 1 && digits[n - 1] == '0')
        n--;
    return n;
}

void text_put_float(heap *r, double f, bool marked)
{
    char digits[24], out[64];
    size_t n = 0;
    int point;
    if (isnan(f) || isinf(f)) {
        if (!isnan(f) && f < 0)
            text_put_marked(r, "-", 1, marked);
        text_put_marked(r, isnan(f) ? "nan" : "inf", 3, marked);
        return;
    }
    int n_digits = shortest_digits(fabs(f), digits, &point);
    if (signbit(f))
        out[n++] = '-';
    if (point < -3 || point > 16) { /* 1.5e+16 */
        out[n++] = digits[0];
        if (n_digits > 1)
            n += (size_t)snprintf(out + n, sizeof out - n, ".%.*s", n_digits - 1, digits + 1);
        n += (size_t)snprintf(out + n, sizeof out - n, "e%+03d", point - 1);
    } else if (point <= 0) { /* 0.0015 */
        int zeros = -point;
        n += (size_t)snprintf(out + n, sizeof out - n, "0.%.*s%.*s", zeros, "0000", n_digits,
                              digits);
    } else { /* 15.0 */
        for (int i = 0; i < point; i++)
            out[n++] = i < n_digits ? digits[i] : '0';
        out[n++] = '.';
        if (n_digits <= point)
            out[n++] = '0';
        for (int i = point; i < n_digits; i++)
            out[n++] = digits[i];
    }
    text_put_marked(r, out, n, marked);
}

/* Returns whether repr writes an escape for it; unassigned characters, which would need Unicode's
 * tables, are taken as printable. */
static bool unprintable(uint32_t c)
{
    return c < 0x20 || (c >= 0x7F && c <= 0xA0) || c == 0xAD || c == 0x1680 || c == 0x180E ||
           (c >= 0x2000 && c <= 0x200F) || (c >= 0x2028 && c <= 0x202F) ||
           (c >= 0x205F && c <= 0x206F) || c == 0x3000 || (c >= 0xE000 && c <= 0xF8FF) ||
           c == 0xFEFF || (c >= 0xFFF0 && c <= 0xFFFB) || (c & 0xFFFE) == 0xFFFE ||
           (c >= 0xE0000 && c <= 0x10FFFF);
}

static void put_escaped(heap *r, const char *p, size_t n, char quote)
{
    uint32_t c = character_code(p, n);
    bool marked = text_is_marked(r, p);
    char out[12];
    int n_out = 0;
    if (c == UINT32_MAX) { /* a broken byte, as it is */
        text_put(r, p, n);
        return;
    }
    if (c == '\\' || c == (uint32_t)(uint8_t)quote)
        n_out = snprintf(out, sizeof out, "\\%c", (int)c);
    else if (c == '\n' || c == '\r' || c == '\t')
        n_out = snprintf(out, sizeof out, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
    else if (unprintable(c))
        n_out = snprintf(out, sizeof out,
                         c < 0x100     ? "\\x%02" PRIx32
                         : c < 0x10000 ? "\\u%04" PRIx32
                                       : "\\U%08" PRIx32,
                         c);
    if (n_out)
        text_put_marked(r, out, (size_t)n_out, marked);
    else
        text_put(r, p, n);
}

static void put_quoted(heap *r, value s)
{
    bool single = text_find(s.text, s.n, "'", 1) != SIZE_MAX;
    bool twofold = text_find(s.text, s.n, "\"", 1) != SIZE_MAX;
    char quote = single && !twofold ? '"' : '\'';
    bool marked = s.n > 0 && text_is_marked(r, s.text);
    text_put_marked(r, &quote, 1, marked);
    for (size_t at = 0; at < s.n && heap_ok(r);) {
        size_t n = character_bytes(s.text + at, s.n - at);
        put_escaped(r, s.text + at, n, quote);
        at += n;
    }
    text_put_marked(r, &quote, 1, marked);
}

static void put_within(heap *r, value v, int depth);

static void put_items(heap *r, value v, int depth)
{
    static const char *const open[] = {"[", "(", "dict_items(["}, *const close[] = {"]", ")", "])"};
    const value_list *l = v.list;
    text_put_marked(r, open[v.style], strlen(open[v.style]), v.marked);
    for (uint32_t i = 0; i < l->n && heap_ok(r); i++) {
        if (i)
            text_put_marked(r, ", ", 2, v.marked);
        put_within(r, l->items[i], depth);
    }
    if (v.style == STYLE_TUPLE && l->n == 1)
        text_put_marked(r, ",", 1, v.marked);
    text_put_marked(r, close[v.style], strlen(close[v.style]), v.marked);
}

static void put_pairs(heap *r, value v, int depth)
{
    text_put_marked(r, "{", 1, v.marked);
    for (uint32_t i = 0; i < v.map->n && heap_ok(r); i++) {
        if (i)
            text_put_marked(r, ", ", 2, v.marked);
        put_within(r, v.map->pairs[i].key, depth);
        text_put_marked(r, ": ", 2, v.marked);
        put_within(r, v.map->pairs[i].item, depth);
    }
    text_put_marked(r, "}", 1, v.marked);
}

static void put_within(heap *r, value v, int depth)
{
    static const char *const words[] = {
        [VALUE_UNDEFINED] = "Undefined", [VALUE_NONE] = "None",           [VALUE_MACRO] = "a macro",
        [VALUE_METHOD] = "a method",     [VALUE_FUNCTION] = "a function", [VALUE_LOOP] = "a loop"};
    if (depth == 0)
        heap_fail(r, DREY_ERR_UNSUPPORTED, "values that are nested too deep to be written");
    if (!heap_charge(r, 0))
        return;
    if (v.kind == VALUE_STRING)
        put_quoted(r, v);
    else if (v.kind == VALUE_BOOL)
        text_put_marked(r, v.b ? "True" : "False", v.b ? 4 : 5, v.marked);
    else if (v.kind == VALUE_INT)
        put_int(r, v.i, v.marked);
    else if (v.kind == VALUE_FLOAT)
        text_put_float(r, v.f, v.marked);
    else if (v.kind == VALUE_BIG)
        text_put(r, v.text, v.n);
    else if (v.kind == VALUE_LIST && v.style != STYLE_GENERATOR)
        put_items(r, v, depth - 1);
    else if (v.kind == VALUE_MAP)
        put_pairs(r, v, depth - 1);
    else if (v.kind == VALUE_UNDEFINED || v.kind == VALUE_NONE)
        text_put_marked(r, words[v.kind], strlen(words[v.kind]), v.marked);
    else
        heap_fail(r, DREY_ERR_UNSUPPORTED, "%s is written as text, which says nothing",
                  v.kind == VALUE_LIST        ? "a generator"
                  : v.kind == VALUE_NAMESPACE ? "a namespace"
                                              : words[v.kind]);
}

void text_put_repr(heap *r, value v)
{
    enum { MOST_NESTED = 100 };
    put_within(r, v, MOST_NESTED);
}

value string_from(heap *r, value v)
{
    if (v.kind == VALUE_STRING)
        return v;
    size_t at = text_begin(r);
    if (v.kind != VALUE_UNDEFINED)
        text_put_repr(r, v);
    return text_end(r, at);
}
