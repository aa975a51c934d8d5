/* Cutting a layer's attention at a boundary: see attend_split.h. */
#include "unit/attend_split.h"

#include "base/num.h"
#include "os/clock.h"

enum {
    LEAST_BLOCKS = 2, /* a piece should be worth the fold */
    LEAST_TASK = 4,   /* dense blocks; less is quicker done than divided */
    MOST_ROWS = 64    /* of passes that partial results have room for */
};

size_t attend_split_bytes(int32_t n_threads)
{
    return sizeof(attend_split) + (size_t)n_threads * sizeof(split_queue);
}

size_t attend_split_partials(int32_t n_heads, int32_t n_q, int32_t head_dim, int32_t rows,
                             int32_t n_positions)
{
    const size_t most = 1 << 20; /* 4 MiB */
    const int32_t tail_blocks = 2;
    int32_t pairs = min_i32(min_i32(rows, MOST_ROWS) * n_q, ATTEND_SPLIT_PAIRS);
    int32_t tasks = ceil_div_i32(min_i32(rows, MOST_ROWS) * n_q, pairs) * n_heads;
    size_t tails = (size_t)tasks * attend_partials_floats(pairs, head_dim, tail_blocks);
    size_t dense = attend_partials_floats(pairs, head_dim, n_positions / ATTEND_BLOCK);
    return tails + min_size(dense, most);
}

/* ---- Cutting ---- */

/* Of a layer that is being cut. */
typedef struct cutter {
    attend_split *s;
    const attend_layer *l;
    int32_t n_tasks;
    int64_t n_blocks;                   /* dense ones of all tasks */
    double dense_end[DREY_MAX_THREADS]; /* where threads' parts end, of 1 */
    double tail_end[DREY_MAX_THREADS];
    float *partials;
    size_t room;
} cutter;

static void push(cutter *c, int32_t slot, split_piece piece)
{
    split_queue *q = &c->s->queue[slot];
    q->piece[q->n++] = piece;
    c->s->task[piece.task].left++;
}

/* Whose part of 1 a place is in. */
static int32_t owner_of(const cutter *c, const double *end, double place)
{
    int32_t slot = 0;
    while (slot + 1 < c->s->units->n_threads && place >= end[slot])
        slot++;
    return slot;
}

/* Up to which of a task's n blocks, from the first of all dense ones on, a slot's part goes. A
 * place near an end of the task is that end. */
static int32_t part_end(const cutter *c, int32_t slot, int64_t first, int32_t n)
{
    double end = c->dense_end[slot] * (double)c->n_blocks - (double)first;
    if (slot + 1 == c->s->units->n_threads || end > n - LEAST_BLOCKS)
        return n;
    return end < LEAST_BLOCKS ? 0 : (int32_t)(end + 0.5);
}

/* How many of a task's n dense blocks its first range has to have so that what the others leave
 * has room; above n: there is none for the tail alone. */
static int32_t least_first(const cutter *c, int32_t n_pairs, int32_t n, int32_t n_tail)
{
    int32_t dim = c->l->head.head_dim;
    size_t fixed = attend_partials_floats(n_pairs, dim, 0);
    size_t each = attend_partials_floats(n_pairs, dim, 1) - fixed;
    if (c->room < fixed + (size_t)n_tail * each)
        return n + 1;
    size_t fit = (c->room - fixed) / each - (size_t)n_tail;
    return fit < (size_t)n ? n - (int32_t)fit : 0;
}

static void cut_task(cutter *c, int32_t task, int64_t first_block)
{
    int32_t first, last, slot = 0;
    attention a = attend_task(c->l, task, &first, &last);
    int32_t n = attend_dense_blocks(&a, first, last), n_tail = attend_tail_blocks(&a, first, last);
    int32_t least = least_first(c, last - first, n, n_tail);
    int32_t tail = owner_of(c, c->tail_end, (task + 0.5) / c->n_tasks);
    split_task *t = &c->s->task[task];
    while (part_end(c, slot, first_block, n) == 0)
        slot++;
    int32_t end = max_i32(part_end(c, slot, first_block, n), least);
    atomic_store_explicit(&t->left, 0, memory_order_relaxed);
    if ((end == n && tail == slot) || least > n) {
        push(c, slot, (split_piece){SPLIT_WHOLE, task, 0, n});
        return;
    }
    t->first_range = end;
    t->partials = c->partials;
    size_t floats = attend_partials_floats(last - first, a.head_dim, n - end + n_tail);
    c->partials += floats;
    c->room -= floats;
    for (int32_t from = 0; from < n; slot++) {
        end = max_i32(part_end(c, slot, first_block, n), from ? from : t->first_range);
        if (end > from)
            push(c, slot, (split_piece){SPLIT_DENSE, task, from, end});
        from = end;
    }
    push(c, tail, (split_piece){.kind = SPLIT_TAIL, .task = task});
}

/* Sums up the dense blocks. False: some task has too few of them. */
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

bool attend_split_cut(attend_split *s, unit_set *us, const attend_layer *l)
{
    cutter c = {.s = s, .l = l, .n_tasks = l->n_tasks, .partials = l->partials};
    c.room = l->n_partials;
    s->units = us;
    s->layer = l;
    if (us->n_clusters < 2 || l->n_tasks > SPLIT_TASKS || l->head.n_q > ATTEND_SPLIT_PAIRS ||
        !attend_sees_all(&l->head) || !count_blocks(&c))
        return false;
    int32_t rows = l->head.n_rows;
    double boundary = units_boundary(us, rows, l->head.n_prefix[0]);
    for (int32_t slot = 0; slot < us->n_threads; slot++) {
        units_attend_end(us, slot, rows, boundary, &c.dense_end[slot], &c.tail_end[slot]);
        s->queue[slot].n = 0;
        atomic_store_explicit(&s->queue[slot].next, 0, memory_order_relaxed);
    }
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

static void do_piece(attend_split *s, const split_piece *piece, int32_t thread, void *scratch)
{
    unit_slot *slot = &s->units->slot[thread];
    split_task *t = &s->task[piece->task];
    int64_t start = slot->slow > 1 ? clock_ns() : 0;
    int32_t first, last;
    attention a = attend_task(s->layer, piece->task, &first, &last);
    a.kernels = slot->kernels;
    if (piece->kind == SPLIT_WHOLE)
        attend(&a, first, last, scratch);
    else if (piece->kind == SPLIT_TAIL)
        attend_tail(&a, first, last, t->first_range, t->partials, scratch);
    else
        attend_range(&a, first, last, t->first_range, piece->from, piece->to, t->partials, scratch);
    if (piece->kind != SPLIT_WHOLE &&
        atomic_fetch_sub_explicit(&t->left, 1, memory_order_acq_rel) == 1)
        attend_finish(&a, first, last, t->first_range, true, t->partials, scratch);
    if (slot->slow > 1)
        unit_linger(slot, start);
    slot->n_dense_blocks += (uint64_t)(piece->to - piece->from);
    slot->n_tails += piece->kind != SPLIT_DENSE;
}

static int32_t left_in(split_queue *q)
{
    return q->n - atomic_load_explicit(&q->next, memory_order_relaxed);
}

void attend_split_work(attend_split *s, int32_t thread, void *scratch)
{
    unit_set *us = s->units;
    for (int32_t i = 0; i < us->n_threads; i++) {
        int32_t from = (thread + i) % us->n_threads, left;
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
