/* Text in memory of fixed size: see text_out.h. */
#include "serve/text_out.h"

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

static void put(void *user, const char *bytes, size_t n, const char *from)
{
    (void)from;
    out_bytes(user, bytes, n);
}

static json_writer begin(text_out *o)
{
    return (json_writer){.put = put, .user = o, .digits = 9, .begun = o->begun};
}

void out_json(text_out *o, const char *format, ...)
{
    va_list values;
    json_writer w = begin(o);
    va_start(values, format);
    json_put_all(&w, format, values);
    va_end(values);
    o->begun = w.begun;
}

void out_value(text_out *o, const json_value *v)
{
    json_writer w = begin(o);
    w.digits = 0;
    json_item(&w);
    json_raw_value(&w, v);
    o->begun = true;
}

void out_member(text_out *o, const json_value *v)
{
    out_json(o, "%.*s:", (int)v->n_key, v->key);
    out_value(o, v);
}

void out_item(text_out *o, const char *json, size_t n)
{
    out_text(o, o->begun ? "," : "");
    out_bytes(o, json, n);
    o->begun = true;
}

void out_string(text_out *o, const char *text, size_t n)
{
    json_writer w = begin(o);
    json_item(&w);
    json_raw_string(&w, text, n);
    o->begun = true;
}

void out_escaped(text_out *o, const char *text, size_t n)
{
    json_raw_escaped(&(json_writer){.put = put, .user = o}, text, n);
}
