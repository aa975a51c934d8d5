/* Running states, AVX2. See delta_v16.h. */
#include "kernel/x86/avx2/v16_avx2.h"

enum { DELTA_SUMS = 4 };

#include "kernel/delta_v16.h"

const delta_kernel delta_avx2 = DELTA_KERNEL;
