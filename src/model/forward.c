/* One pass through a decoder-only model: see forward.h.
 *
 *   x = embedding
 *   each layer:  x += O attend(rope(Q n), rope(K n), V n)    n = rmsnorm(x)
 *                x += Down (silu(Gate m) * Up m)             m = rmsnorm(x)
 *   logits = Head rmsnorm(x)
 *
 * The products take all threads; the steps between them are done by tiles of TOKEN_TILE rows, on
 * the calling thread when there is one tile only (handing it out would cost more than the work),
 * but for the widest step, whose columns are then shared. */
#include "model/forward.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>
#include <math.h>

#include "base/fmath.h"
#include "os/clock.h"

/* Rows of activations are padded so that products may write whole groups, and by one cache line
 * more: rows a multiple of a page apart would all compete for the same few places of the caches. */
static int64_t padded(int64_t n)
{
    return (n + GROUP_ROWS - 1) / GROUP_ROWS * GROUP_ROWS + 64 / (int64_t)sizeof(float);
}

/* Numbers of a tile whose step is shared by all threads; with fewer, handing over costs more. */
static const int64_t least_shared = 8192;

typedef struct widths { /* of the widest of the shapes that share a workspace */
    int64_t embd, q, kv, ff, rot, vocab, k_max;
} widths;

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static widths widest(const model_shape *const shapes[], int32_t n_shapes)
{
    widths w = {0};
    for (int32_t i = 0; i < n_shapes; i++) {
        const model_shape *s = shapes[i];
        w.embd = larger(w.embd, padded(s->n_embd));
        w.q = larger(w.q, padded((int64_t)s->n_heads * s->head_dim));
        w.kv = larger(w.kv, padded((int64_t)s->n_heads_kv * s->head_dim));
        w.ff = larger(w.ff, padded(s->n_ff));
        w.rot = larger(w.rot, s->n_rot);
        w.vocab = larger(w.vocab, padded(s->n_vocab));
    }
    w.k_max = larger(larger(w.embd, w.q), w.ff);
    return w;
}

static size_t attend_bytes(const model_shape *const shapes[], int32_t n_shapes)
{
    size_t most = 0;
    for (int32_t i = 0; i < n_shapes; i++) {
        size_t n = attend_scratch_bytes(shapes[i]->head_dim);
        most = n > most ? n : most;
    }
    return most;
}

static size_t attend_partials(const model_shape *const shapes[], int32_t n_shapes, int32_t n_slots,
                              int32_t n_threads)
{
    size_t most = 0;
    for (int32_t i = 0; i < n_shapes; i++) {
        size_t n = attend_partials_wanted(shapes[i]->n_heads / shapes[i]->n_heads_kv,
                                          shapes[i]->head_dim, n_slots, n_threads);
        most = n > most ? n : most;
    }
    return most;
}

/* Walks over the workspace's buffers: sums their sizes when ws is NULL, else takes them from `a`.
 */
