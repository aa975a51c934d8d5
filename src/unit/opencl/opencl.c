/* Choosing an OpenCL device, refusing one that cannot give the processor's bits, and the memory
 * that it uses (see opencl.h). */
#include "unit/opencl/opencl.h"

#include <assert.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "common/size_text.h"
#include "kernel/kernel.h"
#include "kernel/packing.h"
#include "unit/opencl/opencl_device.h"
#include "unit/opencl/probe.h"

enum {
    PLATFORMS_MAX = 8,
    DEVICES_MAX = 16,
    /* Memory that a driver on this machine's processor takes for building and running kernels of a
     * model's types, in addition to what the process has when the device is open. */
    BUILD_BYTES = 64 << 20,
    PROBE_IDLE_S = 20 /* after which an opening without progress is given up */
};

/* ---- Which device ---- */

typedef struct found {
    cl_device id;
    bool is_cpu;
    char name[64];
} found;

static void found_name(const opencl_api *api, found *f)
{
    char name[256] = "";
    api->GetDeviceInfo(f->id, OPENCL_DEVICE_NAME, sizeof name - 1, name, NULL);
    int n = 0;
    for (const char *c = name; *c && n < (int)sizeof f->name - 1; c++)
        if (isprint((unsigned char)*c))
            f->name[n++] = *c;
    f->name[n] = 0;
}

/* All platforms' devices, in the order in which the library names them. */
static int devices_list(const opencl_api *api, found *devices)
{
    cl_platform platforms[PLATFORMS_MAX];
    uint32_t n_platforms = 0;
    int n = 0;
    if (api->GetPlatformIDs(PLATFORMS_MAX, platforms, &n_platforms) != OPENCL_SUCCESS)
        return 0;
    n_platforms = n_platforms < PLATFORMS_MAX ? n_platforms : PLATFORMS_MAX;
    for (uint32_t p = 0; p < n_platforms; p++) {
        cl_device ids[DEVICES_MAX];
        uint32_t n_ids = 0;
        if (api->GetDeviceIDs(platforms[p], OPENCL_TYPE_ALL, DEVICES_MAX, ids, &n_ids) !=
            OPENCL_SUCCESS)
            continue;
        for (uint32_t i = 0; i < n_ids && i < DEVICES_MAX && n < DEVICES_MAX; i++) {
            uint64_t type = 0;
            api->GetDeviceInfo(ids[i], OPENCL_DEVICE_TYPE, sizeof type, &type, NULL);
            devices[n] = (found){.id = ids[i], .is_cpu = type & OPENCL_TYPE_CPU};
            found_name(api, &devices[n++]);
        }
    }
    return n;
}

/* The names of all, for the message about one that does not exist. */
static void names_join(char *out, size_t bytes, const found *devices, int n)
{
    size_t at = 0;
    for (int i = 0; i < n && at < bytes; i++) {
        int written =
            snprintf(out + at, bytes - at, "%s%d \"%s\"", i > 0 ? ", " : "", i, devices[i].name);
        at += written > 0 ? (size_t)written : 0;
    }
}

static int first_that_is(const found *devices, int n, bool cpu)
{
    for (int i = 0; i < n; i++)
        if (devices[i].is_cpu == cpu)
            return i;
    return n;
}

/* n if there is none. */
static int device_choose(const found *devices, int n, const char *which)
{
    if (!which || strcmp(which, "gpu") == 0) {
        int gpu = first_that_is(devices, n, false);
        return gpu < n || which ? gpu : 0;
    }
    if (isdigit((unsigned char)*which)) {
        char *end;
        long number = strtol(which, &end, 10);
        return *end == 0 && number < n ? (int)number : n;
    }
    for (int i = 0; i < n; i++)
        if (strstr(devices[i].name, which))
            return i;
    return n;
}

static drey_status device_find(opencl_unit *u, const opencl_opening *how, bool *is_cpu,
                               drey_error *err)
{
    found devices[DEVICES_MAX];
    const int n = devices_list(&u->api, devices);
    if (n == 0)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the %s library here knows no device: install the driver of one", how->kind);
    const int chosen = device_choose(devices, n, how->which);
    if (chosen == n) {
        char names[300];
        names_join(names, sizeof names, devices, n);
        FAIL(err, DREY_ERR_UNSUPPORTED, "there is no %s device \"%.60s\" here; there is: %s",
             how->kind, how->which, names);
    }
    u->id = devices[chosen].id;
    *is_cpu = devices[chosen].is_cpu;
    snprintf(u->name, sizeof u->name, "the %s device \"%s\"", how->kind, devices[chosen].name);
    return DREY_OK;
}

