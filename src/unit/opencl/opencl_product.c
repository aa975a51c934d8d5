/* Products on an OpenCL device: programs, kernels and commands. */
#include "kernel/packing.h"
#include "unit/opencl/opencl_device.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "common/num.h"
#include "kernel/kernel.h"
#include "unit/opencl/check_vectors.h"
#include "unit/opencl/device_source.h"

drey_status opencl_failed(const opencl_unit *u, const char *call, int32_t code, drey_error *err)
{
    FAIL(err,
         code == OPENCL_NO_DEVICE_MEMORY || code == OPENCL_NO_HOST_MEMORY ||
                 code == OPENCL_NO_RESOURCES
             ? DREY_ERR_MEMORY
             : DREY_ERR_UNSUPPORTED,
         "%s fails: cl%s says %d", u->name, call, (int)code);
}

/* ---- Programs ---- */

/* The beginning of the compiler's log for a program that it refused. */
static drey_status build_failed(const opencl_unit *u, cl_program program, int32_t code,
                                drey_error *err)
{
    char log[4096] = "";
    u->api.GetProgramBuildInfo(program, u->id, OPENCL_PROGRAM_BUILD_LOG, sizeof log - 1, log, NULL);
    log[strcspn(log, "\r\n")] = 0;
    FAIL(err, DREY_ERR_UNSUPPORTED, "%s does not build drey's kernels (%d): %.200s", u->name,
         (int)code, log);
}

drey_status opencl_build_program(opencl_unit *u, const char *text, size_t bytes, uint32_t tokens,
                                 cl_program *out, drey_error *err)
{
    char options[96];
    int32_t code;
    snprintf(options, sizeof options, "-DLANES=%u -DTOKENS=%uu -DWORKERS=%uu -DPARTS=%uu",
             (unsigned)u->items.lanes, (unsigned)tokens, (unsigned)u->items.workers,
             (unsigned)OPENCL_PARTS);
    *out = u->api.CreateProgramWithSource(u->context, 1, &text, &bytes, &code);
    TRY_CL("CreateProgramWithSource", code);
    code = u->api.BuildProgram(*out, 1, &u->id, options, NULL, NULL);
    return code == OPENCL_SUCCESS ? DREY_OK : build_failed(u, *out, code, err);
}

drey_status opencl_build(opencl_unit *u, drey_error *err)
{
    for (int v = 0; v < OPENCL_VARIANTS; v++)
        TRY(opencl_build_program(u, dot_source, dot_source_bytes, 1u << v, &u->program[v], err));
    return DREY_OK;
}

static const char *kernel_name(tensor_type type)
{
#define KERNEL_NAME(TYPE, name, act, block_k, block_bytes) [TYPE_##TYPE] = "dot_" #name,
    static const char *const names[TYPE_LIMIT] = {KERNEL_DEVICE_TYPES(KERNEL_NAME)};
#undef KERNEL_NAME
    return names[type];
}

static act_kind act_of(tensor_type type)
{
    return kernel_select_shape("ref", 0)->matmul[type].act;
}

static cl_buffer buffer_make(const opencl_unit *u, uint64_t flags, size_t bytes, int32_t *code)
{
    return u->api.CreateBuffer(u->context, flags, bytes, NULL, code);
}

static drey_status check_run(void *user, const check_product *p, drey_error *err)
{
    opencl_unit *u = user;
    int32_t code;
    const size_t bytes = (size_t)p->n_groups * p->group_bytes;
    cl_buffer weights = buffer_make(u, OPENCL_MEM_READ_ONLY, bytes, &code);
    TRY_CL("CreateBuffer", code);
    code = u->api.EnqueueWriteBuffer(u->queue, weights, 1, 0, bytes, p->packed, 0, NULL, NULL);
    drey_status status =
        code == OPENCL_SUCCESS ? DREY_OK : opencl_failed(u, "EnqueueWriteBuffer", code, err);
    const opencl_job job = {p->type, p->k, weights, 0, p->n_groups, p->acts, p->n, p->y, p->ldy};
    if (status == DREY_OK)
        status = opencl_enqueue(u, &job, err);
    if (status == DREY_OK)
        status = opencl_finish(u, err);
    u->api.ReleaseMemObject(weights);
    return status;
}

drey_status opencl_learn(opencl_unit *u, tensor_type type, drey_error *err)
{
    if (u->kernel[type][OPENCL_VARIANTS - 1])
        return DREY_OK;
    for (int v = 0; v < OPENCL_VARIANTS; v++) {
        int32_t code;
        u->kernel[type][v] = u->api.CreateKernel(u->program[v], kernel_name(type), &code);
        TRY_CL("CreateKernel", code);
    }
    return check_vectors(type, check_run, u, u->name, err);
}

