/* Sizes and bars as text. */
#pragma once

/* "1.04G", "800M", "12.5K", "17": three digits and a binary unit, as --memory takes them. */
const char *format_bytes(char out[static 16], double bytes);

/* width characters and a NUL: '#' for the part `full` of 1, '-' for the part `half`, '.' for the
 * rest. Whatever is not zero gets one character at least. */
void format_bar(char *out, int width, double full, double half);

/* "12.3 ms", "1.20 s". */
const char *format_seconds(char out[static 16], double seconds);