static size_t workspace_walk(workspace *ws, const model_shape *const shapes[], int32_t n_shapes,
                             int32_t max_rows, int32_t max_logit_rows, int32_t max_pending,
                             int32_t n_slots, int32_t n_threads, arena *a)
{
    widths w = widest(shapes, n_shapes);
    size_t rows = (size_t)max_rows, total = 0;
    workspace dummy;
    workspace *to = ws ? ws : &dummy;
#define TAKE(field, bytes)                                                                         \
    do {                                                                                           \
        size_t bytes_ = (bytes);                                                                   \
        total += arena_size(bytes_);                                                               \
        if (ws)                                                                                    \
            to->field = arena_take(a, bytes_);                                                     \
    } while (0)
    TAKE(x, rows * (size_t)w.embd * sizeof(float));
    TAKE(y, rows * (size_t)w.embd * sizeof(float));
    TAKE(q, rows * (size_t)w.q * sizeof(float));
    TAKE(k, rows * (size_t)w.kv * sizeof(float));
    TAKE(v, rows * (size_t)w.kv * sizeof(float));
    TAKE(att, rows * (size_t)w.q * sizeof(float));
    TAKE(gate, rows * (size_t)w.ff * sizeof(float));
    TAKE(up, rows * (size_t)w.ff * sizeof(float));
    TAKE(rope, rows * (size_t)w.rot * sizeof(float));
    TAKE(logits, (size_t)max_logit_rows * (size_t)w.vocab * sizeof(float));
    TAKE(rows, rows * sizeof(forward_row));
    TAKE(position, rows * sizeof(int32_t));
    TAKE(n_path, rows * sizeof(int32_t));
    TAKE(n_prefix, rows * sizeof(int32_t));
    TAKE(path, rows * (size_t)max_pending * sizeof(int32_t));
    TAKE(scratch, (size_t)n_threads * sizeof(void *));
    for (int32_t i = 0; i < n_threads; i++)
        TAKE(scratch[i], attend_bytes(shapes, n_shapes));
    size_t n_partials = attend_partials(shapes, n_shapes, n_slots, n_threads);
    TAKE(partials, n_partials * sizeof(float));
    to->n_partials = n_partials;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        TAKE(acts[kind], act_bytes((act_kind)kind, max_rows, w.k_max));
#undef TAKE
    to->max_rows = max_rows;
    to->max_logit_rows = max_logit_rows;
    return total;
}

size_t workspace_bytes(const model_shape *const shapes[], int32_t n_shapes, int32_t max_rows,
                       int32_t max_logit_rows, int32_t max_pending, int32_t n_slots,
                       int32_t n_threads)
{
    return workspace_walk(NULL, shapes, n_shapes, max_rows, max_logit_rows, max_pending, n_slots,
                          n_threads, NULL);
}

void workspace_init(workspace *ws, const model_shape *const shapes[], int32_t n_shapes,
                    int32_t max_rows, int32_t max_logit_rows, int32_t max_pending, int32_t n_slots,
                    int32_t n_threads, arena *a)
{
    workspace_walk(ws, shapes, n_shapes, max_rows, max_logit_rows, max_pending, n_slots, n_threads,
                   a);
}

/* ---- Work shared among threads ------------------------------------------------------------------
 */

/* A step over rows [from, to), tiles of TOKEN_TILE rows. */
typedef struct pass pass;
typedef void rows_fn(pass *p, int32_t from, int32_t to, int32_t thread);

struct pass {
    runner *r;
    const layer_layout *layer;
    int32_t layer_index;
    const forward_row *rows;
    int32_t n;             /* rows */
    int32_t first_pending; /* pending index of row 0 */
    rows_fn *step;
    _Atomic int32_t next;
    attend_layer attend;
    _Atomic bool failed;
    drey_error error; /* of the first failing step */
    /* What the quantising steps read and for which matrices. */
    const float *source;
    int64_t source_ld;
    int64_t source_k;
    bool kinds[ACT_KINDS];
};

static void tiles_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    pass *p = arg;
    for (;;) {
        int32_t from = atomic_fetch_add_explicit(&p->next, TOKEN_TILE, memory_order_relaxed);
        if (from >= p->n)
            return;
        p->step(p, from, from + TOKEN_TILE < p->n ? from + TOKEN_TILE : p->n, thread);
    }
}

static void each_row(pass *p, rows_fn *step)
{
    if (p->n <= TOKEN_TILE) {
        step(p, 0, p->n, 0);
        return;
    }
    p->step = step;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    pool_run(p->r->pool, tiles_thread, p);
}

static int64_t embd_ld(const pass *p)
{
    return padded(p->r->layout->shape.n_embd);
}

static int64_t q_ld(const pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    return padded((int64_t)s->n_heads * s->head_dim);
}

static int64_t kv_ld(const pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    return padded((int64_t)s->n_heads_kv * s->head_dim);
}

static int64_t ff_ld(const pass *p)
{
    return padded(p->r->layout->shape.n_ff);
}

