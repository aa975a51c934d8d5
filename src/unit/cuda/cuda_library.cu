/* The functions of opencl_api.h on CUDA's runtime, and the kernels of dot.cl and attend.cl compiled
 * by CUDA's compiler: a separate library, libdrey-cuda, that opencl.c opens as it opens OpenCL. So
 * CUDA needs no separate unit, and the checks of one are valid for the other.
 *
 * An integrated device uses the processor's memory in place. It must be able to use that memory by
 * the processor's addresses, immediately or after registering it.
 *
 * Built without contraction, with denormals and with correct division (cmake/cuda.cmake). */
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <type_traits>

#include "unit/opencl/opencl_api.h"

/* ---- Kernels ---- */

typedef unsigned char uchar;

__device__ static inline uint get_global_id(int dim)
{
    return dim == 0 ? blockIdx.x * blockDim.x + threadIdx.x : blockIdx.y * blockDim.y + threadIdx.y;
}
__device__ static inline float as_float(int v)
{
    return __int_as_float(v);
}
__device__ static inline float as_float(uint v)
{
    return __uint_as_float(v);
}
__device__ static inline int as_int(uint v)
{
    return (int)v;
}
__device__ static inline uint as_uint(float v)
{
    return __float_as_uint(v);
}
__device__ static inline char4 as_char4(int v)
{
    return make_char4((signed char)v, (signed char)(v >> 8), (signed char)(v >> 16),
                      (signed char)(v >> 24));
}
__device__ static inline float convert_float_rte(int v)
{
    return __int2float_rn(v);
}

#define LANES    1
#define DEVICE   __device__ static inline
#define __kernel static __global__
#define __global
#define restrict __restrict__

#include "unit/opencl/lanes.cl"
namespace tokens_1
{
#define TOKENS 1u
#include "unit/opencl/dot.cl"
#undef TOKENS
} // namespace tokens_1
namespace tokens_2
{
#define TOKENS 2u
#include "unit/opencl/dot.cl"
#undef TOKENS
} // namespace tokens_2
namespace tokens_4
{
#define TOKENS 4u
#include "unit/opencl/dot.cl"
#undef TOKENS
} // namespace tokens_4
namespace tokens_8
{
#define TOKENS 8u
#include "unit/opencl/dot.cl"
#undef TOKENS
} // namespace tokens_8
#include "unit/opencl/attend.cl"

struct named_kernel {
    const char *name;
    const void *function[4]; /* for 1, 2, 4 and 8 rows */
};
/* For any number of rows. */
#define NAMED_ONCE(name)                                                                           \
    {                                                                                              \
#name,                                                                                     \
        {                                                                                          \
            (const void *)name, (const void *)name, (const void *)name, (const void *)name         \
        }                                                                                          \
    }
#define NAMED(name)                                                                                \
    {                                                                                              \
#name,                                                                                     \
        {                                                                                          \
            (const void *)tokens_1::name, (const void *)tokens_2::name,                            \
                (const void *)tokens_4::name, (const void *)tokens_8::name                         \
        }                                                                                          \
    }
static const named_kernel named_kernels[] = {
    NAMED(dot_f32),         NAMED(dot_f16),         NAMED(dot_bf16),
    NAMED(dot_q4_0),        NAMED(dot_q4_1),        NAMED(dot_q5_0),
    NAMED(dot_q5_1),        NAMED(dot_q8_0),        NAMED(dot_q2_k),
    NAMED(dot_q3_k),        NAMED(dot_q4_k),        NAMED(dot_q5_k),
    NAMED(dot_q6_k),        NAMED(dot_iq4_nl),      NAMED(dot_iq4_xs),
    NAMED(dot_mxfp4),       NAMED(numbers),         NAMED_ONCE(scores_f16), NAMED_ONCE(scores_q8_0),
    NAMED_ONCE(scores_f32), NAMED_ONCE(values_f16), NAMED_ONCE(values_q8_0),
    NAMED_ONCE(values_f32), NAMED_ONCE(weigh),      NAMED_ONCE(fold)};

/* ---- What the handles stand for ---- */

enum { DEVICES_MAX = 16, ARGUMENTS_MAX = 9, CL_TYPE_GPU = 1 << 2 };
/* CUDA's errors are returned as -1000 minus CUDA's number. */
enum { NO_SUCH_THING = -30, CUDA_ERRORS = -1000 };

struct cl_device_s {
    int number;
};
struct cl_context_s {
    int number;
};
struct cl_queue_s {
    int number;
    cudaStream_t stream;
};
struct cl_program_s {
    int variant;
};
struct cl_kernel_s {
    const void *function;
    void *value[ARGUMENTS_MAX];
    uint64_t word[ARGUMENTS_MAX];
};
/* A buffer is the address of its memory, which is also what kernels take. Some pages of the
 * processor's memory may have been registered for it. */
