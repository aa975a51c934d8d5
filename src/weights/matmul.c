/* Products over a model's matrices, wherever their groups lie.
 *
 * Pinned groups are dealt out evenly, a run to each thread, so that each reads memory in one sweep
 * that the prefetcher follows; who is done takes from the end of another's run. Then the threads
 * claim streamed groups from one counter in the order in which they arrive: one by one where they
 * have to be packed, in runs of a piece where they come packed. So a product starts on its first
 * rows while the last are still being read, and a slow core does less. Claims write different rows
 * of y: no sums cross them. */
#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "os/clock.h"
#include "weights/weights.h"

/* Bytes of packed weights that one claim takes when there is one row; with more rows a claim takes
 * longer, and what one thread waits for another at the end of a product would tell. */
static const size_t claim_bytes = 192 << 10;

/* Bytes of the next product that a thread asks for when it has nothing left to do. */
static const size_t ahead_bytes = 16 << 10;

typedef struct job_part {
    const product *p;
    bool loading;         /* its groups all come from the stream, and the pinned ones are packed */
    int32_t claim_groups; /* pinned groups a claim */
    weights_run *run;     /* [n_threads], of pinned groups; empty while loading */
    int32_t step_groups;  /* streamed groups an item; no item crosses the end of a piece */
    int32_t piece_items;  /* items of a whole piece */
    int32_t n_items;      /* of streamed groups */
    int64_t seq;          /* of the first piece in this pass */
    int32_t first_piece;  /* its index within the matrix */
} job_part;

typedef struct job {
    weights *w;
    job_part part[PRODUCTS_MAX];
    int32_t n_parts, n_items;
    void *const *acts;
    int32_t n;
    _Atomic int32_t next;
    _Atomic bool failed;
    _Atomic(const weight *) damaged; /* one that holds numbers that are not finite */
} job;

/* The groups of one piece of a matrix: pinned pieces first, then streamed ones. */
static void piece_range(const weight *m, int32_t piece, int32_t *from, int32_t *to)
{
    bool pinned = piece < m->n_pinned_pieces;
    int32_t base = pinned ? 0 : m->n_pinned, end = pinned ? m->n_pinned : m->n_groups;
    int32_t index = pinned ? piece : piece - m->n_pinned_pieces;
    *from = base + index * m->piece_groups;
    *to = *from + m->piece_groups < end ? *from + m->piece_groups : end;
}

/* Items of n groups that are cut into pieces. */
static int32_t items_of(const job_part *part, int32_t n_groups)
{
    int32_t whole = n_groups / part->p->matrix->piece_groups,
            rest = n_groups % part->p->matrix->piece_groups;
    return whole * part->piece_items + (rest + part->step_groups - 1) / part->step_groups;
}

/* The groups [from, to) of an item; returns their piece. */
static int32_t item_range(const job_part *part, int32_t item, int32_t *from, int32_t *to)
{
    const weight *m = part->p->matrix;
    int32_t pinned = part->loading ? items_of(part, m->n_pinned) : 0, piece, low, high;
    piece = item < pinned ? item / part->piece_items
                          : m->n_pinned_pieces + (item - pinned) / part->piece_items;
    piece_range(m, piece, &low, &high);
    item = (item < pinned ? item : item - pinned) % part->piece_items;
    *from = low + item * part->step_groups;
    *to = *from + part->step_groups < high ? *from + part->step_groups : high;
    return piece;
}

/* A run's groups: the first in the low half, one past the last in the high. */
static uint64_t pair(int32_t first, int32_t end)
{
    return (uint32_t)first | (uint64_t)(uint32_t)end << 32;
}

