/* Products over a model's matrices, wherever their groups lie.
 *
 * The threads claim work items from one counter: runs of pinned groups, then single streamed groups
 * in the order in which they arrive. So a product starts on its first rows while the last are still
 * being read, and a slow core takes fewer items. Items write different rows of y: no sums cross
 * them. */
#include <assert.h>
#include <stdatomic.h>

#include "os/clock.h"
#include "weights/weights.h"

/* Bytes of packed weights that one claim takes: long enough for the prefetcher, short enough for
 * balance. */
static const size_t claim_bytes = 192 << 10;

typedef struct job_part {
    const product *p;
    bool loading;         /* its groups all come from the stream, and the pinned ones are packed */
    int32_t claim_groups; /* pinned groups a claim */
    int32_t n_claims;     /* of pinned groups (0 while loading) */
    int32_t n_items;      /* claims and streamed groups */
    int64_t seq;          /* of the first piece in this pass */
    int32_t first_piece;  /* its index within the matrix */
    int32_t end_group;    /* one past the last group to use: what is pinned, when only loading */
} job_part;

typedef struct job {
    weights *w;
    job_part part[PRODUCTS_MAX];
    int32_t n_parts, n_items;
    void *const *acts;
    int32_t n;
    _Atomic int32_t next;
    _Atomic bool failed;
} job;

static int32_t first_streamed_group(const job_part *part)
{
    return part->loading ? 0 : part->p->matrix->n_pinned;
}

/* The groups of one piece of a matrix: pinned pieces first, then streamed ones. */
static void piece_range(const weight *m, int32_t piece, int32_t *from, int32_t *to)
{
    bool pinned = piece < m->n_pinned_pieces;
    int32_t base = pinned ? 0 : m->n_pinned, end = pinned ? m->n_pinned : m->n_groups;
    int32_t index = pinned ? piece : piece - m->n_pinned_pieces;
    *from = base + index * m->piece_groups;
    *to = *from + m->piece_groups < end ? *from + m->piece_groups : end;
}

static int32_t piece_of(const weight *m, int32_t group)
{
    return group < m->n_pinned ? group / m->piece_groups
                               : m->n_pinned_pieces + (group - m->n_pinned) / m->piece_groups;
}

static void part_init(job_part *part, const weights *w, const product *p, int32_t n,
                      int32_t n_threads)
{
    weight *m = p->matrix;
    *part = (job_part){.p = p, .loading = weights_loading(w)};
    part->end_group = n == 0 ? m->n_pinned : m->n_groups;
    if (part->loading) {
        part->seq = w->pass_seq + m->first_seq;
    } else {
        part->seq = w->pass_seq + m->cycle_seq;
        part->first_piece = m->n_pinned_pieces;
        int32_t most = (int32_t)(claim_bytes / m->group_bytes),
                fair = m->n_pinned / (n_threads * 4);
        part->claim_groups = most < fair ? most : fair;
        if (part->claim_groups < 1)
            part->claim_groups = 1;
        part->n_claims = (m->n_pinned + part->claim_groups - 1) / part->claim_groups;
    }
    int32_t from = first_streamed_group(part);
    part->n_items = part->n_claims + (part->end_group > from ? part->end_group - from : 0);
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

static void run_pinned(const job *j, const job_part *part, int32_t claim, int32_t thread)
{
    const weight *m = part->p->matrix;
    int32_t from = claim * part->claim_groups, to = from + part->claim_groups;
    to = to < m->n_pinned ? to : m->n_pinned;
    dot_groups(j, part, m->packed + (size_t)from * m->group_bytes, from, to - from, thread);
}

/* Packs a group out of the ring, to its pinned place or into scratch, and uses it. */
static void run_streamed(job *j, const job_part *part, int32_t group, int32_t thread)
{
    weight *m = part->p->matrix;
    stream *s = j->w->stream;
    int32_t piece = piece_of(m, group), from, to;
    piece_range(m, piece, &from, &to);
    int64_t seq = part->seq + (piece - part->first_piece);
    int64_t start = thread == 0 && !stream_ready(s, seq) ? clock_ns() : 0;
    const uint8_t *raw = stream_wait(s, seq);
    if (start)
        j->w->stall_ns += clock_ns() - start;
    if (!raw) {
        atomic_store(&j->failed, true);
        return;
    }
    int64_t rows = m->n_rows - (int64_t)group * GROUP_ROWS;
    uint8_t *packed = group < m->n_pinned ? m->packed + (size_t)group * m->group_bytes
                                          : j->w->pack_scratch[thread];
    m->kernel->pack(packed, raw + (int64_t)(group - from) * GROUP_ROWS * m->row_bytes, m->row_bytes,
                    rows < GROUP_ROWS ? (int32_t)rows : GROUP_ROWS, m->k);
    if (atomic_fetch_sub(&m->piece_left[piece], 1) == 1)
        stream_release(s, seq);
    dot_groups(j, part, packed, group, 1, thread);
}

static void job_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    job *j = arg;
    for (;;) {
        int32_t item = atomic_fetch_add_explicit(&j->next, 1, memory_order_relaxed);
        if (item >= j->n_items || atomic_load_explicit(&j->failed, memory_order_relaxed))
            return;
        const job_part *part = j->part;
        while (item >= part->n_items)
            item -= part++->n_items;
        if (item < part->n_claims)
            run_pinned(j, part, item, thread);
        else
            run_streamed(j, part, first_streamed_group(part) + item - part->n_claims, thread);
    }
}

drey_status weights_matmul(weights *w, pool *p, const product *products, int32_t n_products,
                           void *const acts[ACT_KINDS], int32_t n, drey_error *err)
{
    assert(n_products <= PRODUCTS_MAX);
    job j = {.w = w, .n_parts = n_products, .acts = acts, .n = n};
    int64_t end = w->cursor;
    for (int32_t i = 0; i < n_products; i++) {
        const weight *m = products[i].matrix;
        part_init(&j.part[i], w, &products[i], n, w->n_threads);
        j.n_items += j.part[i].n_items;
        end = j.part[i].seq + m->n_streamed_pieces + (j.part[i].loading ? m->n_pinned_pieces : 0);
    }
    pool_run(p, job_thread, &j);
    w->cursor = end;
    return atomic_load(&j.failed) ? stream_status(w->stream, err) : DREY_OK;
}
