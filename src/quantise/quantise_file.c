/* drey_quantize: a model's file with other tensor types, tensor by tensor.
 *
 *   read some rows -> threads: 32 rows at a time, to floats, to blocks -> write them
 *
 * Rows are dequantised as passes do it: packed into a group of 32, which also says whether their
 * numbers are finite, and unpacked. How many rows are read at a time depends on the memory; a row's
 * bytes do not depend on it. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/path.h"
#include "common/size_text.h"
#include "drey/quantize.h"
#include "gguf/new_gguf.h"
#include "kernel/kernel.h"
#include "os/file.h"
#include "os/memory.h"
#include "os/pool.h"
#include "quantise/block_encode.h"
#include "quantise/file_types.h"
#include "quantise/importance.h"

enum {
    BOUNCE_BYTES = 1 << 20,
    BOUNCE_ALIGN = 1 << 16,
    MOST_CHUNK_BYTES = 32 << 20,
    QUANTISATION_VERSION = 2
};

/* A tensor's way. */
typedef struct job_tensor {
    const gguf_tensor *from;
    uint32_t type;
    uint64_t n_bytes; /* in the output */
    const importance_entry *importance;
} job_tensor;

typedef struct quantising {
    const drey_quantize_options *o;
    drey_quantize_report *report;
    gguf *source;
    const kernel_table *kernels;
    importance importance;
    file_mix mix;
    job_tensor *tensors; /* [n_tensors] */
    new_gguf front;
    pool *pool;
    int32_t n_threads;
    file file; /* part `part` of the source; -1: none is open */
    int32_t part;
    uint64_t done_bytes, total_bytes; /* bytes of tensors in the input */
    struct {
        uint8_t *bounce, *in, *out; /* a chunk, before and after */
        uint8_t *work;              /* [n_threads][thread_bytes] */
        size_t in_bytes, out_bytes, thread_bytes;
    } room;
} quantising;

/* ---- Options ---- */

void drey_quantize_options_init(drey_quantize_options *options)
{
    *options = (drey_quantize_options){.memory_bytes = DREY_MEMORY_AUTO};
}

const char *drey_quantize_type(int32_t i)
{
    const file_type *type = file_type_at(i);
    return type ? type->name : NULL;
}

static drey_status check_options(const drey_quantize_options *o, const file_type **as,
                                 drey_error *err)
{
    if (!o->input || !o->output || !o->type)
        FAIL(err, DREY_ERR_USAGE, "name a model, the file to write, and a type");
    *as = file_type_find(o->type);
    if (!*as) {
        char names[300] = "";
        for (int32_t i = 0; file_type_at(i); i++)
            snprintf(names + strlen(names), sizeof names - strlen(names), "%s%s", i ? ", " : "",
                     file_type_at(i)->name);
        FAIL(err, DREY_ERR_USAGE, "\"%.40s\" is no type to quantise to; there are %s", o->type,
             names);
    }
    if (file_type_needs_importance(*as) && !o->importance)
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_IMPORTANCE,
                  "%s keeps so few bits that it takes an importance matrix to say which: make one "
                  "from a text, and give it",
                  (*as)->name);
    if (o->n_threads < 0 || o->n_threads > DREY_MAX_THREADS)
        FAIL_HINT(err, DREY_ERR_USAGE, DREY_HINT_N_THREADS, "threads are 1 to %d",
                  DREY_MAX_THREADS);
    return DREY_OK;
}

/* ---- What each tensor becomes ---- */

static int64_t n_rows(const gguf_tensor *t)
{
    return t->dims[1] * t->dims[2] * t->dims[3];
}

static drey_status choose(quantising *q, job_tensor *j, drey_error *err)
{
    const gguf_tensor *t = j->from;
    const type_traits *from = type_find(t->type);
    bool fell_back;
    j->importance = importance_find(&q->importance, t->name);
    j->type = file_mix_choose(&q->mix, t, j->importance != NULL, &fell_back);
    j->n_bytes = t->n_bytes;
    if (j->type == t->type)
        return DREY_OK;
    if (!from->runnable)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s has the type %s, which drey cannot read; begin with "
             "another file of the model",
             t->name, from->name);
    if (!type_is_float(t->type) && !q->o->requantize)
        FAIL_HINT(
            err, DREY_ERR_UNSUPPORTED, DREY_HINT_REQUANTIZE,
            "%s is quantised already (%s), and would lose more than from F16; begin with an F16 or "
            "BF16 file, or allow it to be quantised again",
            t->name, from->name);
    j->n_bytes = (uint64_t)(n_rows(t) * type_row_bytes(type_find(j->type), t->dims[0]));
    q->report->n_changed++;
    q->report->n_fallbacks += fell_back;
    q->report->n_unimportant += q->o->importance && !type_is_float(j->type) && !j->importance;
    return DREY_OK;
}

