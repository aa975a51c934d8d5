/* Experts: see experts.h. */
#include "weights/experts.h"
#include "weights/expert_slots.h"
#include "weights/product.h"
#include "weights/weights.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "common/num.h"
#include "os/clock.h"

drey_status expert_matrices_describe(expert_layer *l, int32_t matrix, int32_t n, weight *all,
                                     const gguf_tensor *t, const kernel_table *kernels,
                                     drey_error *err)
{
    int64_t n_rows = t->dims[1] / n;
    if (n_rows % GROUP_ROWS)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "tensor %s has experts of %lld rows; drey computes multiples of %d", t->name,
             (long long)n_rows, GROUP_ROWS);
    TRY(weight_describe(all, t, kernels, err));
    all->residency.in_pass = false;
    int32_t n_groups = (int32_t)(n_rows / GROUP_ROWS);
    for (int32_t i = 0; i < n; i++) {
        l->matrix[matrix + i] = (expert_matrix){.all = all,
                                                .n_groups = n_groups,
                                                .first = i * n_groups,
                                                .stride = n * n_groups,
                                                .at = l->slot_bytes};
        l->slot_bytes += (size_t)n_groups * all->residency.group_bytes;
    }
    return DREY_OK;
}

/* ---- Sizes ---- */

/* A matrix without groups, gates that experts do not have, has no pieces. */
static int32_t piece_groups(const expert_matrix *m)
{
    return max_i32(min_i32(m->all->reads.piece_groups, m->n_groups), 1);
}

static int32_t runs_of(const expert_matrix *m)
{
    return ceil_div_i32(m->n_groups, piece_groups(m));
}

static int32_t most_runs(const expert_layer *layer, int32_t n_layers)
{
    int32_t most = 0;
    for (int32_t i = 0; i < n_layers; i++)
        for (int m = 0; m < EXPERT_MATRICES && layer[i].n_experts > 0; m++)
            most = max_i32(most, runs_of(&layer[i].matrix[m]));
    return most;
}

int32_t experts_layers(const expert_layer *layer, int32_t n_layers)
{
    int32_t n = 0;
    for (int32_t i = 0; i < n_layers; i++)
        n += layer[i].n_experts > 0;
    return n;
}

/* Slots of the layer that comes after `before` others with experts. */
static int32_t slots_of_layer(int32_t n_slots, int32_t n_with, int32_t before)
{
    return n_slots / n_with + (before < n_slots % n_with);
}

int32_t experts_most_slots(const expert_layer *layer, int32_t n_layers, int32_t n_slots)
{
    return slots_of_layer(n_slots, experts_layers(layer, n_layers), 0);
}

static int64_t most_pieces(const expert_layer *layer, int32_t n_layers, int32_t n_slots)
{
    return (int64_t)experts_most_slots(layer, n_layers, n_slots) * EXPERT_MATRICES *
           most_runs(layer, n_layers);
}

/* Sums over the guesses of a layer. */
static int64_t guessed_pieces(const expert_layer *layer, int32_t n_layers)
{
    return (int64_t)EXPERTS_GUESSED * EXPERT_MATRICES * most_runs(layer, n_layers);
}

int64_t experts_most_appended(const expert_layer *layer, int32_t n_layers, int32_t n_slots)
{
    return most_pieces(layer, n_layers, n_slots) + guessed_pieces(layer, n_layers);
}

/* Sums over all layers. */
static size_t slots_bytes(const expert_layer *layer, int32_t n_layers, int32_t n_slots)
{
    int32_t n_with = experts_layers(layer, n_layers), before = 0;
    size_t total = 0;
    for (int32_t i = 0; i < n_layers; i++) {
        const expert_layer *l = &layer[i];
        if (l->n_experts == 0)
            continue;
        int32_t n = slots_of_layer(n_slots, n_with, before++);
        total += arena_size((size_t)n * l->slot_bytes) + expert_slots_bytes(l->n_experts, n);
    }
    return total;
}

size_t experts_bytes(const expert_layer *layer, int32_t n_layers, int32_t n_slots)
{
    size_t n = (size_t)experts_most_slots(layer, n_layers, n_slots),
           pieces = (size_t)experts_most_appended(layer, n_layers, n_slots);
    return slots_bytes(layer, n_layers, n_slots) + arena_size(sizeof(expert_set)) +
           arena_size(n * sizeof(int32_t)) + arena_size(n * sizeof(bool)) +
           arena_size(n * EXPERT_MATRICES * sizeof(weight)) +
           arena_size(n * EXPERT_MATRICES * sizeof(int64_t)) +
           arena_size(pieces * sizeof(stream_piece)) + arena_size(pieces * sizeof(_Atomic int32_t));
}

