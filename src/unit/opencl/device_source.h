/* The texts of the devices' kernels, which the build turns into arrays: dot.cl and attend.cl, each
 * after lanes.cl. */
#pragma once

#include <stddef.h>

/* Sources, which end with a zero byte that the sizes do not count. */
extern const char dot_source[], attend_source[];
extern const size_t dot_source_bytes, attend_source_bytes;
