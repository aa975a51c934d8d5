/* The sidecar's table, and whether a file is the sidecar of a model: see sidecar.h. */
#include "weights/sidecar.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/error.h"
#include "common/hash.h"
#include "gguf/gguf.h"
#include "kernel/kernel.h"
#include "os/file.h"
#include "weights/weights.h"

static const char magic[8] = {'d', 'r', 'e', 'y', 's', 'i', 'd', 'e'};
static const uint32_t byte_order = 0x01020304;

enum {
    N_SAMPLES = 32, /* pages of a file */
    PAGE = 4096,
    BOUNCE_BYTES = 256 << 10
};

bool sidecar_is_one(const char *path)
{
    char front[sizeof magic];
    file f;
    if (file_open(&f, path, false, NULL) != DREY_OK)
        return false;
    bool is_one = f.n_bytes >= sizeof front &&
                  file_read(&f, path, 0, sizeof front, front, NULL, 0, NULL) == DREY_OK &&
                  memcmp(front, magic, sizeof magic) == 0;
    file_close(&f);
    return is_one;
}

/* ---- The table that a model asks for ---- */

static uint64_t aligned(uint64_t bytes)
{
    return (bytes + SIDECAR_ALIGN - 1) / SIDECAR_ALIGN * SIDECAR_ALIGN;
}

static void point(sidecar_table *t, int32_t n_parts)
{
    t->head = (sidecar_head *)(void *)t->bytes;
    t->stamp = (sidecar_stamp *)(void *)(t->bytes + sizeof *t->head);
    t->entry = (sidecar_entry *)(void *)(t->stamp + n_parts);
}

drey_status sidecar_table_make(sidecar_table *t, int32_t n_parts, const weight *matrix, int32_t n,
                               drey_error *err)
{
    _Static_assert(sizeof(sidecar_head) == 64 && sizeof(sidecar_stamp) == 40 &&
                       sizeof(sidecar_entry) == 112,
                   "the file's structures have no gaps");
    t->n_bytes =
        sizeof *t->head + (size_t)n_parts * sizeof *t->stamp + (size_t)n * sizeof *t->entry;
    t->bytes = calloc(1, t->n_bytes);
    if (!t->bytes)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a table of %d matrices", n);
    point(t, n_parts);
    uint64_t at = aligned(t->n_bytes);
    uint32_t version = SIDECAR_VERSION;
    for (int32_t i = 0; i < n; i++) {
        const weight *m = &matrix[i];
        sidecar_entry *e = &t->entry[i];
        version = m->form.planes ? SIDECAR_VERSION_PLANES : version;
        *e = (sidecar_entry){
            .type = m->form.tensor->type, .n_rows = m->form.n_rows, .k = m->form.k, .offset = at};
        _Static_assert(sizeof e->name == sizeof m->form.tensor->name, "names fit");
        memcpy(e->name, m->form.tensor->name, strlen(m->form.tensor->name)); /* zeros after it */
        e->n_bytes = (uint64_t)m->residency.n_groups * m->residency.group_bytes;
        at = aligned(at + e->n_bytes);
    }
    *t->head = (sidecar_head){.byte_order = byte_order,
                              .version = version,
                              .layout = KERNEL_LAYOUT_VERSION,
                              .group_rows = GROUP_ROWS,
                              .n_parts = (uint32_t)n_parts,
                              .n_matrices = (uint32_t)n,
                              .table_bytes = t->n_bytes,
                              .file_bytes = at};
    memcpy(t->head->magic, magic, sizeof magic);
    return DREY_OK;
}

void sidecar_table_free(sidecar_table *t)
{
    free(t->bytes);
    *t = (sidecar_table){0};
}

uint64_t sidecar_table_checksum(const sidecar_table *t)
{
    sidecar_head head = *t->head;
    head.checksum = 0;
    hash64 h;
    hash64_init(&h);
    hash64_add(&h, &head, sizeof head);
    hash64_add(&h, t->bytes + sizeof head, t->n_bytes - sizeof head);
    return hash64_get(&h);
}

