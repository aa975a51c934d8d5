/* Text that is put together in memory of fixed size: answers, and JSON in them. What does not fit
 * is left out, and `full` says so. */
#pragma once

#include "common/json_value.h"

typedef struct text_out {
    char *text;
    size_t n, capacity;
    bool full;
} text_out;

void out_bytes(text_out *o, const char *bytes, size_t n);
void out_text(text_out *o, const char *text);
void out_format(text_out *o, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A JSON string with its quotes; see json_writer for what is no UTF-8. */
void out_string(text_out *o, const char *text, size_t n);
/* The same without quotes. */
void out_escaped(text_out *o, const char *text, size_t n);
/* A JSON number of 9 digits: what is not finite is null. */
void out_number(text_out *o, double value);
void out_value(text_out *o, const json_value *v);
