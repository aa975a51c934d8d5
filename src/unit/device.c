/* The devices that this build knows. */
#include "unit/device.h"

#include "unit/opencl.h"

static const device_class *const classes[] = {&opencl_class, &cuda_class, NULL};

const device_class *const *device_all(void)
{
    return classes;
}