/* ---- What it has to be able to do ---- */

static uint64_t info_number(const opencl_unit *u, uint32_t what, size_t bytes)
{
    uint64_t number = 0; /* little-endian, as every machine that drey runs on */
    u->api.GetDeviceInfo(u->id, what, bytes, &number, NULL);
    return number;
}

static drey_status properties_read(opencl_unit *u, const opencl_opening *how, bool is_cpu,
                                   drey_error *err)
{
    if (!info_number(u, OPENCL_DEVICE_AVAILABLE, 4) ||
        !info_number(u, OPENCL_DEVICE_COMPILER_AVAILABLE, 4))
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s is not available, or has no compiler", u->name);
    if (!info_number(u, OPENCL_DEVICE_LITTLE_ENDIAN, 4))
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s has another order of bytes than drey", u->name);
    const uint64_t config = info_number(u, OPENCL_DEVICE_SINGLE_FP_CONFIG, 8);
    if (!(config & OPENCL_FP_DENORM))
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s flushes denormal numbers: its texts would differ",
             u->name);
    if (!(config & OPENCL_FP_ROUND_TO_NEAREST))
        FAIL(err, DREY_ERR_UNSUPPORTED, "%s does not round to the nearest: its texts would differ",
             u->name);
    u->is_unified = info_number(u, OPENCL_DEVICE_UNIFIED_MEMORY, 4) != 0;
    u->shares_memory = u->is_unified && !how->copies;
    u->most_bytes = info_number(u, OPENCL_DEVICE_MAX_ALLOCATION, 8);
    /* Processors run one work item after the other, so it has a vector of rows there. */
    const uint64_t width = info_number(u, OPENCL_DEVICE_PREFERRED_INT_WIDTH, 4);
    u->items.lanes = !is_cpu ? 1 : width >= 16 ? 16 : width >= 8 ? 8 : width >= 4 ? 4 : 1;
    if (how->lanes > 0)
        u->items.lanes = how->lanes;
    const bool have_room =
        info_number(u, OPENCL_DEVICE_MAX_WORK_GROUP, 8) >= GROUP_ROWS * OPENCL_WORKERS &&
        info_number(u, OPENCL_DEVICE_LOCAL_MEMORY, 8) >= OPENCL_LOCAL_BYTES;
    u->items.workers = u->items.lanes == 1 && have_room ? OPENCL_WORKERS : 1;
    return DREY_OK;
}

static drey_status work_prepare(opencl_unit *u, drey_error *err)
{
    int32_t code;
    u->context = u->api.CreateContext(NULL, 1, &u->id, NULL, NULL, &code);
    if (code != OPENCL_SUCCESS)
        return opencl_failed(u, "CreateContext", code, err);
    u->queue = u->api.CreateCommandQueue(u->context, u->id, 0, &code);
    if (code != OPENCL_SUCCESS)
        return opencl_failed(u, "CreateCommandQueue", code, err);
    u->io.acts =
        u->api.CreateBuffer(u->context, OPENCL_MEM_READ_ONLY, OPENCL_PART_BYTES, NULL, &code);
    if (code == OPENCL_SUCCESS)
        u->io.y = u->api.CreateBuffer(u->context, OPENCL_MEM_READ_WRITE | OPENCL_MEM_ALLOC_HOST_PTR,
                                      OPENCL_PART_BYTES, NULL, &code);
    return code == OPENCL_SUCCESS ? DREY_OK : opencl_failed(u, "CreateBuffer", code, err);
}

/* ---- Opening ---- */

typedef struct opening {
    const opencl_opening *how;
    device *opened;
} opening;

/* Up to the first products: of two types, one with whole numbers and minima, one with floats. */
static drey_status opening_steps(opencl_unit *u, const opencl_opening *how, drey_error *err)
{
    bool is_cpu;
    TRY(opencl_api_open(&u->api, how->library, how->kind, err));
    TRY(device_find(u, how, &is_cpu, err));
    TRY(properties_read(u, how, is_cpu, err));
    TRY(work_prepare(u, err));
    TRY(opencl_build(u, err));
    TRY(opencl_check_numbers(u, err));
    TRY(opencl_learn(u, TYPE_F32, err));
    TRY(opencl_learn(u, TYPE_Q4_1, err));
    opencl_learn_attention(u);
    return DREY_OK;
}

