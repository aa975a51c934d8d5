/* Laying a model's matrices out, and the passes over them: see weights.h. */
#include "weights/weights.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "unit/device.h"
#include "unit/units.h"
#include "weights/experts.h"
#include "weights/product.h"
#include "weights/row_lookup.h"
#include "weights/row_table.h"
#include "common/num.h"

drey_status weight_describe(weight *m, const gguf_tensor *t, const kernel_table *kernels,
                            drey_error *err)
{
    *m = (weight){0};
    TRY(matrix_describe(&m->form, &m->residency, t, kernels, err));
    weight_set_read(m, READ_BYTES);
    return DREY_OK;
}

void weight_split(weight *m)
{
    if (!m->residency.in_pass || !matrix_split(&m->form, &m->residency))
        return; /* experts come to slots packed */
    m->reads.joined_piece_groups = m->reads.piece_groups;
    /* A run's planes are read one by one: of twice as many groups, reads stay large. */
    m->reads.piece_groups = min_i32(2 * m->reads.piece_groups, m->residency.n_groups);
}

void weight_join(weight *m)
{
    if (m->form.planes)
        m->reads.piece_groups = m->reads.joined_piece_groups;
    matrix_join(&m->form, &m->residency);
}

void weight_read_sidecar(weight *m, uint64_t offset)
{
    m->reads.sidecar_offset = offset;
    matrix_read_packed(&m->form, &m->residency, offset > 0);
}

void weight_stay_whole(weight *m, int64_t n_rows)
{
    weight_join(m);
    weight_read_sidecar(m, 0);
    m->reads.n_first = m->reads.n_cycle = 0;
    m->reads.run_left = NULL;
    m->resident = true;
    m->form.n_rows = n_rows;
    m->residency.n_groups = m->residency.n_pinned =
        (int32_t)((n_rows + GROUP_ROWS - 1) / GROUP_ROWS);
}

void weight_cut(weight *m, int64_t n_rows)
{
    matrix_cut(&m->form, &m->residency, n_rows);
    weight_set_read(m, READ_BYTES);
}

void weight_set_read(weight *m, int64_t read_bytes)
{
    int64_t groups = read_bytes / (m->form.row_bytes * GROUP_ROWS);
    m->reads.piece_groups = (int32_t)min_i64(max_i64(groups, 1), m->residency.n_groups);
}

size_t weight_piece_bytes(const weight *m)
{
    size_t raw = (size_t)(m->form.row_bytes * GROUP_ROWS);
    return (size_t)m->reads.piece_groups * max_size(raw, m->residency.group_bytes);
}

static size_t largest_piece(const weight *matrix, int32_t n)
{
    size_t most = 0;
    for (int32_t i = 0; i < n; i++) {
        size_t bytes = weight_piece_bytes(&matrix[i]);
        most = bytes > most ? bytes : most;
    }
    return most;
}

size_t weights_ring_least(const weight *matrix, int32_t n)
{
    return 4 * (STREAM_ROOM_BYTES(largest_piece(matrix, n)) + N_PLANES * STREAM_ROOM_BYTES(0));
}

/* Scratch of a thread: one packed group, and what the dot kernel asks for, for the widest matrix.
 */
static void scratch_sizes(const weight *matrix, int32_t n, size_t *pack, size_t *dot)
{
    *pack = 0;
    int64_t k = 0;
    for (int32_t i = 0; i < n; i++) {
        *pack = max_size(*pack, matrix[i].residency.group_bytes);
        k = max_i64(k, matrix[i].form.k);
    }
    *dot = dot_scratch_bytes(k);
}

/* Runs of a range's groups. What no pass multiplies is never streamed. */
static int32_t range_runs(const weight *m, int range)
{
    if (!m->residency.in_pass && range != RANGE_PINNED)
        return 0;
    return ceil_div_i32(range_end(&m->residency, range) - range_begin(&m->residency, range),
                        m->reads.piece_groups);
}

static int32_t count_runs(const weight *m)
{
    int32_t runs = 0;
    for (int r = 0; r < WEIGHT_RANGES; r++)
        runs += range_runs(m, r);
    return runs;
}

