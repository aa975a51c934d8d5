/* Measures how fast the disk delivers a model's weights: the stream itself, reading the tensors in
 * the order of the file, or a sidecar's groups, with nothing to compute, for two seconds or until
 * the end; or as long as asked, from the beginning again and again: a throttled device grants a
 * burst at first.
 *
 * Direct reads do not see the page cache. Buffered ones would measure it, so the weights are
 * dropped from it beforehand. */
#include <stdlib.h>
#include <sys/resource.h>

#include "base/arena.h"
#include "gguf/gguf.h"
#include "os/clock.h"
#include "os/file.h"
#include "tune/machine_limits.h"
#include "weights/sidecar.h"
#include "weights/stream.h"

enum { RING_PIECES = 32, RING_BYTES = 64 << 20, LEAST_PIECES = 4, LEAST_READ = 64 << 10 };

typedef struct span { /* part of a file: from its first tensor to the end of its last */
    uint64_t begin, end;
} span;

typedef struct subject { /* file that is read: a model, or a sidecar */
    const gguf *model;   /* NULL: a sidecar */
    const char *path;
    uint64_t n_bytes;     /* size of the sidecar */
    uint32_t piece_bytes; /* bytes of one read */
} subject;

static int32_t n_parts_of(const subject *s)
{
    return s->model ? gguf_n_shards(s->model) : 1;
}

static const char *path_of(const subject *s, int32_t part)
{
    return s->model ? gguf_shard_path(s->model, part) : s->path;
}

static span tensors_of(const subject *of, int32_t part)
{
    const gguf *g = of->model;
    span s = {UINT64_MAX, 0};
    if (!g)
        return (span){0, of->n_bytes};
    for (uint64_t i = 0; i < gguf_n_tensors(g); i++) {
        const gguf_tensor *t = gguf_tensor_at(g, i);
        if (t->part != part || t->n_bytes == 0)
            continue;
        if (t->offset < s.begin)
            s.begin = t->offset;
        if (t->offset + t->n_bytes > s.end)
            s.end = t->offset + t->n_bytes;
    }
    return s.begin < s.end ? s : (span){0, 0};
}

/* All parts cut into pieces; pieces may be NULL to count them. */
static int64_t cut(const subject *of, stream_piece *pieces)
{
    int64_t n = 0;
    for (int32_t part = 0; part < n_parts_of(of); part++) {
        span s = tensors_of(of, part);
        for (uint64_t at = s.begin; at < s.end; at += of->piece_bytes, n++) {
            uint64_t left = s.end - at;
            uint32_t n_bytes = left < of->piece_bytes ? (uint32_t)left : of->piece_bytes;
            if (pieces)
                pieces[n] = (stream_piece){.part = part, .n_bytes = n_bytes, .offset = at};
        }
    }
    return n;
}

static drey_status size_of(const char *path, uint64_t *n_bytes, drey_error *err)
{
    file f;
    TRY(file_open(&f, path, false, err));
    *n_bytes = f.n_bytes;
    file_close(&f);
    return DREY_OK;
}

static drey_status drop_cached(const char *path, drey_error *err)
{
    file f;
    TRY(file_open(&f, path, false, err));
    file_drop(&f, 0, (size_t)f.n_bytes);
    file_close(&f);
    return DREY_OK;
}

/* Returns the processor time of the whole process: whatever reads, this program's threads or the
 * kernel's for it. */
static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Takes pieces and gives them back at once, until the time is up or there are no more. It takes at
 * least one, however long opening lasts on a busy machine. */
