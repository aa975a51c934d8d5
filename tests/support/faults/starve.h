/* Memory that runs out: the n-th request of the library is refused. For test_no_memory, which
 * tests/CMakeLists.txt links so that malloc, calloc, realloc, aligned_alloc, strdup and mmap come
 * by here. Requests that other libraries make for themselves are not counted. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Grants n requests from now on, and refuses the one after them, once. */
void starve_after(int64_t n);
/* Stops. True: a request has been refused since starve_after. */
bool starve_end(void);
