/* Cutting a layer's attention at a boundary: see attend_split.h. */
#include "unit/attend_split.h"

#include <string.h>

#include "common/num.h"
#include "drey/drey_engine.h"
#include "drey/drey_model.h"
#include "kernel/kernel.h"
#include "os/clock.h"
#include "unit/device.h"
#include "unit/units.h"

enum {
    LEAST_BLOCKS = 2, /* smaller pieces are not worth the fold */
    LEAST_TASK = 4,   /* dense blocks; fewer are faster computed than divided */
    MOST_ROWS = 64,   /* rows of passes for which there is memory for partial results */
    MOST_WORKERS = DREY_MAX_THREADS + DREY_MAX_UNITS
};

size_t attend_split_bytes(int32_t n_workers)
{
    return sizeof(attend_split) + (size_t)n_workers * sizeof(split_queue);
}

size_t attend_split_partials(int32_t n_heads, int32_t n_q, int32_t v_dim, int32_t rows,
                             int32_t n_positions)
{
    const size_t most = 1 << 20; /* 4 MiB */
    const int32_t tail_blocks = 2, n_groups = attend_groups(n_q);
    n_q /= n_groups;
    int32_t pairs = min_i32(min_i32(rows, MOST_ROWS) * n_q, ATTEND_SPLIT_PAIRS);
    int32_t tasks = ceil_div_i32(min_i32(rows, MOST_ROWS) * n_q, pairs) * n_heads * n_groups;
    size_t tails = (size_t)tasks * attend_partials_floats(pairs, v_dim, tail_blocks);
    size_t dense = attend_partials_floats(pairs, v_dim, n_positions / ATTEND_BLOCK);
    return tails + min_size(dense, most);
}

/* ---- Cutting ---- */

/* The state of cutting a layer. */
typedef struct cutter {
    attend_split *s;
    const attend_layer *l;
    int32_t n_tasks;
    int64_t n_blocks; /* dense ones of all tasks */
    /* The workers that have parts, in the order of the parts, and where the parts end, of 1. */
    int32_t n_workers, worker[MOST_WORKERS];
    double dense_end[MOST_WORKERS], tail_end[MOST_WORKERS];
    float *partials;
    size_t room;
} cutter;

/* part: the worker's. */
static void push(cutter *c, int32_t part, split_piece piece)
{
    split_queue *q = &c->s->queue[c->worker[part]];
    q->piece[q->n++] = piece;
    c->s->task[piece.task].left++;
}

/* Returns in whose part of 1 a place is. */
static int32_t owner_of(const cutter *c, const double *end, double place)
{
    int32_t part = 0;
    while (part + 1 < c->n_workers && place >= end[part])
        part++;
    return part;
}

/* The number of a task's n blocks that are before a part's end, counted from the first dense block
 * of all. A place near an end of the task is that end. */
static int32_t part_end(const cutter *c, int32_t part, int64_t first, int32_t n)
{
    double end = c->dense_end[part] * (double)c->n_blocks - (double)first;
    if (part + 1 == c->n_workers || end > n - LEAST_BLOCKS)
        return n;
    return end < LEAST_BLOCKS ? 0 : (int32_t)(end + 0.5);
}

/* Returns the least number of a task's n dense blocks in its first range with which there is memory
 * for the partial results of the others; above n: there is no room even for the tail only. */
static int32_t least_first(const cutter *c, int32_t n_pairs, int32_t n, int32_t n_tail)
{
    int32_t dim = c->l->head.v_dim;
    size_t fixed = attend_partials_floats(n_pairs, dim, 0);
    size_t each = attend_partials_floats(n_pairs, dim, 1) - fixed;
    if (c->room < fixed + (size_t)n_tail * each)
        return n + 1;
    size_t fit = (c->room - fixed) / each - (size_t)n_tail;
    return fit < (size_t)n ? n - (int32_t)fit : 0;
}

