/* Makes numbers of a model's file that are not finite. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Replaces a number at the beginning of a row: of blocks a scale (scale 0, 1: a minimum, where the
 * type has one), else the first number. infinite: an infinity, else NaN. Aborts when that cannot
 * be. */
void damage(const char *path, const char *tensor, int64_t row, int scale, bool infinite);