drey_status opencl_check_numbers(opencl_unit *u, drey_error *err)
{
    static const size_t one = 1, origin[3] = {0}, region[3] = {sizeof check_numbers_in, 1, 1};
    float out[CHECK_NUMBERS] = {0};
    int32_t code;
    cl_kernel kernel = u->api.CreateKernel(u->program[0], "numbers", &code);
    TRY_CL("CreateKernel", code);
    code = u->api.SetKernelArg(kernel, 0, sizeof u->io.acts, &u->io.acts);
    code |= u->api.SetKernelArg(kernel, 1, sizeof u->io.y, &u->io.y);
    code |= u->api.EnqueueWriteBuffer(u->queue, u->io.acts, 1, 0, sizeof check_numbers_in,
                                      check_numbers_in, 0, NULL, NULL);
    code |= u->api.EnqueueNDRangeKernel(u->queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL);
    code |= u->api.EnqueueReadBufferRect(u->queue, u->io.y, 1, origin, origin, region, 0, 0, 0, 0,
                                         out, 0, NULL, NULL);
    u->api.ReleaseKernel(kernel);
    TRY_CL("EnqueueNDRangeKernel", code);
    return check_numbers(out, u->name, err);
}

/* ---- Enqueuing ---- */

static void events_drop(opencl_unit *u)
{
    for (int32_t i = 0; i < u->n_events; i++)
        u->api.ReleaseEvent(u->event[i]);
    u->n_events = 0;
}

/* Each command leaves an event, since waiting for the queue does not say whether all succeeded. */
static drey_status events_check(opencl_unit *u, drey_error *err)
{
    drey_status status = DREY_OK;
    for (int32_t i = 0; i < u->n_events && status == DREY_OK; i++) {
        int32_t state = 0;
        int32_t code =
            u->api.GetEventInfo(u->event[i], OPENCL_EVENT_STATUS, sizeof state, &state, NULL);
        if (code != OPENCL_SUCCESS || state < 0)
            status = opencl_failed(u, "Finish", code != OPENCL_SUCCESS ? code : state, err);
    }
    events_drop(u);
    return status;
}

drey_status opencl_finish(opencl_unit *u, drey_error *err)
{
    int32_t code = u->api.Finish(u->queue);
    u->io.acts_there = NULL;
    u->io.y_bytes = 0;
    if (code == OPENCL_SUCCESS)
        return events_check(u, err);
    events_drop(u);
    return opencl_failed(u, "Finish", code, err);
}

drey_status opencl_event_room(opencl_unit *u, drey_error *err)
{
    if (u->n_events < OPENCL_EVENTS)
        return DREY_OK;
    TRY_CL("Finish", u->api.Finish(u->queue));
    return events_check(u, err);
}

/* Sends rows first .. first + n - 1 of the activations to the device, unless they are there. */
static drey_status acts_send(opencl_unit *u, const uint8_t *rows, size_t bytes, drey_error *err)
{
    if (u->io.acts_there == rows)
        return DREY_OK;
    TRY(opencl_event_room(u, err));
    TRY_CL("EnqueueWriteBuffer", u->api.EnqueueWriteBuffer(u->queue, u->io.acts, 0, 0, bytes, rows,
                                                           0, NULL, &u->event[u->n_events]));
    u->n_events++;
    u->io.acts_there = rows;
    return DREY_OK;
}

/* Destination of results: row r, column c to the number at + r * ld + c. */
typedef struct opencl_results {
    cl_buffer y;
    uint32_t at, ld;
} opencl_results;

/* n_tiles tiles of m rows that begin at row `first` of what acts holds, n_groups groups from byte
 * `at` on. */
static drey_status tiles_launch(opencl_unit *u, const opencl_job *job, uint64_t at,
                                int32_t n_groups, int32_t first, int32_t n_tiles, int32_t m,
                                const opencl_results *to, drey_error *err)
{
    const act_kind act = act_of(job->type);
    const type_layout *layout = layout_find(job->type);
    int v = 0;
    while (1 << v < m)
        v++;
    cl_kernel kernel = u->kernel[job->type][v];
    const uint64_t acts_at = (uint64_t)first * act_row_bytes(act, job->k);
    const uint32_t y_at = to->at + (uint32_t)first * to->ld,
                   n_blocks = (uint32_t)(job->k / layout->block_k), rows = (uint32_t)m;
    const struct {
        size_t bytes;
        const void *value;
    } args[] = {{sizeof job->weights, &job->weights},
                {sizeof at, &at},
                {sizeof u->io.acts, &u->io.acts},
                {sizeof acts_at, &acts_at},
                {sizeof to->y, &to->y},
                {sizeof y_at, &y_at},
                {sizeof to->ld, &to->ld},
                {sizeof n_blocks, &n_blocks},
                {sizeof rows, &rows}};
    for (uint32_t i = 0; i < sizeof args / sizeof args[0]; i++)
        TRY_CL("SetKernelArg", u->api.SetKernelArg(kernel, i, args[i].bytes, args[i].value));
    const size_t local[2] = {GROUP_ROWS / u->items.lanes, u->items.workers},
                 global[2] = {(size_t)n_groups * local[0], (size_t)n_tiles * local[1]};
    TRY(opencl_event_room(u, err));
    TRY_CL("EnqueueNDRangeKernel",
           u->api.EnqueueNDRangeKernel(u->queue, kernel, 2, NULL, global, local, 0, NULL,
                                       &u->event[u->n_events]));
    u->n_events++;
    return DREY_OK;
}