static void cut_task(cutter *c, int32_t task, int64_t first_block)
{
    int32_t first, last, part = 0;
    attention a = attend_task(c->l, task, &first, &last);
    int32_t n = attend_dense_blocks(&a, first, last), n_tail = attend_tail_blocks(&a, first, last);
    int32_t least = least_first(c, last - first, n, n_tail);
    int32_t tail = owner_of(c, c->tail_end, (task + 0.5) / c->n_tasks);
    split_task *t = &c->s->task[task];
    while (part_end(c, part, first_block, n) == 0)
        part++;
    int32_t end = max_i32(part_end(c, part, first_block, n), least);
    atomic_store_explicit(&t->left, 0, memory_order_relaxed);
    if ((end == n && tail == part) || least > n) {
        bool is_device = c->worker[part] >= c->s->units->n_threads;
        push(c, is_device ? tail : part, (split_piece){SPLIT_WHOLE, task, 0, n});
        return;
    }
    t->first_range = end;
    t->partials = c->partials;
    size_t floats = attend_partials_floats(last - first, a.v_dim, n - end + n_tail);
    c->partials += floats;
    c->room -= floats;
    for (int32_t from = 0; from < n; part++) {
        end = max_i32(part_end(c, part, first_block, n), from ? from : t->first_range);
        if (end > from)
            push(c, part, (split_piece){SPLIT_DENSE, task, from, end});
        from = end;
    }
    push(c, tail, (split_piece){.kind = SPLIT_TAIL, .task = task});
}

/* Counts the dense blocks. False: some task has too few. */
static bool count_blocks(cutter *c)
{
    for (int32_t task = 0; task < c->n_tasks; task++) {
        int32_t first, last;
        attention a = attend_task(c->l, task, &first, &last);
        int32_t n = attend_dense_blocks(&a, first, last);
        if (n < LEAST_TASK)
            return false;
        c->n_blocks += n;
    }
    return true;
}

/* Computes whose parts end where. */
static void set_parts(cutter *c, unit_set *us)
{
    int32_t rows = c->l->head.n_rows;
    double boundary = units_boundary(us, rows, c->l->head.n_prefix[0], c->s->devices);
    c->n_workers = units_attend_workers(us, c->s->devices, c->worker);
    for (int32_t part = 0; part < c->n_workers; part++)
        units_attend_end(us, c->worker[part], rows, boundary, c->s->devices, &c->dense_end[part],
                         &c->tail_end[part]);
    for (int32_t worker = 0; worker < us->n_workers; worker++) {
        c->s->queue[worker].n = c->s->queue[worker].n_back = 0;
        atomic_store_explicit(&c->s->queue[worker].next, 0, memory_order_relaxed);
    }
}

bool attend_split_cut(attend_split *s, unit_set *us, const attend_layer *l, bool devices)
{
    cutter c = {.s = s, .l = l, .n_tasks = l->n_tasks, .partials = l->partials};
    c.room = l->n_partials;
    s->units = us;
    s->layer = l;
    s->devices = devices && device_can_attend(&l->head) && units_n_attending(us) > 0;
    if ((us->n_clusters < 2 && !s->devices) || l->n_tasks > SPLIT_TASKS ||
        l->group_q > ATTEND_SPLIT_PAIRS || !attend_can_split(&l->head) || !count_blocks(&c))
        return false;
    set_parts(&c, us);
    int64_t first_block = 0;
    for (int32_t task = 0; task < l->n_tasks; task++) {
        int32_t first, last;
        attention a = attend_task(l, task, &first, &last);
        cut_task(&c, task, first_block);
        first_block += attend_dense_blocks(&a, first, last);
    }
    return true;
}

/* ---- On every thread ---- */

/* A piece of a task is done: the last one to end folds all partial results. */
static void end_piece(const attention *a, int32_t first, int32_t last, split_task *t, void *scratch)
{
    if (atomic_fetch_sub_explicit(&t->left, 1, memory_order_acq_rel) == 1)
        attend_finish(a, first, last, t->first_range, true, t->partials, scratch);
}

static void do_piece(attend_split *s, const split_piece *piece, int32_t thread, void *scratch)
{
    unit_worker *worker = &s->units->worker[thread];
    split_task *t = &s->task[piece->task];
    int64_t start = worker->slow > 1 ? clock_ns() : 0;
    int32_t first, last;
    attention a = attend_task(s->layer, piece->task, &first, &last);
    a.kernels = worker->kernels;
    if (piece->kind == SPLIT_WHOLE)
        attend(&a, first, last, scratch);
    else if (piece->kind == SPLIT_TAIL)
        attend_tail(&a, first, last, t->first_range, t->partials, scratch);
    else
        attend_range(&a, first, last, t->first_range, piece->from, piece->to, t->partials, scratch);
    if (piece->kind != SPLIT_WHOLE)
        end_piece(&a, first, last, t, scratch);
    if (worker->slow > 1)
        unit_linger(worker, start);
    worker->n_dense_blocks += (uint64_t)(piece->to - piece->from);
    worker->n_tails += piece->kind != SPLIT_DENSE;
}