/* A row of the embedding, or of the head, which is the last matrix. */
static size_t lookup_bytes(const weight *matrix, int32_t n, const weight *embedding)
{
    int64_t row_bytes =
        max_i64(embedding ? embedding->form.row_bytes : 0, matrix[n - 1].form.row_bytes);
    size_t bytes = ((size_t)row_bytes + 3 * 4096) & ~(size_t)4095;
    return bytes > 65536 ? bytes : 65536;
}

/* Returns the most pieces, for any pinned part: a boundary between ranges may cut a run in two. */
static int64_t most_pieces(const weight *matrix, int32_t n)
{
    int64_t pieces = 0;
    for (int32_t i = 0; i < n; i++) {
        const weight *m = &matrix[i];
        int64_t runs = m->residency.in_pass
                           ? ceil_div_i32(m->residency.n_groups, m->reads.piece_groups)
                           : count_runs(m);
        pieces += m->form.planes ? N_PLANES * (runs + N_PLANES) : runs + 1;
    }
    return pieces;
}

size_t weights_stream_bytes(const weight *matrix, int32_t n, int32_t n_parts)
{
    int64_t pieces = most_pieces(matrix, n);
    stream_options options = {.n_paths = n_parts + 1, .n_first = pieces, .n_cycle = pieces};
    return stream_overhead_bytes(&options);
}

/* Gate and up of a wave's experts. */
static int32_t most_products(const expert_layer *layer, int32_t n_layers, int32_t n_slots)
{
    return layer ? max_i32(PRODUCTS_MAX, 2 * experts_most_slots(layer, n_layers, n_slots))
                 : PRODUCTS_MAX;
}

size_t weights_overhead_bytes(const weight *matrix, int32_t n, const weight *embedding,
                              int32_t n_parts, int32_t n_threads, const unit_set *us)
{
    size_t pack, dot, pieces = (size_t)most_pieces(matrix, n);
    scratch_sizes(matrix, n, &pack, &dot);
    size_t per_thread = arena_size(pack) + arena_size(dot) +
                        2 * lookup_bytes(matrix, n, embedding) + 4096 + ARENA_ALIGN;
    return (size_t)n_threads * per_thread + product_job_bytes(PRODUCTS_MAX, n_threads, us) +
           pieces * (2 * sizeof(stream_piece) + 2 * ARENA_ALIGN) +
           ((size_t)n_parts + 1) * (sizeof(file) + sizeof(file_stamp) + 3 * ARENA_ALIGN) +
           16 * ARENA_ALIGN + 8192;
}

size_t weights_experts_bytes(const expert_layer *layer, int32_t n_layers, int32_t n_slots,
                             int32_t n_threads, const unit_set *us)
{
    stream_options appended = {.most_appended = experts_most_appended(layer, n_layers, n_slots)};
    return experts_bytes(layer, n_layers, n_slots) + stream_overhead_bytes(&appended) +
           product_job_bytes(most_products(layer, n_layers, n_slots), n_threads, us);
}

/* Its rows in the model, or the groups themselves in the sidecar. */
stream_piece weight_piece(const weights *w, const weight *m, int32_t from, int32_t to)
{
    if (m->reads.sidecar_offset)
        return (stream_piece){
            .part = gguf_n_shards(w->file),
            .offset = m->reads.sidecar_offset + (uint64_t)from * m->residency.group_bytes,
            .n_bytes = (uint32_t)((size_t)(to - from) * m->residency.group_bytes)};
    int64_t first_row = (int64_t)from * GROUP_ROWS, end_row = (int64_t)to * GROUP_ROWS;
    end_row = end_row < m->form.n_rows ? end_row : m->form.n_rows;
    return (stream_piece){.part = m->form.tensor->part,
                          .offset =
                              m->form.tensor->offset + (uint64_t)(first_row * m->form.row_bytes),
                          .n_bytes = (uint32_t)((end_row - first_row) * m->form.row_bytes)};
}

/* A plane of groups [from, to). */
static stream_piece piece_of_plane(const weight *m, int32_t sidecar_part, int plane, int32_t from,
                                   int32_t to)
{
    uint64_t at = m->reads.sidecar_offset;
    for (int i = 0; i < plane; i++)
        at += (uint64_t)m->residency.n_groups * m->residency.plane_bytes[i];
    return (stream_piece){.part = sidecar_part,
                          .offset = at + (uint64_t)from * m->residency.plane_bytes[plane],
                          .n_bytes =
                              (uint32_t)((size_t)(to - from) * m->residency.plane_bytes[plane])};
}