static drey_status measure(const stream_options *options, double seconds, drey_disk_report *report,
                           drey_error *err)
{
    stream *s = NULL;
    double begin = clock_s(), cpu = cpu_seconds();
    TRY(stream_open(&s, options, err));
    int64_t seq = 0;
    while ((seq < options->n_first || options->n_cycle) &&
           (seq == 0 || clock_s() - begin < seconds) && stream_wait(s, seq))
        stream_release(s, seq++);
    double taken = clock_s() - begin;
    cpu = cpu_seconds() - cpu;
    stream_counters count;
    stream_count(s, &count);
    drey_status status = stream_status(s, err);
    stream_close(&s);
    *report = (drey_disk_report){.bytes_per_s = (double)count.read_bytes / taken,
                                 .read_bytes = count.read_bytes,
                                 .cpu_s = cpu,
                                 .direct = count.direct,
                                 .uring = count.uring,
                                 .registered = count.registered};
    return status;
}

/* The ring for reads of a size, within `most` bytes: smaller reads where not enough of them fit,
 * down to some that are too slow to be of use. */
static size_t fit_ring(uint32_t *piece_bytes, size_t most)
{
    while (LEAST_PIECES * STREAM_ROOM_BYTES(*piece_bytes) > most && *piece_bytes > LEAST_READ)
        *piece_bytes = *piece_bytes / 2 > LEAST_READ ? *piece_bytes / 2 : LEAST_READ;
    size_t slot = STREAM_ROOM_BYTES(*piece_bytes), n = most / slot;
    return slot * (n > RING_PIECES ? RING_PIECES : n < LEAST_PIECES ? LEAST_PIECES : n);
}

static drey_status bench(const subject *of, const limits_reading *what, size_t ring_bytes,
                         arena *ring, stream_piece **pieces, const char ***paths,
                         drey_disk_report *report, drey_error *err)
{
    int32_t n_parts = n_parts_of(of);
    int64_t n_pieces = cut(of, NULL);
    if (n_pieces == 0)
        FAIL(err, DREY_ERR_FORMAT, "%s holds no tensors; give a model's first file",
             path_of(of, 0));
    *pieces = malloc((size_t)n_pieces * sizeof **pieces);
    *paths = malloc((size_t)n_parts * sizeof **paths);
    if (!*pieces || !*paths)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a list of %lld reads", (long long)n_pieces);
    cut(of, *pieces);
    for (int32_t part = 0; part < n_parts; part++) {
        (*paths)[part] = path_of(of, part);
        TRY(drop_cached((*paths)[part], err));
    }
    TRY(arena_init(ring, ring_bytes, true, err));
    stream_options options = {.paths = *paths,
                              .n_paths = n_parts,
                              .first = *pieces,
                              .n_first = n_pieces,
                              .cycle = *pieces,
                              .n_cycle = what->again ? n_pieces : 0,
                              .ring = ring->base,
                              .ring_bytes = ring->size_bytes,
                              .io = what->io};
    return measure(&options, what->seconds, report, err);
}

drey_status limits_disk(const limits_reading *what, drey_disk_report *report, drey_error *err)
{
    *report = (drey_disk_report){0};
    TRY(stream_check_read_bytes(what->read_bytes, err));
    if (!what->path || what->io < DREY_IO_AUTO || what->io > DREY_IO_BUFFERED)
        FAIL(err, DREY_ERR_USAGE, "give a model file and one of the ways of reading");
    subject of = {.path = what->path,
                  .model = what->model,
                  .piece_bytes = what->read_bytes ? (uint32_t)what->read_bytes : READ_BYTES};
    bool limited = what->ring_bytes > 0 && what->ring_bytes < RING_BYTES;
    size_t ring_bytes = fit_ring(&of.piece_bytes, limited ? what->ring_bytes : RING_BYTES);
    gguf *opened = NULL;
    arena ring = {0};
    stream_piece *pieces = NULL;
    const char **paths = NULL;
    drey_status status = DREY_OK;
    if (!of.model && sidecar_is_one(of.path))
        status = size_of(of.path, &of.n_bytes, err);
    else if (!of.model)
        status = gguf_open(&opened, of.path, err);
    if (opened)
        of.model = opened;
    if (status == DREY_OK)
        status = bench(&of, what, ring_bytes, &ring, &pieces, &paths, report, err);
    gguf_close(&opened);
    arena_free(&ring);
    free(pieces);
    free(paths);
    return status;
}
