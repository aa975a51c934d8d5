/* The OpenCL library, opened at run time: the types, numbers and functions of OpenCL 1.2 that a
 * unit needs, under our own names, so that drey can be built without its headers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

typedef struct cl_platform_s *cl_platform;
typedef struct cl_device_s *cl_device;
typedef struct cl_context_s *cl_context;
typedef struct cl_queue_s *cl_queue;
typedef struct cl_program_s *cl_program;
typedef struct cl_kernel_s *cl_kernel;
typedef struct cl_buffer_s *cl_buffer;
typedef struct cl_event_s *cl_event;

/* Numbers of the OpenCL 1.2 specification. */
enum {
    OPENCL_SUCCESS = 0,
    OPENCL_NO_DEVICE_MEMORY = -4,
    OPENCL_NO_RESOURCES = -5,
    OPENCL_NO_HOST_MEMORY = -6,

    OPENCL_PLATFORM_NAME = 0x0902,

    OPENCL_DEVICE_TYPE = 0x1000,
    OPENCL_DEVICE_MAX_WORK_GROUP = 0x1004,
    OPENCL_DEVICE_PREFERRED_INT_WIDTH = 0x1008,
    OPENCL_DEVICE_MAX_ALLOCATION = 0x1010,
    OPENCL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    OPENCL_DEVICE_LITTLE_ENDIAN = 0x1026,
    OPENCL_DEVICE_LOCAL_MEMORY = 0x1023,
    OPENCL_DEVICE_AVAILABLE = 0x1027,
    OPENCL_DEVICE_COMPILER_AVAILABLE = 0x1028,
    OPENCL_DEVICE_NAME = 0x102b,
    OPENCL_DEVICE_UNIFIED_MEMORY = 0x1035,

    OPENCL_TYPE_CPU = 1 << 1,
    OPENCL_TYPE_ALL = 0xf,

    OPENCL_FP_DENORM = 1 << 0,
    OPENCL_FP_ROUND_TO_NEAREST = 1 << 2,

    OPENCL_MEM_READ_WRITE = 1 << 0,
    OPENCL_MEM_WRITE_ONLY = 1 << 1,
    OPENCL_MEM_READ_ONLY = 1 << 2,
    OPENCL_MEM_USE_HOST_PTR = 1 << 3,
    OPENCL_MEM_ALLOC_HOST_PTR = 1 << 4,

    OPENCL_MAP_READ = 1 << 0,
    OPENCL_MAP_WRITE = 1 << 1,

    OPENCL_PROGRAM_BUILD_LOG = 0x1183,
    OPENCL_EVENT_STATUS = 0x11d3,
};

/* Limits of a device whose work items are lanes of its hardware (dot.cl): the items that share a
 * row, the parts of a block that are computed by one each, and the local memory that this takes at
 * most. */
enum { OPENCL_WORKERS = 16, OPENCL_PARTS = 2, OPENCL_LOCAL_BYTES = 40 << 10 };