expert_set *experts_make(expert_layer *layer, int32_t n_layers, int32_t n_slots, arena *a)
{
    int32_t n_with = experts_layers(layer, n_layers), before = 0;
    size_t n = (size_t)experts_most_slots(layer, n_layers, n_slots),
           pieces = (size_t)experts_most_appended(layer, n_layers, n_slots);
    expert_set *e = arena_take(a, sizeof *e);
    expert_set set = {
        .layer = layer, .n_layers = n_layers, .most_runs = most_runs(layer, n_layers)};
    set.wave.slot = arena_take(a, n * sizeof *set.wave.slot);
    set.wave.there = arena_take(a, n * sizeof *set.wave.there);
    set.wave.matrix = arena_take(a, n * EXPERT_MATRICES * sizeof *set.wave.matrix);
    set.wave.seq = arena_take(a, n * EXPERT_MATRICES * sizeof *set.wave.seq);
    set.piece = arena_take(a, pieces * sizeof *set.piece);
    set.run_left = arena_take(a, pieces * sizeof *set.run_left);
    for (int32_t i = 0; i < n_layers; i++) {
        expert_layer *l = &layer[i];
        if (l->n_experts == 0)
            continue;
        int32_t n_own = slots_of_layer(n_slots, n_with, before++);
        expert_slots_init(&l->slots, l->n_experts, n_own, a);
        l->memory = arena_take(a, (size_t)n_own * l->slot_bytes);
    }
    if (e)
        *e = set;
    return e;
}

/* ---- Waves ---- */

/* Moves run[from] to `to`, which is before it, the others staying in order. */
static void move_run(expert_run *run, int32_t to, int32_t from)
{
    expert_run r = run[from];
    memmove(&run[to + 1], &run[to], (size_t)(from - to) * sizeof *run);
    run[to] = r;
}

/* Moves the runs whose experts are there to the front, otherwise in order. */
static int32_t those_there_first(const expert_slots *s, expert_run *run, int32_t n)
{
    int32_t n_there = 0;
    for (int32_t i = 0; i < n; i++)
        if (s->slot_of[run[i].expert] >= 0)
            move_run(run, n_there++, i);
    return n_there;
}

/* One past the last expert of a batch that begins with this one. What was guessed is used up before
 * what was asked for after it: the ring gives room back in that order. */
static int32_t batch_end(const expert_wave *v, int32_t from)
{
    int32_t end = from + 1, rows = v->run[from].n, most = from < v->n_early ? v->n_early : v->n;
    while (end < most && rows + v->run[end].n <= v->most_rows)
        rows += v->run[end++].n;
    return end;
}

/* A matrix of expert i of the wave, in its slot. */
static void place_matrix(expert_set *e, int32_t i, int matrix)
{
    expert_wave *v = &e->wave;
    const expert_matrix *m = &v->layer->matrix[matrix];
    int32_t at = i * EXPERT_MATRICES + matrix;
    weight *out = &v->matrix[at];
    *out = (weight){.form = m->all->form,
                    .residency = m->all->residency,
                    .resident = true,
                    .reads = {.piece_groups = piece_groups(m),
                              .sidecar_offset = m->all->reads.sidecar_offset,
                              .run_left = e->run_left + (size_t)at * (size_t)e->most_runs},
                    .packed = v->layer->memory + (size_t)v->slot[i] * v->layer->slot_bytes + m->at};
    out->form.n_rows = (int64_t)m->n_groups * GROUP_ROWS;
    out->residency.in_pass = true;
    out->residency.n_groups = out->residency.n_pinned = m->n_groups;
    v->seq[at] = -1;
}

/* Returns the layer's number in traces. */
static int32_t layer_number(const expert_set *e, const expert_layer *l)
{
    return (int32_t)(l - e->layer) + 1;
}

/* Lists the pieces of a matrix of a layer's expert. */
static stream_piece *list_pieces(const weights *w, const expert_layer *l, int matrix,
                                 int32_t expert, stream_piece *piece)
{
    const expert_matrix *m = &l->matrix[matrix];
    int32_t first = expert * m->stride + m->first, step = piece_groups(m);
    for (int32_t g = 0; g < m->n_groups; g += step, piece++) {
        *piece = weight_piece(w, m->all, first + g, first + min_i32(g + step, m->n_groups));
        piece->of = (trace_part){layer_number(w->experts, l), expert};
    }
    return piece;
}

/* Lists the pieces of expert i of the wave; seq counts from the wave's first. */
static stream_piece *list_matrix(const weights *w, int32_t i, int matrix, stream_piece *piece)
{
    expert_set *e = w->experts;
    const expert_wave *v = &e->wave;
    v->seq[i * EXPERT_MATRICES + matrix] = piece - e->piece;
    return list_pieces(w, v->layer, matrix, v->run[i].expert, piece);
}

/* Pieces of what is neither there nor guessed, in the order of their use: a batch's gates and ups,
 * its downs. */