static drey_status choose_all(quantising *q, drey_error *err)
{
    const uint64_t n = gguf_n_tensors(q->source);
    q->tensors = calloc(n + 1, sizeof *q->tensors);
    if (!q->tensors)
        FAIL(err, DREY_ERR_MEMORY, "the system refused memory for a list of tensors");
    for (uint64_t i = 0; i < n; i++) {
        job_tensor *j = &q->tensors[i];
        j->from = gguf_tensor_at(q->source, i);
        TRY(choose(q, j, err));
        q->total_bytes += j->from->n_bytes;
    }
    q->report->n_tensors = (int32_t)n;
    return DREY_OK;
}

/* ---- Keys ---- */

static bool begins_with(gguf_string s, const char *text)
{
    return s.n_bytes >= strlen(text) && memcmp(s.text, text, strlen(text)) == 0;
}

static bool is_replaced(const gguf_key *key)
{
    return gguf_is_text(key->name, "general.file_type") ||
           gguf_is_text(key->name, "general.quantization_version") ||
           begins_with(key->name, "split.") || begins_with(key->name, "quantize.imatrix.");
}

static void make_front(quantising *q)
{
    new_gguf *g = &q->front;
    new_gguf_begin(g, NULL);
    g->alignment = (uint64_t)gguf_int(q->source, "general.alignment", (int64_t)g->alignment);
    for (uint64_t i = 0; i < gguf_n_keys(q->source); i++)
        if (!is_replaced(gguf_key_at(q->source, i)))
            new_gguf_copy_key(g, gguf_key_at(q->source, i));
    new_gguf_u32(g, "general.file_type", q->mix.as->number);
    new_gguf_u32(g, "general.quantization_version", QUANTISATION_VERSION);
    if (q->o->importance) {
        new_gguf_text(g, "quantize.imatrix.file", path_name(q->o->importance));
        if (q->importance.dataset[0])
            new_gguf_text(g, "quantize.imatrix.dataset", q->importance.dataset);
        new_gguf_u32(g, "quantize.imatrix.entries_count", (uint32_t)q->importance.n_entries);
        new_gguf_u32(g, "quantize.imatrix.chunks_count", (uint32_t)q->importance.n_chunks);
    }
    for (int32_t i = 0; i < q->report->n_tensors; i++) {
        const job_tensor *j = &q->tensors[i];
        new_gguf_tensor(g, j->from->name, j->type, j->from->dims, (uint32_t)j->from->n_dims, NULL,
                        j->n_bytes);
    }
}

/* ---- Memory ---- */

static size_t rounded(size_t n)
{
    return (n + 4095) / 4096 * 4096;
}

/* Returns the memory for one group of the tensor, packed and as a row of floats. */
static size_t group_work_bytes(const quantising *q, const gguf_tensor *t)
{
    return rounded(q->kernels->matmul[t->type].group_bytes(t->dims[0])) +
           rounded((size_t)t->dims[0] * sizeof(float));
}

/* The least that each part must have, and the most that is of use. */
static void measure(quantising *q, size_t *least_in, size_t *least_out)
{
    *least_in = *least_out = BOUNCE_BYTES;
    for (int32_t i = 0; i < q->report->n_tensors; i++) {
        const job_tensor *j = &q->tensors[i];
        if (j->type == j->from->type)
            continue;
        const int64_t k = j->from->dims[0];
        size_t in = (size_t)type_row_bytes(type_find(j->from->type), k) * GROUP_ROWS;
        size_t out = (size_t)type_row_bytes(type_find(j->type), k) * GROUP_ROWS;
        size_t work = group_work_bytes(q, j->from);
        *least_in = in > *least_in ? in : *least_in;
        *least_out = out > *least_out ? out : *least_out;
        q->room.thread_bytes = work > q->room.thread_bytes ? work : q->room.thread_bytes;
    }
}

