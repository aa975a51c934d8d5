/* Laying out a pass's buffers: see workspace.h. */
#include "model/workspace.h"

#include "common/num.h"
#include "model/arch.h"
#include "unit/attend_split.h"
#include "weights/expert_slots.h"
#include "weights/product.h"

/* Products may write whole groups. One cache line more: rows a multiple of a page apart would all
 * compete for the same few places of the caches. */
int64_t row_stride(int64_t n)
{
    return ceil_div_i64(n, GROUP_ROWS) * GROUP_ROWS + 64 / (int64_t)sizeof(float);
}

int64_t workspace_wide(const model_shape *s)
{
    return s->taps.n ? max_i64(2 * s->n_embd, tapped_numbers(s)) : 0;
}

static size_t floats(int64_t rows, int64_t n)
{
    return (size_t)rows * (size_t)row_stride(n) * sizeof(float);
}

/* That a product reads. */
static int64_t longest_row(const model_shape *s)
{
    int64_t most = max_i64(row_stride(shape_attended(s)), row_stride(shape_widest_ff(s)));
    return max_i64(max_i64(most, row_stride(s->n_embd)), row_stride(workspace_wide(s)));
}

/* Whatever kind the head needs it in. */
static size_t look_bytes(int32_t n_embd)
{
    size_t most = 0;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        most = max_size(most, act_bytes((act_kind)kind, 1, n_embd));
    return most;
}

int32_t workspace_batch(const model_shape *s, const workspace_limits *l)
{
    return max_i32(l->max_rows + l->max_deferred, s->experts.router.n_used);
}

/* Each expert of a batch begins at a multiple of 64. */
static size_t batch_acts(const model_shape *s, const workspace_limits *l, int kind)
{
    int32_t rows = workspace_batch(s, l), n = min_i32(rows, s->experts.router.n_experts);
    return act_bytes((act_kind)kind, rows, longest_row(s)) + 64 * (size_t)n;
}

/* Walks over the workspace's buffers: sums their sizes when ws is NULL, else takes them from `a`.
 */
typedef struct walk {
    workspace *ws;
    const model_shape *s;
    const workspace_limits *l;
    arena *a;
    size_t total;
    int32_t rows, n_logits; /* rows of a pass; those with logits */
    size_t ints;            /* bytes of a number for each row */
} walk;

static void *walk_over(walk *w, size_t bytes)
{
    w->total += arena_size(bytes);
    return w->ws ? arena_take(w->a, bytes) : NULL;
}

#define TAKE(field, bytes)                                                                         \
    do {                                                                                           \
        void *taken_ = walk_over(w, bytes);                                                        \
        if (w->ws)                                                                                 \
            w->ws->field = taken_;                                                                 \
    } while (0)

static void walk_rows(walk *w)
{
    const model_shape *s = w->s;
    const workspace_limits *l = w->l;
    int32_t rows = w->rows, batch = workspace_batch(s, l);
    TAKE(x, floats(rows, s->n_embd));
    TAKE(y, floats(rows, s->n_embd));
    TAKE(q, floats(rows, shape_queries(s)));
    TAKE(k, floats(rows, shape_keys(s)));
    TAKE(v, floats(rows, shape_values(s)));
    TAKE(att, floats(rows, shape_attended(s)));
    TAKE(gate, floats(batch, shape_widest_ff(s)));
    TAKE(up, floats(batch, shape_widest_ff(s)));
    if (s->taps.n)
        TAKE(taps.wide, floats(rows, workspace_wide(s)));
    TAKE(rope, (size_t)rows * (size_t)(s->n_ropes * s->n_rot) * sizeof(float));
    TAKE(logits, floats(w->n_logits, l->n_logits ? l->n_logits : s->n_vocab));
    if (l->max_tap_rows)
        TAKE(taps.rows, floats(l->max_tap_rows, s->n_embd));
    TAKE(rows, (size_t)rows * sizeof(pass_row));
    TAKE(group, w->ints);
    TAKE(pending, w->ints);
    TAKE(slot, w->ints);
    TAKE(position, w->ints);
    TAKE(head.row, w->ints);
    TAKE(n_path, w->ints);
    TAKE(n_prefix, w->ints);
    TAKE(path, w->ints * (size_t)l->max_pending);
    for (int kind = 0; kind < ACT_KINDS; kind++)
        TAKE(acts[kind], batch_acts(s, l, kind));
    TAKE(head.look, (size_t)l->n_threads * sizeof(void *));
    for (int32_t i = 0; i < l->n_threads; i++)
        TAKE(head.look[i], look_bytes(s->n_embd));
}