static void append_pieces(weights *w)
{
    expert_set *e = w->experts;
    expert_wave *v = &e->wave;
    stream_piece *piece = e->piece;
    for (int32_t from = v->n_early, to; from < v->n; from = to) {
        to = batch_end(v, from);
        for (int matrix = EXPERT_GATE; matrix < EXPERT_MATRICES; matrix += EXPERT_DOWN)
            for (int32_t i = from; i < to; i++) {
                piece = list_matrix(w, i, matrix, piece);
                if (matrix == EXPERT_GATE)
                    piece = list_matrix(w, i, EXPERT_UP, piece);
            }
    }
    int64_t begin_seq = stream_append(w->stream, e->piece, piece - e->piece);
    for (int32_t i = v->n_early * EXPERT_MATRICES; i < v->n * EXPERT_MATRICES; i++)
        v->seq[i] += begin_seq;
}

/* ---- Guesses ---- */

/* Finds the expert's run; n: none. */
static int32_t find_run(const expert_run *run, int32_t n, int32_t expert)
{
    int32_t i = 0;
    while (i < n && run[i].expert != expert)
        i++;
    return i;
}

/* Makes guesses that the wave asks for its first runs after those that are there, in the order of
 * their pieces. The others are given up. Returns how many are there or guessed. */
static int32_t keep_guesses(weights *w, const expert_layer *l, expert_run *run, int32_t n)
{
    expert_set *e = w->experts;
    expert_guesses *guesses = &e->guesses;
    int32_t n_early = those_there_first(&l->slots, run, n), kept = 0;
    if (guesses->layer)
        stream_end_guesses(w->stream);
    for (int32_t i = 0; i < guesses->n; i++) {
        expert_guess *g = &guesses->of[i];
        int32_t at = find_run(run, n, g->expert);
        bool keep = guesses->layer == l && at < n && n_early < l->slots.n_slots &&
                    !stream_lost(w->stream, g->seq, g->end);
        if (keep) {
            move_run(run, n_early++, at);
            guesses->of[kept++] = *g;
        } else {
            stream_skip(w->stream, g->seq, g->end);
        }
    }
    e->trust.n_guessed += guesses->n;
    e->trust.n_right += kept;
    e->counts.right += (uint64_t)kept;
    guesses->layer = NULL;
    guesses->n = kept;
    return n_early;
}

/* Finds the pieces of the wave's guessed experts. */
static void place_guesses(expert_set *e)
{
    expert_wave *v = &e->wave;
    for (int32_t i = 0, at = v->n_early - e->guesses.n; i < e->guesses.n; i++, at++) {
        int64_t seq = e->guesses.of[i].seq;
        for (int matrix = 0; matrix < EXPERT_MATRICES; matrix++) {
            v->seq[at * EXPERT_MATRICES + matrix] = seq;
            seq += runs_of(&v->layer->matrix[matrix]);
        }
    }
    e->guesses.n = 0;
}

/* Ring that an expert takes. */
static size_t room_bytes(const expert_layer *l)
{
    size_t bytes = 0;
    for (int i = 0; i < EXPERT_MATRICES; i++) {
        const expert_matrix *m = &l->matrix[i];
        size_t raw = (size_t)m->all->form.row_bytes * GROUP_ROWS;
        size_t group = m->all->reads.sidecar_offset ? m->all->residency.group_bytes : raw;
        bytes += (size_t)runs_of(m) * STREAM_ROOM_BYTES((size_t)piece_groups(m) * group);
    }
    return bytes;
}

/* A wrong guess costs what is left of its reads when the router has chosen, a right one saves the
 * waiting for all of them: fewer than one in three is a loss. */
enum { GUESSES_LATELY = 512, RIGHT_OF = 3, ONE_IN = 16 };

bool experts_trust_guesses(weights *w)
{
    expert_set *e = w->experts;
    if (e->trust.n_guessed >= GUESSES_LATELY) {
        e->trust.n_guessed /= 2;
        e->trust.n_right /= 2;
    }
    return e->trust.n_guessed < GUESSES_LATELY / 4 ||
           e->trust.n_right * RIGHT_OF >= e->trust.n_guessed || e->trust.n_left_out++ % ONE_IN == 0;
}