static drey_status take_room(quantising *q, drey_error *err)
{
    bool estimated;
    size_t least_in, least_out;
    measure(q, &least_in, &least_out);
    uint64_t budget = q->o->memory_bytes == DREY_MEMORY_AUTO ? memory_auto_budget(&estimated)
                                                             : q->o->memory_bytes;
    uint64_t held = memory_program() + BOUNCE_BYTES +
                    (uint64_t)q->n_threads * (q->room.thread_bytes + pool_thread_bytes());
    uint64_t least = held + least_in + least_out;
    if (budget != 0 && budget < least)
        FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
                  "quantising this model on %d threads needs %s of memory; give it so much, or "
                  "fewer threads",
                  q->n_threads, format_bytes_up((char[16]){0}, (double)least));
    uint64_t spare = budget == 0 ? 0 : (budget - least) / 2;
    size_t more = (size_t)(spare < MOST_CHUNK_BYTES ? spare : MOST_CHUNK_BYTES);
    q->room.in_bytes = rounded(least_in + more);
    q->room.out_bytes = rounded(least_out + more);
    q->room.bounce = aligned_alloc(BOUNCE_ALIGN, BOUNCE_BYTES);
    q->room.in = aligned_alloc(4096, q->room.in_bytes);
    q->room.out = aligned_alloc(4096, q->room.out_bytes);
    q->room.work = aligned_alloc(4096, q->room.thread_bytes * (size_t)q->n_threads + 4096);
    if (!q->room.bounce || !q->room.in || !q->room.out || !q->room.work)
        FAIL(err, DREY_ERR_MEMORY, "the system refused memory; free some memory");
    return DREY_OK;
}

/* ---- Rows ---- */

typedef struct chunk {
    quantising *q;
    const job_tensor *tensor;
    int64_t first_row, n_rows;
    atomic_llong next; /* group that no thread has taken */
    atomic_bool infinite;
} chunk;

/* Experts may have importance each, or one for all. */
static const float *importance_of(const job_tensor *j, int64_t row)
{
    const importance_entry *e = j->importance;
    if (!e)
        return NULL;
    const int64_t k = j->from->dims[0];
    return e->squares + (e->n == k ? 0 : row / j->from->dims[1] % j->from->dims[2] * k);
}

static void encode_group(chunk *c, int64_t first, int32_t n, uint8_t *work)
{
    const job_tensor *j = c->tensor;
    const quantising *q = c->q;
    const int64_t k = j->from->dims[0];
    const int64_t in_row = type_row_bytes(type_find(j->from->type), k);
    const int64_t out_row = type_row_bytes(type_find(j->type), k);
    const matmul_kernel *m = &q->kernels->matmul[j->from->type];
    float *row = (float *)(void *)(work + rounded(m->group_bytes(k)));
    if (!m->pack(work, q->room.in + first * in_row, in_row, n, k)) {
        atomic_store(&c->infinite, true);
        return;
    }
    for (int32_t r = 0; r < n; r++) {
        m->unpack_row(row, work, r, k);
        block_encode_row((tensor_type)j->type, q->room.out + (first + r) * out_row, row,
                         importance_of(j, c->first_row + first + r), k);
    }
}

static void encode_rows(void *arg, int32_t thread, int32_t n_threads)
{
    chunk *c = arg;
    uint8_t *work = c->q->room.work + (size_t)thread * c->q->room.thread_bytes;
    (void)n_threads;
    for (;;) {
        int64_t first = atomic_fetch_add(&c->next, 1) * GROUP_ROWS;
        if (first >= c->n_rows)
            return;
        int64_t left = c->n_rows - first;
        encode_group(c, first, (int32_t)(left < GROUP_ROWS ? left : GROUP_ROWS), work);
    }
}

/* ---- The file ---- */

static drey_status open_part(quantising *q, int32_t part, drey_error *err)
{
    if (q->part != part) {
        if (q->part >= 0)
            file_close(&q->file);
        q->part = -1;
        TRY(file_open(&q->file, gguf_shard_path(q->source, part), true, err));
        q->part = part;
    }
    return file_check(&q->file, gguf_shard_path(q->source, part), gguf_part_stamp(q->source, part),
                      err);
}

static drey_status read_bytes(const quantising *q, uint64_t offset, size_t n, drey_error *err)
{
    return file_read(&q->file, gguf_shard_path(q->source, q->part), offset, n, q->room.in,
                     q->room.bounce, BOUNCE_BYTES, err);
}

