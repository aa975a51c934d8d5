/* Writing JSON: see json_writer.h. */
#include "common/json_writer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/utf8.h"

/* ---- Between values ---- */

static void put_text(json_writer *w, json_span text, const char *usual)
{
    if (text.bytes)
        w->put(w->user, text.bytes, text.n, NULL);
    else
        json_raw(w, usual);
}

static void put_line(json_writer *w)
{
    if (!w->indent.bytes || w->on_line)
        return;
    json_raw(w, "\n");
    for (int i = 0; i < w->n_levels; i++)
        w->put(w->user, w->indent.bytes, w->indent.n, NULL);
}

void json_raw(json_writer *w, const char *text)
{
    w->put(w->user, text, strlen(text), NULL);
}

void json_item(json_writer *w)
{
    if (w->begun)
        put_text(w, w->item, ",");
    if (w->begun && w->on_line && w->indent.bytes)
        json_raw(w, " ");
    if (w->n_levels > 0)
        put_line(w);
    w->begun = true;
}

void json_open(json_writer *w, char bracket)
{
    w->put(w->user, &bracket, 1, NULL);
    w->n_levels++;
    w->begun = false;
}

void json_close(json_writer *w, char bracket)
{
    bool empty = !w->begun;
    w->n_levels--;
    if (!empty)
        put_line(w);
    if (w->n_levels < w->on_line)
        w->on_line = 0;
    w->put(w->user, &bracket, 1, NULL);
    w->begun = true;
}

void json_after_key(json_writer *w)
{
    put_text(w, w->key, ":");
}

/* ---- Strings ---- */

/* Most characters are written as they are, in any format. */
static bool is_plain(char c)
{
    return c >= ' ' && c < 0x7F && c != '"' && c != '\\';
}

