/* Times attention for drey bench kernels. */
#pragma once

#include "bench/bench.h"
#include "kernel/kernel.h"
#include "os/pool.h"

/* Times one layer after another. Their keys and values are in `block`, which is larger than the
 * caches and contains finite numbers in every format. DREY_ERR_MEMORY. */
drey_status bench_attention(pool *p, const kernel_table *kernels, uint8_t *block,
                            size_t block_bytes, const drey_limits *limits, drey_kernel_fn *visit,
                            void *user, drey_error *err);
