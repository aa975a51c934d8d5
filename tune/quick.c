/* The speeds from which a plan is predicted, measured quickly: for somebody who waits for a table.
 * drey_bench_disk and drey_bench_machine take longer.
 *
 * It stays within the budget that is planned: a program in a memory cgroup must not be killed
 * because it asks what would fit. What the plan leaves besides the process itself is free
 * meanwhile. */
#include <string.h>
#include <sys/stat.h>

#include "common/num.h"
#include "engine/engine.h"
#include "os/pool.h"
#include "tune/kept_speeds.h"
#include "tune/machine_limits.h"
#include "tune/measured.h"

static const double disk_s = 0.4;
static const size_t most_block = (size_t)192 << 20; /* to read: beyond most caches */
static const size_t least_block = (size_t)8 << 20;
static const uint64_t small_target = 64 << 20; /* see DREY_MEASURE_MISSING */
static const uint64_t least_read = 32 << 20;   /* for a speed that is worth keeping */

/* The tensor type of most of the target's bytes. */
static int common_type(const model_layout *l)
{
    uint64_t bytes[TYPE_LIMIT] = {0};
    int most = 0;
    for (int32_t i = 0; i < l->n_matrices; i++)
        bytes[l->matrix[i].form.tensor->type] += l->matrix[i].form.tensor->n_bytes;
    for (int i = 0; i < TYPE_LIMIT; i++)
        most = bytes[i] > bytes[most] ? i : most;
    return most;
}

/* Returns how much the budget leaves besides the process itself. */
static uint64_t room_in(const drey_plan *t)
{
    return t->budget_bytes - t->process_bytes;
}

static size_t block_for(const drey_plan *t)
{
    uint64_t block = max_u64(min_u64(t->budget_bytes / 4, most_block), least_block);
    return (size_t)min_u64(block, room_in(t));
}

static const char *subject_of(const drey_engine *e)
{
    return e->sidecar.path ? e->sidecar.path : gguf_shard_path(e->config.target->file, 0);
}

/* Returns whether most of a file are holes, as of a download that has only begun: they come
 * without the disk. */
static bool has_holes(const char *path)
{
    enum { BLOCK = 512 }; /* of st_blocks, on every file system */
    struct stat s;
    return stat(path, &s) == 0 && s.st_blocks < s.st_size / BLOCK / 2;
}

/* Half of the room for what arrives; the list of reads and their table are outside of it. */
static drey_status measure_disk(const drey_engine *e, drey_disk_report *disk, drey_error *err)
{
    const engine_config *c = &e->config;
    uint64_t half = room_in(&e->plan.report) / 2;
    const limits_reading what = {.path = subject_of(e),
                                 .model = e->sidecar.path ? NULL : c->target->file,
                                 .io = c->reads.io,
                                 .read_bytes = c->reads.bytes,
                                 .ring_bytes = half < SIZE_MAX ? (size_t)half : SIZE_MAX,
                                 .seconds = disk_s};
    *disk = (drey_disk_report){.bytes_per_s = 0};
    return has_holes(what.path) ? DREY_OK : limits_disk(&what, disk, err);
}

static drey_status find_disk(const drey_engine *e, const char *folder, drey_speeds *s,
                             drey_error *err)
{
    drey_disk_report disk;
    double load;
    bool busy = machine_is_busy(&load);
    TRY(measure_disk(e, &disk, err));
    s->disk_bytes_per_s = disk.bytes_per_s;
    s->disk_measured = disk.bytes_per_s > 0;
    s->measured_busy |= busy && s->disk_measured;
    if (disk.read_bytes >= least_read)
        kept_speeds_keep_disk(e, folder, disk.bytes_per_s, busy);
    return DREY_OK;
}

/* ---- Computing ---- */

static bool lacks_tree(const drey_plan *t, const drey_speeds *s)
{
    return s->tree_ops_per_s <= 0 && t->tree_rows > 1;
}

static bool lacks_row(const drey_speeds *s)
{
    return s->memory_bytes_per_s <= 0 || s->one_ops_per_s <= 0;
}

/* Measures what is 0. block: of the weights. */
static void run_kernels(const drey_engine *e, pool *p, arena *block, size_t n_bytes, arena *rest,
                        drey_speeds *s)
{
    const drey_plan *t = &e->plan.report;
    int type = common_type(&e->target.layout);
    if (s->memory_bytes_per_s <= 0) {
        memset(block->base, 1, n_bytes);
        s->memory_bytes_per_s = limits_stream(p, e->kernels, type, block->base, n_bytes, rest);
        arena_rewind(rest, 0);
    }
    if (s->one_ops_per_s <= 0)
        s->one_ops_per_s = limits_dot(p, e->kernels, type, 1, rest);
    arena_rewind(rest, 0);
    if (lacks_tree(t, s))
        s->tree_ops_per_s = limits_dot(p, e->kernels, type, t->tree_rows, rest);
}

