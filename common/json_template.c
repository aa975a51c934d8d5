/* Templates: see json_template.h. */
#include "common/json_template.h"

#include <string.h>

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
    if (!text) {
        add_word(r, "null", 4);
        return;
    }
    if (!quoted)
        add(r, '"');
    const size_t n_plain = json_plain(text, n);
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
    const json_value *value;
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
    case 'p':
        flush(r);
        value = va_arg(*values, const json_value *);
        json_raw_value(r->w, value ? value : &(json_value){.type = JSON_NULL});
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