/* Says what the next product reads: k numbers of `source` a row, in the kinds its matrices want. */
static void set_source(pass *p, const float *source, int64_t ld, int64_t k,
                       weight *const matrices[], int32_t n)
{
    p->source = source;
    p->source_ld = ld;
    p->source_k = k;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        p->kinds[kind] = false;
    for (int32_t i = 0; i < n; i++)
        p->kinds[matrices[i]->kernel->act] = true;
}

static void quantise_rows(pass *p, int32_t from, int32_t to)
{
    const kernel_table *kernels = p->r->kernels;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        if (p->kinds[kind])
            kernels->quantise[kind](p->r->ws->acts[kind], p->source, p->source_ld, from, to, p->n,
                                    p->source_k);
}

/* ---- The steps between products ---- */

static void step_embed(pass *p, int32_t from, int32_t to, int32_t thread)
{
    for (int32_t i = from; i < to; i++) {
        drey_error err;
        float *x = p->r->ws->x + i * embd_ld(p);
        if (weights_row(p->r->weights, p->rows[i].token, x, thread, &err) != DREY_OK &&
            !atomic_exchange(&p->failed, true))
            p->error = err;
    }
}

/* y = rmsnorm(x), then quantised. The norm's weights are the layer's, or those in front of the
 * head. */
static void norm_rows(pass *p, const float *norm, int32_t from, int32_t to)
{
    const model_shape *s = &p->r->layout->shape;
    workspace *ws = p->r->ws;
    for (int32_t i = from; i < to; i++)
        p->r->kernels->rmsnorm(ws->y + i * embd_ld(p), ws->x + i * embd_ld(p), norm, s->n_embd,
                               s->norm_eps);
    quantise_rows(p, from, to);
}

static void step_attn_norm(pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    norm_rows(p, p->layer->attn_norm, from, to);
}

/* Adds a product and its bias (or NULL) to the residual stream. */
static void add_rows(const pass *p, const float *bias, int32_t from, int32_t to)
{
    const kernel_table *kernels = p->r->kernels;
    int64_t n = p->r->layout->shape.n_embd;
    for (int32_t i = from; i < to; i++) {
        float *y = p->r->ws->y + i * embd_ld(p);
        if (bias)
            kernels->add(y, bias, n);
        kernels->add(p->r->ws->x + i * embd_ld(p), y, n);
    }
}

static void step_add(pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    add_rows(p, p->layer->down_bias, from, to);
}

static void step_ffn_norm(pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    add_rows(p, p->layer->o_bias, from, to);
    norm_rows(p, p->layer->ffn_norm, from, to);
}

static void step_quantise(pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    quantise_rows(p, from, to);
}

/* Biases and swiglu of rows [from, to), columns [k_from, k_to). */
static void swiglu_part(const pass *p, int32_t from, int32_t to, int64_t k_from, int64_t k_to)
{
    const kernel_table *kernels = p->r->kernels;
    const float *gate_bias = p->layer->gate_bias, *up_bias = p->layer->up_bias;
    for (int32_t i = from; i < to; i++) {
        float *gate = p->r->ws->gate + i * ff_ld(p) + k_from;
        float *up = p->r->ws->up + i * ff_ld(p) + k_from;
        if (gate_bias)
            kernels->add(gate, gate_bias + k_from, k_to - k_from);
        if (up_bias)
            kernels->add(up, up_bias + k_from, k_to - k_from);
        kernels->swiglu(gate, gate, up, k_to - k_from);
    }
}

static void step_swiglu(pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    swiglu_part(p, from, to, 0, p->source_k);
    quantise_rows(p, from, to);
}

/* A thread's columns of a tile's swiglu, in whole blocks, and their quantised form. */
static void swiglu_columns(void *arg, int32_t thread, int32_t n_threads)
{
    const pass *p = arg;
    int64_t k = p->source_k, n_blocks = (k + ACT_COLUMNS - 1) / ACT_COLUMNS;
    int64_t from = n_blocks * thread / n_threads * ACT_COLUMNS;
    int64_t to = n_blocks * (thread + 1) / n_threads * ACT_COLUMNS;
    to = to < k ? to : k;
    if (from >= to)
        return;
    swiglu_part(p, 0, p->n, from, to);
    for (int kind = 0; kind < ACT_KINDS; kind++)
        if (p->kinds[kind])
            p->r->kernels->quantise[kind](
                act_columns((act_kind)kind, p->r->ws->acts[kind], p->n, from), p->source + from,
                p->source_ld, 0, p->n, p->n, to - from);
}

