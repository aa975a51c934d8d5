/* Converts JSON, as Python's json module has it, to and from a template's values. */
#pragma once

#include "template/value.h"

/* Reads strict JSON (no NaN, no comments, UTF-8 without unpaired surrogates, nothing after the
 * value). Else a failure that names `what` and the byte. marked: all of it belongs to the
 * conversation; else what is made of marked bytes does. */
value value_from_json(heap *r, const char *text, size_t n, bool marked, const char *what);

typedef struct json_style {
    value indent;    /* a VALUE_STRING that a level is indented by; else all on one line */
    value item, key; /* the separators between items and after a key; kind 0: Python's own */
    bool ascii, sorted;
} json_style;

/* Appends what json.dumps writes. */
void text_put_json(heap *r, value v, const json_style *style);
