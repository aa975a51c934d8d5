/* Running states, NEON. See delta_v16.h. */
#include "kernel/arm/v16_neon.h"

enum { DELTA_SUMS = 4 };

#include "kernel/delta_v16.h"

const delta_kernel delta_neon = DELTA_KERNEL;
