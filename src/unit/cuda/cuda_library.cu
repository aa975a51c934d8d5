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
#include <pthread.h>
#include <type_traits>

#include "unit/opencl/opencl_api.h"

/* ---- Kernels ---- */

typedef unsigned char uchar;

__device__ static inline uint get_global_id(int dim)
{
    return dim == 0 ? blockIdx.x * blockDim.x + threadIdx.x : blockIdx.y * blockDim.y + threadIdx.y;
}
__device__ static inline uint get_group_id(int)
{
    return blockIdx.y;
}
__device__ static inline uint get_local_id(int)
{
    return threadIdx.y;
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
__device__ static inline int4 vload4(int i, const int *p)
{
    return reinterpret_cast<const int4 *>(p)[i]; /* aligned, as words of four rows are */
}
__device__ static inline float convert_float_rte(int v)
{
    return __int2float_rn(v);
}

/* acc + four unsigned bytes times four signed ones: exact, as integers are in any order. */
__device__ static inline int dot_4(int acc, uint w, int x)
{
    int sum;
    asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(sum) : "r"(w), "r"(x), "r"(acc));
    return sum;
}

#define LANES    1
#define WORKERS  16u
#define PARTS    2u
#define DOT_4    dot_4
#define SHARED   __shared__
#define BARRIER  __syncthreads()
#define DEVICE   __device__ static inline
#define UNROLL_8 _Pragma("unroll 8")
#define __kernel static __global__
/* At least two groups of workers at a time on each multiprocessor. */
#define DOT_KERNEL __kernel __launch_bounds__(32 * WORKERS, 2)
#define __global
#define restrict __restrict__
#pragma nv_diag_suppress 177 /* a kernel need not use all that its macro offers */

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
    NAMED(dot_f32),          NAMED(dot_f16),         NAMED(dot_bf16),
    NAMED(dot_q4_0),         NAMED(dot_q4_1),        NAMED(dot_q5_0),
    NAMED(dot_q5_1),         NAMED(dot_q8_0),        NAMED(dot_q2_k),
    NAMED(dot_q3_k),         NAMED(dot_q4_k),        NAMED(dot_q5_k),
    NAMED(dot_q6_k),         NAMED(dot_iq4_nl),      NAMED(dot_iq4_xs),
    NAMED(dot_mxfp4),        NAMED(numbers),         NAMED_ONCE(scores_f16),
    NAMED_ONCE(scores_q8_0), NAMED_ONCE(scores_f32), NAMED_ONCE(values_f16),
    NAMED_ONCE(values_q8_0), NAMED_ONCE(values_f32), NAMED_ONCE(weigh),
    NAMED_ONCE(fold)};

/* ---- What the handles stand for ---- */

enum { DEVICES_MAX = 16, ARGUMENTS_MAX = 9, CL_TYPE_GPU = 1 << 2 };
enum { ARRIVALS_MAX = 64, STAGING_BYTES = 8 << 20 };
/* CUDA's errors are returned as -1000 minus CUDA's number. */
enum { NO_SUCH_THING = -30, CUDA_ERRORS = -1000 };

struct cl_device_s {
    int number;
};
struct cl_context_s {
    int number;
};
/* A result on its way: rows that lie next to each other in memory of the processor. */
struct arrival {
    const char *staged;
    char *to;
    size_t row_bytes, to_row, n_rows;
};
/* Queue of commands. Data to and from the device passes through memory that the device can read and
 * write by itself (`staging`): copies from and to other memory would wait for it one by one. What
 * has arrived is put in its place when the queue is awaited. */
