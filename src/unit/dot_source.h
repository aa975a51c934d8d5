/* The text of dot.cl, which the build turns into an array. */
#ifndef DREY_UNIT_DOT_SOURCE_H
#define DREY_UNIT_DOT_SOURCE_H

#include <stddef.h>

extern const char dot_source[]; /* ends with a zero byte, which dot_source_bytes does not count */
extern const size_t dot_source_bytes;

#endif
