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

/* Most texts are plain: eight bytes at a time are so if none is below a blank, a quote, a backslash
 * or above ASCII. */
size_t json_plain(const char *text, size_t n)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    size_t at = 0;
    for (uint64_t x; at + sizeof x <= n; at += sizeof x) {
        memcpy(&x, text + at, sizeof x);
        const uint64_t quote = x ^ ones * '"', backslash = x ^ ones * '\\';
        if (((x - ones * ' ') | (quote - ones) | (backslash - ones) | x) & high)
            break;
    }
    while (at < n && text[at] >= ' ' && text[at] < 0x7F && text[at] != '"' && text[at] != '\\')
        at++;
    return at;
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
        at += json_plain(text + at, n - at);
        if (at == n)
            break;
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

size_t json_format(char out[static 32], double number, int digits)
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
