/* Pieces of SVG that every picture has: a page that follows the reader's light or dark scheme, and
 * text from anywhere that stays text. */
#pragma once

#include "drey/drey_error.h"

#include <stdio.h>

/* Classes of the page: text, .title, .small, .faint (text); .paper, .grid, .box; for what a trace
 * shows .draft .verify .provisional .stall .read .prompt .accepted .submitted .waits .rectified. */
void drawing_begin(FILE *out, double width, double height, const char *label);
void drawing_end(FILE *out);

/* Any bytes as XML text. spaces: blanks at the ends and line ends are shown by signs. */
void drawing_put_text(FILE *out, const char *text, bool spaces);
/* A whole text element; anchor: "start", "middle", "end"; class may be "". */
void drawing_text(FILE *out, double x, double y, const char *anchor, const char *class,
                  const char *format, ...) __attribute__((format(printf, 6, 7)));

/* About how wide a text is at 12 pixels, with signs for line ends: nothing measures fonts here. */
double drawing_width(const char *text);

/* The distance of ticks on an axis so that about n are in `range`: 1, 2 or 5 times a power
 * of ten. */
double drawing_step(double range, int n);
