/* Laying out a pass's buffers: see workspace.h. */
#include "model/workspace.h"

#include <assert.h>

#include "common/num.h"
#include "model/arch.h"
#include "model/block/block.h"
#include "weights/product.h"

/* Products may write whole groups. One cache line more: rows a multiple of a page apart would all
 * compete for the same few places of the caches. */
int64_t row_stride(int64_t n)
{
    return ceil_div_i64(n, GROUP_ROWS) * GROUP_ROWS + 64 / (int64_t)sizeof(float);
}

static size_t floats(int64_t rows, int64_t n)
{
    return (size_t)rows * (size_t)row_stride(n) * sizeof(float);
}

size_t look_bytes(int32_t n_embd)
{
    size_t most = 0;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        most = max_size(most, act_bytes((act_kind)kind, 1, n_embd));
    return arena_size(most);
}

/* ---- What blocks ask for ---- */

static workspace_buffer *asked(buffer_needs *n, int32_t buffer)
{
    assert(buffer < BUFFER_OWN + BLOCK_BUFFERS);
    return &n->buffer[buffer < BUFFER_OWN ? buffer : n->first + buffer];
}

void need_rows(buffer_needs *n, int32_t buffer, int32_t rows, int64_t numbers)
{
    *asked(n, buffer) = (workspace_buffer){
        .ld = row_stride(numbers), .bytes = floats(rows, numbers), .lasts = buffer < BUFFER_OWN};
}

void need_bytes(buffer_needs *n, int32_t buffer, size_t bytes)
{
    *asked(n, buffer) = (workspace_buffer){.bytes = bytes};
}

void need_lasting(buffer_needs *n, int32_t buffer, size_t bytes)
{
    *asked(n, buffer) = (workspace_buffer){.bytes = bytes, .lasts = true};
}

void need_acts(buffer_needs *n, int32_t rows, int64_t k, int32_t n_parts)
{
    const size_t ends = n_parts > 1 ? 64 * (size_t)n_parts : 0;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        n->acts[kind] =
            max_size(n->acts[kind], act_bytes((act_kind)kind, rows, row_stride(k)) + ends);
}

/* ---- The walk ---- */

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
    TAKE(rope, (size_t)w->rows * (size_t)s->n_angles * sizeof(float));
    TAKE(logits, floats(w->n_logits, l->n_logits ? l->n_logits : s->n_vocab));
    TAKE(tap_rows, floats(l->max_tap_rows, shape_width(s)));
    TAKE(rows, (size_t)w->rows * sizeof(pass_row));
    TAKE(group, w->ints);
    TAKE(pending, w->ints);
    TAKE(slot, w->ints);
    TAKE(position, w->ints);
    TAKE(looked_up, s->lookup.n > 0 ? w->ints : 0);
    TAKE(head_row, w->ints);
    TAKE(n_path, w->ints);
    TAKE(n_prefix, w->ints);
    TAKE(path, w->ints * (size_t)l->max_pending);
    TAKE(look, (size_t)l->n_threads * look_bytes(s->n_embd));
}

/* Places the n buffers of a block that do not last one after the other; returns their bytes. */
static size_t lay_over(workspace_buffer *b, int32_t n, uint8_t *memory)
{
    size_t total = 0;
    for (int32_t i = 0; i < n; i++) {
        if (b[i].lasts || b[i].bytes == 0)
            continue;
        b[i].at = memory ? memory + total : NULL;
        total += arena_size(b[i].bytes);
    }
    return total;
}

static void walk_blocks(walk *w, const block_list *blocks)
{
    workspace_buffer counted[WORKSPACE_BUFFERS] = {0};
    workspace_buffer *buffer = w->ws ? w->ws->buffer : counted, *own = buffer + BUFFER_OWN;
    buffer_needs n = {.shape = w->s, .limits = w->l, .n_rows = w->rows, .buffer = buffer};
    size_t most = 0;
    for (int32_t i = 0; i < blocks->n; i++) {
        const block_class *class = blocks->class[i];
        n.first = i * BLOCK_BUFFERS;
        if (class->needs)
            class->needs(&n);
        most = max_size(most, lay_over(own + n.first, BLOCK_BUFFERS, NULL));
    }
    for (int kind = 0; kind < ACT_KINDS; kind++)
        TAKE(acts[kind], n.acts[kind]);
    for (int32_t i = 0; i < WORKSPACE_BUFFERS; i++)
        if (buffer[i].lasts && buffer[i].bytes > 0)
            buffer[i].at = walk_over(w, buffer[i].bytes);
    uint8_t *memory = walk_over(w, most);
    for (int32_t i = 0; i < blocks->n; i++)
        lay_over(own + i * BLOCK_BUFFERS, BLOCK_BUFFERS, memory);
}

#undef TAKE

static size_t workspace_walk(workspace *ws, const model_shape *s, const block_list *blocks,
                             const workspace_limits *limits, arena *a)
{
    int32_t rows = limits->max_rows + limits->max_deferred;
    walk w = {.ws = ws,
              .s = s,
              .l = limits,
              .a = a,
              .rows = rows,
              .n_logits = limits->max_logit_rows + limits->max_deferred,
              .ints = (size_t)rows * sizeof(int32_t)};
    if (ws)
        *ws = (workspace){.limits = *limits};
    walk_rows(&w);
    walk_blocks(&w, blocks);
    return w.total;
}

size_t workspace_bytes(const model_shape *s, const block_list *blocks,
                       const workspace_limits *limits)
{
    return workspace_walk(NULL, s, blocks, limits, NULL);
}

void workspace_init(workspace *ws, const model_shape *s, const block_list *blocks,
                    const workspace_limits *limits, arena *a)
{
    workspace_walk(ws, s, blocks, limits, a);
    ws->x = ws->buffer[BUFFER_X].at;
    ws->y = ws->buffer[BUFFER_Y].at;
}