static drey_status measure_computing(const drey_engine *e, drey_speeds *s, drey_error *err)
{
    const drey_plan *t = &e->plan.report;
    int type = common_type(&e->target.layout);
    size_t group = e->kernels->matmul[type].group_bytes(LIMITS_DOT_K);
    size_t dot = limits_dot_bytes(e->kernels, type, t->tree_rows, t->n_threads);
    size_t room = block_for(t), n_bytes = max_size(room > dot ? room - dot : 0, group);
    arena block = {0}, rest = {0};
    pool *p = NULL;
    drey_status status = arena_init(&block, n_bytes, true, err);
    if (status == DREY_OK)
        status = arena_init(&rest, dot, true, err);
    if (status == DREY_OK)
        status = pool_open(&p, t->n_threads, err);
    if (status == DREY_OK)
        run_kernels(e, p, &block, n_bytes, &rest, s);
    pool_close(&p);
    arena_free(&block);
    arena_free(&rest);
    return status;
}

/* Keeps what is measured, and not what was given. */
static drey_status find_computing(const drey_engine *e, const char *folder, drey_speeds *s,
                                  drey_error *err)
{
    const drey_speeds given = *s;
    double load;
    drey_speeds measured = {.measured_busy = machine_is_busy(&load)};
    TRY(measure_computing(e, s, err));
    s->measured_busy |= measured.measured_busy;
    if (given.memory_bytes_per_s <= 0)
        measured.memory_bytes_per_s = s->memory_bytes_per_s;
    if (given.one_ops_per_s <= 0)
        measured.one_ops_per_s = s->one_ops_per_s;
    if (given.tree_ops_per_s <= 0)
        measured.tree_ops_per_s = s->tree_ops_per_s;
    kept_speeds_keep_computing(e, common_type(&e->target.layout), folder, &measured);
    return DREY_OK;
}

/* ---- All ---- */

static drey_status measure(const drey_engine *e, const char *folder, drey_speeds *s,
                           drey_error *err)
{
    const drey_plan *t = &e->plan.report;
    if (s->disk_bytes_per_s <= 0 && t->streamed_bytes_per_pass + t->kv_read_bytes > 0)
        TRY(find_disk(e, folder, s, err));
    return lacks_row(s) || lacks_tree(t, s) ? find_computing(e, folder, s, err) : DREY_OK;
}

drey_status drey_ranks_disk(drey_ranks *ranks, const drey_engine_options *options,
                            double bytes_per_s, drey_error *err)
{
    drey_planner *p;
    drey_disk_report disk = {.bytes_per_s = 0};
    const drey_engine_options alone = engine_part_options(options);
    ranks->disk_bytes_per_s = bytes_per_s;
    if (bytes_per_s > 0)
        return DREY_OK;
    TRY(drey_planner_open(&p, &alone, err));
    /* Of all layers; with too little memory for those it has no room to measure in. */
    drey_status status = planner_make(p, 0, NULL);
    if (status != DREY_OK)
        status = DREY_OK;
    else if (p->engine.plan.report.streamed_bytes_per_pass > 0)
        status = measure_disk(&p->engine, &disk, err);
    ranks->disk_bytes_per_s = disk.bytes_per_s;
    drey_planner_close(&p);
    return status;
}

drey_status drey_planner_measure(drey_planner *planner, uint64_t memory_bytes, drey_speeds *speeds,
                                 drey_error *err)
{
    TRY(planner_make(planner, memory_bytes, err));
    return measure(&planner->engine, NULL, speeds, err);
}

drey_status drey_planner_speeds(drey_planner *planner, drey_measure how, const char *folder,
                                drey_speeds *speeds, drey_error *err)
{
    const drey_engine *e = &planner->engine;
    const int type = common_type(&e->target.layout);
    if (how == DREY_MEASURE_NOTHING)
        return DREY_OK;
    if (how != DREY_MEASURE_NOW)
        kept_speeds_find(e, type, folder, speeds);
    bool is_small =
        how == DREY_MEASURE_MISSING && gguf_file_bytes(e->config.target->file) < small_target;
    if (how == DREY_MEASURE_KEPT || is_small)
        return DREY_OK;
    TRY(planner_make(planner, 0, err));
    TRY(measure(e, folder, speeds, err));
    kept_speeds_find(e, type, folder, speeds); /* of a disk below holes */
    return DREY_OK;
}
