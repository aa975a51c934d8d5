/* Laying out a pass's buffers: see workspace.h. */
#include "model/workspace.h"

#include "common/num.h"

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
    int64_t most = max_i64(row_stride((int64_t)s->n_heads * s->head_dim), row_stride(s->n_ff));
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

/* Walks over the workspace's buffers: sums their sizes when ws is NULL, else takes them from `a`.
 */
static size_t workspace_walk(workspace *ws, const model_shape *s, const workspace_limits *l,
                             arena *a)
{
    int32_t rows = l->max_rows + l->max_deferred, logits = l->max_logit_rows + l->max_deferred;
    int64_t n_q = (int64_t)s->n_heads * s->head_dim;
    int64_t n_kv = (int64_t)s->n_heads_kv * s->head_dim;
    size_t ints = (size_t)rows * sizeof(int32_t), total = 0;
    workspace dummy;
    workspace *to = ws ? ws : &dummy;
#define TAKE(field, bytes)                                                                         \
    do {                                                                                           \
        size_t bytes_ = (bytes);                                                                   \
        total += arena_size(bytes_);                                                               \
        if (ws)                                                                                    \
            to->field = arena_take(a, bytes_);                                                     \
    } while (0)
    TAKE(x, floats(rows, s->n_embd));
    TAKE(y, floats(rows, s->n_embd));
    TAKE(q, floats(rows, n_q));
    TAKE(k, floats(rows, n_kv));
    TAKE(v, floats(rows, n_kv));
    TAKE(att, floats(rows, n_q));
    TAKE(gate, floats(rows, s->n_ff));
    TAKE(up, floats(rows, s->n_ff));
    to->taps.wide = NULL;
    if (s->taps.n)
        TAKE(taps.wide, floats(rows, workspace_wide(s)));
    TAKE(rope, (size_t)rows * (size_t)(s->n_ropes * s->n_rot) * sizeof(float));
    TAKE(logits, floats(logits, l->n_logits ? l->n_logits : s->n_vocab));
    to->taps.rows = NULL;
    if (l->max_tap_rows)
        TAKE(taps.rows, floats(l->max_tap_rows, s->n_embd));
    TAKE(rows, (size_t)rows * sizeof(pass_row));
    TAKE(group, ints);
    TAKE(pending, ints);
    TAKE(slot, ints);
    TAKE(position, ints);
    TAKE(head_row, ints);
    TAKE(n_path, ints);
    TAKE(n_prefix, ints);
    TAKE(path, ints * (size_t)l->max_pending);
    TAKE(attend, (size_t)(l->max_groups + l->max_deferred) * sizeof(attend_layer));
    size_t n_more = s->encoder.n_layers > 0; /* of what only models with an encoder need */
    TAKE(attention.more, n_more * (size_t)(l->max_groups + l->max_deferred) * sizeof(attend_more));
    TAKE(attention.nothing, n_more * ints);
    TAKE(attention.seen, n_more * ints);
    int32_t n_slots = l->n_threads + l->n_devices;
    bool divided = l->n_attending > 1;
    TAKE(attention.scratch, (size_t)n_slots * sizeof(void *));
    for (int32_t i = 0; i < n_slots; i++)
        TAKE(attention.scratch[i], attend_scratch_bytes(s->head_dim));
    int32_t n_shared = s->n_heads / s->n_heads_kv;
    to->attention.n_partials =
        attend_partials_wanted(n_shared, s->head_dim, l->n_slots, l->n_threads);
    if (divided)
        to->attention.n_partials =
            max_size(to->attention.n_partials,
                     attend_split_partials(s->n_heads_kv, n_shared, s->head_dim, rows, l->n_slots));
    TAKE(attention.partials, to->attention.n_partials * sizeof(float));
    to->attention.split = NULL;
    if (divided)
        TAKE(attention.split, attend_split_bytes(n_slots));
    for (int kind = 0; kind < ACT_KINDS; kind++)
        TAKE(acts[kind], act_bytes((act_kind)kind, rows, longest_row(s)));
    TAKE(look, (size_t)l->n_threads * sizeof(void *));
    for (int32_t i = 0; i < l->n_threads; i++)
        TAKE(look[i], look_bytes(s->n_embd));
#undef TAKE
    to->limits = *l;
    return total;
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
