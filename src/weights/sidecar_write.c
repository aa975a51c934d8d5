/* Writing a sidecar, and checking one to the last byte: see sidecar.h.
 *
 * Both go over the matrices in runs of about a MiB: read the rows from the model, pack them, and
 * either write the packed groups or compare their hash with what the sidecar says and holds. In
 * planes, groups are split when they are written and joined when they are compared. */
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/new_file.h"
#include "gguf/gguf.h"
#include "kernel/kernel.h"
#include "kernel/planes.h"
#include "os/file.h"
#include "weights/matrix_form.h"
#include "weights/sidecar.h"
#include "weights/weights.h"

enum { BOUNCE_BYTES = 1 << 20 };

typedef struct packer {
    const sidecar_job *job;
    drey_progress what;
    file *parts;     /* [gguf_n_shards] */
    uint8_t *bounce; /* [BOUNCE_BYTES] */
    uint8_t *raw;    /* rows as in the model, or groups as in the sidecar: [run_bytes] */
    uint8_t *packed; /* [run_bytes] */
    uint64_t done_bytes, total_bytes;
} packer;

/* Bytes of the longest run, packed or not. */
static size_t run_bytes(const sidecar_job *job)
{
    size_t most = 0;
    for (int32_t i = 0; i < job->n_matrices; i++) {
        size_t bytes = weight_piece_bytes(&job->matrix[i]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

static void packer_close(packer *p)
{
    for (int32_t i = 0; p->parts && i < gguf_n_shards(p->job->source); i++)
        file_close(&p->parts[i]);
    free(p->parts);
    free(p->bounce);
    free(p->raw);
    free(p->packed);
}

static drey_status packer_open(packer *p, const sidecar_job *job, drey_progress what,
                               drey_error *err)
{
    int32_t n_parts = gguf_n_shards(job->source);
    size_t n = (run_bytes(job) + 4095) & ~(size_t)4095;
    *p = (packer){.job = job, .what = what, .parts = calloc((size_t)n_parts, sizeof *p->parts)};
    for (int32_t i = 0; p->parts && i < n_parts; i++)
        p->parts[i].fd = -1;
    p->bounce = aligned_alloc(BOUNCE_BYTES, BOUNCE_BYTES);
    p->raw = aligned_alloc(4096, n);
    p->packed = aligned_alloc(4096, n);
    if (!p->parts || !p->bounce || !p->raw || !p->packed)
        FAIL(err, DREY_ERR_MEMORY, "no memory to pack %s",
             SHOWN_PATH(gguf_shard_path(job->source, 0)));
    for (int32_t i = 0; i < n_parts; i++)
        TRY(file_open(&p->parts[i], gguf_shard_path(job->source, i), true, err));
    for (int32_t i = 0; i < job->n_matrices; i++)
        p->total_bytes +=
            (uint64_t)job->matrix[i].residency.n_groups * job->matrix[i].residency.group_bytes;
    return DREY_OK;
}

static drey_status advance(packer *p, size_t n, drey_error *err)
{
    const sidecar_job *job = p->job;
    p->done_bytes += n;
    if (job->progress)
        job->progress(job->user, p->what, p->done_bytes, p->total_bytes);
    if (job->go_on && !job->go_on(job->user))
        FAIL(err, DREY_ERR_CANCELLED, "interrupted; nothing was changed");
    return DREY_OK;
}

/* Packs groups [from, to) of a matrix into p->packed. */
static drey_status pack_run(packer *p, const weight *m, int32_t from, int32_t to, drey_error *err)
{
    const gguf_tensor *t = m->form.tensor;
    int64_t first = (int64_t)from * GROUP_ROWS, end = (int64_t)to * GROUP_ROWS;
    end = end < m->form.n_rows ? end : m->form.n_rows;
    TRY(file_read(&p->parts[t->part], gguf_shard_path(p->job->source, t->part),
                  t->offset + (uint64_t)(first * m->form.row_bytes),
                  (size_t)((end - first) * m->form.row_bytes), p->raw, p->bounce, BOUNCE_BYTES,
                  err));
    for (int64_t row = first; row < end; row += GROUP_ROWS) {
        int32_t rows = end - row < GROUP_ROWS ? (int32_t)(end - row) : GROUP_ROWS;
        if (!m->form.kernel->pack(
                p->packed + (size_t)(row - first) / GROUP_ROWS * m->residency.group_bytes,
                p->raw + (row - first) * m->form.row_bytes, m->form.row_bytes, rows, m->form.k))
            return matrix_refuse(&m->form, gguf_shard_path(p->job->source, t->part), err);
    }
    return DREY_OK;
}

static int32_t run_end(const weight *m, int32_t from)
{
    return m->reads.piece_groups < m->residency.n_groups - from ? from + m->reads.piece_groups
                                                                : m->residency.n_groups;
}

/* Returns the offset in the file of a plane of groups from `from` on. */
static uint64_t plane_place(const weight *m, uint64_t offset, int plane, int32_t from)
{
    for (int i = 0; i < plane; i++)
        offset += (uint64_t)m->residency.n_groups * m->residency.plane_bytes[i];
    return offset + (uint64_t)from * m->residency.plane_bytes[plane];
}

/* ---- Writing ---- */

/* Writes the packed groups [from, to), as they are or in planes, which are made where the
 * rows were. */
static drey_status write_groups(const packer *p, new_file *out, const weight *m, uint64_t offset,
                                int32_t from, int32_t to, drey_error *err)
{
    if (!m->form.planes)
        return new_file_write(out, offset + (uint64_t)from * m->residency.group_bytes, p->packed,
                              (size_t)(to - from) * m->residency.group_bytes, err);
    uint8_t *plane[N_PLANES], *at = p->raw;
    for (int i = 0; i < N_PLANES; i++) {
        plane[i] = at;
        at += (size_t)(to - from) * m->residency.plane_bytes[i];
    }
    plane_split(m->form.planes, plane, p->packed, matrix_blocks(&m->form, to - from));
    for (int i = 0; i < N_PLANES; i++)
        TRY(new_file_write(out, plane_place(m, offset, i, from), plane[i],
                           (size_t)(to - from) * m->residency.plane_bytes[i], err));
    return DREY_OK;
}

static drey_status write_matrix(packer *p, new_file *out, const weight *m, sidecar_entry *e,
                                drey_error *err)
{
    hash64 hash;
    plane_counts counts = {{{0}}};
    hash64_init(&hash);
    for (int32_t from = 0, to; from < m->residency.n_groups; from = to) {
        to = run_end(m, from);
        size_t n = (size_t)(to - from) * m->residency.group_bytes;
        TRY(pack_run(p, m, from, to, err));
        hash64_add(&hash, p->packed, n);
        if (m->form.planes)
            plane_count(m->form.planes, &counts, p->packed, matrix_blocks(&m->form, to - from));
        TRY(write_groups(p, out, m, e->offset, from, to, err));
        TRY(advance(p, n, err));
    }
    e->hash = hash64_get(&hash);
    if (m->form.planes)
        memcpy(e->means, plane_means_of(&counts).low, sizeof e->means);
    return DREY_OK;
}

static drey_status take_space(const sidecar_job *job, new_file *out, uint64_t n_bytes,
                              drey_error *err)
{
    uint64_t free_bytes;
    TRY(new_file_space(out, &free_bytes, err));
    if (job->announce)
        job->announce(job->user, out->path, n_bytes, free_bytes);
    TRY(new_file_check_room(out, n_bytes, free_bytes, err));
    return new_file_reserve(out, n_bytes, err);
}

/* The model may not have changed between the first look at it and the last read. */
static drey_status check_unchanged(const sidecar_table *t, const gguf *g, drey_error *err)
{
    sidecar_table now = {0};
    int32_t n_parts = gguf_n_shards(g);
    TRY(sidecar_table_make(&now, n_parts, NULL, 0, err));
    drey_status status = sidecar_table_stamp(&now, g, err);
    if (status == DREY_OK && memcmp(now.stamp, t->stamp, (size_t)n_parts * sizeof *now.stamp) != 0)
        status = error_set(err, DREY_ERR_IO, "%s was changed while it was read; try again",
                           SHOWN_PATH(gguf_shard_path(g, 0)));
    sidecar_table_free(&now);
    return status;
}

static drey_status write_all(packer *p, sidecar_table *t, new_file *out, drey_error *err)
{
    const sidecar_job *job = p->job;
    TRY(sidecar_table_stamp(t, job->source, err));
    TRY(take_space(job, out, t->head->file_bytes, err));
    for (int32_t i = 0; i < job->n_matrices; i++)
        TRY(write_matrix(p, out, &job->matrix[i], &t->entry[i], err));
    TRY(check_unchanged(t, job->source, err));
    t->head->checksum = sidecar_table_checksum(t);
    return new_file_write(out, 0, t->bytes, t->n_bytes, err);
}

static drey_status write_new(const sidecar_job *job, packer *p, sidecar_table *t, new_file *out,
                             drey_error *err)
{
    TRY(packer_open(p, job, DREY_PROGRESS_PREPARE, err));
    TRY(sidecar_table_make(t, gguf_n_shards(job->source), job->matrix, job->n_matrices, err));
    TRY(new_file_open(out, job->path, err));
    TRY(write_all(p, t, out, err));
    return new_file_commit(out, err);
}

drey_status sidecar_write(const sidecar_job *job, uint64_t *n_bytes, drey_error *err)
{
    packer p;
    new_file out = {.fd = -1};
    sidecar_table t = {0};
    drey_status status = write_new(job, &p, &t, &out, err);
    if (status == DREY_OK)
        *n_bytes = t.head->file_bytes;
    new_file_discard(&out);
    sidecar_table_free(&t);
    packer_close(&p);
    return status;
}

/* ---- Checking ---- */

/* Reads the packed groups [from, to) of the sidecar into p->raw; p->packed is free to be used. */
static drey_status read_groups(packer *p, const file *sidecar, const weight *m, int32_t from,
                               int32_t to, drey_error *err)
{
    const char *path = p->job->path;
    size_t n_groups = (size_t)(to - from);
    if (!m->form.planes)
        return file_read(sidecar, path,
                         m->reads.sidecar_offset + (uint64_t)from * m->residency.group_bytes,
                         n_groups * m->residency.group_bytes, p->raw, p->bounce, BOUNCE_BYTES, err);
    plane_blocks blocks = {.means = m->form.means};
    uint8_t *at = p->packed;
    for (int i = 0; i < N_PLANES; i++) {
        size_t n = n_groups * m->residency.plane_bytes[i];
        TRY(file_read(sidecar, path, plane_place(m, m->reads.sidecar_offset, i, from), n, at,
                      p->bounce, BOUNCE_BYTES, err));
        blocks.plane[i] = at;
        at += n;
    }
    m->form.kernels->plane_join(p->raw, m->form.planes, &blocks,
                                matrix_blocks(&m->form, to - from));
    return DREY_OK;
}

static drey_status verify_matrix(packer *p, const file *sidecar, const weight *m, drey_error *err)
{
    const char *path = p->job->path;
    const uint64_t stated = m->reads.sidecar_hash;
    hash64 model, held;
    hash64_init(&model);
    hash64_init(&held);
    for (int32_t from = 0, to; from < m->residency.n_groups; from = to) {
        to = run_end(m, from);
        size_t n = (size_t)(to - from) * m->residency.group_bytes;
        TRY(pack_run(p, m, from, to, err));
        hash64_add(&model, p->packed, n);
        TRY(read_groups(p, sidecar, m, from, to, err));
        hash64_add(&held, p->raw, n);
        TRY(advance(p, n, err));
    }
    if (hash64_get(&held) != stated)
        FAIL_HINT(err, DREY_ERR_FORMAT, DREY_HINT_PREPARE,
                  "%s is damaged in matrix %s; check the disk and have it written again",
                  SHOWN_PATH(path), m->form.tensor->name);
    if (hash64_get(&model) != stated)
        FAIL_HINT(
            err, DREY_ERR_MISMATCH, DREY_HINT_PREPARE,
            "%s is stale: matrix %s of the model has changed, or is damaged; check the model and "
            "have the sidecar written again",
            SHOWN_PATH(path), m->form.tensor->name);
    return DREY_OK;
}

static drey_status verify_all(packer *p, uint64_t *n_bytes, drey_error *err)
{
    file sidecar;
    TRY(file_open(&sidecar, p->job->path, true, err));
    drey_status status = DREY_OK;
    for (int32_t i = 0; i < p->job->n_matrices && status == DREY_OK; i++)
        status = verify_matrix(p, &sidecar, &p->job->matrix[i], err);
    *n_bytes = sidecar.n_bytes;
    file_close(&sidecar);
    return status;
}

drey_status sidecar_verify(const sidecar_job *job, uint64_t *n_bytes, drey_error *err)
{
    packer p = {.job = job};
    drey_status status =
        sidecar_attach(job->path, job->source, job->matrix, job->n_matrices, NULL, err);
    if (status == DREY_OK)
        status = packer_open(&p, job, DREY_PROGRESS_CHECK, err);
    if (status == DREY_OK)
        status = verify_all(&p, n_bytes, err);
    packer_close(&p);
    return status;
}
