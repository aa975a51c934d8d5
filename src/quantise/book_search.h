/* Code books, searched: the entry that is nearest to numbers.
 *
 * An entry is a combination of 4 or 8 magnitudes, each one of a few levels. If the levels nearest
 * to the numbers, one by one, are an entry, no other is nearer, whatever the weights. Each other
 * combination has a list, made beforehand, of the entries that can be nearest to numbers which
 * round to it: all but those that have another entry between them and the combination in every
 * magnitude. So the search is exact. */
#pragma once

#include <stdint.h>

#include "gguf/types.h"

typedef struct book_search book_search;

/* Returns the search of IQ2_XXS, IQ2_XS, IQ2_S, IQ3_XXS or IQ3_S. The first call of a type makes
 * its lists in some hundredths of a second; any thread may make it. */
const book_search *book_search_of(tensor_type type);
/* The largest level; others are 1 and about every second number up to it. */
float book_search_most(const book_search *b);

/* q: the nearest entries' magnitudes to x * inverse, by w-weighted squares. n: a multiple of 8, at
 * most FIT_MOST. q, x, w: [n]. */
void book_search_round(const book_search *b, float *q, const float *x, const float *w, int32_t n,
                       float inverse);
/* Returns the number of the entry with these magnitudes: [8] of an IQ2 type, [4] of an IQ3 type. */
uint32_t book_search_number(const book_search *b, const float *q);
