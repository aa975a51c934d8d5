/* Classes of characters by name, as \p{L} has them. */
#pragma once

#include "grammar/grammar_rules.h"

enum { UNICODE_MOST_RANGES = 2048 };

/* The characters of a general category (L, Lu, Letter, gc=L), a script (Han, Script=Han, IsHan), or
 * "Any", "ASCII" and "Assigned"; ^ in front: all others. out[0..result) is sorted. -1: there is no
 * such name here. */
int32_t unicode_class(const char *name, size_t n, char_range out[static UNICODE_MOST_RANGES]);