/* Takes up to n groups from a run, from its front for its owner, from its end for others. */
static bool run_take(weights_run *run, bool owner, int32_t n, int32_t *from, int32_t *to)
{
    uint64_t groups = atomic_load_explicit(&run->groups, memory_order_relaxed), rest;
    do {
        int32_t first = (int32_t)(uint32_t)groups, end = (int32_t)(groups >> 32);
        if (first >= end)
            return false;
        n = n < end - first ? n : end - first;
        *from = owner ? first : end - n;
        *to = *from + n;
        rest = owner ? pair(*to, end) : pair(first, *from);
    } while (!atomic_compare_exchange_weak_explicit(&run->groups, &groups, rest,
                                                    memory_order_relaxed, memory_order_relaxed));
    return true;
}

/* The first group of a thread's run. */
static int32_t share_of(const weight *m, int32_t thread, int32_t n_threads)
{
    return (int32_t)((int64_t)m->n_pinned * thread / n_threads);
}

static void part_init(job_part *part, const weights *w, const product *p, weights_run *run,
                      int32_t n)
{
    weight *m = p->matrix;
    *part = (job_part){.p = p, .loading = !weights_loaded(w), .run = run};
    int32_t most = (int32_t)(claim_bytes / m->group_bytes);
    part->step_groups = m->sidecar_offset && most > 1 ? most : 1;
    part->piece_items = (m->piece_groups + part->step_groups - 1) / part->step_groups;
    part->claim_groups = n > 0 && most > n ? most / n : 1;
    part->seq = w->pass_seq + (part->loading ? m->first_seq : m->cycle_seq);
    part->first_piece = part->loading ? 0 : m->n_pinned_pieces;
    for (int32_t t = 0; t < w->n_threads; t++)
        atomic_store_explicit(
            &part->run[t].groups,
            part->loading ? 0
                          : pair(share_of(m, t, w->n_threads), share_of(m, t + 1, w->n_threads)),
            memory_order_relaxed);
    part->n_items = (part->loading ? items_of(part, m->n_pinned) : 0) +
                    (n > 0 ? items_of(part, m->n_groups - m->n_pinned) : 0);
    for (int32_t i = part->first_piece; i < m->n_pinned_pieces + m->n_streamed_pieces; i++) {
        int32_t low, high;
        piece_range(m, i, &low, &high);
        atomic_store_explicit(&m->piece_left[i], high - low, memory_order_relaxed);
    }
}

static void dot_groups(const job *j, const job_part *part, const uint8_t *packed, int32_t group,
                       int32_t n_groups, int32_t thread)
{
    const weight *m = part->p->matrix;
    if (j->n > 0)
        m->kernel->dot(part->p->y + (int64_t)group * GROUP_ROWS, part->p->ldy, packed, n_groups,
                       j->acts[m->kernel->act], j->n, m->k, j->w->dot_scratch[thread]);
}

/* Takes all it can get from one thread's runs. */
static void use_runs(const job *j, int32_t owner, int32_t thread)
{
    for (int32_t i = 0; i < j->n_parts; i++) {
        const job_part *part = &j->part[i];
        const weight *m = part->p->matrix;
        int32_t from, to;
        while (run_take(&part->run[owner], owner == thread, part->claim_groups, &from, &to))
            dot_groups(j, part, m->packed + (size_t)from * m->group_bytes, from, to - from, thread);
    }
}

/* Asks for the first bytes of the thread's run in the product after these: memory would idle while
 * the threads meet and do what lies between. */
static void look_ahead(const job *j, int32_t thread)
{
    const weight *next = j->part[j->n_parts - 1].p->matrix + 1;
    if (next == j->w->matrix + j->w->n_matrices)
        next = j->w->matrix;
    size_t at = (size_t)share_of(next, thread, j->w->n_threads) * next->group_bytes,
           end = weight_pinned_bytes(next);
    end = end - at < ahead_bytes ? end : at + ahead_bytes;
    for (; at < end; at += 64)
        __builtin_prefetch(next->packed + at, 0, 2);
}