/* Numbers of partial results. */
static size_t partials_of(const walk *w)
{
    const model_shape *s = w->s;
    const workspace_limits *l = w->l;
    int32_t n_shared = s->n_heads / s->n_heads_kv;
    size_t n = attend_partials_wanted(n_shared, s->v_dim, l->n_slots, l->n_threads);
    size_t divided = attend_split_partials(s->n_heads_kv, n_shared, s->v_dim, w->rows, l->n_slots);
    return l->n_attending > 1 ? max_size(n, divided) : n;
}

static void walk_attention(walk *w)
{
    const workspace_limits *l = w->l;
    size_t n_runs = (size_t)(l->max_groups + l->max_deferred);
    size_t n_more = w->s->encoder.n_layers > 0; /* of what only models with an encoder need */
    int32_t n_slots = l->n_threads + l->n_devices;
    TAKE(attend, n_runs * sizeof(attend_layer));
    TAKE(attention.more, n_more * n_runs * sizeof(attend_more));
    TAKE(attention.nothing, n_more * w->ints);
    TAKE(attention.seen, n_more * w->ints);
    TAKE(attention.scratch, (size_t)n_slots * sizeof(void *));
    for (int32_t i = 0; i < n_slots; i++)
        TAKE(attention.scratch[i], attend_scratch_bytes(w->s->head_dim, w->s->v_dim, false));
    TAKE(attention.partials, partials_of(w) * sizeof(float));
    if (w->ws)
        w->ws->attention.n_partials = partials_of(w);
    if (l->away)
        TAKE(attention.kept, w->ints * 2 * (size_t)w->s->n_heads);
    if (l->n_attending > 1)
        TAKE(attention.split, attend_split_bytes(n_slots));
}

static void walk_mixture(walk *w)
{
    const expert_shape *e = &w->s->experts;
    size_t n_experts = (size_t)e->router.n_experts, n_used = (size_t)e->router.n_used;
    if (n_experts == 0)
        return;
    TAKE(mixture.logits, floats(w->rows, e->router.n_experts));
    TAKE(mixture.chosen, w->ints * n_used);
    TAKE(mixture.weight, w->ints * n_used);
    TAKE(mixture.place, w->ints * n_used);
    if (e->n_ff_shared > 0) {
        TAKE(mixture.shared, floats(w->rows, w->s->n_embd));
        TAKE(mixture.shared_weight, w->ints);
    }
    TAKE(mixture.rows, floats((int64_t)w->rows * e->router.n_used, w->s->n_embd));
    TAKE(mixture.run, n_experts * sizeof(expert_run));
    TAKE(mixture.at, n_experts * sizeof(int32_t));
    TAKE(mixture.acts, n_experts * ACT_KINDS * sizeof(void *));
    TAKE(mixture.product, 2 * n_experts * sizeof(expert_product));
    TAKE(mixture.worth, n_experts * sizeof(float));
}

#undef TAKE

static size_t workspace_walk(workspace *ws, const model_shape *s, const workspace_limits *l,
                             arena *a)
{
    int32_t rows = l->max_rows + l->max_deferred;
    walk w = {.ws = ws,
              .s = s,
              .l = l,
              .a = a,
              .rows = rows,
              .n_logits = l->max_logit_rows + l->max_deferred,
              .ints = (size_t)rows * sizeof(int32_t)};
    if (ws)
        *ws = (workspace){.limits = *l};
    walk_rows(&w);
    walk_attention(&w);
    walk_mixture(&w);
    return w.total;
}

size_t workspace_bytes(const model_shape *s, const workspace_limits *limits)
{
    return workspace_walk(NULL, s, limits, NULL);
}

void workspace_init(workspace *ws, const model_shape *s, const workspace_limits *limits, arena *a)
{
    workspace_walk(ws, s, limits, a);
    bool has_more = s->encoder.n_layers > 0;
    for (int32_t i = 0; has_more && i < limits->max_rows + limits->max_deferred; i++)
        ws->attention.nothing[i] = 0;
}
