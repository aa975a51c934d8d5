/* An OpenCL device; the library is opened at run time (Ghidorah III-B: the wide unit of a machine).
 *
 * Its kernels (dot.cl) have the numeric contract of kernel/kernel.h. Before a device is used, it
 * must report that it keeps denormal numbers, pass tests of its arithmetic, and, for each weight
 * type that it will be used for, compute test vectors with the bits of the plain C kernels. The
 * whole opening is tried in a child process first: a driver that crashes or hangs is refused like a
 * missing one.
 *
 * If device and processor share their memory, weights are used in place; else the groups that the
 * device may be asked for are copied to its memory. Activations and results, some KB per matrix,
 * pass through a buffer of fixed size each: what does not fit is sent in parts. A device takes part
 * in attention only if memory is shared and the test vectors of attention are right. */
#pragma once

#include "unit/device.h"

/* OpenCL's devices. `which` is: the number of a device, counted over all platforms, or a part of
 * its name; "gpu": the first that is not a processor; NULL: that one, or else the first. */
extern const device_class opencl_class;
/* The same through libdrey-cuda (cuda_library.cu), which a build with CUDA's compiler makes. */
extern const device_class cuda_class;

/* Way in which a device is found and used. */
typedef struct opencl_opening {
    const device_class *class;
    const char *library; /* the file, as the loader takes it */
    const char *kind;    /* "OpenCL", for sentences */
    const char *which;
    bool copies;    /* weights, even if memory is shared */
    uint32_t lanes; /* rows of a work item; 0: as suits the device */
} opencl_opening;
drey_status opencl_open(device **out, const opencl_opening *how, drey_error *err);