/* The escape for a character; 0: it is written as it is. */
static int escape(char out[16], uint32_t c, bool ascii)
{
    static const char meanings[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char *known = c < 0x80 ? memchr(meanings, (int)c, sizeof meanings - 1) : NULL;
    if (known)
        return snprintf(out, 16, "\\%c", names[known - meanings]);
    if (c < 0x20 || (ascii && c >= 0x80 && c < 0x10000))
        return snprintf(out, 16, "\\u%04" PRIx32, c);
    if (ascii && c >= 0x10000)
        return snprintf(out, 16, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + ((c - 0x10000) >> 10),
                        0xDC00 + ((c - 0x10000) & 0x3FF));
    return 0;
}

/* The number of bytes of the character, or of the broken part, that text[0..n), n > 0, begins with.
 * *n_out: the length of what is written instead; 0: they are written as they are. */
static size_t next_character(const json_writer *w, const char *text, size_t n, char out[16],
                             int *n_out)
{
    const uint8_t *p = (const uint8_t *)text;
    int length = utf8_length(p, n);
    *n_out = 0;
    if (length > 0) {
        *n_out = escape(out, utf8_code_point(p, length), w->ascii);
        return (size_t)length;
    }
    if (w->broken_utf8)
        return 1;
    *n_out = w->ascii ? snprintf(out, 16, "\\ufffd") : snprintf(out, 16, "\xEF\xBF\xBD");
    return utf8_broken_length(p, n);
}

void json_raw_escaped(json_writer *w, const char *text, size_t n)
{
    size_t done = 0;
    for (size_t at = 0; at < n;) {
        char out[16];
        if (is_plain(text[at])) {
            at++;
            continue;
        }
        int n_out;
        size_t length = next_character(w, text + at, n - at, out, &n_out);
        if (n_out > 0) {
            if (at > done)
                w->put(w->user, text + done, at - done, text + done);
            w->put(w->user, out, (size_t)n_out, text + at);
            done = at + length;
        }
        at += length;
    }
    if (n > done)
        w->put(w->user, text + done, n - done, text + done);
}

void json_raw_string(json_writer *w, const char *text, size_t n)
{
    json_raw(w, "\"");
    json_raw_escaped(w, text, n);
    json_raw(w, "\"");
}

/* ---- Numbers ---- */

/* Formats a number as JSON, with a NUL; returns how many bytes. */
static size_t json_format(char out[32], double number, int digits)
{
    int n;
    if (!isfinite(number))
        n = snprintf(out, 32, "null");
    else if (number == 0 && signbit(number))
        n = snprintf(out, 32, "-0.0");
    else if (number == floor(number) && fabs(number) < 1e15)
        n = snprintf(out, 32, "%.0f", number);
    else
        n = snprintf(out, 32, "%.*g", digits ? digits : 15, number);
    for (int most = 16; digits == 0 && isfinite(number) && strtod(out, NULL) != number; most++)
        n = snprintf(out, 32, "%.*g", most, number);
    return (size_t)n;
}

void json_raw_number(json_writer *w, double number)
{
    char text[32];
    size_t n = json_format(text, number, w->digits);
    w->put(w->user, text, n, NULL);
}

/* ---- Members and items ---- */

static void begin(json_writer *w, const char *key)
{
    json_item(w);
    if (!key)
        return;
    json_raw_string(w, key, strlen(key));
    json_after_key(w);
}

void json_put_array(json_writer *w, const char *key)
{
    begin(w, key);
    json_open(w, '[');
}

void json_put_object(json_writer *w, const char *key)
{
    begin(w, key);
    json_open(w, '{');
}

void json_put_number(json_writer *w, const char *key, double number)
{
    begin(w, key);
    json_raw_number(w, number);
}

void json_put_each(json_writer *w, const json_number *numbers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        json_put_number(w, numbers[i].key, numbers[i].value);
}

void json_put_bool(json_writer *w, const char *key, bool value)
{
    begin(w, key);
    json_raw(w, value ? "true" : "false");
}

void json_put_text(json_writer *w, const char *key, const char *text)
{
    begin(w, key);
    if (text)
        json_raw_string(w, text, strlen(text));
    else
        json_raw(w, "null");
}

void json_put_numbers(json_writer *w, const char *key, const double *numbers, int n)
{
    json_put_array(w, key);
    if (!w->on_line)
        w->on_line = w->n_levels;
    for (int i = 0; i < n; i++)
        json_put_number(w, NULL, numbers[i]);
    json_close(w, ']');
}

/* ---- Templates ---- */

/* Bytes on their way to the writer: most pieces of a template are short. */
typedef struct run {
    json_writer *w;
    size_t n;
    char bytes[120];
} run;

static void flush(run *r)
{
    r->w->put(r->w->user, r->bytes, r->n, NULL);
    r->n = 0;
}

static inline void add(run *r, char byte)
{
    if (r->n == sizeof r->bytes)
        flush(r);
    r->bytes[r->n++] = byte;
}

static void add_word(run *r, const char *word, size_t n)
{
    if (n > sizeof r->bytes - r->n)
        flush(r);
    if (n > sizeof r->bytes) {
        r->w->put(r->w->user, word, n, NULL);
        return;
    }
    memcpy(r->bytes + r->n, word, n);
    r->n += n;
}

static void add_string(run *r, const char *text, size_t n, bool quoted)
{
    size_t n_plain = 0;
    if (!text) {
        add_word(r, "null", 4);
        return;
    }
    if (!quoted)
        add(r, '"');
    while (n_plain < n && is_plain(text[n_plain]))
        n_plain++;
    add_word(r, text, n_plain);
    if (n_plain < n) {
        flush(r);
        json_raw_escaped(r->w, text + n_plain, n - n_plain);
    }
    if (!quoted)
        add(r, '"');
}

static void add_integer(run *r, unsigned long long magnitude, bool negative)
{
    char digits[24];
    size_t n = sizeof digits;
    do
        digits[--n] = (char)('0' + magnitude % 10);
    while ((magnitude /= 10) > 0);
    if (negative)
        digits[--n] = '-';
    add_word(r, digits + n, sizeof digits - n);
}

static void add_signed(run *r, long long value)
{
    add_integer(r, value < 0 ? 0 - (unsigned long long)value : (unsigned long long)value,
                value < 0);
}

/* Writes the value of the conversion that begins at `at`; returns how long that is. */
static size_t add_value(run *r, const char *at, bool quoted, va_list *values)
{
    char number[32];
    const char *text;
    int n;
    switch (at[1]) {
    case 's':
        text = va_arg(*values, const char *);
        add_string(r, text, text ? strlen(text) : 0, quoted);
        return 2;
    case '.': /* "%.*s" */
        n = va_arg(*values, int);
        add_string(r, va_arg(*values, const char *), (size_t)n, quoted);
        return 4;
    case 'd':
        add_signed(r, va_arg(*values, int));
        return 2;
    case 'l':
        if (at[3] == 'd')
            add_signed(r, va_arg(*values, long long));
        else
            add_integer(r, va_arg(*values, unsigned long long), false);
        return 4;
    case 'z':
        add_integer(r, va_arg(*values, size_t), false);
        return 3;
    case 'g':
        add_word(r, number, json_format(number, va_arg(*values, double), r->w->digits));
        return 2;
    default: /* "%hhd" */
        text = va_arg(*values, int) ? "true" : "false";
        add_word(r, text, strlen(text));
        return 4;
    }
}

/* Writes a constant text after its first quote; returns its length with the last one, if it has
 * one. */
static size_t add_constant(run *r, const char *text, va_list *values)
{
    size_t at = 0;
    add(r, '"');
    while (text[at] && text[at] != '\'') {
        const size_t from = at;
        while (text[at] && text[at] != '\'' && text[at] != '%')
            at++;
        add_word(r, text + from, at - from);
        if (text[at] == '%')
            at += add_value(r, text + at, true, values);
    }
    if (text[at])
        add(r, '"');
    return at + (text[at] != 0);
}

/* Writes a key, or a number or word. */
static size_t add_key(run *r, const char *word)
{
    size_t n = 0;
    while (word[n] && word[n] != ':' && word[n] != ',' && word[n] != '}' && word[n] != ']')
        n++;
    if (word[n] == ':')
        add(r, '"');
    add_word(r, word, n);
    if (word[n] == ':')
        add(r, '"');
    return n;
}

/* Returns how long the piece at `at` is. */
static size_t add_piece(run *r, const char *at, va_list *values)
{
    json_writer *w = r->w;
    switch (*at) {
    case ',': /* each item writes its own */
        return 1;
    case '"': /* the end of a text that was left open */
        add(r, *at);
        return 1;
    case ':':
        add(r, *at);
        w->begun = false; /* no comma before the value */
        return 1;
    case '}':
    case ']':
        add(r, *at);
        w->n_levels--;
        w->begun = true;
        return 1;
    default:
        break;
    }
    if (w->begun)
        add(r, ',');
    w->begun = *at != '{' && *at != '[';
    if (!w->begun) {
        add(r, *at);
        w->n_levels++;
        return 1;
    }
    return *at == '\''  ? 1 + add_constant(r, at + 1, values)
           : *at == '%' ? add_value(r, at, false, values)
                        : add_key(r, at);
}

void json_put_all(json_writer *w, const char *format, va_list values)
{
    run r;
    r.w = w;
    r.n = 0;
    va_list left;
    va_copy(left, values);
    while (*format)
        format += add_piece(&r, format, &left);
    va_end(left);
    flush(&r);
}

void json_put(json_writer *w, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    json_put_all(w, format, values);
    va_end(values);
}