static void list_range(const weights *w, const weight *m, int range, bool first_pass,
                       stream_piece **out)
{
    int32_t sidecar_part = gguf_n_shards(w->file), to = range_end(&m->residency, range);
    int32_t n_pieces = range_pieces(&m->residency, range, first_pass);
    if (!m->residency.in_pass && range != RANGE_PINNED)
        return;
    for (int32_t g = range_begin(&m->residency, range); g < to; g += m->reads.piece_groups)
        for (int32_t i = 0; i < n_pieces; i++) {
            int32_t end = min_i32(g + m->reads.piece_groups, to);
            *(*out)++ = m->form.planes
                            ? piece_of_plane(m, sidecar_part, N_PLANES - n_pieces + i, g, end)
                            : weight_piece(w, m, g, end);
        }
}

static void count_pieces(weight *m)
{
    m->reads.n_first = m->reads.n_first_all = m->reads.n_cycle = 0;
    for (int r = 0; r < WEIGHT_RANGES; r++) {
        int32_t runs = range_runs(m, r);
        m->reads.n_first_all =
            runs * range_pieces(&m->residency, r, true); /* in the end the last range's */
        m->reads.n_first += m->reads.n_first_all;
        m->reads.n_cycle += runs * range_pieces(&m->residency, r, false);
    }
}

/* Fixes each matrix's place in the order of reads, and takes its memory. */
static void lay_out(weights *w, arena *a)
{
    int64_t n_first = 0, n_cycle = 0;
    for (int32_t i = 0; i < w->n_matrices; i++) {
        weight *m = &w->matrix[i];
        assert(m->residency.in_pass || m->residency.n_pinned == 0 ||
               residency_is_whole(&m->residency));
        assert(!m->form.planes || m->reads.sidecar_offset);
        count_pieces(m);
        m->reads.first_seq = n_first;
        m->reads.cycle_seq = n_cycle;
        n_first += m->reads.n_first;
        n_cycle += m->reads.n_cycle;
        m->reads.run_left = arena_take(a, (size_t)count_runs(m) * sizeof *m->reads.run_left);
        m->packed = arena_take(a, residency_pinned_bytes(&m->residency));
        for (int p = 0; p < N_PLANES; p++)
            m->plane[p] = residency_plane_bytes(&m->residency, p)
                              ? arena_take(a, residency_plane_bytes(&m->residency, p))
                              : NULL;
    }
    stream_piece *first = arena_take(a, (size_t)n_first * sizeof *first);
    stream_piece *cycle = arena_take(a, (size_t)n_cycle * sizeof *cycle);
    w->reading.first = first;
    w->reading.cycle = cycle;
    w->reading.n_first = n_first;
    w->reading.n_cycle = n_cycle;
    for (int32_t i = 0; i < w->n_matrices; i++) {
        for (int r = 0; r < WEIGHT_RANGES; r++) {
            list_range(w, &w->matrix[i], r, true, &first);
            list_range(w, &w->matrix[i], r, false, &cycle);
        }
    }
}

static drey_status check_parts(const weights *w, drey_error *err)
{
    for (int32_t i = 0; i < gguf_n_shards(w->file); i++)
        TRY(file_check(&w->parts[i], w->reading.paths[i], &w->reading.stamps[i], err));
    return DREY_OK;
}

/* The parts have to be those whose headers were read. */
static drey_status open_files(weights *w, drey_error *err)
{
    for (int32_t i = 0; i < gguf_n_shards(w->file); i++)
        TRY(file_open(&w->parts[i], w->reading.paths[i], w->reading.io != DREY_IO_BUFFERED, err));
    return check_parts(w, err);
}

static void take_scratch(weights *w, arena *a)
{
    size_t pack, dot;
    for (w->first_in_pass = w->matrix; !w->first_in_pass->residency.in_pass;)
        w->first_in_pass++; /* there is a head */
    scratch_sizes(w->matrix, w->n_matrices, &pack, &dot);
    w->job = product_job_make(w, a);
    w->scratch.pack = arena_take(a, (size_t)w->n_threads * sizeof *w->scratch.pack);
    w->scratch.dot = arena_take(a, (size_t)w->n_threads * sizeof *w->scratch.dot);
    for (int32_t i = 0; i < w->n_threads; i++) {
        w->scratch.pack[i] = arena_take(a, pack);
        w->scratch.dot[i] = arena_take(a, dot);
    }
}

