/* Text that is put together in memory of fixed size: answers, and JSON in them. What does not fit
 * is left out, and `full` says so. */
#pragma once

#include "common/json_template.h"

typedef struct text_out {
    char *text;
    size_t n, capacity;
    bool full;
    bool begun; /* the JSON array or object that is open has an item already */
} text_out;

/* Empties it. */
static inline void out_begin(text_out *o)
{
    o->n = 0;
    o->full = o->begun = false;
}
void out_bytes(text_out *o, const char *bytes, size_t n);
void out_text(text_out *o, const char *text);
void out_format(text_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Writes JSON by a template of json_put, with numbers of 9 digits. Commas come by themselves. */
void out_json(text_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Writes JSON that is there already as an item, or as members. */
void out_item(text_out *o, const char *json, size_t n);
/* Writes a value as an item, or after its key. */
void out_value(text_out *o, const json_value *v);
void out_member(text_out *o, const json_value *v); /* with its key */
void out_string(text_out *o, const char *text, size_t n);
/* Writes a part of a JSON string, without quotes; see json_writer for what is no UTF-8. */
void out_escaped(text_out *o, const char *text, size_t n);
