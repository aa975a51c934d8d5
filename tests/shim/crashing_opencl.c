/* A library that has all functions of OpenCL that drey asks for, and crashes in each of them. */
#include <stdlib.h>

#include "unit/opencl/opencl_api.h"

#define CRASH(result, name, arguments)                                                             \
    void cl##name(void);                                                                           \
    __attribute__((visibility("default"))) void cl##name(void)                                     \
    {                                                                                              \
        abort();                                                                                   \
    }
OPENCL_FUNCTIONS(CRASH)