/* Waits for a piece; NULL when the stream has failed. Only the caller's own waiting is counted. */
static const uint8_t *wait_for(job *j, int64_t seq, int32_t thread)
{
    stream *s = j->w->stream;
    int64_t start = thread == 0 && !stream_ready(s, seq) ? clock_ns() : 0;
    const uint8_t *bytes = stream_wait(s, seq);
    if (start)
        j->w->stall_ns += clock_ns() - start;
    if (!bytes)
        atomic_store(&j->failed, true);
    return bytes;
}

/* Some groups of a piece are used up; the last one gives its space back. */
static void done_with(const job *j, weight *m, int32_t piece, int32_t n_groups, int64_t seq)
{
    if (atomic_fetch_sub(&m->piece_left[piece], n_groups) == n_groups)
        stream_release(j->w->stream, seq);
}

/* Takes an item's groups out of the ring, to their pinned place or into scratch, and uses them;
 * those that come packed and are not pinned are used where they lie. */
static void run_streamed(job *j, const job_part *part, int32_t item, int32_t thread)
{
    weight *m = part->p->matrix;
    int32_t from, to, low, high, piece = item_range(part, item, &from, &to);
    piece_range(m, piece, &low, &high);
    int64_t seq = part->seq + (piece - part->first_piece);
    const uint8_t *bytes = wait_for(j, seq, thread);
    if (!bytes)
        return;
    bool pinned = from < m->n_pinned;
    uint8_t *place =
        pinned ? m->packed + (size_t)from * m->group_bytes : j->w->pack_scratch[thread];
    if (m->sidecar_offset) {
        const uint8_t *groups = bytes + (size_t)(from - low) * m->group_bytes;
        if (pinned)
            groups = memcpy(place, groups, (size_t)(to - from) * m->group_bytes);
        dot_groups(j, part, groups, from, to - from, thread);
        done_with(j, m, piece, to - from, seq);
        return;
    }
    int64_t rows = m->n_rows - (int64_t)from * GROUP_ROWS;
    if (!m->kernel->pack(place, bytes + (int64_t)(from - low) * GROUP_ROWS * m->row_bytes,
                         m->row_bytes, rows < GROUP_ROWS ? (int32_t)rows : GROUP_ROWS, m->k))
        atomic_store_explicit(&j->damaged, m, memory_order_relaxed);
    done_with(j, m, piece, 1, seq);
    dot_groups(j, part, place, from, 1, thread);
}

static void job_thread(void *arg, int32_t thread, int32_t n_threads)
{
    job *j = arg;
    for (int32_t i = 0; i < n_threads; i++)
        use_runs(j, (thread + i) % n_threads, thread);
    for (;;) {
        int32_t item = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (item >= j->n_items || atomic_load_explicit(&j->failed, memory_order_relaxed))
            break;
        const job_part *part = j->part;
        while (item >= part->n_items)
            item -= part++->n_items;
        run_streamed(j, part, item, thread);
    }
    look_ahead(j, thread);
}

drey_status weights_matmul(weights *w, pool *p, const product *products, int32_t n_products,
                           void *const acts[ACT_KINDS], int32_t n, drey_error *err)
{
    assert(n_products <= PRODUCTS_MAX);
    job j = {.w = w, .n_parts = n_products, .acts = acts, .n = n};
    int64_t end = w->cursor;
    for (int32_t i = 0; i < n_products; i++) {
        const weight *m = products[i].matrix;
        part_init(&j.part[i], w, &products[i], w->runs + i * w->n_threads, n);
        j.n_items += j.part[i].n_items;
        end = j.part[i].seq + m->n_streamed_pieces + (j.part[i].loading ? m->n_pinned_pieces : 0);
    }
    pool_run(p, job_thread, &j);
    w->cursor = end;
    if (atomic_load(&j.failed))
        return stream_status(w->stream, err);
    const weight *damaged = atomic_load(&j.damaged);
    return damaged ? weight_refuse(damaged, w->paths[damaged->tensor->part], err) : DREY_OK;
}