/* Makes look-ups in a matrix that stays on the disk, of passes over these weights. */
static void make_lookup(weights *w, const row_lookup_options *options, arena *a)
{
    w->lookup = arena_take(a, sizeof *w->lookup);
    row_lookup_init(w->lookup, options, a);
}

static void open_lookup(weights *w, const weight *table, arena *a)
{
    const int32_t part = table->form.tensor->part;
    make_lookup(w,
                &(row_lookup_options){.table = table,
                                      .path = w->reading.paths[part],
                                      .was = &w->reading.stamps[part],
                                      .n_threads = w->n_threads,
                                      .io = w->reading.io,
                                      .fault = w->reading.fault,
                                      .fault_user = w->reading.fault_user},
                a);
}

size_t weights_lookup_bytes(const weight *looked_up, int32_t n_threads)
{
    return looked_up ? arena_size(sizeof(row_lookup)) + row_lookup_bytes(looked_up, n_threads) : 0;
}

void weights_view(weights *view, weights *of, weight *matrix, arena *a)
{
    *view = (weights){.view_of = of,
                      .tuning = of->tuning,
                      .matrix = matrix,
                      .n_matrices = of->n_matrices,
                      .embedding = matrix + (of->embedding - of->matrix),
                      .file = of->file,
                      .reading = {.paths = of->reading.paths, .n_paths = of->reading.n_paths},
                      .n_threads = of->n_threads,
                      .most_products = PRODUCTS_MAX,
                      .units = of->units};
    memcpy(matrix, of->matrix, (size_t)of->n_matrices * sizeof *matrix);
    take_scratch(view, a);
    if (of->lookup)
        make_lookup(view, &of->lookup->options, a);
}

size_t weights_view_bytes(const weight *matrix, int32_t n, int32_t n_threads, const unit_set *us)
{
    size_t pack, dot;
    scratch_sizes(matrix, n, &pack, &dot);
    return (size_t)n_threads * (arena_size(pack) + arena_size(dot)) +
           2 * arena_size((size_t)n_threads * sizeof(uint8_t *)) +
           product_job_bytes(PRODUCTS_MAX, n_threads, us);
}

drey_status weights_open(weights *w, const weights_options *options, arena *a, drey_error *err)
{
    const cpu_tuning *tuning = options->tuning ? options->tuning : cpu_tuning_default();
    int32_t n_parts = gguf_n_shards(options->file);
    const char **paths = arena_take(a, ((size_t)n_parts + 1) * sizeof *paths);
    file_stamp *stamps = arena_take(a, ((size_t)n_parts + 1) * sizeof *stamps);
    *w = (weights){.pass = {.hold = -1, .limit = INT64_MAX},
                   .tuning = *tuning,
                   .matrix = options->matrix,
                   .n_matrices = options->n_matrices,
                   .embedding = options->embedding,
                   .file = options->file,
                   .reading = {.paths = paths,
                               .n_paths = n_parts + (options->sidecar != NULL),
                               .stamps = stamps,
                               .ring_bytes = options->ring_bytes & ~(size_t)4095,
                               .io = options->io,
                               .in_turns = options->in_turns,
                               .spin_ns = tuning->stream_spin_ns,
                               .fault = options->fault,
                               .fault_user = options->fault_user},
                   .n_threads = options->n_threads,
                   .most_products =
                       most_products(options->experts, options->n_layers, options->n_slots),
                   .units = options->units,
                   .most_rows = options->most_rows};
    w->parts = arena_take(a, (size_t)n_parts * sizeof *w->parts);
    for (int32_t i = 0; i < n_parts; i++) {
        w->parts[i].fd = -1;
        paths[i] = gguf_shard_path(w->file, i);
        stamps[i] = *gguf_part_stamp(w->file, i);
    }
    if (options->sidecar) {
        paths[n_parts] = options->sidecar;
        stamps[n_parts] = options->sidecar_stamp;
    }
    TRY(open_files(w, err));
    lay_out(w, a);
    if (options->experts) {
        w->experts = experts_make(options->experts, options->n_layers, options->n_slots, a);
        w->reading.most_appended =
            experts_most_appended(options->experts, options->n_layers, options->n_slots);
    }
    uint8_t *ring = arena_take(a, w->reading.ring_bytes + 4096);
    w->reading.ring = (uint8_t *)(((uintptr_t)ring + 4095) & ~(uintptr_t)4095);
    w->scratch.bounce_bytes = lookup_bytes(w->matrix, w->n_matrices, w->embedding);
    take_scratch(w, a);
    w->scratch.row = arena_take(a, (size_t)w->n_threads * sizeof *w->scratch.row);
    for (int32_t i = 0; i < w->n_threads; i++) {
        uint8_t *rows = arena_take(a, 2 * w->scratch.bounce_bytes + 4096);
        w->scratch.row[i] = (uint8_t *)(((uintptr_t)rows + 4095) & ~(uintptr_t)4095);
    }
    if (options->looked_up)
        open_lookup(w, options->looked_up, a);
    return DREY_OK;
}

