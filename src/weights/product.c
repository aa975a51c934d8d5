/* Products over a model's matrices, wherever their groups are.
 *
 * Pinned groups are dealt out evenly, a share to each thread, so that each reads memory in one
 * sweep that the prefetcher follows; a thread that is done takes from the end of another's share.
 * Then the threads claim streamed groups from one counter in the order in which they arrive: one by
 * one where they have to be packed, several of a piece where they come packed. So a product starts
 * on its first rows while the last are still being read, and a slow core does less. Claims write
 * different rows of y: no sums cross them.
 *
 * No thread waits for the disk in here. A group is claimed only once it has arrived; when nothing
 * that is left has, the threads return and the caller decides what to do meanwhile:
 *
 *                            product_run                        product_run
 *   (none) --product_begin--> OPEN ----------------> STARVED --product_wait--> OPEN
 *                              | \------------------> PAUSED (until_ns has passed)
 *                              +--------------------> DONE
 *
 * What was computed stays: running again continues with the groups that are left. */
#include "weights/product.h"
#include "os/pool.h"
#include "unit/device.h"
#include "unit/units.h"
#include "weights/experts.h"
#include "weights/weights.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "common/hash.h"
#include "common/num.h"
#include "os/clock.h"
#include "os/thread.h"

/* Remaining pinned groups of a worker: a thread, or a device (unit/units.h). A cache line each:
 * their owners write them often. */
typedef struct group_share {
    _Alignas(64) _Atomic uint64_t groups;
} group_share;

/* Runs of pieces that are used in this pass, of one range of groups. */
typedef struct job_range {
    int32_t from, to; /* groups */
    int32_t n_items, first_run;
    int32_t n_pieces; /* pieces of a run */
    int64_t seq;      /* number of the first one */
} job_range;

typedef struct job_product {
    product p;
    void *acts[ACT_KINDS];
    int32_t n;            /* rows of activations */
    bool loading;         /* its groups all come from the stream, and what stays is put in place */
    int32_t claim_groups; /* groups in memory per claim */
    group_share *share;   /* [n_workers], of groups in memory; empty while loading */
    int32_t step_groups;  /* streamed groups per item; no item crosses the end of a run */
    int32_t run_items;    /* items of a whole run */
    int32_t n_items;      /* items of streamed groups */
    job_range range[WEIGHT_RANGES];
    bool checked; /* loading from a sidecar: the groups' hash is compared with what that states */
    /* hash of the first n_hashed runs; the thread that sets `hashing` adds the next */
    hash64 hash;
    int32_t n_runs, n_hashed;
    _Atomic bool hashing;
} job_product;

/* Position of an item: groups [from, to) of a run of its range, which begins with group `low`. */
typedef struct job_item {
    int range;
    int32_t from, to, low, run; /* the run counted over the matrix */
    int64_t seq;                /* number of its first piece */
    int32_t n_pieces;
} job_item;

struct product_job {
    weights *w;
    job_product *product; /* [w->most_products] */
    int32_t n_products, n_items;
    int64_t until_ns;   /* nothing is claimed after it; 0: no such time */
    int64_t end_seq;    /* one past the pieces of a pass's order that it uses */
    const weight *last; /* in that order; NULL: none is */
    bool open;
    _Atomic int32_t next;   /* item */
    _Atomic int32_t n_idle; /* threads that found nothing to do, or have returned */
    _Atomic bool failed;
    _Atomic(const weight *) damaged; /* one that holds numbers that are not finite */
    group_share *shares;             /* [w->most_products][n_workers] */
};

/* Counts the threads and devices that can be dealt groups, with such units. */
static int32_t slots_of(int32_t n_threads, const unit_set *us)
{
    return us ? us->n_workers : n_threads;
}

static int32_t n_workers(const weights *w)
{
    return slots_of(w->n_threads, w->units);
}

size_t product_job_bytes(int32_t most_products, int32_t n_threads, const unit_set *us)
{
    size_t n = (size_t)most_products;
    return arena_size(sizeof(product_job)) + arena_size(n * sizeof(job_product)) +
           arena_size((size_t)slots_of(n_threads, us) * n * sizeof(group_share));
}

product_job *product_job_make(weights *w, arena *a)
{
    size_t n = (size_t)w->most_products;
    product_job *j = arena_take(a, sizeof *j);
    job_product *products = arena_take(a, n * sizeof *products);
    group_share *shares = arena_take(a, (size_t)n_workers(w) * n * sizeof *shares);
    if (j)
        *j = (product_job){.w = w, .product = products, .shares = shares};
    return j;
}

/* ---- Pieces and items ---- */