static drey_status opening_try(void *user, drey_error *err)
{
    opening *o = user;
    opencl_unit *u = calloc(1, sizeof *u);
    if (!u)
        FAIL(err, DREY_ERR_MEMORY, "no memory for an %s device", o->how->kind);
    u->device.class = o->how->class;
    o->opened = &u->device;
    drey_status status = opening_steps(u, o->how, err);
    if (status != DREY_OK)
        u->device.class->close(&o->opened);
    return status;
}

drey_status opencl_open(device **out, const opencl_opening *how, drey_error *err)
{
    opening o = {.how = how};
    char what[32];
    snprintf(what, sizeof what, "the %s library", how->kind);
    *out = NULL;
    /* A library that this process has open can be opened, and a child would lack its threads. */
    if (!opencl_api_is_open(how->library))
        TRY(probe_in_child(opening_try, &o, what, PROBE_IDLE_S, err));
    TRY(opening_try(&o, err));
    *out = o.opened;
    return DREY_OK;
}

static drey_status open_opencl(device **out, const char *which, drey_error *err)
{
    const opencl_opening how = {
        .class = &opencl_class, .library = "libOpenCL.so.1", .kind = "OpenCL", .which = which};
    return opencl_open(out, &how, err);
}

static drey_status open_cuda(device **out, const char *which, drey_error *err)
{
    const opencl_opening how = {.class = &cuda_class,
                                .library = "libdrey-cuda.so." DREY_VERSION,
                                .kind = "CUDA",
                                .which = which};
    return opencl_open(out, &how, err);
}

/* If it cannot be shared, activations and results are copied. */
static void opencl_lend_work(device *d, void *memory, size_t bytes)
{
    opencl_unit *u = (opencl_unit *)d;
    int32_t code = OPENCL_SUCCESS;
    if (u->io.work)
        u->api.ReleaseMemObject(u->io.work);
    u->io.work = NULL;
    u->io.work_memory = memory;
    u->io.work_bytes = bytes;
    if (memory && bytes / sizeof(float) <= UINT32_MAX) /* kernels count in floats */
        u->io.work = u->api.CreateBuffer(
            u->context, OPENCL_MEM_READ_WRITE | OPENCL_MEM_USE_HOST_PTR, bytes, memory, &code);
    if (code != OPENCL_SUCCESS)
        u->io.work = NULL;
}

static void opencl_close(device **d)
{
    opencl_unit *u = (opencl_unit *)*d;
    *d = NULL;
    if (!u)
        return;
    if (u->queue)
        u->api.Finish(u->queue);
    for (int32_t i = 0; i < u->n_events; i++)
        u->api.ReleaseEvent(u->event[i]);
    opencl_lend_work(&u->device, NULL, 0);
    opencl_attend_close(u);
    for (int type = 0; type < TYPE_LIMIT; type++)
        for (int v = 0; v < OPENCL_VARIANTS; v++)
            if (u->kernel[type][v])
                u->api.ReleaseKernel(u->kernel[type][v]);
    for (int v = 0; v < OPENCL_VARIANTS; v++)
        if (u->program[v])
            u->api.ReleaseProgram(u->program[v]);
    for (int32_t i = 0; i < u->n_matrices; i++)
        if (u->matrix[i].weights)
            u->api.ReleaseMemObject(u->matrix[i].weights);
    if (u->io.acts)
        u->api.ReleaseMemObject(u->io.acts);
    if (u->io.y)
        u->api.ReleaseMemObject(u->io.y);
    if (u->queue)
        u->api.ReleaseCommandQueue(u->queue);
    if (u->context)
        u->api.ReleaseContext(u->context);
    free(u->matrix);
    free(u);
}

/* ---- Weights ---- */

static bool opencl_unified(const device *d)
{
    return ((const opencl_unit *)d)->shares_memory;
}

static size_t opencl_host_bytes(const device *d, uint64_t weight_bytes, int32_t most_rows)
{
    const opencl_unit *u = (const opencl_unit *)d;
    (void)most_rows; /* more than the buffers can hold are sent in parts */
    return 3 * (size_t)OPENCL_PART_BYTES + BUILD_BYTES + opencl_attend_bytes() +
           (u->is_unified && !u->shares_memory ? (size_t)weight_bytes : 0);
}

