/* Methods and filters of strings: see jinja_run.h and value.h. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "template/case_table.h"
#include "template/jinja_run.h"
#include "common/utf8.h"

/* ---- Stripping ---- */

static bool in_set(const char *p, size_t n, const value *characters)
{
    if (!characters)
        return is_space(character_code(p, n));
    for (size_t at = 0; at < characters->n;) {
        size_t length = character_bytes(characters->text + at, characters->n - at);
        if (length == n && memcmp(characters->text + at, p, n) == 0)
            return true;
        at += length;
    }
    return false;
}

value text_strip(jinja *j, value s, const value *characters, bool front, bool back)
{
    size_t begin = 0, end = s.n, work = characters ? characters->n : 0;
    while (front && begin < end && heap_charge(j->r, work)) {
        size_t n = character_bytes(s.text + begin, end - begin);
        if (!in_set(s.text + begin, n, characters))
            break;
        begin += n;
    }
    while (back && begin < end && heap_charge(j->r, work)) {
        size_t last = last_character(s.text, begin, end);
        if (!in_set(s.text + last, end - last, characters))
            break;
        end = last;
    }
    return string_part(s, begin, end);
}

/* ---- Replacing, joining, lines ---- */

value text_replace(jinja *j, value s, value what, value with, int64_t most)
{
    size_t at = text_begin(j->r), done = 0;
    int64_t n = 0;
    heap_charge(j->r, s.n);
    for (size_t i = 0; i <= s.n && n != most && heap_charge(j->r, 0); n++) {
        size_t found = text_find(s.text + i, s.n - i, what.text, what.n);
        if (found == SIZE_MAX)
            break;
        found += i;
        text_put(j->r, s.text + done, found - done);
        text_put_value(j->r, with);
        done = found + what.n;
        i = done;
        if (what.n == 0) /* between any two characters */
            i += done < s.n ? character_bytes(s.text + done, s.n - done) : 1;
    }
    if (n == 0)
        return s;
    text_put(j->r, s.text + done, s.n - done);
    return text_end(j->r, at);
}

value strings_between(jinja *j, value strings, value between)
{
    size_t at = text_begin(j->r);
    for (uint32_t i = 0; i < strings.list->n && heap_charge(j->r, 0); i++) {
        if (i)
            text_put_value(j->r, between);
        text_put_value(j->r, strings.list->items[i]);
    }
    return text_end(j->r, at);
}

static bool ends_line(uint32_t c)
{
    return (c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 ||
           c == 0x2029;
}

value string_lines(jinja *j, value s)
{
    value lines = list_new(j->r, 0, STYLE_LIST);
    size_t begin = 0;
    heap_charge(j->r, s.n);
    for (size_t at = 0; at < s.n && heap_ok(j->r);) {
        size_t n = character_bytes(s.text + at, s.n - at);
        if (ends_line(character_code(s.text + at, n))) {
            list_add(j->r, lines, string_part(s, begin, at));
            n += s.text[at] == '\r' && at + 1 < s.n && s.text[at + 1] == '\n';
            begin = at + n;
        }
        at += n;
    }
    if (begin < s.n)
        list_add(j->r, lines, string_part(s, begin, s.n));
    return lines;
}

/* ---- Case ---- */

/* Returns the character that a run of a table makes of c; c: none has it. */
static uint32_t changed(uint32_t c, const case_run *runs, size_t n)
{
    for (size_t i = 0; i < n && runs[i].first <= c; i++)
        if (c <= runs[i].last && (c - runs[i].first) % (uint32_t)runs[i].step == 0)
            return c + (uint32_t)runs[i].by;
    return c;
}

#define CHANGED(c, runs) changed(c, runs, sizeof(runs) / sizeof *(runs))

static uint32_t upper_of(uint32_t c)
{
    uint32_t other = CHANGED(c, both_ways);
    return other != c ? other : CHANGED(c, only_to_upper);
}

static uint32_t lower_of(uint32_t c)
{
    const size_t n = c < 0x80 ? 1 : sizeof both_ways / sizeof *both_ways; /* the first is ASCII */
    for (size_t i = 0; i < n; i++) {
        const case_run *r = &both_ways[i];
        uint32_t other = c - (uint32_t)r->by;
        if (other >= r->first && other <= r->last && (other - r->first) % (uint32_t)r->step == 0)
            return other;
    }
    return CHANGED(c, only_to_lower);
}

static void put_code(jinja *j, uint32_t c, bool marked)
{
    char out[4];
    text_put_marked(j->r, out, utf8_write(c, out), marked);
}

static void put_upper(jinja *j, uint32_t c, bool marked)
{
    for (size_t i = 0; i < sizeof upper_specials / sizeof *upper_specials && c >= 0x80; i++) {
        const case_special *s = &upper_specials[i];
        if (c < s->first || c > s->last)
            continue;
        put_code(j, s->to + (c - s->first), marked);
        text_put_marked(j->r, s->after, strlen(s->after), marked);
        return;
    }
    put_code(j, upper_of(c), marked);
}

static void put_lower(jinja *j, uint32_t c, bool marked)
{
    if (c == 0x130)
        text_put_marked(j->r, "i\xcc\x87", 3, marked);
    else
        put_code(j, lower_of(c), marked);
}

value text_in_case(jinja *j, value s, text_case wanted)
{
    size_t at = text_begin(j->r);
    bool begins = true; /* of the string, or of a word */
    for (size_t i = 0; i < s.n && heap_charge(j->r, 0);) {
        size_t n = character_bytes(s.text + i, s.n - i);
        bool marked = text_is_marked(j->r, s.text + i);
        uint32_t c = character_code(s.text + i, n);
        if (c == UINT32_MAX) /* a broken byte */
            text_put(j->r, s.text + i, n);
        else if (wanted == CASE_UPPER || (begins && wanted != CASE_LOWER))
            put_upper(j, c, marked);
        else
            put_lower(j, c, marked);
        begins = wanted == CASE_TITLE && c == upper_of(c) && c == lower_of(c);
        i += n;
    }
    return text_end(j->r, at);
}

value text_folded(jinja *j, value v)
{
    return v.kind == VALUE_STRING ? text_in_case(j, v, CASE_LOWER) : v;
}

/* ---- Numbers ---- */

value number_from_text(jinja *j, value s, bool whole, value otherwise)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); /* a constant, nothing to free */
    char text[64], *end = text;
    s = text_strip(j, s, NULL, true, true);
    if (s.n == 0 || s.n >= sizeof text || !plain)
        return otherwise;
    memcpy(text, s.text, s.n);
    text[s.n] = 0;
    bool digits = true;
    for (uint32_t i = text[0] == '-' || text[0] == '+'; i < s.n; i++)
        digits = digits && text[i] >= '0' && text[i] <= '9';
    if (whole && digits && s.text[s.n - 1] >= '0')
        return int_from_text(text[0] == '+' ? string_part(s, 1, s.n) : s);
    if (strpbrk(text, "xX")) /* strtod's, not Python's */
        return otherwise;
    double f = strtod_l(text, &end, plain);
    if (*end)
        return otherwise;
    if (!whole)
        return value_float(f);
    return f > -9e18 && f < 9e18 ? value_int((int64_t)f) : otherwise;
}