/* Copies n rows of n_groups groups from the device to their place. */
static drey_status results_fetch(opencl_unit *u, float *y, int64_t ldy, int32_t n_groups, int32_t n,
                                 drey_error *err)
{
    static const size_t origin[3] = {0};
    const size_t row = (size_t)n_groups * GROUP_ROWS * sizeof(float);
    const size_t region[3] = {row, (size_t)n, 1}, from[3] = {0, u->io.y_bytes / row, 0};
    TRY(opencl_event_room(u, err));
    TRY_CL("EnqueueReadBufferRect",
           u->api.EnqueueReadBufferRect(u->queue, u->io.y, 0, from, origin, region, row, 0,
                                        (size_t)ldy * sizeof(float), 0, y, 0, NULL,
                                        &u->event[u->n_events]));
    u->n_events++;
    u->io.y_bytes += row * (size_t)n;
    return DREY_OK;
}

/* Makes room for n rows of results in y, after a number of whole rows: those that are on their way
 * may not be overwritten. */
static drey_status results_room(opencl_unit *u, size_t row, int32_t n, drey_error *err)
{
    u->io.y_bytes = (u->io.y_bytes + row - 1) / row * row;
    if (u->io.y_bytes + row * (size_t)n <= OPENCL_PART_BYTES)
        return DREY_OK;
    TRY_CL("Finish", u->api.Finish(u->queue));
    u->io.y_bytes = 0;
    return events_check(u, err);
}

/* Groups g .. g + n_groups - 1 for rows first .. first + n - 1, whose activations are there. */
static drey_status groups_enqueue(opencl_unit *u, const opencl_job *job, int32_t g,
                                  int32_t n_groups, int32_t n, const opencl_results *to,
                                  drey_error *err)
{
    const type_layout *layout = layout_find(job->type);
    const size_t group_bytes =
        (size_t)(job->k / layout->block_k) * (size_t)layout->file_block_bytes * GROUP_ROWS;
    const uint64_t at = job->at + (uint64_t)g * group_bytes;
    const int32_t full = n / TOKEN_TILE, rest = n % TOKEN_TILE;
    if (full > 0)
        TRY(tiles_launch(u, job, at, n_groups, 0, full, TOKEN_TILE, to, err));
    if (rest > 0)
        TRY(tiles_launch(u, job, at, n_groups, full * TOKEN_TILE, 1, rest, to, err));
    return DREY_OK;
}

static bool results_are_lent(const opencl_unit *u, const opencl_job *job)
{
    const uintptr_t y = (uintptr_t)job->y, begin = (uintptr_t)u->io.work_memory;
    return u->io.work && y >= begin && y < begin + u->io.work_bytes;
}

/* Rows first .. first + n - 1, whose results go to their place in lent memory, or else through y in
 * parts. */
static drey_status rows_enqueue(opencl_unit *u, const opencl_job *job, int32_t first, int32_t n,
                                drey_error *err)
{
    const size_t act_row = act_row_bytes(act_of(job->type), job->k);
    const int32_t most_groups =
        (int32_t)(OPENCL_PART_BYTES / ((size_t)n * GROUP_ROWS * sizeof(float)));
    float *y = job->y + (int64_t)first * job->ldy;
    TRY(acts_send(u, (const uint8_t *)job->acts + (size_t)first * act_row, (size_t)n * act_row,
                  err));
    if (results_are_lent(u, job)) {
        const size_t at = (size_t)((const uint8_t *)y - u->io.work_memory) / sizeof(float);
        const opencl_results to = {u->io.work, (uint32_t)at, (uint32_t)job->ldy};
        return groups_enqueue(u, job, 0, job->n_groups, n, &to, err);
    }
    for (int32_t g = 0, groups; g < job->n_groups; g += groups) {
        groups = min_i32(most_groups, job->n_groups - g);
        const uint32_t ld = (uint32_t)groups * GROUP_ROWS;
        TRY(results_room(u, ld * sizeof(float), n, err));
        const opencl_results to = {u->io.y, (uint32_t)(u->io.y_bytes / sizeof(float)), ld};
        TRY(groups_enqueue(u, job, g, groups, n, &to, err));
        TRY(results_fetch(u, y + (int64_t)g * GROUP_ROWS, job->ldy, groups, n, err));
    }
    return DREY_OK;
}

drey_status opencl_enqueue(opencl_unit *u, const opencl_job *job, drey_error *err)
{
    const size_t act_row = act_row_bytes(act_of(job->type), job->k);
    /* Whole tiles, and at least room for one group's results. */
    const size_t by_acts = OPENCL_PART_BYTES / act_row,
                 by_results = OPENCL_PART_BYTES / (GROUP_ROWS * sizeof(float));
    const int32_t most = (int32_t)(min_size(by_acts, by_results) / TOKEN_TILE * TOKEN_TILE);
    assert(most > 0);
    for (int32_t first = 0; first < job->n; first += most)
        TRY(rows_enqueue(u, job, first, min_i32(most, job->n - first), err));
    TRY_CL("Flush", u->api.Flush(u->queue));
    return DREY_OK;
}