static int32_t left_in(split_queue *q)
{
    return q->n - atomic_load_explicit(&q->next, memory_order_relaxed);
}

void attend_split_work(attend_split *s, int32_t thread, void *scratch)
{
    unit_set *us = s->units;
    for (int32_t i = 0; i < us->n_workers; i++) {
        int32_t from = (thread + i) % us->n_workers, left;
        split_queue *q = &s->queue[from];
        while ((left = left_in(q)) > 0) {
            if (i > 0 && !(units_may_take(us, thread, from) &&
                           units_take_over(us, thread, from, s->layer->head.n_rows, left) > 0))
                break;
            int32_t at = atomic_fetch_add_explicit(&q->next, 1, memory_order_relaxed);
            if (at >= q->n)
                break;
            do_piece(s, &q->piece[at], thread, scratch);
        }
    }
}

/* ---- On a device's driver ---- */

/* A round of a device. */
typedef struct split_round {
    int32_t n;
    split_piece piece[SPLIT_TASKS];
    device_piece work[SPLIT_TASKS];
} split_round;
_Static_assert((int)SPLIT_TASKS <= (int)DEVICE_PIECES, "a device is asked for a round at once");

/* Half of the rest, so that others find something to take over; all if others may not. */
static void round_fill(attend_split *s, split_queue *q, split_round *r)
{
    int32_t left = left_in(q), most = s->units->steal ? ceil_div_i32(left, 2) : left;
    int64_t floats = 0;
    for (r->n = 0; r->n < most;) {
        int32_t first, last;
        attention a = attend_task(s->layer, 0, &first, &last); /* the largest of all */
        floats += (int64_t)(last - first) * a.k_dim;
        if (floats > DEVICE_PIECE_FLOATS)
            return;
        int32_t at = atomic_fetch_add_explicit(&q->next, 1, memory_order_relaxed);
        if (at >= q->n)
            return;
        const split_piece *piece = &q->piece[at];
        const split_task *t = &s->task[piece->task];
        device_piece *w = &r->work[r->n];
        r->piece[r->n++] = *piece;
        *w = (device_piece){.n_first_range = t->first_range,
                            .from = piece->from,
                            .to = piece->to,
                            .partials = t->partials};
        w->a = attend_task(s->layer, piece->task, &w->first, &w->last);
    }
}

/* The processor's kernels fold the partial results. */
static void round_end(attend_split *s, const split_round *r, int32_t worker, void *scratch)
{
    unit_worker *of = &s->units->worker[worker];
    for (int32_t i = 0; i < r->n; i++) {
        attention a = r->work[i].a;
        a.kernels = of->kernels;
        end_piece(&a, r->work[i].first, r->work[i].last, &s->task[r->piece[i].task], scratch);
        of->n_dense_blocks += (uint64_t)(r->piece[i].to - r->piece[i].from);
    }
}

void attend_split_drive(attend_split *s, int32_t worker, void *scratch)
{
    split_queue *q = &s->queue[worker];
    device *d = units_device(s->units, worker);
    while (d && left_in(q) > 0) {
        drey_error err = {0};
        split_round r;
        round_fill(s, q, &r);
        if (r.n == 0)
            return;
        if (d->class->attend(d, r.work, r.n, &err) != DREY_OK) {
            units_fail(s->units, worker, &err);
            memcpy(q->back, r.piece, (size_t)r.n * sizeof *r.piece);
            q->n_back = r.n;
            return;
        }
        round_end(s, &r, worker, scratch);
    }
}

bool attend_split_left(attend_split *s)
{
    bool any = false;
    for (int32_t worker = s->units->n_threads; worker < s->units->n_workers; worker++) {
        split_queue *q = &s->queue[worker];
        for (int32_t i = 0; i < left_in(q); i++) /* what has not been taken */
            q->back[q->n_back++] = q->piece[q->n - 1 - i];
        memcpy(q->piece, q->back, (size_t)q->n_back * sizeof *q->back);
        q->n = q->n_back;
        q->n_back = 0;
        atomic_store_explicit(&q->next, 0, memory_order_relaxed);
        any = any || q->n > 0;
    }
    return any;
}
