/* Rows by their numbers, from the disk: see row_lookup.h. */
#include "weights/row_lookup.h"

#include <assert.h>
#include <string.h>

#include "common/num.h"

enum {
    MOST_BEGUN = 32, /* reads under way: a disk answers no more of them at once any sooner */
    PAGE = 4096
};

static size_t ring_bytes(const weight *table)
{
    return MOST_BEGUN * STREAM_ROOM_BYTES((size_t)table->form.row_bytes);
}

static stream_options reading_of(const row_lookup *l)
{
    const row_lookup_options *o = &l->options;
    return (stream_options){.paths = &o->path,
                            .n_paths = 1,
                            .stamps = o->was,
                            .most_appended = MOST_BEGUN,
                            .ring = l->ring,
                            .ring_bytes = ring_bytes(o->table),
                            .depth = MOST_BEGUN / 2,
                            .io = o->io,
                            .fault = o->fault,
                            .fault_user = o->fault_user};
}

size_t row_lookup_bytes(const weight *table, int32_t n_threads)
{
    const row_lookup l = {.options.table = table};
    const stream_options reading = reading_of(&l);
    return arena_size(ring_bytes(table) + PAGE) + stream_overhead_bytes(&reading) +
           arena_size((size_t)n_threads * sizeof(uint8_t *)) +
           (size_t)n_threads * arena_size(table->residency.group_bytes);
}

void row_lookup_init(row_lookup *l, const row_lookup_options *options, arena *a)
{
    *l = (row_lookup){.options = *options};
    uintptr_t ring = (uintptr_t)arena_take(a, ring_bytes(options->table) + PAGE);
    l->ring = (uint8_t *)((ring + PAGE - 1) / PAGE * PAGE);
    l->group = arena_take(a, (size_t)options->n_threads * sizeof *l->group);
    for (int32_t i = 0; i < options->n_threads; i++)
        l->group[i] = arena_take(a, options->table->residency.group_bytes);
}

static void stop_reading(row_lookup *l)
{
    stream_close(&l->stream);
    l->first_seq = 0;
    l->n = l->n_begun = l->n_here = 0;
}

void row_lookup_close(row_lookup *l)
{
    stop_reading(l);
    *l = (row_lookup){.stream = NULL};
}

/* Begins reads, as many as may be under way. */
static void begin(row_lookup *l)
{
    const gguf_tensor *t = l->options.table->form.tensor;
    const int64_t row_bytes = l->options.table->form.row_bytes;
    for (; l->n_begun < l->n && l->n_begun - l->n_here < MOST_BEGUN; l->n_begun++) {
        const int64_t row = l->row[l->n_begun];
        assert(row >= 0 && row < t->dims[1]);
        const stream_piece piece = {.n_bytes = (uint32_t)row_bytes,
                                    .offset = t->offset + (uint64_t)(row * row_bytes)};
        const int64_t seq = stream_append(l->stream, &piece, 1);
        if (l->n_begun == l->n_here)
            l->first_seq = seq;
    }
}

drey_status row_lookup_ask(row_lookup *l, const int64_t *row, int32_t n, uint8_t *raw,
                           drey_error *err)
{
    row_lookup_leave(l);
    if (!l->stream) {
        const stream_options reading = reading_of(l);
        TRY(stream_open(&l->stream, &reading, err));
    }
    l->row = row;
    l->raw = raw;
    l->n = n;
    begin(l);
    return DREY_OK;
}

drey_status row_lookup_wait(row_lookup *l, drey_error *err)
{
    const size_t row_bytes = (size_t)l->options.table->form.row_bytes;
    for (; l->n_here < l->n; l->n_here++, l->first_seq++) {
        begin(l);
        const uint8_t *bytes = stream_wait(l->stream, l->first_seq);
        if (!bytes) {
            const drey_status status = stream_status(l->stream, err);
            stop_reading(l);
            return status;
        }
        memcpy(l->raw + (size_t)l->n_here * row_bytes, bytes, row_bytes);
        stream_release(l->stream, l->first_seq);
    }
    return DREY_OK;
}

void row_lookup_leave(row_lookup *l)
{
    if (l->stream && l->n_begun > l->n_here)
        stream_skip(l->stream, l->first_seq, l->first_seq + l->n_begun - l->n_here);
    l->n = l->n_begun = l->n_here = 0;
}

drey_status row_lookup_numbers(const row_lookup *l, const uint8_t *raw, int64_t from, int64_t n,
                               float *out, int32_t thread, drey_error *err)
{
    const matrix_form *form = &l->options.table->form;
    const int64_t block = type_find(form->tensor->type)->block_elements;
    const int64_t block_bytes = type_find(form->tensor->type)->block_bytes;
    assert(from % block == 0 && n % block == 0 && from + n <= form->k);
    if (!form->kernel->pack(l->group[thread], raw + from / block * block_bytes, form->row_bytes, 1,
                            n))
        return matrix_refuse(form, l->options.path, err);
    form->kernel->unpack_row(out, l->group[thread], 0, n);
    return DREY_OK;
}