struct host_buffer {
    host_buffer *next;
    char *memory, *pages, *pages_end;
};
static host_buffer *host_buffers;

static cl_device_s all_devices[DEVICES_MAX];

static int32_t code_of(cudaError_t error)
{
    if (error == cudaSuccess)
        return OPENCL_SUCCESS;
    return error == cudaErrorMemoryAllocation ? (int32_t)OPENCL_NO_DEVICE_MEMORY
                                              : CUDA_ERRORS - (int32_t)error;
}

enum { PAGE_BYTES = 4096 };

static int attribute(int device, cudaDeviceAttr what)
{
    int value = 0;
    return cudaDeviceGetAttribute(&value, what, device) == cudaSuccess ? value : 0;
}

static bool knows_all_memory(int device)
{
    return attribute(device, cudaDevAttrPageableMemoryAccess) != 0;
}

/* Whether it can use the processor's memory under the processor's addresses. */
static bool is_unified(int device)
{
    return attribute(device, cudaDevAttrIntegrated) != 0 &&
           (knows_all_memory(device) ||
            (attribute(device, cudaDevAttrHostRegisterSupported) != 0 &&
             attribute(device, cudaDevAttrCanUseHostPointerForRegisteredMem) != 0));
}

/* Registers what is not yet registered of the buffer's pages: neighbours may share one, and are
 * registered together. */
static cudaError_t pages_register(host_buffer *b, size_t bytes)
{
    b->pages = (char *)((uintptr_t)b->memory / PAGE_BYTES * PAGE_BYTES);
    b->pages_end = b->pages + (b->memory + bytes - b->pages + PAGE_BYTES - 1) / PAGE_BYTES *
                                  (size_t)PAGE_BYTES;
    for (const host_buffer *other = host_buffers; other; other = other->next) {
        if (other->pages <= b->pages && other->pages_end > b->pages)
            b->pages = other->pages_end;
        if (other->pages < b->pages_end && other->pages_end >= b->pages_end)
            b->pages_end = other->pages;
    }
    if (b->pages >= b->pages_end) {
        b->pages = b->pages_end = NULL;
        return cudaSuccess;
    }
    return cudaHostRegister(b->pages, (size_t)(b->pages_end - b->pages), cudaHostRegisterMapped);
}

template <typename T> static T *made(int32_t *code)
{
    T *thing = (T *)calloc(1, sizeof(T));
    *code = thing ? OPENCL_SUCCESS : OPENCL_NO_HOST_MEMORY;
    return thing;
}

static int32_t put(size_t bytes, void *out, const void *value, size_t n)
{
    memcpy(out, value, n < bytes ? n : bytes);
    return OPENCL_SUCCESS;
}

extern "C" {

/* ---- Devices ---- */

int32_t clGetPlatformIDs(uint32_t n, cl_platform *out, uint32_t *n_out)
{
    int n_devices = 0;
    *n_out = cudaGetDeviceCount(&n_devices) == cudaSuccess && n_devices > 0;
    if (n > 0 && *n_out > 0)
        out[0] = NULL; /* it exists and has no information */
    return OPENCL_SUCCESS;
}

int32_t clGetPlatformInfo(cl_platform, uint32_t, size_t bytes, void *out, size_t *)
{
    return put(bytes, out, "CUDA", 5);
}

int32_t clGetDeviceIDs(cl_platform, uint64_t, uint32_t n, cl_device *out, uint32_t *n_out)
{
    int n_devices = 0;
    cudaError_t error = cudaGetDeviceCount(&n_devices);
    *n_out = 0;
    for (int i = 0; i < n_devices && i < (int)n && i < DEVICES_MAX; i++) {
        all_devices[i].number = i;
        out[(*n_out)++] = &all_devices[i];
    }
    return code_of(error);
}

int32_t clGetDeviceInfo(cl_device d, uint32_t what, size_t bytes, void *out, size_t *)
{
    cudaDeviceProp device;
    cudaError_t error = cudaGetDeviceProperties(&device, d->number);
    if (error != cudaSuccess)
        return code_of(error);
    uint64_t number = 0;
    switch (what) {
    case OPENCL_DEVICE_NAME:
        return put(bytes, out, device.name, strlen(device.name) + 1);
    case OPENCL_DEVICE_TYPE:
        number = CL_TYPE_GPU;
        break;
    case OPENCL_DEVICE_PREFERRED_INT_WIDTH:
    case OPENCL_DEVICE_LITTLE_ENDIAN:
    case OPENCL_DEVICE_AVAILABLE:
    case OPENCL_DEVICE_COMPILER_AVAILABLE:
        number = 1;
        break;
    case OPENCL_DEVICE_MAX_ALLOCATION:
        number = device.totalGlobalMem;
        break;
    case OPENCL_DEVICE_SINGLE_FP_CONFIG:
        number = OPENCL_FP_DENORM | OPENCL_FP_ROUND_TO_NEAREST;
        break;
    case OPENCL_DEVICE_UNIFIED_MEMORY:
        number = is_unified(d->number);
        break;
    default:
        return NO_SUCH_THING;
    }
    return put(bytes, out, &number, sizeof number);
}

cl_context clCreateContext(const intptr_t *, uint32_t, const cl_device *devices,
                           void (*)(const char *, const void *, size_t, void *), void *,
                           int32_t *code)
{
    cl_context c = made<cl_context_s>(code);
    if (c)
        c->number = devices[0]->number;
    return c;
}

int32_t clReleaseContext(cl_context c)
{
    free(c);
    return OPENCL_SUCCESS;
}

cl_queue clCreateCommandQueue(cl_context, cl_device d, uint64_t, int32_t *code)
{
    cl_queue q = made<cl_queue_s>(code);
    if (!q)
        return NULL;
    q->number = d->number;
    cudaError_t error = cudaSetDevice(d->number);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking);
    *code = code_of(error);
    if (error == cudaSuccess)
        return q;
    free(q);
    return NULL;
}

