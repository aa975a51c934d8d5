/* Numbers between two bounds, digit by digit. Numbers are decimal, so that a bound's digits are
 * compared with those that are written: once a digit differs, the rest is free. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "grammar/json_text.h"

enum { MOST_DIGITS = 15, MOST_FRACTION = 15 };

static expr digit(grammar_rules *g, char from, char to)
{
    char_range r = {(uint32_t)(uint8_t)from, (uint32_t)(uint8_t)to};
    return from <= to ? expr_class(g, &r, 1, false) : EXPR_NEVER;
}

static expr digits(grammar_rules *g, int32_t least, int32_t most)
{
    return expr_repeat(g, digit(g, '0', '9'), least, most);
}

static expr then(grammar_rules *g, expr a, expr b)
{
    return expr_seq(g, a, b);
}

/* ---- Whole numbers ---- */

/* n digits that make at least, or at most, the number low or high; NULL: any. */
static expr same_length(grammar_rules *g, const char *low, const char *high, int32_t n)
{
    if (n == 0)
        return EXPR_EMPTY;
    if (!low && !high)
        return digits(g, n, n);
    char from = low ? *low : '0', to = high ? *high : '9';
    const char *next_low = low ? low + 1 : NULL, *next_high = high ? high + 1 : NULL;
    if (low && high && from == to)
        return then(g, digit(g, from, to), same_length(g, next_low, next_high, n - 1));
    expr out = EXPR_NEVER;
    if (low)
        out = then(g, digit(g, from, from), same_length(g, next_low, NULL, n - 1));
    if (high)
        out = expr_alt(g, out, then(g, digit(g, to, to), same_length(g, NULL, next_high, n - 1)));
    expr free = then(g, digit(g, (char)(from + (low != NULL)), (char)(to - (high != NULL))),
                     digits(g, n - 1, n - 1));
    return expr_alt(g, out, free);
}

/* 0 <= low <= high < 10^MOST_DIGITS, without leading zeros. */
static expr whole_between(grammar_rules *g, int64_t low, int64_t high)
{
    expr out = EXPR_NEVER;
    int64_t first = 0, last = 9; /* of the numbers with n digits */
    for (int32_t n = 1; n <= MOST_DIGITS; n++) {
        char from[24], to[24];
        if (low <= last && high >= first) {
            snprintf(from, sizeof from, "%lld", (long long)(low > first ? low : first));
            snprintf(to, sizeof to, "%lld", (long long)(high < last ? high : last));
            out = expr_alt(g, out, same_length(g, from, to, n));
        }
        first = last + 1;
        last = last * 10 + 9;
    }
    return out;
}

/* ---- Fractions ---- */

/* A bound that is not negative: whole.fraction, without zeros at the end of the fraction. */
typedef struct decimal {
    int64_t whole;
    char fraction[MOST_FRACTION + 2];
    int32_t n;
    bool exclusive;
} decimal;

/* The digits of a fraction so far are those of low or high (or of neither: NULL) up to `at`: what
 * may follow. *ends: whether nothing may. */
static expr fraction(grammar_rules *g, const decimal *low, const decimal *high, int32_t at,
                     bool *ends)
{
    bool low_over = !low || at >= low->n, high_over = !high || at >= high->n;
    *ends = (!low || (low_over && !low->exclusive)) && (!high || !high_over || !high->exclusive);
    if (at == MOST_FRACTION)
        return EXPR_NEVER;
    char from = low && !low_over ? low->fraction[at] : '0';
    char to = !high ? '9' : high_over ? '0' : high->fraction[at];
    if (!low && !high)
        return digits(g, 1, MOST_FRACTION - at);
    expr out = EXPR_NEVER;
    bool both = low && high && from == to;
    for (int side = 0; side < (both ? 1 : 2); side++) {
        const decimal *x = side && !both ? NULL : low, *y = side || both ? high : NULL;
        bool may_end;
        if (!x && !y)
            continue;
        expr rest = fraction(g, x, y, at + 1, &may_end);
        if (may_end)
            rest = expr_repeat(g, rest, 0, 1);
        out = expr_alt(g, out, then(g, digit(g, x ? from : to, x ? from : to), rest));
    }
    char next = (char)(from + (low != NULL)), last = (char)(to - (high != NULL));
    expr free = then(g, digit(g, next, last), digits(g, 0, MOST_FRACTION - at - 1));
    return both ? out : expr_alt(g, out, free);
}

