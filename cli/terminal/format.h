/* Sizes, times and bars as text. */
#pragma once

#include "common/size_text.h"

#include <stdbool.h>

/* width characters and a NUL: '#' for the part `full` of 1, '-' for the part `half`, '.' for the
 * rest. Whatever is not zero gets one character at least. */
void format_bar(char *out, int width, double full, double half);

/* A bar of `width` columns whose part `part` of 1 is full: of blocks, with eighths at its end, or
 * in plain characters ('#', '.'). out has FORMAT_BLOCKS_BYTES(width). */
#define FORMAT_BLOCKS_BYTES(width) (3 * (width) + 1)
void format_blocks(char *out, int width, double part, bool utf8);

/* "12 s", "3 min", "1 h 20 min": a duration to wait for. */
const char *format_time(char out[static 24], double seconds);

/* "now", "5 minutes ago", "3 days ago". */
const char *format_age(char out[static 24], double seconds);

/* "12.3 ms", "1.20 s". */
const char *format_seconds(char out[static 16], double seconds);

/* "2.50/s", "34.1/s", "213/s". */
const char *format_rate(char out[static 16], double per_s);
