/* Sizes, times and bars as text. */
#pragma once

#include "common/size_text.h"

/* width characters and a NUL: '#' for the part `full` of 1, '-' for the part `half`, '.' for the
 * rest. Whatever is not zero gets one character at least. */
void format_bar(char *out, int width, double full, double half);

/* "12.3 ms", "1.20 s". */
const char *format_seconds(char out[static 16], double seconds);