static void swiglu_rows(pass *p)
{
    if (p->n <= TOKEN_TILE && p->n * p->source_k >= least_shared)
        pool_run(p->r->pool, swiglu_columns, p);
    else
        each_row(p, step_swiglu);
}

/* Biases and rotation; keys and values go to their slots of the cache. */
static void step_store(pass *p, int32_t from, int32_t to, int32_t thread)
{
    const model_shape *s = &p->r->layout->shape;
    const kernel_table *kernels = p->r->kernels;
    workspace *ws = p->r->ws;
    kv_cache *kv = p->r->kv;
    int32_t n_q = s->n_heads * s->head_dim, n_kv = s->n_heads_kv * s->head_dim;
    for (int32_t i = from; i < to; i++) {
        float *q = ws->q + i * q_ld(p), *k = ws->k + i * kv_ld(p), *v = ws->v + i * kv_ld(p);
        if (p->layer->q_bias)
            kernels->add(q, p->layer->q_bias, n_q);
        if (p->layer->k_bias)
            kernels->add(k, p->layer->k_bias, n_kv);
        if (p->layer->v_bias)
            kernels->add(v, p->layer->v_bias, n_kv);
        const float *angles = ws->rope + (int64_t)i * s->n_rot;
        kernels->rope(q, angles, s->n_heads, s->head_dim, s->n_rot / 2, s->arch->rope_neox);
        kernels->rope(k, angles, s->n_heads_kv, s->head_dim, s->n_rot / 2, s->arch->rope_neox);
        int32_t slot = kv->n_committed + p->first_pending + i;
        for (int32_t h = 0; h < s->n_heads_kv; h++) {
            size_t at = kv_at(kv, p->layer_index, h);
            kv_store_key(kernels, kv->format, kv->keys + at, slot, k + h * s->head_dim, s->head_dim,
                         ws->scratch[thread]);
            kv_store_value(kernels, kv->format, kv->values + at, slot, v + h * s->head_dim,
                           s->head_dim, ws->scratch[thread]);
        }
    }
}

static void attend_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    pass *p = arg;
    attend_work(&p->attend, p->r->ws->scratch[thread]);
}

static void attend_rows(pass *p)
{
    int64_t start = p->r->times ? clock_ns() : 0;
    const model_shape *s = &p->r->layout->shape;
    workspace *ws = p->r->ws;
    const kv_cache *kv = p->r->kv;
    size_t at = kv_at(kv, p->layer_index, 0);
    p->attend.head = (attention){.kernels = p->r->kernels,
                                 .format = kv->format,
                                 .head_dim = s->head_dim,
                                 .n_q = s->n_heads / s->n_heads_kv,
                                 .n_rows = p->n,
                                 .scale = 1.0f / sqrtf((float)s->head_dim),
                                 .keys = kv->keys + at,
                                 .values = kv->values + at,
                                 .n_prefix = ws->n_prefix,
                                 .n_path = ws->n_path,
                                 .path = ws->path,
                                 .path_ld = kv->max_pending,
                                 .q = ws->q,
                                 .out = ws->att,
                                 .ld = q_ld(p)};
    p->attend.head_bytes = kv->head_bytes;
    p->attend.n_heads = s->n_heads_kv;
    p->attend.partials = ws->partials;
    p->attend.n_partials = ws->n_partials;
    /* Work that is over sooner than the other threads are there. */
    bool alone = (int64_t)p->n * s->n_heads * s->head_dim * (ws->position[p->n - 1] + 1) < 50000;
    p->attend.n_threads = alone ? 1 : pool_n_threads(p->r->pool);
    attend_cut(&p->attend);
    if (alone)
        attend_thread(p, 0, 1);
    else
        pool_run(p->r->pool, attend_thread, p);
    if (p->r->times)
        p->r->times->attend_ns += clock_ns() - start;
}

