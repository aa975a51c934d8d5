/* Text in memory of fixed size: see text_out.h. */
#include "serve/api/text_out.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void out_bytes(text_out *o, const char *bytes, size_t n)
{
    if (n > o->capacity - o->n) {
        o->full = true;
        return;
    }
    memcpy(o->text + o->n, bytes, n);
    o->n += n;
}

void out_text(text_out *o, const char *text)
{
    out_bytes(o, text, strlen(text));
}

void out_format(text_out *o, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int n = vsnprintf(o->text + o->n, o->capacity - o->n, format, values);
    va_end(values);
    if (n < 0 || (size_t)n >= o->capacity - o->n) /* with its NUL */
        o->full = true;
    else
        o->n += (size_t)n;
}

/* Of the character that text[0..n) begins: *length is how long it would be, 0 for a byte that begins
 * none. Returns how many of its bytes are there and right. */
static size_t character_front(const char *text, size_t n, size_t *length)
{
    const unsigned char *p = (const unsigned char *)text;
    *length = p[0] < 0x80                  ? 1
              : p[0] < 0xC2 || p[0] > 0xF4 ? 0
              : p[0] < 0xE0                ? 2
              : p[0] < 0xF0                ? 3
                                           : 4;
    unsigned char low = p[0] == 0xE0 ? 0xA0 : p[0] == 0xF0 ? 0x90 : 0x80;
    unsigned char high = p[0] == 0xED ? 0x9F : p[0] == 0xF4 ? 0x8F : 0xBF;
    size_t i = 1;
    for (; i < *length && i < n && p[i] >= low && p[i] <= high; i++) {
        low = 0x80;
        high = 0xBF;
    }
    return i;
}

size_t utf8_character(const char *text, size_t n)
{
    size_t length, front = character_front(text, n, &length);
    return front == length ? length : 0;
}

static void put_character(text_out *o, const char *text, size_t length)
{
    static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
    unsigned char c = (unsigned char)*text;
    const char *known = c ? strchr(from, c) : NULL;
    if (length == 0)
        out_text(o, "\xEF\xBF\xBD");
    else if (known)
        out_bytes(o, (char[]){'\\', to[known - from]}, 2);
    else if (c < 0x20 || c == 0x7F)
        out_format(o, "\\u%04x", c);
    else
        out_bytes(o, text, length);
}

void out_escaped(text_out *o, const char *text, size_t n)
{
    for (size_t i = 0; i < n;) {
        size_t length, front = character_front(text + i, n - i, &length);
        put_character(o, text + i, front == length ? length : 0);
        i += front;
    }
}

size_t utf8_characters(const char *text, size_t n)
{
    size_t n_characters = 0;
    for (size_t i = 0, length; i < n; n_characters++)
        i += character_front(text + i, n - i, &length);
    return n_characters;
}

void out_string(text_out *o, const char *text, size_t n)
{
    out_text(o, "\"");
    out_escaped(o, text, n);
    out_text(o, "\"");
}

void out_number(text_out *o, double value)
{
    if (!isfinite(value))
        out_text(o, "null");
    else if (value == floor(value) && fabs(value) < 1e15)
        out_format(o, "%.0f", value);
    else
        out_format(o, "%.9g", value);
}