/* Finds item `item` of a product. */
static job_item item_at(const job_product *q, int32_t item)
{
    int r = 0;
    while (item >= q->range[r].n_items)
        item -= q->range[r++].n_items;
    const job_range *range = &q->range[r];
    int32_t groups = q->p.matrix->reads.piece_groups, run = item / q->run_items;
    job_item i = {.range = r,
                  .low = range->from + run * groups,
                  .run = range->first_run + run,
                  .seq = range->seq + (int64_t)run * range->n_pieces,
                  .n_pieces = range->n_pieces};
    i.from = i.low + item % q->run_items * q->step_groups;
    i.to = min_i32(i.from + q->step_groups, min_i32(i.low + groups, range->to));
    return i;
}

/* The product that an item of the job belongs to; *item becomes its number there. */
static job_product *product_of(product_job *j, int32_t *item)
{
    job_product *q = j->product;
    while (*item >= q->n_items)
        *item -= q++->n_items;
    return q;
}

/* ---- Shares of pinned groups ---- */

/* Groups as one word: the first in the low half, one past the last in the high. */
static uint64_t pair(int32_t first, int32_t end)
{
    return (uint32_t)first | (uint64_t)(uint32_t)end << 32;
}

static bool share_is_empty(uint64_t groups)
{
    return (int32_t)(uint32_t)groups >= (int32_t)(groups >> 32);
}

