/* The devices that this build knows. */
#include "unit/device.h"

#include "kernel/packing.h"
#include "unit/opencl/opencl.h"

static const device_class *const classes[] = {&opencl_class, &cuda_class, NULL};

const device_class *const *device_all(void)
{
    return classes;
}

bool device_can_multiply(tensor_type type)
{
#define LISTED(TYPE, name, act, block_k, block_bytes) [TYPE_##TYPE] = true,
    static const bool listed[TYPE_LIMIT] = {KERNEL_DEVICE_TYPES(LISTED)};
#undef LISTED
    return listed[type];
}

bool device_can_attend(const attention *a)
{
    return a->k_dim == a->v_dim && a->values && a->k_dim % SUM_LANES == 0 && a->cap == 0 &&
           (int64_t)a->k_dim * ATTEND_SPLIT_PAIRS <= DEVICE_PIECE_FLOATS;
}