struct cl_queue_s {
    int number;
    cudaStream_t stream;
    char *staging;
    size_t staged_bytes;
    arrival arrivals[ARRIVALS_MAX];
    int n_arrivals;
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
static host_buffer *host_buffers; /* the lists are all devices', whose threads look into them */
/* Memory of the processor that we have made for the device: it writes its results there. */
static host_buffer *mapped_buffers;
static pthread_mutex_t lists = PTHREAD_MUTEX_INITIALIZER;
struct with_lists {
    with_lists()
    {
        pthread_mutex_lock(&lists);
    }
    ~with_lists()
    {
        pthread_mutex_unlock(&lists);
    }
};

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

/* Returns whether it can use the processor's memory under the processor's addresses. */
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
    case OPENCL_DEVICE_MAX_WORK_GROUP:
        number = (uint64_t)device.maxThreadsPerBlock;
        break;
    case OPENCL_DEVICE_LOCAL_MEMORY:
        number = device.sharedMemPerBlock;
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
        error = cudaHostAlloc((void **)&q->staging, STAGING_BYTES, cudaHostAllocDefault);
    if (error == cudaSuccess)
        error = cudaStreamCreateWithFlags(&q->stream, cudaStreamNonBlocking);
    *code = code_of(error);
    if (error == cudaSuccess)
        return q;
    cudaFreeHost(q->staging);
    free(q);
    return NULL;
}

int32_t clReleaseCommandQueue(cl_queue q)
{
    cudaSetDevice(q->number);
    cudaError_t error = cudaStreamDestroy(q->stream);
    cudaFreeHost(q->staging);
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
    const bool as_it_is = is_unified(device) && knows_all_memory(device);
    const with_lists locked;
    cudaError_t error = as_it_is ? cudaSuccess : pages_register(b, bytes);
    *code = code_of(error);
    if (error != cudaSuccess) {
        free(b);
        return NULL;
    }
    b->next = host_buffers;
    host_buffers = b;
    return (cl_buffer)memory;
}

static cl_buffer mapped_buffer_make(size_t bytes, int32_t *code)
{
    host_buffer *b = made<host_buffer>(code);
    if (!b)
        return NULL;
    cudaError_t error = cudaHostAlloc((void **)&b->memory, bytes, cudaHostAllocMapped);
    *code = code_of(error);
    if (error != cudaSuccess) {
        free(b);
        return NULL;
    }
    b->pages = b->memory;
    b->pages_end = b->memory + bytes;
    const with_lists locked;
    b->next = mapped_buffers;
    mapped_buffers = b;
    return (cl_buffer)b->memory;
}

cl_buffer clCreateBuffer(cl_context c, uint64_t flags, size_t bytes, void *host, int32_t *code)
{
    void *memory = NULL;
    cudaError_t error = cudaSetDevice(c->number);
    if (error == cudaSuccess && flags & OPENCL_MEM_USE_HOST_PTR)
        return host_buffer_make(c->number, host, bytes, code);
    if (error == cudaSuccess && flags & OPENCL_MEM_ALLOC_HOST_PTR)
        return mapped_buffer_make(bytes, code);
    if (error == cudaSuccess)
        error = cudaMalloc(&memory, bytes);
    *code = code_of(error);
    return (cl_buffer)memory;
}

/* Takes it out of a list; NULL: it is not there. */
static host_buffer *take_out(host_buffer **list, cl_buffer b)
{
    const with_lists locked;
    for (host_buffer **at = list; *at; at = &(*at)->next) {
        host_buffer *found = *at;
        if (found->memory != (char *)b)
            continue;
        *at = found->next;
        return found;
    }
    return NULL;
}

int32_t clReleaseMemObject(cl_buffer b)
{
    host_buffer *lent = take_out(&host_buffers, b),
                *mapped = lent ? NULL : take_out(&mapped_buffers, b);
    cudaError_t error = lent     ? lent->pages ? cudaHostUnregister(lent->pages) : cudaSuccess
                        : mapped ? cudaFreeHost(b)
                                 : cudaFree(b);
    free(lent);
    free(mapped);
    return code_of(error);
}

/* ---- A queue: everything in order; errors come with its end ---- */

/* Returns whether bytes are all in memory of such a list that the device can use. */
static bool is_among(host_buffer *const *list, const void *from, size_t bytes)
{
    const with_lists locked;
    const char *p = (const char *)from;
    const host_buffer *b = *list;
    while (b && (p < b->pages || p + bytes > b->pages_end))
        b = b->next;
    return b != NULL;
}

/* Waits for all, and puts what has arrived in its place. */
static cudaError_t await(cl_queue q)
{
    cudaError_t error = cudaSetDevice(q->number);
    if (error == cudaSuccess)
        error = cudaStreamSynchronize(q->stream);
    for (const arrival *a = q->arrivals; error == cudaSuccess && a < q->arrivals + q->n_arrivals;
         a++)
        for (size_t row = 0; row < a->n_rows; row++)
            memcpy(a->to + row * a->to_row, a->staged + row * a->row_bytes, a->row_bytes);
    q->n_arrivals = 0;
    q->staged_bytes = 0;
    return error;
}