/* ---- The pass ---- */

static drey_status multiply(pass *p, const product *products, int32_t n, drey_error *err)
{
    runner *r = p->r;
    int64_t start = r->times ? clock_ns() : 0;
    TRY(weights_matmul(r->weights, r->pool, products, n, r->ws->acts, p->n, err));
    if (r->times)
        r->times->matmul_ns += clock_ns() - start;
    if (r->loading && !weights_loaded(r->weights)) {
        stream_counters count;
        stream_count(r->weights->stream, &count);
        r->loading(r->loading_user, count.read_bytes);
    }
    if (atomic_load_explicit(r->cancel, memory_order_relaxed))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    return DREY_OK;
}

static drey_status run_layer(pass *p, drey_error *err)
{
    const layer_layout *y = p->layer;
    const model_shape *s = &p->r->layout->shape;
    workspace *ws = p->r->ws;
    int64_t d = embd_ld(p);
    set_source(p, ws->y, d, s->n_embd, (weight *[]){y->q, y->k, y->v}, 3);
    each_row(p, step_attn_norm);
    TRY(multiply(
        p, (product[]){{y->q, ws->q, q_ld(p)}, {y->k, ws->k, kv_ld(p)}, {y->v, ws->v, kv_ld(p)}}, 3,
        err));
    each_row(p, step_store);
    attend_rows(p);
    set_source(p, ws->att, q_ld(p), (int64_t)s->n_heads * s->head_dim, &(weight *){y->o}, 1);
    each_row(p, step_quantise);
    TRY(multiply(p, &(product){y->o, ws->y, d}, 1, err));
    set_source(p, ws->y, d, s->n_embd, (weight *[]){y->gate, y->up}, 2);
    each_row(p, step_ffn_norm);
    TRY(multiply(p, (product[]){{y->gate, ws->gate, ff_ld(p)}, {y->up, ws->up, ff_ld(p)}}, 2, err));
    set_source(p, ws->gate, ff_ld(p), s->n_ff, &(weight *){y->down}, 1);
    swiglu_rows(p);
    TRY(multiply(p, &(product){y->down, ws->y, d}, 1, err));
    each_row(p, step_add);
    return DREY_OK;
}

/* Gives rows their place: pending index, depth, position, angles, and the slots of their path. */
static void place_rows(pass *p)
{
    const model_layout *l = p->r->layout;
    workspace *ws = p->r->ws;
    kv_cache *kv = p->r->kv;
    p->first_pending = kv->n_pending;
    for (int32_t i = 0; i < p->n; i++) {
        int32_t self = p->first_pending + i, parent = p->rows[i].parent;
        assert(parent >= -1 && parent < self);
        kv->parent[self] = parent;
        kv->depth[self] = parent < 0 ? 0 : kv->depth[parent] + 1;
        ws->position[i] = kv->n_committed + kv->depth[self];
        /* In a chain every row lies in the slot of its position, and there is no path to list. */
        bool chain = kv->depth[self] == self;
        ws->n_path[i] = chain ? 0 : kv->depth[self] + 1;
        ws->n_prefix[i] = ws->position[i] + 1 - ws->n_path[i];
        int32_t *path = ws->path + (int64_t)i * kv->max_pending;
        for (int32_t at = self, to = ws->n_path[i]; to-- > 0; at = kv->parent[at])
            path[to] = kv->n_committed + at;
        for (int32_t j = 0; j < l->shape.n_rot / 2; j++) {
            double angle = ws->position[i] * l->rope_frequency[j];
            float *out = ws->rope + (int64_t)i * l->shape.n_rot + 2 * j;
            out[0] = (float)(cos_f64(angle) * l->rope_scale);
            out[1] = (float)(sin_f64(angle) * l->rope_scale);
        }
    }
}

/* Weights that are finite can still have lost their meaning, and packed ones from a sidecar were
 * looked at when it was made: what a pass hands out has to come from numbers. */