int32_t clReleaseCommandQueue(cl_queue q)
{
    cudaSetDevice(q->number);
    cudaError_t error = cudaStreamDestroy(q->stream);
    free(q);
    return code_of(error);
}

/* ---- Programs: compiled already ---- */

cl_program clCreateProgramWithSource(cl_context, uint32_t, const char **, const size_t *,
                                     int32_t *code)
{
    return made<cl_program_s>(code);
}

int32_t clBuildProgram(cl_program p, uint32_t, const cl_device *, const char *options,
                       void (*)(cl_program, void *), void *)
{
    const char *tokens = strstr(options, "-DTOKENS=");
    int rows = tokens ? atoi(tokens + strlen("-DTOKENS=")) : 0;
    while (1 << p->variant < rows)
        p->variant++;
    if (!strstr(options, "-DLANES=1 ") || 1 << p->variant != rows || rows > 8)
        return NO_SUCH_THING;
    return OPENCL_SUCCESS;
}

int32_t clGetProgramBuildInfo(cl_program, cl_device, uint32_t, size_t bytes, void *out, size_t *)
{
    return put(bytes, out, "", 1);
}

int32_t clReleaseProgram(cl_program p)
{
    free(p);
    return OPENCL_SUCCESS;
}

cl_kernel clCreateKernel(cl_program p, const char *name, int32_t *code)
{
    for (const named_kernel &k : named_kernels) {
        if (strcmp(k.name, name) != 0)
            continue;
        cl_kernel kernel = made<cl_kernel_s>(code);
        if (!kernel)
            return NULL;
        kernel->function = k.function[p->variant];
        for (int i = 0; i < ARGUMENTS_MAX; i++)
            kernel->value[i] = &kernel->word[i];
        return kernel;
    }
    *code = NO_SUCH_THING;
    return NULL;
}

int32_t clReleaseKernel(cl_kernel k)
{
    free(k);
    return OPENCL_SUCCESS;
}

int32_t clSetKernelArg(cl_kernel k, uint32_t i, size_t bytes, const void *value)
{
    if (i >= ARGUMENTS_MAX || bytes > sizeof k->word[i])
        return NO_SUCH_THING;
    memcpy(&k->word[i], value, bytes);
    return OPENCL_SUCCESS;
}

/* ---- Memory ---- */

static cl_buffer host_buffer_make(int device, void *memory, size_t bytes, int32_t *code)
{
    host_buffer *b = made<host_buffer>(code);
    if (!b)
        return NULL;
    b->memory = (char *)memory;
    cudaError_t error = knows_all_memory(device) ? cudaSuccess : pages_register(b, bytes);
    *code = code_of(error);
    if (error != cudaSuccess) {
        free(b);
        return NULL;
    }
    b->next = host_buffers;
    host_buffers = b;
    return (cl_buffer)memory;
}