/* Room for so many bytes until the queue is awaited; NULL: there is never so much. */
static char *staging_take(cl_queue q, size_t bytes, cudaError_t *error)
{
    *error = cudaSuccess;
    if (bytes > STAGING_BYTES)
        return NULL;
    if (bytes > STAGING_BYTES - q->staged_bytes || q->n_arrivals == ARRIVALS_MAX)
        *error = await(q);
    char *room = q->staging + q->staged_bytes;
    q->staged_bytes += (bytes + 255) / 256 * 256;
    return room;
}

int32_t clEnqueueWriteBuffer(cl_queue q, cl_buffer b, uint32_t blocking, size_t at, size_t bytes,
                             const void *from, uint32_t, const cl_event *, cl_event *)
{
    cudaError_t error = cudaSetDevice(q->number), full = cudaSuccess;
    const bool as_it_is = !blocking && is_among(&host_buffers, from, bytes);
    char *room = blocking || as_it_is ? NULL : staging_take(q, bytes, &full);
    if (error == cudaSuccess)
        error = full;
    if (error == cudaSuccess && room)
        from = memcpy(room, from, bytes);
    if (error == cudaSuccess)
        error = cudaMemcpyAsync((char *)b + at, from, bytes, cudaMemcpyHostToDevice, q->stream);
    if (error == cudaSuccess && !room && !as_it_is)
        error = cudaStreamSynchronize(q->stream);
    return code_of(error);
}

/* n_rows rows that follow each other in the buffer, to_row bytes apart where they go. They stay in
 * a mapped buffer until the queue is awaited. */
static cudaError_t fetch(cl_queue q, const char *from, char *to, size_t row_bytes, size_t to_row,
                         size_t n_rows, uint32_t blocking)
{
    cudaError_t error = cudaSetDevice(q->number), full;
    const bool there = is_among(&mapped_buffers, from, row_bytes * n_rows);
    const char *staged = staging_take(q, there ? 0 : row_bytes * n_rows, &full);
    if (error == cudaSuccess)
        error = full;
    if (there)
        staged = from;
    else if (error == cudaSuccess && staged)
        error = cudaMemcpyAsync((char *)staged, from, row_bytes * n_rows, cudaMemcpyDeviceToHost,
                                q->stream);
    else if (error == cudaSuccess)
        error = cudaMemcpy2DAsync(to, to_row, from, row_bytes, row_bytes, n_rows,
                                  cudaMemcpyDeviceToHost, q->stream);
    if (error == cudaSuccess && staged)
        q->arrivals[q->n_arrivals++] = {staged, to, row_bytes, to_row, n_rows};
    return error == cudaSuccess && blocking ? await(q) : error;
}

int32_t clEnqueueReadBuffer(cl_queue q, cl_buffer b, uint32_t blocking, size_t at, size_t bytes,
                            void *to, uint32_t, const cl_event *, cl_event *)
{
    return code_of(fetch(q, (char *)b + at, (char *)to, bytes, bytes, 1, blocking));
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

int32_t clEnqueueReadBufferRect(cl_queue q, cl_buffer b, uint32_t blocking, const size_t *from,
                                const size_t *, const size_t *region, size_t buffer_row, size_t,
                                size_t host_row, size_t, void *to, uint32_t, const cl_event *,
                                cl_event *)
{
    if (buffer_row != 0 && buffer_row != region[0])
        return NO_SUCH_THING;
    return code_of(fetch(q, (char *)b + from[1] * region[0] + from[0], (char *)to, region[0],
                         host_row ? host_row : region[0], region[1], blocking));
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
    return code_of(await(q));
}
}

static_assert(WORKERS == OPENCL_WORKERS && PARTS == OPENCL_PARTS, "as the host launches them");
/* Each function is what opencl_api.h says. */
#define SAME_TYPE(result, name, arguments)                                                         \
    static_assert(std::is_same<decltype(&cl##name), decltype(opencl_api::name)>::value, #name);
OPENCL_FUNCTIONS(SAME_TYPE)
