/* Reading JSON: see json.h. */
#include "template/json.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

enum { MOST_NESTED = 100 }; /* conversations and schemas have a dozen levels */

typedef struct reader {
    room *r;
    const char *text;
    size_t n, at;
    const char *what;
    bool marked;
} reader;

static value bad(reader *j, const char *why)
{
    room_fail(j->r, DREY_ERR_USAGE, "byte %zu of %s: %s", j->at + 1, j->what, why);
    return value_none();
}

/* Whether what stands at a place was said in the conversation: all of it, or that byte. */
static bool said(const reader *j, size_t at)
{
    return j->marked || (at < j->n && text_is_marked(j->r, j->text + at));
}

static void skip_blanks(reader *j)
{
    while (j->at < j->n && memchr(" \t\n\r", j->text[j->at], 4))
        j->at++;
}

static bool take(reader *j, char c)
{
    skip_blanks(j);
    if (j->at >= j->n || j->text[j->at] != c)
        return false;
    j->at++;
    return true;
}

static bool take_word(reader *j, const char *word)
{
    size_t n = strlen(word);
    if (n > j->n - j->at || memcmp(j->text + j->at, word, n) != 0)
        return false;
    j->at += n;
    return true;
}

/* ---- Strings ---- */

/* Four hexadecimal digits; UINT32_MAX: they are not there. */
static uint32_t hex4(reader *j)
{
    uint32_t code = 0;
    if (j->n - j->at < 4)
        return UINT32_MAX;
    for (int i = 0; i < 4; i++) {
        char c = j->text[j->at + (size_t)i];
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16)
            return UINT32_MAX;
        code = code << 4 | digit;
    }
    j->at += 4;
    return code;
}

static bool put_escape(reader *j)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    bool marked = said(j, j->at);
    if (j->at >= j->n)
        return false;
    char out[4], c = j->text[j->at++];
    const char *known = c ? strchr(names, c) : NULL;
    if (known) {
        text_put_marked(j->r, &meanings[known - names], 1, marked);
        return true;
    }
    if (c != 'u')
        return false;
    uint32_t code = hex4(j);
    if (code >= 0xD800 && code < 0xDC00 && take_word(j, "\\u")) {
        uint32_t low = hex4(j);
        if (low < 0xDC00 || low > 0xDFFF)
            return false;
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
        return false;
    text_put_marked(j->r, out, utf8_write(code, out), marked);
    return true;
}

/* Behind the opening quote. */
static value parse_string(reader *j)
{
    size_t at = text_begin(j->r);
    while (j->at < j->n && room_ok(j->r)) {
        size_t begin = j->at;
        while (j->at < j->n && (uint8_t)j->text[j->at] >= 0x20 && j->text[j->at] != '"' &&
               j->text[j->at] != '\\') {
            int length = utf8_length((const uint8_t *)j->text + j->at, j->n - j->at);
            if (length <= 0)
                return bad(j, "this is not UTF-8");
            j->at += (size_t)length;
        }
        text_put_marked(j->r, j->text + begin, j->at - begin, j->marked);
        if (j->at >= j->n)
            break;
        char c = j->text[j->at];
        if (c == '"') {
            j->at++;
            return text_end(j->r, at);
        }
        if (c != '\\')
            return bad(j, "a control character in a string has to be written as an escape");
        j->at++;
        if (!put_escape(j))
            return bad(j, "no such escape in a string");
    }
    return bad(j, "a string that does not end");
}

/* ---- Numbers ---- */

static size_t digits(const reader *j, size_t at)
{
    size_t n = 0;
    while (at + n < j->n && j->text[at + n] >= '0' && j->text[at + n] <= '9')
        n++;
    return n;
}

/* The end of the number that begins here, or where it breaks off: 0. */
static size_t number_end(const reader *j, bool *whole)
{
    size_t at = j->at;
    at += j->text[at] == '-';
    size_t n = digits(j, at);
    if (n == 0 || (n > 1 && j->text[at] == '0'))
        return 0;
    at += n;
    *whole = true;
    if (at < j->n && j->text[at] == '.') {
        *whole = false;
        n = digits(j, at + 1);
        if (n == 0)
            return 0;
        at += 1 + n;
    }
    if (at < j->n && (j->text[at] | 0x20) == 'e') {
        *whole = false;
        at++;
        at += at < j->n && (j->text[at] == '+' || j->text[at] == '-');
        n = digits(j, at);
        if (n == 0)
            return 0;
        at += n;
    }
    return at;
}

static value parse_number(reader *j)
{
    bool whole = true;
    size_t begin = j->at, end = number_end(j, &whole);
    if (end == 0)
        return bad(j, "this is no number");
    j->at = end;
    bool marked = said(j, begin);
    value v = string_copy(j->r, j->text + begin, end - begin, marked);
    value parsed = whole ? int_from_text(v) : float_from_text(j->r, v);
    parsed.marked = marked;
    return parsed;
}

/* ---- Everything ---- */

static value parse_value(reader *j, int depth);

static value parse_list(reader *j, int depth)
{
    value list = list_new(j->r, 0, STYLE_LIST);
    list.marked = said(j, j->at - 1);
    if (take(j, ']'))
        return list;
    do
        list_add(j->r, list, parse_value(j, depth));
    while (room_ok(j->r) && take(j, ','));
    return take(j, ']') ? list : bad(j, "a comma or \"]\" is missing");
}

static value parse_map(reader *j, int depth)
{
    value map = map_new(j->r, 0);
    map.marked = said(j, j->at - 1);
    if (take(j, '}'))
        return map;
    do {
        if (!take(j, '"'))
            return bad(j, "a key in quotes is missing");
        value key = parse_string(j);
        if (!take(j, ':'))
            return bad(j, "a colon is missing behind a key");
        map_set(j->r, map, key, parse_value(j, depth));
    } while (room_ok(j->r) && take(j, ','));
    return take(j, '}') ? map : bad(j, "a comma or \"}\" is missing");
}

static value parse_value(reader *j, int depth)
{
    skip_blanks(j);
    if (depth == 0)
        return bad(j, "values are nested too deep");
    if (!room_charge(j->r, 0) || j->at >= j->n)
        return bad(j, "a value is missing");
    char c = j->text[j->at];
    bool marked = said(j, j->at);
    value v = value_none();
    if (c == '"') {
        j->at++;
        return parse_string(j);
    }
    if (c == '[' || c == '{') {
        j->at++;
        return c == '[' ? parse_list(j, depth - 1) : parse_map(j, depth - 1);
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return parse_number(j);
    if (take_word(j, "true"))
        v = value_bool(true);
    else if (take_word(j, "false"))
        v = value_bool(false);
    else if (!take_word(j, "null"))
        return bad(j, "a value is missing");
    v.marked = marked;
    return v;
}

value json_parse(room *r, const char *text, size_t n, bool marked, const char *what)
{
    reader j = {.r = r, .text = text, .n = n, .what = what, .marked = marked};
    room_charge(r, n);
    value v = parse_value(&j, MOST_NESTED);
    skip_blanks(&j);
    if (room_ok(r) && j.at < n)
        return bad(&j, "there is something behind the value");
    return v;
}
