/* Running states, AVX-512. See delta_v16.h. */
#include "kernel/x86/avx512/v16_avx512.h"

enum { DELTA_SUMS = 16 };

#include "kernel/delta_v16.h"

const delta_kernel delta_avx512 = DELTA_KERNEL;