static drey_status check_cancelled(quantising *q, uint64_t n_bytes)
{
    q->done_bytes += n_bytes;
    if (q->o->progress)
        q->o->progress(q->o->user, q->done_bytes, q->total_bytes);
    return q->o->go_on && !q->o->go_on(q->o->user) ? DREY_ERR_CANCELLED : DREY_OK;
}

static drey_status copy_tensor(quantising *q, const job_tensor *j, gguf_sink *to, drey_error *err)
{
    for (uint64_t done = 0; done < j->n_bytes;) {
        uint64_t left = j->n_bytes - done;
        size_t n = left < q->room.in_bytes ? (size_t)left : q->room.in_bytes;
        TRY(read_bytes(q, j->from->offset + done, n, err));
        TRY(gguf_sink_put(to, q->room.in, n, err));
        done += n;
        TRY(check_cancelled(q, n));
    }
    return DREY_OK;
}

static drey_status convert_tensor(quantising *q, const job_tensor *j, gguf_sink *to,
                                  drey_error *err)
{
    const int64_t k = j->from->dims[0], n = n_rows(j->from);
    const size_t in_row = (size_t)type_row_bytes(type_find(j->from->type), k);
    const size_t out_row = (size_t)type_row_bytes(type_find(j->type), k);
    size_t most = q->room.in_bytes / in_row;
    most = q->room.out_bytes / out_row < most ? q->room.out_bytes / out_row : most;
    most = most / GROUP_ROWS * GROUP_ROWS;
    for (int64_t first = 0; first < n; first += (int64_t)most) {
        chunk c = {.q = q, .tensor = j, .first_row = first};
        c.n_rows = n - first < (int64_t)most ? n - first : (int64_t)most;
        const size_t in = (size_t)c.n_rows * in_row;
        TRY(read_bytes(q, j->from->offset + (uint64_t)first * in_row, in, err));
        pool_run(q->pool, encode_rows, &c);
        if (atomic_load(&c.infinite))
            FAIL(err, DREY_ERR_FORMAT, "%s has numbers that are not finite; fetch the model again",
                 j->from->name);
        TRY(gguf_sink_put(to, q->room.out, (size_t)c.n_rows * out_row, err));
        TRY(check_cancelled(q, in));
    }
    return DREY_OK;
}

/* A gguf_fill_fn. What was read counts if the file is still the same after it. */
static drey_status fill(void *user, uint64_t i, gguf_sink *to, drey_error *err)
{
    quantising *q = user;
    const job_tensor *j = &q->tensors[i];
    TRY(open_part(q, j->from->part, err));
    TRY((j->type == j->from->type ? copy_tensor : convert_tensor)(q, j, to, err));
    return open_part(q, j->from->part, err);
}

/* ---- All of it ---- */

static drey_status quantise(quantising *q, const file_type *as, drey_error *err)
{
    const drey_quantize_options *o = q->o;
    TRY(gguf_open(&q->source, o->input, err));
    TRY(new_gguf_check_output(o->output, q->source, o->importance, o->force, err));
    if (o->importance) {
        TRY(importance_read(&q->importance, o->importance, err));
        TRY(importance_check(&q->importance, o->importance, q->source, err));
    }
    file_mix_init(&q->mix, as, q->source, o->importance != NULL);
    TRY(choose_all(q, err));
    make_front(q);
    TRY(take_room(q, err));
    TRY(pool_open(&q->pool, q->n_threads, err));
    q->report->input_bytes = gguf_file_bytes(q->source);
    TRY(new_gguf_stream(&q->front, o->output, fill, q, err));
    struct stat about;
    q->report->output_bytes = stat(o->output, &about) == 0 ? (uint64_t)about.st_size : 0;
    return DREY_OK;
}

drey_status drey_quantize(const drey_quantize_options *o, drey_quantize_report *report,
                          drey_error *err)
{
    drey_quantize_report unused;
    const file_type *as = NULL;
    report = report ? report : &unused;
    *report = (drey_quantize_report){0};
    TRY(check_options(o, &as, err));
    quantising q = {.o = o, .report = report, .kernels = kernel_select(NULL), .part = -1};
    q.n_threads = o->n_threads ? o->n_threads : pool_default_threads();
    drey_status status = quantise(&q, as, err);
    if (q.part >= 0)
        file_close(&q.file);
    pool_close(&q.pool);
    new_gguf_free(&q.front);
    importance_free(&q.importance);
    gguf_close(&q.source);
    free(q.tensors);
    free(q.room.bounce);
    free(q.room.in);
    free(q.room.out);
    free(q.room.work);
    return status;
}