/* A whole number, then the fraction with its point. */
static expr with_fraction(grammar_rules *g, expr whole, const decimal *low, const decimal *high)
{
    bool may_end;
    expr rest = fraction(g, low, high, 0, &may_end);
    if (rest != EXPR_NEVER)
        rest = then(g, expr_text(g, "."), rest);
    if (may_end)
        rest = expr_repeat(g, rest, 0, 1);
    return then(g, whole, rest);
}

static const int64_t beyond = 999999999999999; /* MOST_DIGITS nines */

static decimal decimal_of(double value, bool exclusive)
{
    decimal d = {.exclusive = exclusive};
    char text[64];
    snprintf(text, sizeof text, "%.*f", value < 1e4 ? 11 : 3, value);
    char *point = strchr(text, '.');
    *point = 0;
    sscanf(text, "%lld", (long long *)&d.whole);
    d.n = (int32_t)strlen(point + 1);
    memcpy(d.fraction, point + 1, (size_t)d.n);
    while (d.n > 0 && d.fraction[d.n - 1] == '0')
        d.n--;
    return d;
}

/* Both at least 0; low <= high. */
static expr number_from_to(grammar_rules *g, const decimal *low, const decimal *high)
{
    if (low->whole == high->whole)
        return with_fraction(g, whole_between(g, low->whole, low->whole), low, high);
    expr out = with_fraction(g, whole_between(g, low->whole, low->whole), low, NULL);
    if (low->whole + 1 < high->whole)
        out = expr_alt(
            g, out,
            with_fraction(g, whole_between(g, low->whole + 1, high->whole - 1), NULL, NULL));
    return expr_alt(g, out,
                    with_fraction(g, whole_between(g, high->whole, high->whole), NULL, high));
}

/* ---- Both signs ---- */

/* Makes exclusive bounds of whole numbers inclusive. */
static json_bound inclusive(json_bound b, bool is_low)
{
    double whole = is_low ? ceil(b.value) : floor(b.value);
    if (b.exclusive && whole == b.value)
        whole += is_low ? 1 : -1;
    return (json_bound){.set = b.set, .value = whole};
}

/* Numbers of one sign; low and high are at least 0 and not beyond what is written. */
static expr of_sign(grammar_rules *g, bool is_whole, json_bound low, json_bound high)
{
    double most = high.set ? high.value : (double)beyond;
    if (low.value > most || (low.value == most && (low.exclusive || high.exclusive)))
        return EXPR_NEVER;
    if (is_whole)
        return whole_between(g, (int64_t)low.value, (int64_t)most);
    decimal a = decimal_of(low.value, low.exclusive), b = decimal_of(most, high.exclusive);
    return number_from_to(g, &a, &b);
}

expr json_number_between(grammar_rules *g, bool whole, json_bound low, json_bound high)
{
    expr out = EXPR_NEVER;
    if (whole) {
        low = inclusive(low, true);
        high = inclusive(high, false);
    }
    if (!low.set || low.value < 0) { /* -x, x from -high (more than 0) to -low */
        json_bound from = {.set = true, .value = whole ? 1 : 0, .exclusive = !whole};
        json_bound to = {.set = low.set, .value = -low.value, .exclusive = low.exclusive};
        if (high.set && -high.value > 0 && -high.value >= from.value)
            from = (json_bound){.set = true, .value = -high.value, .exclusive = high.exclusive};
        out = then(g, expr_text(g, "-"), of_sign(g, whole, from, to));
    }
    if (!high.set || high.value >= 0) {
        json_bound from = {.set = true};
        if (low.set && low.value >= 0)
            from = low;
        out = expr_alt(g, out, of_sign(g, whole, from, high));
    }
    return out;
}