static drey_status matrix_share(opencl_unit *u, opencl_matrix *x, size_t bytes, drey_error *err)
{
    int32_t code;
    const uintptr_t address = (uintptr_t)x->m.packed;
    x->at = address % OPENCL_PAGE_BYTES;
    x->weights = u->api.CreateBuffer(u->context, OPENCL_MEM_READ_ONLY | OPENCL_MEM_USE_HOST_PTR,
                                     bytes + x->at, (void *)(address - x->at), &code);
    return code == OPENCL_SUCCESS ? DREY_OK : opencl_failed(u, "CreateBuffer", code, err);
}

static drey_status matrix_copy(opencl_unit *u, opencl_matrix *x, size_t bytes, drey_error *err)
{
    int32_t code;
    x->at = 0;
    x->weights = u->api.CreateBuffer(u->context, OPENCL_MEM_READ_ONLY, bytes, NULL, &code);
    if (code != OPENCL_SUCCESS)
        return opencl_failed(u, "CreateBuffer", code, err);
    code = u->api.EnqueueWriteBuffer(u->queue, x->weights, 1, 0, bytes, x->m.packed, 0, NULL, NULL);
    return code == OPENCL_SUCCESS ? DREY_OK : opencl_failed(u, "EnqueueWriteBuffer", code, err);
}

static drey_status matrix_attach(opencl_unit *u, opencl_matrix *x, drey_error *err)
{
    const size_t bytes = (size_t)x->m.n_groups * x->m.group_bytes;
    if (bytes == 0)
        return DREY_OK;
    if (bytes + OPENCL_PAGE_BYTES > u->most_bytes ||
        act_row_bytes(x->m.act, x->m.k) * TOKEN_TILE > OPENCL_PART_BYTES)
        FAIL(err, DREY_ERR_UNSUPPORTED, "a matrix of %s is too large for %s", SIZE_TEXT(bytes),
             u->name);
    TRY(opencl_learn(u, x->m.type, err));
    return u->shares_memory ? matrix_share(u, x, bytes, err) : matrix_copy(u, x, bytes, err);
}

static drey_status opencl_attach(device *d, const device_matrix *matrix, int32_t n,
                                 int32_t most_rows, drey_error *err)
{
    opencl_unit *u = (opencl_unit *)d;
    (void)most_rows;
    assert(!u->matrix);
    u->matrix = calloc((size_t)max_i32(n, 1), sizeof *u->matrix);
    if (!u->matrix)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the matrices of %s", u->name);
    u->n_matrices = n;
    for (int32_t i = 0; i < n; i++) {
        u->matrix[i].m = matrix[i];
        TRY(matrix_attach(u, &u->matrix[i], err));
    }
    return DREY_OK;
}

/* ---- Work ---- */

static drey_status opencl_submit(device *d, const device_work *work, drey_error *err)
{
    opencl_unit *u = (opencl_unit *)d;
    const opencl_matrix *x = &u->matrix[work->matrix];
    const opencl_job job = {.type = x->m.type,
                            .k = x->m.k,
                            .weights = x->weights,
                            .at = x->at + (uint64_t)(work->first_group - x->m.first_group) *
                                              x->m.group_bytes,
                            .n_groups = work->n_groups,
                            .acts = work->acts,
                            .n = work->n,
                            .y = work->y + (int64_t)work->first_group * GROUP_ROWS,
                            .ldy = work->ldy};
    drey_status status = opencl_enqueue(u, &job, err);
    if (status != DREY_OK)
        opencl_finish(u, NULL); /* nothing is written after an error */
    return status;
}

static drey_status opencl_wait(device *d, drey_error *err)
{
    return opencl_finish((opencl_unit *)d, err);
}

static const char *opencl_no_attention(const device *d)
{
    const opencl_unit *u = (const opencl_unit *)d;
    return u->no_attention[0] ? u->no_attention : NULL;
}

/* lend_work: a kernel of CUDA writes to such memory while the processor uses other parts of it;
 * OpenCL 1.2 lends a buffer as a whole. */
#define DEVICE_CLASS(name_, open_, lend_work_)                                                     \
    {                                                                                              \
        .name = name_, .open = open_, .close = opencl_close, .unified = opencl_unified,            \
        .host_bytes = opencl_host_bytes, .attach = opencl_attach, .submit = opencl_submit,         \
        .wait = opencl_wait, .lend_work = lend_work_, .no_attention = opencl_no_attention,         \
        .lend = opencl_lend, .take_back = opencl_take_back, .attend = opencl_attend                \
    }
const device_class opencl_class = DEVICE_CLASS("opencl", open_opencl, NULL);
const device_class cuda_class = DEVICE_CLASS("cuda", open_cuda, opencl_lend_work);