/* ---- Stamps ---- */

typedef struct sampler_file { /* a file of the model while it is being stamped */
    file file;
    const char *path;
    uint8_t *bounce, *bytes; /* [BOUNCE_BYTES] each */
} sampler_file;

static drey_status hash_range(const sampler_file *s, hash64 *h, uint64_t from, uint64_t to,
                              drey_error *err)
{
    while (from < to) {
        size_t n = to - from < BOUNCE_BYTES ? (size_t)(to - from) : BOUNCE_BYTES;
        TRY(file_read(&s->file, s->path, from, n, s->bytes, s->bounce, BOUNCE_BYTES, err));
        hash64_add(h, s->bytes, n);
        from += n;
    }
    return DREY_OK;
}

/* Returns the offset of the part's first tensor; its size where it has none. */
static uint64_t first_tensor(const gguf *g, int32_t part, uint64_t n_bytes)
{
    uint64_t first = n_bytes;
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const gguf_tensor *t = gguf_tensor_at(g, i);
        if (t->part == part && t->offset < first)
            first = t->offset;
    }
    return first;
}

static drey_status stamp_file(const sampler_file *s, uint64_t first, sidecar_stamp *out,
                              drey_error *err)
{
    struct stat about;
    if (fstat(s->file.fd, &about) != 0)
        FAIL(err, DREY_ERR_IO, "cannot look at %s; check its disk", SHOWN_PATH(s->path));
    uint64_t n_bytes = s->file.n_bytes, n_data = n_bytes - first;
    *out = (sidecar_stamp){
        .n_bytes = n_bytes, .changed_s = about.st_mtim.tv_sec, .changed_ns = about.st_mtim.tv_nsec};
    hash64 header, samples;
    hash64_init(&header);
    hash64_init(&samples);
    TRY(hash_range(s, &header, 0, first, err));
    if (n_data <= N_SAMPLES * PAGE)
        TRY(hash_range(s, &samples, first, n_bytes, err));
    for (uint64_t i = 0; n_data > N_SAMPLES * PAGE && i < N_SAMPLES; i++) {
        uint64_t at = first + (n_data - PAGE) * i / (N_SAMPLES - 1); /* the last page, at last */
        TRY(hash_range(s, &samples, at, at + PAGE, err));
    }
    out->header_hash = hash64_get(&header);
    out->sample_hash = hash64_get(&samples);
    return DREY_OK;
}

drey_status sidecar_table_stamp(sidecar_table *t, const gguf *g, drey_error *err)
{
    sampler_file s = {.file.fd = -1};
    s.bounce = aligned_alloc(BOUNCE_BYTES, 2 * BOUNCE_BYTES);
    if (!s.bounce)
        FAIL(err, DREY_ERR_MEMORY, "no memory to look at %s", SHOWN_PATH(gguf_shard_path(g, 0)));
    s.bytes = s.bounce + BOUNCE_BYTES;
    drey_status status = DREY_OK;
    for (int32_t part = 0; part < gguf_n_shards(g) && status == DREY_OK; part++) {
        s.path = gguf_shard_path(g, part);
        status = file_open(&s.file, s.path, true, err);
        uint64_t first = first_tensor(g, part, s.file.n_bytes);
        if (status == DREY_OK && first > s.file.n_bytes)
            status = file_read_failed(s.path, s.file.n_bytes, FILE_SHORTER, err);
        if (status == DREY_OK)
            status = stamp_file(&s, first, &t->stamp[part], err);
        file_close(&s.file);
    }
    free(s.bounce);
    return status;
}

/* ---- Comparing ---- */

#define AGAIN                  "have it written again, or continue without it"
#define REFUSE(err, code, ...) FAIL_HINT((err), (code), DREY_HINT_SIDECAR, __VA_ARGS__)