void weights_close(weights *w)
{
    stream_close(&w->stream);
    if (w->lookup)
        row_lookup_close(w->lookup);
    for (int32_t i = 0; w->parts && i < gguf_n_shards(w->file); i++)
        file_close(&w->parts[i]);
    *w = (weights){0};
}

/* ---- What is read ahead ---- */

static void set_limit(weights *w, int64_t limit)
{
    w->pass.limit = limit;
    if (w->stream)
        stream_limit(w->stream, limit);
}

/* Lets the stream read up to the next pass's hold. */
static void read_next(weights *w)
{
    set_limit(w, w->pass.hold < 0 ? INT64_MAX : w->pass.next_seq + w->pass.hold);
}

void weights_hold_from(weights *w, const weight *m)
{
    w->pass.hold = m ? m->reads.cycle_seq : -1;
    read_next(w);
}

void weights_read_to(weights *w, const weight *m)
{
    if (w->view_of)
        return;
    if (!m)
        read_next(w);
    else if (w->loaded && w->pass.begin_seq + m->reads.cycle_seq > w->pass.limit)
        set_limit(w, w->pass.begin_seq + m->reads.cycle_seq);
}

/* ---- Passes ---- */

static drey_status start_stream(weights *w, drey_error *err)
{
    stream_options options = w->reading;
    if (w->loaded) {
        options.first = NULL;
        options.n_first = 0;
    }
    w->pass.next_seq = 0;
    TRY(stream_open(&w->stream, &options, err));
    read_next(w);
    return DREY_OK;
}

/* The matrix that the file has at this place; NULL: none. */
static const weight *matrix_at(const weights *w, const stream_piece *at)
{
    const weight *found = NULL;
    uint64_t nearest = 0;
    for (int32_t i = 0; i < w->n_matrices; i++) {
        const stream_piece first = weight_piece(w, &w->matrix[i], 0, 1);
        if (first.part != at->part || first.offset > at->offset ||
            (found && first.offset < nearest))
            continue;
        found = &w->matrix[i];
        nearest = first.offset;
    }
    return found;
}

drey_status weights_status(const weights *w, drey_error *err)
{
    char says[sizeof err->message];
    stream_piece at;
    drey_status status = stream_status(w->stream, err);
    if (status == DREY_OK || !err || !stream_failed_piece(w->stream, &at))
        return status;
    const weight *m = matrix_at(w, &at);
    int32_t expert = m && w->experts ? experts_at(w, m, &at) : -1;
    snprintf(says, sizeof says, "%s", err->message);
    if (expert >= 0)
        snprintf(err->message, sizeof err->message, "tensor %s, expert %d: %.380s",
                 m->form.tensor->name, expert, says);
    else if (m)
        snprintf(err->message, sizeof err->message, "tensor %s: %.380s", m->form.tensor->name,
                 says);
    return status;
}

/* Makes sure of a stream that has not failed and is at the beginning of a pass. */
static drey_status have_stream(weights *w, drey_error *err)
{
    if (w->stream && (w->restart || stream_status(w->stream, NULL) != DREY_OK)) {
        weights_count(w, &w->earlier);
        stream_close(&w->stream);
    }
    w->restart = false;
    return w->stream ? DREY_OK : start_stream(w, err);
}

