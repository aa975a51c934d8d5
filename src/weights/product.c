/* Products over a model's matrices, wherever their groups lie.
 *
 * Pinned groups are dealt out evenly, a share to each thread, so that each reads memory in one sweep
 * that the prefetcher follows; who is done takes from the end of another's share. Then the threads
 * claim streamed groups from one counter in the order in which they arrive: one by one where they
 * have to be packed, several of a piece where they come packed. So a product starts on its first
 * rows while the last are still being read, and a slow core does less. Claims write different rows
 * of y: no sums cross them.
 *
 * No thread waits for the disk in here. A group is claimed only once it has arrived; when nothing
 * that is left has, the threads return and the caller decides what to do meanwhile:
 *
 *                            product_run                        product_run
 *   (none) --product_begin--> OPEN ----------------> STARVED --product_wait--> OPEN
 *                              | \------------------> PAUSED (until_ns has passed)
 *                              +--------------------> DONE
 *
 * What was computed stays: running again goes on with the groups that are left. */
#include "weights/product.h"

#include <assert.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "base/num.h"
#include "os/clock.h"
#include "os/thread.h"

/* What is left of the pinned groups that a thread was dealt. A cache line each: their owners write
 * them often. */
typedef struct group_share {
    _Alignas(64) _Atomic uint64_t groups;
} group_share;

typedef struct job_product {
    product p;
    bool loading;         /* its groups all come from the stream, and the pinned ones are packed */
    int32_t claim_groups; /* pinned groups per claim */
    group_share *share;   /* [n_threads], of pinned groups; empty while loading */
    int32_t step_groups;  /* streamed groups per item; no item crosses the end of a piece */
    int32_t piece_items;  /* items of a whole piece */
    int32_t n_items;      /* of streamed groups */
    int64_t seq;          /* of the first piece in this pass */
    int32_t first_piece;  /* its index within the matrix */
} job_product;

struct product_job {
    weights *w;
    job_product product[PRODUCTS_MAX];
    int32_t n_products, n_items;
    void *acts[ACT_KINDS];
    int32_t n;
    int64_t until_ns;   /* nothing is claimed after it; 0: no such time */
    int64_t end_seq;    /* one past the pieces that it uses */
    const weight *last; /* in the order of a pass */
    bool open;
    _Atomic int32_t next;   /* item */
    _Atomic int32_t n_idle; /* threads that found nothing to do, or have returned */
    _Atomic bool failed;
    _Atomic(const weight *) damaged; /* one that holds numbers that are not finite */
    group_share *shares;             /* [PRODUCTS_MAX][n_threads] */
};

size_t product_job_bytes(int32_t n_threads)
{
    return arena_size(sizeof(product_job)) +
           arena_size((size_t)n_threads * PRODUCTS_MAX * sizeof(group_share));
}

product_job *product_job_make(weights *w, arena *a)
{
    product_job *j = arena_take(a, sizeof *j);
    group_share *shares = arena_take(a, (size_t)w->n_threads * PRODUCTS_MAX * sizeof *shares);
    if (j)
        *j = (product_job){.w = w, .shares = shares};
    return j;
}

/* ---- Pieces and items ---- */

/* The groups of one piece of a matrix: pinned pieces first, then streamed ones. */
static void piece_range(const weight *m, int32_t piece, int32_t *from, int32_t *to)
{
    bool pinned = piece < m->n_pinned_pieces;
    int32_t base = pinned ? 0 : m->n_pinned, end = pinned ? m->n_pinned : m->n_groups;
    int32_t index = pinned ? piece : piece - m->n_pinned_pieces;
    *from = base + index * m->piece_groups;
    *to = min_i32(*from + m->piece_groups, end);
}

/* Items of n groups that are cut into pieces. */
static int32_t items_of(const job_product *q, int32_t n_groups)
{
    int32_t whole = n_groups / q->p.matrix->piece_groups,
            rest = n_groups % q->p.matrix->piece_groups;
    return whole * q->piece_items + ceil_div_i32(rest, q->step_groups);
}

static int32_t pinned_items(const job_product *q)
{
    return q->loading ? items_of(q, q->p.matrix->n_pinned) : 0;
}

static int32_t piece_of(const job_product *q, int32_t item)
{
    int32_t pinned = pinned_items(q);
    return item < pinned ? item / q->piece_items
                         : q->p.matrix->n_pinned_pieces + (item - pinned) / q->piece_items;
}

static int64_t seq_of(const job_product *q, int32_t piece)
{
    return q->seq + (piece - q->first_piece);
}

/* The groups [from, to) of an item of a piece that begins with group `low` and ends before `high`.
 */