static drey_status compare_head(const sidecar_table *want, const sidecar_head *head,
                                const char *path, drey_error *err)
{
    const sidecar_head *w = want->head;
    if (memcmp(head->magic, magic, sizeof magic) != 0)
        REFUSE(err, DREY_ERR_FORMAT,
               "%s is no sidecar of drey's; name another file, or continue without it", path);
    if (head->byte_order != byte_order)
        REFUSE(err, DREY_ERR_MISMATCH,
               "%s was written on a machine with another order of bytes; " AGAIN, path);
    if (head->version != w->version || head->layout != w->layout ||
        head->group_rows != w->group_rows)
        REFUSE(err, DREY_ERR_MISMATCH, "%s was written by another version of drey; " AGAIN, path);
    if (head->n_parts != w->n_parts || head->n_matrices != w->n_matrices ||
        head->table_bytes != w->table_bytes)
        REFUSE(err, DREY_ERR_MISMATCH, "%s belongs to another model; " AGAIN, path);
    return DREY_OK;
}

static drey_status compare_stamps(const sidecar_table *want, const sidecar_table *got,
                                  const char *path, drey_error *err)
{
    for (uint32_t i = 0; i < want->head->n_parts; i++) {
        const sidecar_stamp *w = &want->stamp[i], *g = &got->stamp[i];
        const char *what = w->n_bytes != g->n_bytes           ? "size"
                           : w->header_hash != g->header_hash ? "header"
                           : w->sample_hash != g->sample_hash ? "data"
                           : w->changed_s != g->changed_s || w->changed_ns != g->changed_ns
                               ? "time of change"
                               : NULL;
        if (what)
            REFUSE(err, DREY_ERR_MISMATCH,
                   "%s is stale: the model's %s is not what it was when the sidecar was "
                   "written; " AGAIN,
                   path, what);
    }
    return DREY_OK;
}

static bool same_entry(const sidecar_entry *a, const sidecar_entry *b)
{
    return memcmp(a->name, b->name, sizeof a->name) == 0 && a->type == b->type &&
           a->n_rows == b->n_rows && a->k == b->k && a->offset == b->offset &&
           a->n_bytes == b->n_bytes;
}

/* Each stands for two bits. Those of matrices that are not split are not looked at. */
static bool good_means(const sidecar_entry *e)
{
    return e->means[0] < 4 && e->means[1] < 4 && e->means[2] < 4 && e->means[3] < 4;
}

static drey_status compare_table(const sidecar_table *want, const sidecar_table *got,
                                 uint64_t file_bytes, const char *path, drey_error *err)
{
    TRY(compare_head(want, got->head, path, err));
    if (sidecar_table_checksum(got) != got->head->checksum)
        REFUSE(err, DREY_ERR_FORMAT, "%s is damaged in its table; " AGAIN, path);
    TRY(compare_stamps(want, got, path, err));
    bool same = want->head->file_bytes == got->head->file_bytes && got->head->zero == 0;
    for (uint32_t i = 0; i < want->head->n_matrices; i++)
        same &= same_entry(&want->entry[i], &got->entry[i]) && good_means(&got->entry[i]);
    if (!same)
        REFUSE(err, DREY_ERR_MISMATCH, "%s lists other matrices than the model has; " AGAIN, path);
    if (file_bytes != got->head->file_bytes)
        REFUSE(err, DREY_ERR_FORMAT,
               "%s has %llu bytes instead of %llu: it is not all there; " AGAIN, path,
               (unsigned long long)file_bytes, (unsigned long long)got->head->file_bytes);
    return DREY_OK;
}