void weights_count(const weights *w, stream_counters *out)
{
    *out = w->earlier;
    if (!w->stream)
        return;
    stream_counters now;
    stream_count(w->stream, &now);
    now.read_bytes += w->earlier.read_bytes;
    now.device_bytes += w->earlier.device_bytes;
    now.vain_bytes += w->earlier.vain_bytes;
    now.busy_ns += w->earlier.busy_ns;
    *out = now;
}

expert_counts weights_count_experts(const weights *w)
{
    return w->experts ? w->experts->counts : (expert_counts){0};
}

void weights_hold_reads(const weights *w)
{
    if (w->stream)
        stream_hold(w->stream);
}

void weights_let_read(const weights *w)
{
    if (w->stream)
        stream_let_go(w->stream);
}

void weights_pass_without_head(weights *w)
{
    if (w->view_of)
        return;
    const weight *head = &w->matrix[w->n_matrices - 1];
    int64_t end = w->pass.end_seq;
    w->pass.end_seq -= w->loaded ? head->reads.n_cycle : head->reads.n_first_all;
    stream_skip(w->stream, w->pass.end_seq, end);
}

drey_status weights_pass_begin(weights *w, bool with_head, drey_error *err)
{
    if (w->view_of) {
        assert(weights_loaded(w));
        return DREY_OK;
    }
    TRY(have_stream(w, err));
    w->pass.begin_seq = w->pass.cursor = w->pass.next_seq;
    w->pass.next_seq += w->loaded ? w->reading.n_cycle : w->reading.n_first;
    w->pass.end_seq = w->pass.next_seq;
    if (!with_head)
        weights_pass_without_head(w);
    if (!w->loaded)
        read_next(w);
    assert(weights_is_valid(w));
    return weights_status(w, err);
}

void weights_pass_skip(weights *w, const weight *m)
{
    if (w->view_of)
        return;
    assert(w->loaded && w->pass.cursor == w->pass.begin_seq);
    w->pass.cursor += m->reads.cycle_seq;
    stream_skip(w->stream, w->pass.begin_seq, w->pass.cursor);
    weights_read_to(w, m);
    assert(weights_is_valid(w));
}

void weights_pass_leave(weights *w)
{
    if (w->view_of)
        return;
    if (!w->loaded)
        w->restart = true;
    else
        stream_skip(w->stream, w->pass.cursor, w->pass.end_seq);
    read_next(w);
}

/* Checks that files have not changed, so that the bytes in use are those of the files as they were
 * opened. Once nothing more is read, they may. */
static drey_status check_files(const weights *w, drey_error *err)
{
    if (w->loaded && w->reading.n_cycle == 0 && !w->table && !w->experts &&
        (!w->embedding || residency_is_whole(&w->embedding->residency)))
        return DREY_OK;
    return stream_check_files(w->stream, err);
}

int64_t weights_room_ns(const weights *w)
{
    stream_counters count;
    if (!w->stream || w->reading.n_cycle == 0)
        return INT64_MAX;
    stream_count(w->stream, &count);
    double per_ns = count.busy_ns > 0 ? (double)count.read_bytes / (double)count.busy_ns : 0;
    return per_ns > 0 ? (int64_t)((double)count.room_bytes / per_ns) : 0;
}

/* Gives the units' devices what stays in memory. */
static drey_status attach_devices(weights *w, drey_error *err)
{
    size_t n = (size_t)w->n_matrices;
    device_matrix *all = malloc(2 * n * sizeof *all);
    if (!all)
        FAIL(err, DREY_ERR_MEMORY, "no memory for the list of %zu matrices", n);
    for (size_t i = 0; i < n; i++) {
        const weight *m = &w->matrix[i];
        all[i] = (device_matrix){.type = m->form.tensor->type,
                                 .act = m->form.kernel->act,
                                 .k = m->form.k,
                                 .group_bytes = m->residency.group_bytes,
                                 .n_groups = m->residency.in_pass &&
                                                     device_can_multiply(m->form.tensor->type)
                                                 ? m->residency.n_pinned
                                                 : 0,
                                 .packed = m->packed};
    }
    units_attach(w->units, all, all + n, w->n_matrices, w->most_rows);
    w->attached = true;
    free(all);
    return DREY_OK;
}

drey_status weights_pass_end(weights *w, drey_error *err)
{
    if (w->view_of)
        return DREY_OK; /* the files are looked at by the passes whose results count */
    TRY(weights_status(w, err));
    TRY(check_files(w, err));
    w->loaded = true;
    if (w->units && w->most_rows && !w->attached)
        TRY(attach_devices(w, err));
    assert(weights_is_valid(w));
    return DREY_OK;
}