cl_buffer clCreateBuffer(cl_context c, uint64_t flags, size_t bytes, void *host, int32_t *code)
{
    void *memory = NULL;
    cudaError_t error = cudaSetDevice(c->number);
    if (error == cudaSuccess && flags & OPENCL_MEM_USE_HOST_PTR)
        return host_buffer_make(c->number, host, bytes, code);
    if (error == cudaSuccess)
        error = cudaMalloc(&memory, bytes);
    *code = code_of(error);
    return (cl_buffer)memory;
}

int32_t clReleaseMemObject(cl_buffer b)
{
    for (host_buffer **at = &host_buffers; *at; at = &(*at)->next) {
        host_buffer *found = *at;
        if (found->memory != (char *)b)
            continue;
        *at = found->next;
        cudaError_t error = found->pages ? cudaHostUnregister(found->pages) : cudaSuccess;
        free(found);
        return code_of(error);
    }
    return code_of(cudaFree(b));
}

/* ---- A queue: everything in order; errors come with its end ---- */

int32_t clEnqueueWriteBuffer(cl_queue q, cl_buffer b, uint32_t blocking, size_t at, size_t bytes,
                             const void *from, uint32_t, const cl_event *, cl_event *)
{
    cudaError_t error = cudaSetDevice(q->number);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync((char *)b + at, from, bytes, cudaMemcpyHostToDevice, q->stream);
    if (error == cudaSuccess && blocking)
        error = cudaStreamSynchronize(q->stream);
    return code_of(error);
}

int32_t clEnqueueReadBuffer(cl_queue q, cl_buffer b, uint32_t blocking, size_t at, size_t bytes,
                            void *to, uint32_t, const cl_event *, cl_event *)
{
    cudaError_t error = cudaSetDevice(q->number);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync(to, (char *)b + at, bytes, cudaMemcpyDeviceToHost, q->stream);
    if (error == cudaSuccess && blocking)
        error = cudaStreamSynchronize(q->stream);
    return code_of(error);
}

/* Memory that a device reads in place is shared at any time: a kernel sees what the processor wrote
 * before it was launched. */
void *clEnqueueMapBuffer(cl_queue, cl_buffer b, uint32_t, uint64_t, size_t at, size_t, uint32_t,
                         const cl_event *, cl_event *, int32_t *code)
{
    *code = OPENCL_SUCCESS;
    return (char *)b + at;
}

int32_t clEnqueueUnmapMemObject(cl_queue, cl_buffer, void *, uint32_t, const cl_event *, cl_event *)
{
    return OPENCL_SUCCESS;
}

int32_t clEnqueueReadBufferRect(cl_queue q, cl_buffer b, uint32_t blocking, const size_t *,
                                const size_t *, const size_t *region, size_t buffer_row, size_t,
                                size_t host_row, size_t, void *to, uint32_t, const cl_event *,
                                cl_event *)
{
    cudaError_t error = cudaSetDevice(q->number);
    if (error == cudaSuccess)
        error = cudaMemcpy2DAsync(to, host_row ? host_row : region[0], b,
                                  buffer_row ? buffer_row : region[0], region[0], region[1],
                                  cudaMemcpyDeviceToHost, q->stream);
    if (error == cudaSuccess && blocking)
        error = cudaStreamSynchronize(q->stream);
    return code_of(error);
}

int32_t clEnqueueNDRangeKernel(cl_queue q, cl_kernel k, uint32_t dims, const size_t *,
                               const size_t *global, const size_t *local, uint32_t,
                               const cl_event *, cl_event *)
{
    const bool plane = dims > 1;
    const dim3 block((unsigned)local[0], plane ? (unsigned)local[1] : 1u);
    const dim3 grid((unsigned)(global[0] / block.x), plane ? (unsigned)(global[1] / block.y) : 1u);
    cudaError_t error = cudaSetDevice(q->number);
    if (error == cudaSuccess)
        error = cudaLaunchKernel(k->function, grid, block, k->value, 0, q->stream);
    return code_of(error);
}

int32_t clGetEventInfo(cl_event, uint32_t, size_t bytes, void *out, size_t *)
{
    const int32_t complete = 0;
    return put(bytes, out, &complete, sizeof complete);
}

int32_t clReleaseEvent(cl_event)
{
    return OPENCL_SUCCESS;
}

int32_t clFlush(cl_queue)
{
    return OPENCL_SUCCESS;
}

int32_t clFinish(cl_queue q)
{
    cudaError_t error = cudaSetDevice(q->number);
    return code_of(error == cudaSuccess ? cudaStreamSynchronize(q->stream) : error);
}
}

/* Each function is what opencl_api.h says. */
#define SAME_TYPE(result, name, arguments)                                                         \
    static_assert(std::is_same<decltype(&cl##name), decltype(opencl_api::name)>::value, #name);
OPENCL_FUNCTIONS(SAME_TYPE)
