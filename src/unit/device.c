/* The devices that this build knows. */
#include "unit/device.h"

#include "unit/opencl/opencl.h"

static const device_class *const classes[] = {&opencl_class, &cuda_class, NULL};

const device_class *const *device_all(void)
{
    return classes;
}

bool device_can_attend(const attention *a)
{
    return a->k_dim == a->v_dim && a->values && a->k_dim % SUM_LANES == 0 && a->cap == 0 &&
           (int64_t)a->k_dim * ATTEND_SPLIT_PAIRS <= DEVICE_PIECE_FLOATS;
}
