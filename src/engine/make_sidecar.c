/* Sidecars: writing and checking one (drey_prepare), and finding the one that an engine uses. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "engine/engine.h"
#include "common/new_file.h"
#include "weights/sidecar.h"
#include "weights/weights.h"

/* ---- An engine's ---- */

drey_status engine_find_sidecar(drey_engine *e, drey_error *err)
{
    const engine_config *c = &e->config;
    const gguf *g = c->target->file;
    drey_error why = {0};
    if (c->files.no_sidecar)
        return DREY_OK;
    char *path = c->files.sidecar ? strdup(c->files.sidecar)
                                  : path_with(gguf_shard_path(g, 0), SIDECAR_FILE_ENDING);
    if (!path)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the name of a sidecar");
    if (!c->files.sidecar && access(path, F_OK) != 0) {
        free(path);
        return DREY_OK;
    }
    model_layout *l = &e->target.layout;
    drey_status status = sidecar_attach(path, g, l->matrix + l->n_looked_up,
                                        l->n_matrices - l->n_looked_up, &e->sidecar.stamp, &why);
    if (status == DREY_OK) {
        e->sidecar.path = path;
        return DREY_OK;
    }
    free(path);
    if (c->files.sidecar)
        FAIL_HINT(err, status, why.hint, "%s", why.message);
    snprintf(e->sidecar.refused, sizeof e->sidecar.refused, "%s", why.message);
    return DREY_OK;
}

/* ---- Writing and checking ---- */

void drey_prepare_options_init(drey_prepare_options *options)
{
    *options = (drey_prepare_options){0};
}

/* Checks what is at the output's path: nothing, an old sidecar, or another file. */
static drey_status check_place(const drey_prepare_options *o, const char *path, drey_error *err)
{
    const gguf *g = o->model->file;
    struct stat about;
    char *partial = new_file_partial(path);
    if (!partial)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the name of a sidecar");
    bool is_model = false;
    for (int32_t i = 0; i < gguf_n_shards(g); i++)
        is_model |= path_same_file(path, gguf_shard_path(g, i)) ||
                    path_same_file(partial, gguf_shard_path(g, i));
    free(partial);
    if (is_model)
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_OUTPUT,
                  "%s, or %s.partial that it grows as, is the model itself; name another file",
                  path, path);
    if (stat(path, &about) != 0)
        return DREY_OK;
    if (!S_ISREG(about.st_mode))
        FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_OUTPUT, "%s is not a regular file; name another one",
                  path);
    if (!o->force && about.st_size > 0 && !sidecar_is_one(path))
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_FORCE,
                  "%s exists and is no sidecar; name another file, or have it overwritten", path);
    return DREY_OK;
}

static uint64_t size_of(const char *path)
{
    struct stat about;
    return stat(path, &about) == 0 ? (uint64_t)about.st_size : 0;
}

static bool has_planes(const sidecar_job *job)
{
    bool any = false;
    for (int32_t i = 0; i < job->n_matrices; i++)
        any = any || job->matrix[i].form.planes;
    return any;
}

static drey_status choose_planes(const sidecar_job *job, bool planes, drey_error *err)
{
    for (int32_t i = 0; i < job->n_matrices; i++)
        if (planes)
            weight_split(&job->matrix[i]);
        else
            weight_join(&job->matrix[i]);
    if (planes && !has_planes(job))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "no matrix of %s is of a type whose bits can be split into planes (Q4_0, Q4_1, Q5_0, "
             "Q5_1, Q4_K, Q5_K, Q6_K)",
             SHOWN_PATH(gguf_shard_path(job->source, 0)));
    return DREY_OK;
}

static drey_status run_job(const drey_prepare_options *o, const sidecar_job *job,
                           drey_prepare_report *report, drey_error *err)
{
    if (o->check) {
        if (access(job->path, F_OK) != 0)
            FAIL_HINT(err, DREY_ERR_IO, DREY_HINT_PREPARE,
                      "there is no sidecar %s: %s; prepare one", job->path, strerror(errno));
        return sidecar_verify(job, &report->sidecar_bytes, err);
    }
    TRY(check_place(o, job->path, err));
    drey_error why;
    if (!o->force && access(job->path, F_OK) == 0 &&
        sidecar_attach(job->path, job->source, job->matrix, job->n_matrices, NULL, &why) ==
            DREY_OK &&
        (has_planes(job) || !o->planes)) {
        report->sidecar_bytes = size_of(job->path);
        return DREY_OK;
    }
    TRY(choose_planes(job, o->planes, err));
    TRY(sidecar_write(job, &report->sidecar_bytes, err));
    report->written = true;
    return DREY_OK;
}

static drey_status prepare_at(const drey_prepare_options *o, const char *path, arena *memory,
                              drey_prepare_report *report, drey_error *err)
{
    const gguf *g = o->model->file;
    model_layout layout;
    TRY(arena_init(memory, model_layout_bytes(&o->model->shape, g), false, err));
    TRY(model_layout_init(&layout, g, kernel_select(NULL), memory, err));
    sidecar_job job = {.source = g,
                       .matrix = layout.matrix + layout.n_looked_up,
                       .n_matrices = layout.n_matrices - layout.n_looked_up,
                       .path = path,
                       .announce = o->announce,
                       .progress = o->progress,
                       .go_on = o->go_on,
                       .user = o->user};
    return run_job(o, &job, report, err);
}

drey_status drey_prepare(const drey_prepare_options *o, drey_prepare_report *report,
                         drey_error *err)
{
    drey_prepare_report unused;
    report = report ? report : &unused;
    *report = (drey_prepare_report){0};
    if (!o->model)
        FAIL(err, DREY_ERR_USAGE, "no model was given");
    char *path = o->output ? strdup(o->output)
                           : path_with(gguf_shard_path(o->model->file, 0), SIDECAR_FILE_ENDING);
    if (!path)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the name of a sidecar");
    arena memory = {0};
    drey_status status = prepare_at(o, path, &memory, report, err);
    arena_free(&memory);
    free(path);
    return status;
}