/* Takes up to n groups from a share, from its front for its owner, from its end for others. */
static bool share_take(group_share *share, bool owner, int32_t n, int32_t *from, int32_t *to)
{
    uint64_t groups = atomic_load_explicit(&share->groups, memory_order_relaxed), rest;
    do {
        if (share_is_empty(groups) || n == 0)
            return false;
        int32_t first = (int32_t)(uint32_t)groups, end = (int32_t)(groups >> 32);
        int32_t taken = min_i32(n, end - first);
        *from = owner ? first : end - taken;
        *to = *from + taken;
        rest = owner ? pair(*to, end) : pair(first, *from);
    } while (!atomic_compare_exchange_weak_explicit(&share->groups, &groups, rest,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* Groups that are used where they are in memory: of a view, with the planes that are there. */
static int32_t resident_groups(const weights *w, const weight *m)
{
    return w->view_of ? range_end(&m->residency, RANGE_ALL - 1) : m->residency.n_pinned;
}

/* Devices know the matrices that have a place in the order of a pass, of types that they have. */
static bool devices_know(const weights *w, const weight *m)
{
    return w->attached && !m->resident && m->form.n_heads == 0 &&
           device_can_multiply(m->form.tensor->type);
}

/* The first group of a worker's share, in a pass of n rows. */
static int32_t share_start(const weights *w, const weight *m, int32_t worker, int32_t n)
{
    int32_t groups = resident_groups(w, m);
    if (w->units)
        return units_from(w->units, worker, n, groups, devices_know(w, m));
    return (int32_t)((int64_t)groups * worker / w->n_threads);
}

/* Puts groups back that their owner took: from the front of its share, or, when that was empty,
 * from another's end. */
static void share_give_back(group_share *share, int32_t from, int32_t to)
{
    uint64_t groups = atomic_load_explicit(&share->groups, memory_order_relaxed), all;
    do {
        bool empty = share_is_empty(groups);
        all = pair(from, empty ? to : (int32_t)(groups >> 32));
    } while (!atomic_compare_exchange_weak_explicit(&share->groups, &groups, all,
                                                    memory_order_relaxed, memory_order_relaxed));
}

/* ---- Beginning ---- */

/* Lists the runs that the pass uses, whose first piece is seq: in the first pass those that stay,
 * whatever is multiplied. */
static void job_ranges_init(job_product *q, const weights *w, int64_t seq)
{
    weight *m = q->p.matrix;
    int32_t run = 0;
    q->n_items = 0;
    for (int r = 0; r < WEIGHT_RANGES; r++) {
        job_range *range = &q->range[r];
        int32_t from = range_begin(&m->residency, r), to = range_end(&m->residency, r),
                groups = m->reads.piece_groups;
        bool stays = q->loading && r != RANGE_ALL;
        *range = (job_range){.from = from, .to = to, .first_run = run, .seq = seq};
        range->n_pieces = w->view_of ? 0 : range_pieces(&m->residency, r, q->loading);
        if (range->n_pieces == 0 || !(stays || (m->residency.in_pass && q->n > 0)))
            continue;
        for (int32_t low = from; low < to; low += groups, run++) {
            int32_t n_groups = min_i32(groups, to - low);
            atomic_store_explicit(&m->reads.run_left[run], n_groups, memory_order_relaxed);
            range->n_items += ceil_div_i32(n_groups, q->step_groups);
        }
        seq += (int64_t)(run - range->first_run) * range->n_pieces;
        q->n_items += range->n_items;
    }
    q->n_runs = run;
}

/* Returns whether all its groups go through memory in the form of the sidecar's hash: packed.
 * Groups in planes that are not pinned never do, and of a head that is left out the streamed part
 * is not read. */
static bool is_checked(const job_product *q)
{
    const weight *m = q->p.matrix;
    bool whole =
        residency_is_whole(&m->residency) || (m->residency.in_pass && q->n > 0 && !m->form.planes);
    return q->loading && m->reads.sidecar_offset && whole;
}

static void job_product_init(job_product *q, const weights *w, const product *p, group_share *share,
                             void *const acts[ACT_KINDS], int32_t n, bool loading)
{
    weight *m = p->matrix;
    *q = (job_product){.p = *p, .n = n, .loading = loading, .share = share};
    for (int kind = 0; kind < ACT_KINDS; kind++)
        q->acts[kind] = acts ? acts[kind] : NULL;
    int32_t most = (int32_t)(w->tuning.claim_bytes / m->residency.group_bytes);
    q->step_groups = m->reads.sidecar_offset && most > 1 ? most : 1;
    q->run_items = ceil_div_i32(m->reads.piece_groups, q->step_groups);
    q->claim_groups = max_i32(n > 0 && most > n ? most / n : 1, matmul_groups(m->form.kernel, n));
    for (int32_t t = 0, from = 0, end; t < n_workers(w); t++, from = end) {
        end = share_start(w, m, t + 1, n);
        atomic_store_explicit(&q->share[t].groups, q->loading || n == 0 ? 0 : pair(from, end),
                              memory_order_relaxed);
    }
}

/* One past the last piece that a product uses. */
static int64_t job_product_end(const job_product *q)
{
    int64_t end = q->range[0].seq;
    for (int r = 0; r < WEIGHT_RANGES; r++) {
        const job_range *range = &q->range[r];
        if (range->n_items > 0)
            end = range->seq +
                  (int64_t)ceil_div_i32(range->to - range->from, q->p.matrix->reads.piece_groups) *
                      range->n_pieces;
    }
    return end;
}

static product_job *job_begin(weights *w, int32_t n_products)
{
    product_job *j = w->job;
    assert(!j->open && n_products >= 1 && n_products <= w->most_products);
    j->n_products = n_products;
    j->n_items = 0;
    j->end_seq = w->pass.cursor;
    j->last = NULL;
    j->open = true;
    atomic_store_explicit(&j->next, 0, memory_order_relaxed);
    atomic_store_explicit(&j->failed, false, memory_order_relaxed);
    atomic_store_explicit(&j->damaged, NULL, memory_order_relaxed);
    return j;
}

/* aside: none of the matrices is in its place of the order of a pass. */
static void begin(weights *w, const product *products, int32_t n_products,
                  void *const acts[ACT_KINDS], int32_t n, bool aside)
{
    product_job *j = job_begin(w, n_products);
    for (int32_t i = 0; i < n_products; i++) {
        job_product *q = &j->product[i];
        weight *m = products[i].matrix;
        bool loading = !weights_loaded(w) && !m->resident;
        job_product_init(q, w, &products[i], j->shares + i * n_workers(w), acts, n, loading);
        job_ranges_init(q, w,
                        w->pass.begin_seq + (loading ? m->reads.first_seq : m->reads.cycle_seq));
        q->checked = is_checked(q);
        if (q->checked)
            hash64_init(&q->hash);
        if (m->resident || aside)
            continue;
        j->n_items += q->n_items;
        j->last = m;
        j->end_seq = job_product_end(q);
    }
    assert(w->view_of || j->end_seq <= w->pass.limit);
}

void product_begin(weights *w, const product *products, int32_t n_products,
                   void *const acts[ACT_KINDS], int32_t n)
{
    begin(w, products, n_products, acts, n, false);
}

void product_begin_experts(weights *w, const expert_product *products, int32_t n_products)
{
    product_job *j = job_begin(w, n_products);
    for (int32_t i = 0; i < n_products; i++) {
        const expert_product *e = &products[i];
        job_product *q = &j->product[i];
        job_product_init(q, w, &e->p, j->shares + i * n_workers(w), e->acts, e->n, e->seq >= 0);
        job_ranges_init(q, w, e->seq);
        j->n_items += q->n_items;
        experts_begun(w, e->p.matrix);
    }
}

/* ---- On every thread ---- */

/* Groups that multiply with the same activations, and whose results follow each other. */
typedef struct dot_run {
    float *y;
    const uint8_t *acts;
    int32_t n; /* groups */
} dot_run;

/* The first of groups [group, group + n). */
static dot_run run_of(const job_product *q, int32_t group, int32_t n)
{
    const matrix_form *m = &q->p.matrix->form;
    const uint8_t *acts = q->acts[m->kernel->act];
    if (m->n_heads == 0)
        return (dot_run){q->p.y + (int64_t)group * GROUP_ROWS, acts, n};
    const int32_t in_head = (int32_t)(m->n_rows / m->n_heads / GROUP_ROWS);
    const int32_t head = group / in_head, first = group % in_head;
    acts += (size_t)head * product_head_bytes(m->kernel->act, q->n, m->k);
    return (dot_run){q->p.y + (int64_t)head * m->head_ld + (int64_t)first * GROUP_ROWS, acts,
                     min_i32(n, in_head - first)};
}

/* Multiplies with groups in memory, in the way of the thread's unit. */
static void dot_on_unit(const product_job *j, const job_product *q, const uint8_t *packed,
                        const dot_run *run, int32_t thread)
{
    const weight *m = q->p.matrix;
    unit_worker *worker = &j->w->units->worker[thread];
    int64_t start = worker->slow > 1 ? clock_ns() : 0;
    matmul_dot(&worker->kernels->matmul[m->form.tensor->type], run->y, q->p.ldy, packed, run->n,
               run->acts, q->n, m->form.k, j->w->scratch.dot[thread]);
    if (worker->slow > 1)
        unit_linger(worker, start);
    worker->n_groups += (uint64_t)run->n;
}

static void dot_groups(const product_job *j, const job_product *q, const uint8_t *packed,
                       int32_t group, int32_t n_groups, int32_t thread)
{
    const weight *m = q->p.matrix;
    for (int32_t end = group + n_groups; q->n > 0 && group < end;) {
        const dot_run run = run_of(q, group, end - group);
        if (j->w->units)
            dot_on_unit(j, q, packed, &run, thread);
        else
            matmul_dot(m->form.kernel, run.y, q->p.ldy, packed, run.n, run.acts, q->n, m->form.k,
                       j->w->scratch.dot[thread]);
        packed += (size_t)run.n * m->residency.group_bytes;
        group += run.n;
    }
}

/* The same of groups in planes, one by one: their blocks follow each other in each plane. */
static void dot_split(const product_job *j, const job_product *q, plane_blocks blocks,
                      int32_t group, int32_t n_groups, int32_t thread)
{
    const weight *m = q->p.matrix;
    const kernel_table *kernels =
        j->w->units ? j->w->units->worker[thread].kernels : m->form.kernels;
    for (int32_t g = group; g < group + n_groups && q->n > 0; g++) {
        const dot_run run = run_of(q, g, 1);
        dot_planes(kernels, m->form.tensor->type, run.y, q->p.ldy, &blocks, run.acts, q->n,
                   m->form.k, j->w->scratch.dot[thread], j->w->scratch.pack[thread]);
        for (int i = 0; i < N_PLANES; i++)
            if (blocks.plane[i])
                blocks.plane[i] += m->residency.plane_bytes[i];
    }
}

/* Groups in memory; those of a view with the planes that are there. */
static void dot_resident(const product_job *j, const job_product *q, int32_t from, int32_t to,
                         int32_t thread)
{
    const weight *m = q->p.matrix;
    int32_t pinned = min_i32(to, m->residency.n_pinned);
    if (from < pinned)
        dot_groups(j, q, m->packed + (size_t)from * m->residency.group_bytes, from, pinned - from,
                   thread);
    for (int32_t g = max_i32(from, pinned); g < to; g++)
        dot_split(j, q, weight_blocks(m, g), g, 1, thread);
}

static bool is_late(const product_job *j)
{
    return j->until_ns != 0 && clock_ns() >= j->until_ns;
}

static int32_t share_left(const group_share *share)
{
    uint64_t groups = atomic_load_explicit(&share->groups, memory_order_relaxed);
    return max_i32((int32_t)(groups >> 32) - (int32_t)(uint32_t)groups, 0);
}

/* Returns how much a thread takes of a share at a time. Where a kernel wants many groups a claim is
 * half of what is left at most, so that threads end together. Of units that differ in speed it is a
 * quarter at most, so that others find something to take over from a slow one; and a slow one takes
 * over no more than it has done as soon as the owner the rest. */
static int32_t claim_of(const product_job *j, const job_product *q, int32_t owner, int32_t thread)
{
    int32_t left = share_left(&q->share[owner]);
    if (!j->w->units)
        return matmul_groups(q->p.matrix->form.kernel, q->n) > 1
                   ? min_i32(ceil_div_i32(left, 2), q->claim_groups)
                   : q->claim_groups;
    int32_t part = owner == thread ? ceil_div_i32(left, 4)
                                   : units_take_over(j->w->units, thread, owner, q->n, left);
    return min_i32(part, q->claim_groups);
}

/* Takes all it can get from one thread's shares. */
static void use_shares(const product_job *j, int32_t owner, int32_t thread)
{
    for (int32_t i = 0; i < j->n_products; i++) {
        const job_product *q = &j->product[i];
        int32_t from, to;
        while (!is_late(j) && share_take(&q->share[owner], owner == thread,
                                         claim_of(j, q, owner, thread), &from, &to))
            dot_resident(j, q, from, to, thread);
    }
}

/* Asks for the first bytes of the thread's share in the product after these: memory would idle
 * while the threads meet and do what is between. */
static void look_ahead(const product_job *j, int32_t thread)
{
    const weights *w = j->w;
    if (!j->last)
        return;
    const weight *next = j->last + 1;
    if (next == w->matrix + w->n_matrices)
        next = w->first_in_pass;
    size_t at = (size_t)share_start(w, next, thread, j->product->n) * next->residency.group_bytes,
           end = residency_pinned_bytes(&next->residency);
    end = min_size(end, at + w->tuning.ahead_bytes);
    for (; at < end; at += 64)
        __builtin_prefetch(next->packed + at, 0, 2);
}

/* Adds a run of a checked matrix, whose groups have all been used, to the hash: from their place in
 * memory, or from the ring, whose space it then gives back. */
static void hash_run(const product_job *j, job_product *q, int32_t run)
{
    const weight *m = q->p.matrix;
    const job_range *all = &q->range[RANGE_ALL];
    bool pinned = run < all->first_run;
    int32_t low = pinned ? run * m->reads.piece_groups
                         : all->from + (run - all->first_run) * m->reads.piece_groups;
    int32_t end = min_i32(low + m->reads.piece_groups,
                          pinned ? m->residency.n_pinned : m->residency.n_groups);
    int64_t seq = all->seq + run - all->first_run;
    const uint8_t *groups = pinned ? m->packed + (size_t)low * m->residency.group_bytes
                                   : stream_wait(j->w->stream, seq);
    hash64_add(&q->hash, groups, (size_t)(end - low) * m->residency.group_bytes);
    if (!pinned)
        stream_release(j->w->stream, seq);
}

/* Adds the runs that are used up and whose turn it is. One thread at a time; what ends meanwhile is
 * its as well. Groups are in a core's cache then, and the disk continues reading. */
static void hash_runs(const product_job *j, job_product *q)
{
    const weight *m = q->p.matrix;
    int32_t next;
    do {
        if (atomic_exchange(&q->hashing, true))
            return;
        for (next = q->n_hashed; next < q->n_runs && atomic_load(&m->reads.run_left[next]) == 0;
             next++)
            hash_run(j, q, next);
        q->n_hashed = next;
        atomic_store(&q->hashing, false);
    } while (next < q->n_runs && atomic_load(&m->reads.run_left[next]) == 0);
}

/* Some groups of a run are used up; the last one gives its space back. */
static void done_with(const product_job *j, job_product *q, const job_item *i)
{
    int32_t n_groups = i->to - i->from;
    if (atomic_fetch_sub(&q->p.matrix->reads.run_left[i->run], n_groups) != n_groups)
        return;
    bool kept = q->checked && i->range == RANGE_ALL; /* until it is hashed */
    for (int32_t p = 0; p < i->n_pieces && !kept; p++)
        stream_release(j->w->stream, i->seq + p);
    if (q->checked)
        hash_runs(j, q);
}

/* Groups that come packed: pinned ones are copied to their place, the others used where
 * they lie. */
static void use_packed(product_job *j, job_product *q, const job_item *i, const uint8_t *groups,
                       int32_t thread)
{
    weight *m = q->p.matrix;
    size_t bytes = (size_t)(i->to - i->from) * m->residency.group_bytes;
    if (i->range == RANGE_PINNED)
        groups = memcpy(m->packed + (size_t)i->from * m->residency.group_bytes, groups, bytes);
    dot_groups(j, q, groups, i->from, i->to - i->from, thread);
    done_with(j, q, i);
}

/* Rows as they are in the file: packed, to their pinned place or into scratch. */
static void use_raw(product_job *j, job_product *q, const job_item *i, const uint8_t *raw,
                    int32_t thread)
{
    weight *m = q->p.matrix;
    uint8_t *place = i->range == RANGE_PINNED
                         ? m->packed + (size_t)i->from * m->residency.group_bytes
                         : j->w->scratch.pack[thread];
    int64_t rows = m->form.n_rows - (int64_t)i->from * GROUP_ROWS;
    int64_t start = j->w->reading.trace ? clock_ns() : 0;
    if (!m->form.kernel->pack(place, raw, m->form.row_bytes,
                              rows < GROUP_ROWS ? (int32_t)rows : GROUP_ROWS, m->form.k))
        atomic_store_explicit(&j->damaged, m, memory_order_relaxed);
    if (j->w->reading.trace)
        trace_add(j->w->reading.trace, thread, TRACE_PACK, start, clock_ns(), 0);
    done_with(j, q, i);
    dot_groups(j, q, place, i->from, 1, thread);
}

/* Planes: those of pinned groups are joined in their place; of others, those that stay go to
 * theirs. */
static void use_planes(product_job *j, job_product *q, const job_item *i,
                       const uint8_t *const piece[N_PLANES], int32_t thread)
{
    weight *m = q->p.matrix;
    int32_t n_groups = i->to - i->from, first = N_PLANES - i->n_pieces;
    plane_blocks blocks = i->range == RANGE_PINNED ? (plane_blocks){.means = m->form.means}
                                                   : weight_blocks(m, i->from);
    for (int p = first; p < N_PLANES; p++) {
        const uint8_t *bytes =
            piece[p - first] + (size_t)(i->from - i->low) * m->residency.plane_bytes[p];
        bool stays = i->range != RANGE_PINNED && p < N_PLANES - i->range;
        if (stays)
            memcpy(m->plane[p] +
                       (size_t)(i->from - m->residency.n_pinned) * m->residency.plane_bytes[p],
                   bytes, (size_t)n_groups * m->residency.plane_bytes[p]);
        else
            blocks.plane[p] = bytes;
    }
    if (i->range == RANGE_PINNED) {
        uint8_t *place = m->packed + (size_t)i->from * m->residency.group_bytes;
        m->form.kernels->plane_join(place, m->form.planes, &blocks,
                                    matrix_blocks(&m->form, n_groups));
        dot_groups(j, q, place, i->from, n_groups, thread);
    } else {
        dot_split(j, q, blocks, i->from, n_groups, thread);
    }
    done_with(j, q, i);
}

/* Takes an item's groups out of the ring and uses them. */
static void use_item(product_job *j, job_product *q, int32_t item, int32_t thread)
{
    const weight *m = q->p.matrix;
    job_item i = item_at(q, item);
    const uint8_t *piece[N_PLANES] = {NULL};
    for (int32_t p = 0; p < i.n_pieces; p++) {
        piece[p] = stream_wait(j->w->stream, i.seq + p); /* it is there, or will never be */
        if (!piece[p]) {
            atomic_store(&j->failed, true);
            return;
        }
    }
    if (m->form.planes)
        use_planes(j, q, &i, piece, thread);
    else if (m->reads.sidecar_offset)
        use_packed(j, q, &i, piece[0] + (size_t)(i.from - i.low) * m->residency.group_bytes,
                   thread);
    else
        use_raw(j, q, &i, piece[0] + (int64_t)(i.from - i.low) * GROUP_ROWS * m->form.row_bytes,
                thread);
}

/* True when item `item` of the job has arrived, or never will. */
static bool item_ready(product_job *j, int32_t item)
{
    const job_product *q = product_of(j, &item);
    job_item i = item_at(q, item);
    bool ready = true;
    for (int32_t p = 0; p < i.n_pieces && ready; p++)
        ready = stream_ready(j->w->stream, i.seq + p);
    return ready;
}

static bool all_claimed(product_job *j)
{
    return atomic_load_explicit(&j->next, memory_order_relaxed) >= j->n_items ||
           atomic_load_explicit(&j->failed, memory_order_relaxed);
}

/* Claims the next item if it has arrived. */
static bool claim(product_job *j, int32_t *item)
{
    *item = atomic_load_explicit(&j->next, memory_order_relaxed);
    while (*item < j->n_items && item_ready(j, *item))
        if (atomic_compare_exchange_weak_explicit(&j->next, item, *item + 1, memory_order_relaxed,
                                                  memory_order_relaxed))
            return true;
    return false;
}

/* Nothing to do at the moment: looks on as long as another thread is at work, since what arrives
 * until then would have one thread only. False: this run is over. */
static bool look_on(product_job *j, int32_t n_threads)
{
    atomic_fetch_add(&j->n_idle, 1);
    int64_t spin_until = clock_ns() + j->w->tuning.product_spin_ns;
    for (;;) {
        if (all_claimed(j) || is_late(j))
            return false;
        if (item_ready(j, min_i32(atomic_load(&j->next), j->n_items - 1))) {
            atomic_fetch_sub(&j->n_idle, 1);
            return true;
        }
        if (atomic_load(&j->n_idle) >= n_threads)
            return false;
        if (clock_ns() < spin_until)
            thread_pause();
        else
            sched_yield();
    }
}

static void job_thread(void *arg, int32_t thread, int32_t n_threads)
{
    product_job *j = arg;
    const weights *w = j->w;
    for (int32_t i = 0, n = n_workers(w); i < n; i++) {
        int32_t owner = (thread + i) % n;
        if (!w->units || units_may_take(w->units, thread, owner))
            use_shares(j, owner, thread);
    }
    while (!all_claimed(j) && !is_late(j)) {
        int32_t item;
        if (claim(j, &item)) {
            job_product *q = product_of(j, &item);
            use_item(j, q, item, thread);
        } else if (!look_on(j, n_threads)) {
            return;
        }
    }
    atomic_fetch_add(&j->n_idle, 1);
    if (all_claimed(j))
        look_ahead(j, thread);
}

/* ---- On a device's driver ---- */

/* A round of a device: groups of each product. */
typedef struct device_round {
    int32_t n;
    device_work work[PRODUCTS_MAX];
    int32_t product[PRODUCTS_MAX];
} device_round;

/* A round takes half of what is left, so that others find something to take over, and never less
 * than this many groups: beginning has its price. Where none may take over, all; and a device with
 * memory of its own takes all of its share, as each round sends activations and fetches results. */
enum { ROUND_GROUPS = 8 };

static bool round_take(const product_job *j, const job_product *q, int32_t owner, int32_t worker,
                       bool reads_all, int32_t *from, int32_t *to)
{
    const unit_set *us = j->w->units;
    int32_t left = share_left(&q->share[owner]), part = left;
    if (owner != worker)
        part = units_take_over(us, worker, owner, q->n, left);
    else if (us->steal && reads_all)
        part = max_i32(ceil_div_i32(left, 2), ROUND_GROUPS);
    return (owner == worker || part >= ROUND_GROUPS) &&
           share_take(&q->share[owner], owner == worker, part, from, to);
}

/* Takes a round from the worker's own share, then, where it can read all, from others'. */
static device_round round_of(const product_job *j, int32_t worker, bool reads_all)
{
    const weights *w = j->w;
    device_round r = {.n = 0};
    for (int32_t i = 0; i < j->n_products && !is_late(j); i++) {
        const job_product *q = &j->product[i];
        const weight *m = q->p.matrix;
        int32_t from, to, owners = devices_know(w, m) ? (reads_all ? n_workers(w) : 1) : 0;
        bool taken = false;
        for (int32_t k = 0; k < owners && !taken; k++) {
            int32_t owner = (worker + k) % n_workers(w);
            taken = units_may_take(w->units, worker, owner) &&
                    round_take(j, q, owner, worker, reads_all, &from, &to);
        }
        if (!taken)
            continue;
        r.product[r.n] = i;
        r.work[r.n++] = (device_work){.matrix = (int32_t)(m - w->matrix),
                                      .first_group = from,
                                      .n_groups = to - from,
                                      .acts = q->acts[m->form.kernel->act],
                                      .act = m->form.kernel->act,
                                      .act_bytes = act_bytes(m->form.kernel->act, q->n, m->form.k),
                                      .n = q->n,
                                      .y = q->p.y,
                                      .ldy = q->p.ldy};
    }
    return r;
}

static drey_status round_run(device *d, const device_round *r, drey_error *err)
{
    for (int32_t i = 0; i < r->n; i++)
        TRY(d->class->submit(d, &r->work[i], err));
    return d->class->wait(d, err);
}

/* Runs a device. If it fails, its groups go back, for the threads. */
static void device_thread(void *arg, int32_t worker)
{
    product_job *j = arg;
    unit_set *us = j->w->units;
    device *d = units_device(us, worker);
    bool reads_all = d && d->class->unified(d);
    while (d) {
        drey_error err = {0};
        device_round r = round_of(j, worker, reads_all);
        if (r.n == 0)
            return;
        if (round_run(d, &r, &err) == DREY_OK) {
            for (int32_t i = 0; i < r.n; i++)
                us->worker[worker].n_groups += (uint64_t)r.work[i].n_groups;
            continue;
        }
        units_fail(us, worker, &err);
        for (int32_t i = 0; i < r.n; i++)
            share_give_back(&j->product[r.product[i]].share[worker], r.work[i].first_group,
                            r.work[i].first_group + r.work[i].n_groups);
        return;
    }
}

/* ---- For the caller ---- */

static bool shares_are_empty(const product_job *j)
{
    for (int32_t i = 0; i < j->n_products; i++)
        for (int32_t t = 0; t < n_workers(j->w); t++)
            if (!share_is_empty(
                    atomic_load_explicit(&j->product[i].share[t].groups, memory_order_relaxed)))
                return false;
    return true;
}

/* Even pinned groups wait where reading and computing take turns. */
static bool must_wait(product_job *j)
{
    return j->w->reading.in_turns && !all_claimed(j) && !item_ready(j, atomic_load(&j->next));
}

/* Runs the job on all slots. When a device fails after the threads have left, they come back for
 * its groups. */
static void run_all(product_job *j, pool *p)
{
    weights *w = j->w;
    bool devices = w->attached && units_have_devices(w->units);
    atomic_store_explicit(&j->n_idle, 0, memory_order_relaxed);
    if (devices)
        units_start(w->units, device_thread, j);
    pool_run(p, job_thread, j);
    if (!devices)
        return;
    units_wait(w->units);
    if (!shares_are_empty(j) && !is_late(j) && !atomic_load(&j->failed)) {
        atomic_store_explicit(&j->n_idle, 0, memory_order_relaxed);
        pool_run(p, job_thread, j);
    }
}

/* Checks that the bytes that were read can be used. */
static drey_status check_job(const product_job *j, drey_error *err)
{
    const char *const *paths = j->w->reading.paths;
    const weight *damaged = atomic_load(&j->damaged);
    if (damaged)
        return matrix_refuse(&damaged->form, paths[damaged->form.tensor->part], err);
    for (int32_t i = 0; i < j->n_products; i++) {
        const job_product *q = &j->product[i];
        const weight *m = q->p.matrix;
        if (q->checked && hash64_get(&q->hash) != m->reads.sidecar_hash)
            FAIL_HINT(err, DREY_ERR_FORMAT, DREY_HINT_SIDECAR,
                      "%s is damaged in matrix %s; check the disk and have it written again, or "
                      "continue without it",
                      SHOWN_PATH(paths[gguf_n_shards(j->w->file)]), m->form.tensor->name);
    }
    return DREY_OK;
}

drey_status product_run(weights *w, pool *p, int64_t until_ns, product_state *state,
                        drey_error *err)
{
    product_job *j = w->job;
    assert(j->open);
    j->until_ns = until_ns;
    if (must_wait(j)) {
        *state = PRODUCT_STARVED;
        return DREY_OK;
    }
    run_all(j, p);
    if (atomic_load(&j->failed)) {
        j->open = false;
        *state = PRODUCT_DONE;
        return weights_status(w, err);
    }
    if (!shares_are_empty(j)) {
        *state = PRODUCT_PAUSED;
        return DREY_OK;
    }
    if (!all_claimed(j)) {
        *state = item_ready(j, atomic_load(&j->next)) ? PRODUCT_PAUSED : PRODUCT_STARVED;
        return DREY_OK;
    }
    w->pass.cursor = j->end_seq;
    j->open = false;
    *state = PRODUCT_DONE;
    return check_job(j, err);
}

bool product_ready(weights *w)
{
    product_job *j = w->job;
    return !j->open || (!shares_are_empty(j) && !must_wait(j)) || all_claimed(j) ||
           item_ready(j, atomic_load(&j->next));
}

void product_wait(weights *w)
{
    product_job *j = w->job;
    if (product_ready(w))
        return;
    int32_t item = atomic_load(&j->next);
    const job_product *q = product_of(j, &item);
    job_item i = item_at(q, item);
    int64_t start = clock_ns();
    for (int32_t p = 0; p < i.n_pieces; p++)
        stream_wait(w->stream, i.seq + p);
    trace_add(w->reading.trace, 0, TRACE_STALL, start, clock_ns(), 0);
}

drey_status product_finish(weights *w, pool *p, drey_error *err)
{
    for (;;) {
        product_state state;
        TRY(product_run(w, p, 0, &state, err));
        if (state == PRODUCT_DONE)
            return DREY_OK;
        product_wait(w);
    }
}

void product_run_aside(weights *w, pool *p, const product *aside, void *const acts[ACT_KINDS],
                       int32_t n)
{
    product_state state = PRODUCT_PAUSED;
    assert(weights_loaded(w) && residency_is_whole(&aside->matrix->residency) && n > 0);
    begin(w, aside, 1, acts, n, true);
    while (state != PRODUCT_DONE)
        product_run(w, p, 0, &state, NULL); /* nothing is read: it cannot fail */
}

/* Pieces that were used up have been released; the others, in part or not at all used, are given
 * up. */
void product_leave(weights *w)
{
    product_job *j = w->job;
    if (!j->open)
        return;
    j->open = false;
    for (int32_t i = 0; i < j->n_products && weights_loaded(w); i++) {
        const job_product *q = &j->product[i];
        for (int32_t r = 0, first = 0; r < WEIGHT_RANGES; first += q->range[r++].n_items)
            for (int32_t at = 0; at < q->range[r].n_items; at += q->run_items) {
                job_item k = item_at(q, first + at);
                if (atomic_load(&q->p.matrix->reads.run_left[k.run]) > 0)
                    stream_skip(w->stream, k.seq, k.seq + k.n_pieces);
            }
    }
    w->pass.cursor = j->end_seq;
}