static void item_range(const job_product *q, int32_t item, int32_t low, int32_t high, int32_t *from,
                       int32_t *to)
{
    int32_t pinned = pinned_items(q);
    int32_t at = (item < pinned ? item : item - pinned) % q->piece_items;
    *from = low + at * q->step_groups;
    *to = min_i32(*from + q->step_groups, high);
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
        if (share_is_empty(groups))
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

/* The first group of a thread's share. */
static int32_t share_start(const weight *m, int32_t thread, int32_t n_threads)
{
    return (int32_t)((int64_t)m->n_pinned * thread / n_threads);
}

/* ---- Beginning ---- */

static void job_product_init(job_product *q, const weights *w, const product *p, group_share *share,
                             int32_t n)
{
    weight *m = p->matrix;
    *q = (job_product){.p = *p, .loading = !weights_loaded(w) && !m->resident, .share = share};
    int32_t most = (int32_t)(w->tuning.claim_bytes / m->group_bytes);
    q->step_groups = m->sidecar_offset && most > 1 ? most : 1;
    q->piece_items = ceil_div_i32(m->piece_groups, q->step_groups);
    q->claim_groups = n > 0 && most > n ? most / n : 1;
    q->seq = w->pass_seq + (q->loading ? m->first_seq : m->cycle_seq);
    q->first_piece = q->loading ? 0 : m->n_pinned_pieces;
    for (int32_t t = 0; t < w->n_threads; t++)
        atomic_store_explicit(&q->share[t].groups,
                              q->loading || n == 0 ? 0
                                                   : pair(share_start(m, t, w->n_threads),
                                                          share_start(m, t + 1, w->n_threads)),
                              memory_order_relaxed);
    int32_t streamed = m->in_pass && n > 0 ? items_of(q, m->n_groups - m->n_pinned) : 0;
    q->n_items = pinned_items(q) + streamed;
    for (int32_t i = q->first_piece; i < m->n_pinned_pieces + m->n_streamed_pieces; i++) {
        int32_t low, high;
        piece_range(m, i, &low, &high);
        atomic_store_explicit(&m->piece_left[i], high - low, memory_order_relaxed);
    }
}

void product_begin(weights *w, const product *products, int32_t n_products,
                   void *const acts[ACT_KINDS], int32_t n)
{
    product_job *j = w->job;
    assert(!j->open && n_products >= 1 && n_products <= PRODUCTS_MAX);
    j->n_products = n_products;
    j->n_items = 0;
    j->n = n;
    j->end_seq = w->cursor;
    j->open = true;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        j->acts[kind] = acts ? acts[kind] : NULL;
    for (int32_t i = 0; i < n_products; i++) {
        job_product *q = &j->product[i];
        const weight *m = products[i].matrix;
        job_product_init(q, w, &products[i], j->shares + i * w->n_threads, n);
        if (m->resident)
            continue;
        j->n_items += q->n_items;
        j->last = m;
        j->end_seq =
            q->seq + (q->loading ? m->n_pinned_pieces : 0) + (n > 0 ? m->n_streamed_pieces : 0);
    }
    atomic_store_explicit(&j->next, 0, memory_order_relaxed);
    atomic_store_explicit(&j->failed, false, memory_order_relaxed);
    atomic_store_explicit(&j->damaged, NULL, memory_order_relaxed);
}

/* ---- On every thread ---- */

static void dot_groups(const product_job *j, const job_product *q, const uint8_t *packed,
                       int32_t group, int32_t n_groups, int32_t thread)
{
    const weight *m = q->p.matrix;
    if (j->n > 0)
        m->kernel->dot(q->p.y + (int64_t)group * GROUP_ROWS, q->p.ldy, packed, n_groups,
                       j->acts[m->kernel->act], j->n, m->k, j->w->dot_scratch[thread]);
}

static bool is_late(const product_job *j)
{
    return j->until_ns != 0 && clock_ns() >= j->until_ns;
}

/* Takes all it can get from one thread's shares. */
static void use_shares(const product_job *j, int32_t owner, int32_t thread)
{
    for (int32_t i = 0; i < j->n_products; i++) {
        const job_product *q = &j->product[i];
        const weight *m = q->p.matrix;
        int32_t from, to;
        while (!is_late(j) &&
               share_take(&q->share[owner], owner == thread, q->claim_groups, &from, &to))
            dot_groups(j, q, m->packed + (size_t)from * m->group_bytes, from, to - from, thread);
    }
}

/* Asks for the first bytes of the thread's share in the product after these: memory would idle while
 * the threads meet and do what lies between. */
static void look_ahead(const product_job *j, int32_t thread)
{
    const weights *w = j->w;
    const weight *next = j->last + 1;
    if (next == w->matrix + w->n_matrices)
        next = w->matrix + (w->matrix->in_pass ? 0 : 1);
    size_t at = (size_t)share_start(next, thread, w->n_threads) * next->group_bytes,
           end = weight_pinned_bytes(next);
    end = min_size(end, at + w->tuning.ahead_bytes);
    for (; at < end; at += 64)
        __builtin_prefetch(next->packed + at, 0, 2);
}

/* Some groups of a piece are used up; the last one gives its space back. */
static void done_with(const product_job *j, weight *m, int32_t piece, int32_t n_groups, int64_t seq)
{
    if (atomic_fetch_sub(&m->piece_left[piece], n_groups) == n_groups)
        stream_release(j->w->stream, seq);
}

/* Takes an item's groups out of the ring, to their pinned place or into scratch, and uses them;
 * those that come packed and are not pinned are used where they lie. */
static void use_item(product_job *j, const job_product *q, int32_t item, int32_t thread)
{
    weight *m = q->p.matrix;
    int32_t from, to, low, high, piece = piece_of(q, item);
    piece_range(m, piece, &low, &high);
    item_range(q, item, low, high, &from, &to);
    int64_t seq = seq_of(q, piece);
    const uint8_t *bytes = stream_wait(j->w->stream, seq); /* it is there, or will never be */
    if (!bytes) {
        atomic_store(&j->failed, true);
        return;
    }
    bool pinned = from < m->n_pinned;
    uint8_t *place =
        pinned ? m->packed + (size_t)from * m->group_bytes : j->w->pack_scratch[thread];
    if (m->sidecar_offset) {
        const uint8_t *groups = bytes + (size_t)(from - low) * m->group_bytes;
        if (pinned)
            groups = memcpy(place, groups, (size_t)(to - from) * m->group_bytes);
        dot_groups(j, q, groups, from, to - from, thread);
        done_with(j, m, piece, to - from, seq);
        return;
    }
    int64_t rows = m->n_rows - (int64_t)from * GROUP_ROWS;
    int64_t start = j->w->trace ? clock_ns() : 0;
    if (!m->kernel->pack(place, bytes + (int64_t)(from - low) * GROUP_ROWS * m->row_bytes,
                         m->row_bytes, rows < GROUP_ROWS ? (int32_t)rows : GROUP_ROWS, m->k))
        atomic_store_explicit(&j->damaged, m, memory_order_relaxed);
    if (j->w->trace)
        trace_add(j->w->trace, thread, TRACE_PACK, start, clock_ns(), 0);
    done_with(j, m, piece, 1, seq);
    dot_groups(j, q, place, from, 1, thread);
}

/* True when item `item` of the job has arrived, or never will. */
static bool item_ready(product_job *j, int32_t item)
{
    const job_product *q = product_of(j, &item);
    return stream_ready(j->w->stream, seq_of(q, piece_of(q, item)));
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
    for (int32_t i = 0; i < n_threads; i++)
        use_shares(j, (thread + i) % n_threads, thread);
    while (!all_claimed(j) && !is_late(j)) {
        int32_t item;
        if (claim(j, &item)) {
            const job_product *q = product_of(j, &item);
            use_item(j, q, item, thread);
        } else if (!look_on(j, n_threads)) {
            return;
        }
    }
    atomic_fetch_add(&j->n_idle, 1);
    if (all_claimed(j))
        look_ahead(j, thread);
}

/* ---- For the caller ---- */

static bool shares_are_empty(const product_job *j)
{
    for (int32_t i = 0; i < j->n_products; i++)
        for (int32_t t = 0; t < j->w->n_threads; t++)
            if (!share_is_empty(
                    atomic_load_explicit(&j->product[i].share[t].groups, memory_order_relaxed)))
                return false;
    return true;
}

/* Even pinned groups wait where reading and computing take turns. */
static bool must_wait(product_job *j)
{
    return j->w->in_turns && !all_claimed(j) && !item_ready(j, atomic_load(&j->next));
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
    atomic_store_explicit(&j->n_idle, 0, memory_order_relaxed);
    pool_run(p, job_thread, j);
    if (atomic_load(&j->failed)) {
        j->open = false;
        *state = PRODUCT_DONE;
        return stream_status(w->stream, err);
    }
    if (!shares_are_empty(j)) {
        *state = PRODUCT_PAUSED;
        return DREY_OK;
    }
    if (!all_claimed(j)) {
        *state = item_ready(j, atomic_load(&j->next)) ? PRODUCT_PAUSED : PRODUCT_STARVED;
        return DREY_OK;
    }
    w->cursor = j->end_seq;
    j->open = false;
    *state = PRODUCT_DONE;
    const weight *damaged = atomic_load(&j->damaged);
    return damaged ? weight_refuse(damaged, w->paths[damaged->tensor->part], err) : DREY_OK;
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
    int64_t start = clock_ns();
    stream_wait(w->stream, seq_of(q, piece_of(q, item)));
    trace_add(w->trace, 0, TRACE_STALL, start, clock_ns(), 0);
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
        const weight *m = q->p.matrix;
        for (int32_t k = q->first_piece; k < m->n_pinned_pieces + m->n_streamed_pieces; k++)
            if (atomic_load(&m->piece_left[k]) > 0)
                stream_skip(w->stream, seq_of(q, k), seq_of(q, k) + 1);
    }
    w->cursor = j->end_seq;
}