/* result, name, arguments */
#define OPENCL_FUNCTIONS(X)                                                                        \
    X(int32_t, GetPlatformIDs, (uint32_t n, cl_platform * out, uint32_t * n_out))                  \
    X(int32_t, GetPlatformInfo,                                                                    \
      (cl_platform p, uint32_t what, size_t bytes, void *out, size_t *bytes_out))                  \
    X(int32_t, GetDeviceIDs,                                                                       \
      (cl_platform p, uint64_t type, uint32_t n, cl_device * out, uint32_t * n_out))               \
    X(int32_t, GetDeviceInfo,                                                                      \
      (cl_device d, uint32_t what, size_t bytes, void *out, size_t *bytes_out))                    \
    X(cl_context, CreateContext,                                                                   \
      (const intptr_t *properties, uint32_t n, const cl_device *devices,                           \
       void (*notify)(const char *, const void *, size_t, void *), void *user, int32_t *code))     \
    X(int32_t, ReleaseContext, (cl_context c))                                                     \
    X(cl_queue, CreateCommandQueue,                                                                \
      (cl_context c, cl_device d, uint64_t properties, int32_t * code))                            \
    X(int32_t, ReleaseCommandQueue, (cl_queue q))                                                  \
    X(cl_program, CreateProgramWithSource,                                                         \
      (cl_context c, uint32_t n, const char **texts, const size_t *lengths, int32_t *code))        \
    X(int32_t, BuildProgram,                                                                       \
      (cl_program p, uint32_t n, const cl_device *devices, const char *options,                    \
       void (*notify)(cl_program, void *), void *user))                                            \
    X(int32_t, GetProgramBuildInfo,                                                                \
      (cl_program p, cl_device d, uint32_t what, size_t bytes, void *out, size_t *bytes_out))      \
    X(int32_t, ReleaseProgram, (cl_program p))                                                     \
    X(cl_kernel, CreateKernel, (cl_program p, const char *name, int32_t *code))                    \
    X(int32_t, ReleaseKernel, (cl_kernel k))                                                       \
    X(int32_t, SetKernelArg, (cl_kernel k, uint32_t i, size_t bytes, const void *value))           \
    X(cl_buffer, CreateBuffer,                                                                     \
      (cl_context c, uint64_t flags, size_t bytes, void *host, int32_t *code))                     \
    X(int32_t, ReleaseMemObject, (cl_buffer b))                                                    \
    X(int32_t, EnqueueWriteBuffer,                                                                 \
      (cl_queue q, cl_buffer b, uint32_t blocking, size_t at, size_t bytes, const void *from,      \
       uint32_t n_wait, const cl_event *wait, cl_event *done))                                     \
    X(int32_t, EnqueueReadBuffer,                                                                  \
      (cl_queue q, cl_buffer b, uint32_t blocking, size_t at, size_t bytes, void *to,              \
       uint32_t n_wait, const cl_event *wait, cl_event *done))                                     \
    X(void *, EnqueueMapBuffer,                                                                    \
      (cl_queue q, cl_buffer b, uint32_t blocking, uint64_t flags, size_t at, size_t bytes,        \
       uint32_t n_wait, const cl_event *wait, cl_event *done, int32_t *code))                      \
    X(int32_t, EnqueueUnmapMemObject,                                                              \
      (cl_queue q, cl_buffer b, void *mapped, uint32_t n_wait, const cl_event *wait,               \
       cl_event *done))                                                                            \
    X(int32_t, EnqueueReadBufferRect,                                                              \
      (cl_queue q, cl_buffer b, uint32_t blocking, const size_t *buffer_at, const size_t *host_at, \
       const size_t *region, size_t buffer_row, size_t buffer_slice, size_t host_row,              \
       size_t host_slice, void *to, uint32_t n_wait, const cl_event *wait, cl_event *done))        \
    X(int32_t, EnqueueNDRangeKernel,                                                               \
      (cl_queue q, cl_kernel k, uint32_t dims, const size_t *offset, const size_t *global,         \
       const size_t *local, uint32_t n_wait, const cl_event *wait, cl_event *done))                \
    X(int32_t, GetEventInfo,                                                                       \
      (cl_event e, uint32_t what, size_t bytes, void *out, size_t *bytes_out))                     \
    X(int32_t, ReleaseEvent, (cl_event e))                                                         \
    X(int32_t, Flush, (cl_queue q))                                                                \
    X(int32_t, Finish, (cl_queue q))

typedef struct opencl_api {
    void *library;
#define OPENCL_MEMBER(result, name, arguments) result(*name) arguments;
    OPENCL_FUNCTIONS(OPENCL_MEMBER)
#undef OPENCL_MEMBER
} opencl_api;

/* The library stays open until the process ends: drivers leave threads and handlers.
 * DREY_ERR_UNSUPPORTED: there is none, or it lacks a function. */
drey_status opencl_api_open(opencl_api *api, const char *library, const char *kind,
                            drey_error *err);
/* Returns whether any part of this process has it open already. */
bool opencl_api_is_open(const char *library);
