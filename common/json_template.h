/* JSON by templates, through a writer. */
#pragma once

#include <stdarg.h>

#include "common/json_value.h"

/* Writes items and members by a template, on one line: JSON whose keys are bare words and whose
 * constant texts are 'quoted'. Commas come by themselves, also between two calls. It may leave
 * brackets, a key ("of:") or a text ("of:'") open for what is written next; \" ends the text.
 * Values:
 *   %s    a text; NULL: null      %.*s  its length, an int, and a text     (in quotes: a part of
 *   %d %lld %zu %llu  integers    %g    a number     %hhd  a bool           the constant)
 *   %p    a json_value; NULL: null
 *
 *   json_put(w, "usage:{tokens:%d,kind:'new'}", n); */
void json_put(json_writer *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
void json_put_all(json_writer *w, const char *format, va_list values);