static drey_status check_finite(const pass *p, drey_error *err)
{
    const runner *r = p->r;
    uint32_t most = 0;
    for (int32_t i = 0; i < p->n; i++)
        for (int64_t j = 0; j < r->layout->shape.n_embd; j++) {
            uint32_t bits;
            memcpy(&bits, &r->ws->x[i * embd_ld(p) + j], sizeof bits);
            most = (bits & 0x7fffffff) > most ? bits & 0x7fffffff : most;
        }
    if (most >= 0x7f800000)
        FAIL(err, DREY_ERR_FORMAT,
             "%s: the numbers behind the last layer are not finite: the file is damaged, fetch it "
             "again",
             gguf_part_path(r->weights->file, 0));
    return DREY_OK;
}

static drey_status run_head(pass *p, forward_head head, drey_error *err)
{
    runner *r = p->r;
    const model_shape *s = &r->layout->shape;
    workspace *ws = r->ws;
    if (head == HEAD_LAST && p->n > 1) {
        const float *last = ws->x + (p->n - 1) * embd_ld(p);
        for (int64_t i = 0; i < s->n_embd; i++)
            ws->x[i] = last[i];
        p->n = 1;
    }
    assert(p->n <= ws->max_logit_rows);
    TRY(check_finite(p, err));
    set_source(p, ws->y, embd_ld(p), s->n_embd, &(weight *){r->layout->head}, 1);
    for (int32_t from = 0; from < p->n; from += TOKEN_TILE)
        norm_rows(p, r->layout->final_norm, from,
                  from + TOKEN_TILE < p->n ? from + TOKEN_TILE : p->n);
    return multiply(p, &(product){r->layout->head, ws->logits, forward_logits_stride(r)}, 1, err);
}

static drey_status run_layers(pass *p, forward_head head, drey_error *err)
{
    runner *r = p->r;
    const model_layout *l = r->layout;
    for (int32_t i = 0; i < l->n_looked_up && !weights_loaded(r->weights); i++) {
        void *none[ACT_KINDS] = {NULL, NULL, NULL};
        TRY(weights_matmul(r->weights, r->pool, &(product){.matrix = &l->matrix[i]}, 1, none, 0,
                           err));
    }
    each_row(p, step_embed);
    if (atomic_load(&p->failed)) {
        if (err)
            *err = p->error;
        return p->error.code;
    }
    for (p->layer_index = 0; p->layer_index < l->shape.n_layers; p->layer_index++) {
        p->layer = &l->layer[p->layer_index];
        TRY(run_layer(p, err));
    }
    if (head != HEAD_NONE)
        TRY(run_head(p, head, err));
    return weights_pass_end(r->weights, r->pool, err);
}

drey_status forward(runner *r, const forward_row *rows, int32_t n, forward_head head,
                    drey_error *err)
{
    assert(n >= 1 && n <= r->ws->max_rows && kv_has_room(r->kv, n));
    if (atomic_load_explicit(r->cancel, memory_order_relaxed))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    pass p = {.r = r, .rows = rows, .n = n};
    place_rows(&p);
    TRY(weights_pass_begin(r->weights, head != HEAD_NONE, err));
    drey_status status = run_layers(&p, head, err);
    if (status == DREY_OK)
        r->kv->n_pending += n;
    else
        weights_pass_abandon(r->weights);
    return status;
}

int64_t forward_logits_stride(const runner *r)
{
    return padded(r->layout->shape.n_vocab);
}

drey_status forward_prompt(runner *r, const int32_t *tokens, int32_t n, int32_t chunk,
                           forward_head last, void (*progress)(void *user, int32_t done),
                           void *user, drey_error *err)
{
    forward_row *rows = r->ws->rows;
    for (int32_t done = 0; done < n;) {
        int32_t m = n - done < chunk ? n - done : chunk;
        for (int32_t i = 0; i < m; i++)
            rows[i] = (forward_row){.token = tokens[done + i], .parent = i - 1};
        TRY(forward(r, rows, m, done + m < n ? HEAD_NONE : last, err));
        kv_commit(r->kv, NULL, m);
        done += m;
        if (progress)
            progress(user, done);
    }
    return DREY_OK;
}