static bool matrices_are_valid(const weights *w)
{
    int64_t n_first = 0, n_cycle = 0;
    for (int32_t i = 0; i < w->n_matrices; i++) {
        const weight *m = &w->matrix[i];
        if (m->residency.n_pinned < 0 || m->residency.n_pinned > m->residency.n_groups ||
            m->reads.first_seq != n_first || m->reads.cycle_seq != n_cycle)
            return false;
        for (int r = 0; r < WEIGHT_RANGES; r++)
            if (range_end(&m->residency, r) < range_begin(&m->residency, r) ||
                range_end(&m->residency, r) > m->residency.n_groups)
                return false;
        if (!m->residency.in_pass && m->residency.n_pinned > 0 &&
            !residency_is_whole(&m->residency))
            return false;
        n_first += m->reads.n_first;
        n_cycle += m->reads.n_cycle;
    }
    return n_first == w->reading.n_first && n_cycle == w->reading.n_cycle;
}

bool weights_is_valid(const weights *w)
{
    if (w->view_of)
        return weights_is_valid(w->view_of);
    return matrices_are_valid(w) && w->pass.begin_seq <= w->pass.cursor &&
           w->pass.cursor <= w->pass.end_seq && w->pass.end_seq <= w->pass.next_seq &&
           w->pass.cursor <= w->pass.limit && w->pass.hold >= -1 &&
           w->pass.hold <= w->reading.n_cycle && (!w->stream || stream_is_valid(w->stream));
}

static const uint8_t *pinned_group(const weight *m, int64_t row)
{
    return m->packed + (size_t)(row / GROUP_ROWS) * m->residency.group_bytes;
}

drey_status weights_read_row(weights *w, const weight *m, int64_t row, void *raw, int32_t thread,
                             drey_error *err)
{
    assert(row >= 0 && row < m->form.tensor->dims[1]);
    uint64_t offset = m->form.tensor->offset + (uint64_t)(row * m->form.row_bytes);
    int32_t part = m->form.tensor->part;
    return file_read(&w->parts[part], w->reading.paths[part], offset, (size_t)m->form.row_bytes,
                     raw, w->scratch.row[thread], w->scratch.bounce_bytes, err);
}

/* Returns whether the row is in memory. */
static bool row_in_memory(const weights *w, const weight *m, int64_t row, float *out)
{
    if (!weights_loaded(w) || row / GROUP_ROWS >= m->residency.n_pinned) {
        int32_t place = w->table && w->table->source == m ? row_table_find(w->table, row) : -1;
        if (place < 0)
            return false;
        m = &w->table->matrix;
        row = place;
    }
    m->form.kernel->unpack_row(out, pinned_group(m, row), (int32_t)(row % GROUP_ROWS), m->form.k);
    return true;
}

plane_blocks weight_blocks(const weight *m, int32_t group)
{
    plane_blocks blocks = {.means = m->form.means};
    for (int i = 0; i < N_PLANES - 1 && group < m->residency.n_planes[i]; i++)
        blocks.plane[i] =
            m->plane[i] + (size_t)(group - m->residency.n_pinned) * m->residency.plane_bytes[i];
    return blocks;
}

drey_status weights_row_of(weights *w, const weight *m, int64_t row, float *out, int32_t thread,
                           drey_error *err)
{
    if (row_in_memory(w, m, row, out))
        return DREY_OK;
    if (w->view_of && m->form.planes &&
        row / GROUP_ROWS < range_end(&m->residency, RANGE_ALL - 1)) {
        plane_blocks blocks = weight_blocks(m, (int32_t)(row / GROUP_ROWS));
        m->form.kernels->plane_join(w->scratch.pack[thread], m->form.planes, &blocks,
                                    matrix_blocks(&m->form, 1));
        m->form.kernel->unpack_row(out, w->scratch.pack[thread], (int32_t)(row % GROUP_ROWS),
                                   m->form.k);
        return DREY_OK;
    }
    if (w->view_of)
        return weights_row_of(w->view_of, &w->view_of->matrix[m - w->matrix], row, out, thread,
                              err);
    uint8_t *raw = w->scratch.row[thread] + w->scratch.bounce_bytes;
    TRY(weights_read_row(w, m, row, raw, thread, err));
    if (!m->form.kernel->pack(w->scratch.pack[thread], raw, m->form.row_bytes, 1, m->form.k))
        return matrix_refuse(&m->form, w->reading.paths[m->form.tensor->part], err);
    m->form.kernel->unpack_row(out, w->scratch.pack[thread], 0, m->form.k);
    return DREY_OK;
}

