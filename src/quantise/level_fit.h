/* Numbers as multiples of a step: the step, and perhaps an offset, with the least weighted error.
 *
 *   x[i] ~ step * q[i] + offset,   sum of w[i] * (step * q[i] + offset - x[i])^2 as small as found
 *
 * A search begins at several steps. From each it rounds the numbers to codes, takes the step and
 * the offset that are best for these codes (weighted least squares), and rounds again with those.
 * Sums have a fixed order: the same numbers give the same codes on every machine. */
#pragma once

#include <stdint.h>

#include "quantise/book_search.h"

enum { FIT_LANES = 16, FIT_MOST = 32 }; /* numbers of a fit: a multiple of FIT_LANES */

/* The values that a code can have: all integers from low to high, those of a table, or those of a
 * code book, which has groups of codes. */
typedef struct fit_levels {
    float low, high;
    const int8_t *table;     /* NULL, or 16 rising numbers */
    const book_search *book; /* NULL: codes are chosen one by one */
} fit_levels;

typedef struct fit_line {
    float step, offset;
} fit_line;

/* q[i]: the nearest level of (x[i] - offset) / step; returns the weighted error. A step of 0 gives
 * codes of 0, or the level that is next to it. q, x, w: [n]. */
float fit_codes(float *q, const float *x, const float *w, int32_t n, fit_line line,
                const fit_levels *levels);
/* The step, of either sign; offset is 0. */
fit_line fit_step(const float *x, const float *w, int32_t n, const fit_levels *levels);
/* A step and an offset, for integers from 0 on; the step is not negative. most: the largest
 * offset. */
fit_line fit_step_offset(const float *x, const float *w, int32_t n, const fit_levels *levels,
                         float most);

/* 1 / x, or 0 where that is infinite or x is 0. */
float fit_inverse(float x);