void experts_guess(weights *w, expert_layer *l, const int32_t *expert, int32_t n)
{
    expert_guesses *guesses = &w->experts->guesses;
    stream_piece *pieces = w->experts->piece, *piece = pieces;
    /* All of them have to fit, whatever end of the ring is left over. */
    size_t most = min_size(w->reading.ring_bytes / 2 / room_bytes(l), EXPERTS_GUESSED);
    assert(!guesses->layer && guesses->n == 0);
    for (int32_t i = 0; i < n && (size_t)guesses->n < most; i++) {
        if (l->slots.slot_of[expert[i]] >= 0)
            continue;
        expert_guess *g = &guesses->of[guesses->n++];
        g->expert = expert[i];
        g->seq = piece - pieces;
        for (int m = 0; m < EXPERT_MATRICES; m++)
            piece = list_pieces(w, l, m, expert[i], piece);
        g->end = piece - pieces;
    }
    if (guesses->n == 0)
        return;
    int64_t seq = stream_guess(w->stream, pieces, piece - pieces);
    for (int32_t i = 0; i < guesses->n; i++) {
        guesses->of[i].seq += seq;
        guesses->of[i].end += seq;
    }
    guesses->layer = l;
    w->experts->counts.guessed += (uint64_t)guesses->n;
}

/* ---- Waves ---- */

int32_t experts_bring(weights *w, expert_layer *l, expert_run *run, int32_t n, int32_t most_rows)
{
    expert_set *e = w->experts;
    expert_wave *v = &e->wave;
    assert(!v->layer && weights_loaded(w) && n > 0);
    v->n_early = min_i32(keep_guesses(w, l, run, n), l->slots.n_slots);
    v->layer = l;
    v->n = max_i32(expert_slots_fit(&l->slots, run, n), v->n_early);
    v->from = v->to = 0;
    v->most_rows = most_rows;
    v->run = run;
    v->begun_ns = clock_ns();
    v->n_read = expert_slots_use(&l->slots, run, v->n, v->slot, v->there);
    for (int32_t i = 0; i < v->n; i++) {
        for (int matrix = 0; matrix < EXPERT_MATRICES; matrix++)
            place_matrix(e, i, matrix);
        e->counts.used++;
        e->counts.read += !v->there[i];
    }
    place_guesses(e);
    append_pieces(w);
    e->n_continued += v->n < n;
    return v->n;
}

/* A model that has all its experts in memory has no waves to show. */
static void end_wave(weights *w)
{
    expert_wave *v = &w->experts->wave;
    if (v->layer->slots.n_slots < v->layer->n_experts)
        trace_add_of(w->reading.trace, 0, TRACE_EXPERTS, v->begun_ns, clock_ns(), v->n,
                     (trace_part){layer_number(w->experts, v->layer), v->n_read});
    v->layer = NULL;
}

bool experts_next_batch(weights *w)
{
    expert_wave *v = &w->experts->wave;
    v->from = v->to;
    if (v->from < v->n)
        v->to = batch_end(v, v->from);
    else
        end_wave(w);
    return v->layer;
}

void experts_product(expert_product *out, const weights *w, int32_t i, int32_t matrix, float *y,
                     int64_t ldy, void *const *acts)
{
    const expert_wave *v = &w->experts->wave;
    int32_t at = i * EXPERT_MATRICES + matrix;
    *out = (expert_product){
        .p = {&v->matrix[at], y, ldy}, .acts = acts, .n = v->run[i].n, .seq = v->seq[at]};
}

int32_t experts_at(const weights *w, const weight *matrix, const stream_piece *at)
{
    const expert_set *e = w->experts;
    const stream_piece group = weight_piece(w, matrix, 0, 1);
    for (int32_t i = 0; i < e->n_layers; i++)
        for (int m = 0; m < EXPERT_MATRICES && e->layer[i].n_experts > 0; m++)
            if (e->layer[i].matrix[m].all == matrix)
                return (int32_t)((at->offset - group.offset) / group.n_bytes) /
                       e->layer[i].matrix[m].stride;
    return -1;
}

void experts_begun(weights *w, const weight *matrix)
{
    const expert_wave *v = &w->experts->wave;
    v->seq[matrix - v->matrix] = -1;
}

/* Drops experts that no product has begun to use, and those that were to come to slots. */
static void leave_wave(weights *w)
{
    expert_wave *v = &w->experts->wave;
    for (int32_t i = v->from; i < v->n; i++) {
        for (int m = 0; m < EXPERT_MATRICES; m++) {
            int64_t seq = v->seq[i * EXPERT_MATRICES + m];
            if (seq >= 0)
                stream_skip(w->stream, seq, seq + runs_of(&v->layer->matrix[m]));
        }
        if (!v->there[i])
            expert_slots_forget(&v->layer->slots, v->slot[i]);
    }
    v->layer = NULL;
}

void experts_leave(weights *w)
{
    expert_set *e = w->experts;
    if (!e)
        return;
    if (e->guesses.layer)
        stream_end_guesses(w->stream);
    if (e->wave.layer)
        leave_wave(w);
    for (int32_t i = 0; e->guesses.layer && i < e->guesses.n; i++)
        stream_skip(w->stream, e->guesses.of[i].seq, e->guesses.of[i].end);
    e->guesses = (expert_guesses){0};
}