drey_status sidecar_compare(const sidecar_table *want, const uint8_t *bytes, size_t n_bytes,
                            uint64_t file_bytes, const char *path, drey_error *err)
{
    sidecar_head head = {.magic = ""};
    bool has_head = n_bytes >= sizeof head;
    memcpy(&head, bytes, has_head ? sizeof head : n_bytes);
    if (has_head || memcmp(head.magic, magic, sizeof magic) != 0)
        TRY(compare_head(want, &head, SHOWN_PATH(path), err));
    if (n_bytes < want->n_bytes)
        REFUSE(err, DREY_ERR_FORMAT, "%s ends inside its table; " AGAIN, SHOWN_PATH(path));
    sidecar_table got = {.bytes = malloc(want->n_bytes), .n_bytes = want->n_bytes};
    if (!got.bytes)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the table of %s", SHOWN_PATH(path));
    memcpy(got.bytes, bytes, want->n_bytes);
    point(&got, (int32_t)want->head->n_parts);
    drey_status status = compare_table(want, &got, file_bytes, SHOWN_PATH(path), err);
    sidecar_table_free(&got);
    return status;
}

/* ---- Files ---- */

/* Reads the front of the sidecar, as long as the table should be, and compares it. */
static drey_status compare_file(const char *path, const sidecar_table *want, uint8_t *front,
                                uint8_t *bounce, file_stamp *stamp, drey_error *err)
{
    file f;
    TRY(file_open(&f, path, true, err));
    if (stamp)
        *stamp = f.stamp;
    size_t n = f.n_bytes < want->n_bytes ? (size_t)f.n_bytes : want->n_bytes;
    drey_status status = file_read(&f, path, 0, n, front, bounce, BOUNCE_BYTES, err);
    if (status == DREY_OK)
        status = sidecar_compare(want, front, n, f.n_bytes, path, err);
    file_close(&f);
    return status;
}

/* Returns whether the file says that it has planes; anything else is found out by comparing. */
static bool has_planes(const char *path)
{
    sidecar_head head = {.magic = ""};
    file f;
    if (file_open(&f, path, false, NULL) != DREY_OK)
        return false;
    bool planes = f.n_bytes >= sizeof head &&
                  file_read(&f, path, 0, sizeof head, &head, NULL, 0, NULL) == DREY_OK &&
                  memcmp(head.magic, magic, sizeof magic) == 0 &&
                  head.version == SIDECAR_VERSION_PLANES;
    file_close(&f);
    return planes;
}

/* The matrices are in the file, whose table was good. */
static void attach_matrix(weight *m, const sidecar_entry *want, const sidecar_entry *got)
{
    weight_read_sidecar(m, want->offset);
    m->reads.sidecar_hash = got->hash;
    memcpy(m->form.means.low, got->means, sizeof m->form.means.low);
}

drey_status sidecar_attach(const char *path, const gguf *g, weight *matrix, int32_t n,
                           file_stamp *stamp, drey_error *err)
{
    sidecar_table want = {0};
    bool planes = has_planes(path);
    for (int32_t i = 0; i < n; i++)
        if (planes)
            weight_split(&matrix[i]);
        else
            weight_join(&matrix[i]);
    drey_status status = sidecar_table_make(&want, gguf_n_shards(g), matrix, n, err);
    uint8_t *bounce = aligned_alloc(BOUNCE_BYTES, BOUNCE_BYTES);
    uint8_t *front = status == DREY_OK ? calloc(1, want.n_bytes) : NULL;
    if (status == DREY_OK && (!front || !bounce))
        status = error_set(err, DREY_ERR_MEMORY, "no memory for the table of %s", SHOWN_PATH(path));
    if (status == DREY_OK)
        status = sidecar_table_stamp(&want, g, err);
    if (status == DREY_OK)
        status = compare_file(path, &want, front, bounce, stamp, err);
    sidecar_table got = {.bytes = front, .n_bytes = want.n_bytes};
    if (status == DREY_OK)
        point(&got, gguf_n_shards(g));
    for (int32_t i = 0; status == DREY_OK && i < n; i++)
        attach_matrix(&matrix[i], &want.entry[i], &got.entry[i]);
    for (int32_t i = 0; status != DREY_OK && i < n; i++)
        weight_join(&matrix[i]);
    sidecar_table_free(&want);
    free(front);
    free(bounce);
    return status;
}