void weights_dot_rows(weights *w, const weight *m, const int64_t *rows, int32_t n_rows,
                      const void *act, float *out, int32_t thread)
{
    float y[GROUP_ROWS];
    const uint8_t *group = NULL;
    assert(weights_loaded(w));
    for (int32_t i = 0; i < n_rows; i++) {
        assert(rows[i] >= 0 && rows[i] < (int64_t)m->residency.n_pinned * GROUP_ROWS);
        const uint8_t *next = pinned_group(m, rows[i]);
        if (next != group)
            matmul_dot(m->form.kernel, y, GROUP_ROWS, next, 1, act, 1, m->form.k,
                       w->scratch.dot[thread]);
        group = next;
        out[i] = y[rows[i] % GROUP_ROWS];
    }
}

drey_status weights_read_vector(weights *w, const gguf_tensor *t, float *out, drey_error *err)
{
    if (t->type != TYPE_F32 && t->type != TYPE_F16 && t->type != TYPE_BF16)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s: tensor %s is quantised, but norms and biases must be F32, F16 or BF16",
             SHOWN_PATH(w->reading.paths[t->part]), t->name);
    const file *f = &w->parts[t->part];
    const char *path = w->reading.paths[t->part];
    uint8_t *bounce = w->scratch.row[0], *raw = bounce + w->scratch.bounce_bytes;
    if (t->type == TYPE_F32)
        return file_read(f, path, t->offset, t->n_bytes, out, bounce, w->scratch.bounce_bytes, err);
    int64_t n = (int64_t)(t->n_bytes / 2), step = (int64_t)(w->scratch.bounce_bytes / 2);
    for (int64_t from = 0; from < n; from += step) {
        int64_t m = n - from < step ? n - from : step;
        TRY(file_read(f, path, t->offset + (uint64_t)from * 2, (size_t)m * 2, raw, bounce,
                      w->scratch.bounce_bytes, err));
        for (int64_t i = 0; i < m; i++) {
            uint16_t half;
            memcpy(&half, raw + 2 * i, 2);
            out[from + i] = t->type == TYPE_F16 ? f16_to_f32(half) : bf16_to_f32(half);
        }
    }
    return DREY_OK;
}

/* Row by row, by way of a packed group of one row. */
static drey_status read_rows(weights *w, const weight *m, float *out, uint8_t *group, uint8_t *raw,
                             drey_error *err)
{
    for (int64_t row = 0; row < m->form.n_rows; row++, out += m->form.k) {
        const gguf_tensor *t = m->form.tensor;
        TRY(file_read(&w->parts[t->part], w->reading.paths[t->part],
                      t->offset + (uint64_t)(row * m->form.row_bytes), (size_t)m->form.row_bytes,
                      raw, w->scratch.row[0], w->scratch.bounce_bytes, err));
        if (!m->form.kernel->pack(group, raw, m->form.row_bytes, 1, m->form.k))
            return matrix_refuse(&m->form, w->reading.paths[t->part], err);
        m->form.kernel->unpack_row(out, group, 0, m->form.k);
    }
    return DREY_OK;
}

drey_status weights_read_floats(weights *w, const gguf_tensor *t, float *out, drey_error *err)
{
    weight m;
    if (t->type == TYPE_F32 || t->type == TYPE_F16 || t->type == TYPE_BF16)
        return weights_read_vector(w, t, out, err);
    TRY(weight_describe(&m, t, w->matrix->form.kernels, err));
    const size_t group_bytes = arena_size(m.residency.group_bytes);
    uint8_t *memory = aligned_alloc(64, group_bytes + arena_size((size_t)m.form.row_bytes));
    if (!memory)
        FAIL(err, DREY_ERR_MEMORY, "no memory for a row of tensor %s", t->name);
    drey_status status = read_rows(w, &m, out, memory, memory + group_bytes, err);
    free(memory);
    return status;
}
