/* The steps between a pass's products: see pass_steps.h. */
#include "model/pass_steps.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fmath.h"
#include "base/num.h"
#include "os/clock.h"

int64_t pass_embd_ld(const model_pass *p)
{
    return row_stride(p->r->layout->shape.n_embd);
}

int64_t pass_q_ld(const model_pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    return row_stride((int64_t)s->n_heads * s->head_dim);
}

int64_t pass_kv_ld(const model_pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    return row_stride((int64_t)s->n_heads_kv * s->head_dim);
}

int64_t pass_ff_ld(const model_pass *p)
{
    return row_stride(p->r->layout->shape.n_ff);
}

static const layer_layout *layer_of(const model_pass *p)
{
    return &p->r->layout->layer[p->layer];
}

/* ---- Sharing rows among threads ---- */

static void tiles_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    model_pass *p = arg;
    for (;;) {
        int32_t from = atomic_fetch_add_explicit(&p->next_row, TOKEN_TILE, memory_order_relaxed);
        if (from >= p->n_rows)
            return;
        p->rows_fn(p, from, min_i32(from + TOKEN_TILE, p->n_rows), thread);
    }
}

static void each_row(model_pass *p, pass_rows_fn *step)
{
    if (p->n_rows <= TOKEN_TILE) {
        step(p, 0, p->n_rows, 0);
        return;
    }
    p->rows_fn = step;
    atomic_store_explicit(&p->next_row, 0, memory_order_relaxed);
    pool_run(p->r->pool, tiles_thread, p);
}

/* Says what the next product reads: k numbers of `source` per row, in the kinds its matrices want.
 */
static void set_source(model_pass *p, const float *source, int64_t ld, int64_t k,
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

static void quantise_rows(model_pass *p, int32_t from, int32_t to)
{
    const kernel_table *kernels = p->r->kernels;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        if (p->kinds[kind])
            kernels->quantise[kind](p->r->ws->acts[kind], p->source, p->source_ld, from, to,
                                    p->n_rows, p->source_k);
}

/* ---- Places and tokens ---- */

/* Row i of the pass: where it stands in its cache, and which slots it sees. */
static void place_row(workspace *ws, kv_cache *kv, int32_t i, int32_t self, int32_t parent)
{
    assert(parent >= -1 && parent < self);
    kv->parent[self] = parent;
    kv->depth[self] = parent < 0 ? 0 : kv->depth[parent] + 1;
    ws->pending[i] = self;
    ws->slot[i] = kv_pending_slot(kv) + self;
    ws->position[i] = kv->n_committed + kv->depth[self];
    /* In a chain every row lies in the slot of its position, and there is no path to list. */
    bool chain = kv->depth[self] == self && !kv->view_slot;
    ws->n_path[i] = chain ? 0 : kv->depth[self] + 1;
    ws->n_prefix[i] = ws->position[i] + 1 - ws->n_path[i];
    int32_t *path = ws->path + (int64_t)i * ws->limits.max_pending;
    for (int32_t at = self, to = ws->n_path[i]; to-- > 0; at = kv->parent[at])
        path[to] = kv_pending_slot(kv) + at;
}

static void place_angles(workspace *ws, const model_layout *l, int32_t i)
{
    for (int32_t j = 0; j < l->shape.n_rot / 2; j++) {
        double angle = ws->position[i] * l->rope_frequency[j];
        float *out = ws->rope + (int64_t)i * l->shape.n_rot + 2 * j;
        out[0] = (float)(cos_f64(angle) * l->rope_scale);
        out[1] = (float)(sin_f64(angle) * l->rope_scale);
    }
}

void pass_place_rows(model_pass *p)
{
    workspace *ws = p->r->ws;
    int32_t row = 0;
    for (int32_t g = 0; g < p->n_groups; g++) {
        const pass_group *group = &p->groups[g];
        for (int32_t i = 0; i < group->n; i++, row++) {
            ws->group[row] = g;
            place_row(ws, group->kv, row, group->first_pending + i, group->rows[i].parent);
            place_angles(ws, p->r->layout, row);
        }
    }
}

static int64_t x_bytes(const model_pass *p)
{
    return p->r->layout->shape.n_embd * (int64_t)sizeof(float);
}

/* Deferred row i of a group: it sees its whole prefix, each in the slot of its position. */
static void join_row(model_pass *p, int32_t g, int32_t i)
{
    const pass_group *group = &p->groups[g];
    workspace *ws = p->r->ws;
    int32_t row = p->n_rows++;
    ws->group[row] = g;
    ws->pending[row] = i;
    ws->position[row] = ws->slot[row] = group->kv->n_committed - group->n_deferred + i;
    ws->n_path[row] = 0;
    ws->n_prefix[row] = ws->position[row] + 1;
    place_angles(ws, p->r->layout, row);
    memcpy(ws->x + row * pass_embd_ld(p), group->deferred->x + i * pass_embd_ld(p),
           (size_t)x_bytes(p));
}

void pass_join(model_pass *p)
{
    for (int32_t g = 0; g < p->n_groups; g++) {
        pass_group *group = &p->groups[g];
        while (group->n_waiting > 0 &&
               group->deferred->next_layer[group->n_waiting - 1] == p->layer)
            join_row(p, g, --group->n_waiting);
        assert(group->n_waiting == 0 ||
               group->deferred->next_layer[group->n_waiting - 1] > p->layer);
    }
}

void pass_keep_row(const model_pass *p, int32_t row, deferred_rows *d, int32_t i)
{
    memcpy(d->x + i * pass_embd_ld(p), p->r->ws->x + row * pass_embd_ld(p), (size_t)x_bytes(p));
    d->next_layer[i] = p->layer;
}

void pass_put_back(const model_pass *p)
{
    const workspace *ws = p->r->ws;
    for (int32_t row = p->n_own; row < p->n_rows; row++)
        pass_keep_row(p, row, p->groups[ws->group[row]].deferred, ws->pending[row]);
}

static int32_t token_of(const model_pass *p, int32_t row)
{
    const pass_group *group = &p->groups[p->r->ws->group[row]];
    return group->rows[p->r->ws->pending[row] - group->first_pending].token;
}

static void step_embed(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    for (int32_t i = from; i < to; i++) {
        drey_error err;
        float *x = p->r->ws->x + i * pass_embd_ld(p);
        if (weights_row(p->r->weights, token_of(p, i), x, thread, &err) != DREY_OK &&
            !atomic_exchange(&p->failed, true))
            p->error = err;
    }
}

drey_status pass_embed(model_pass *p, drey_error *err)
{
    each_row(p, step_embed);
    if (!atomic_load(&p->failed))
        return DREY_OK;
    if (err)
        *err = p->error;
    return p->error.code;
}

/* ---- Norms ---- */

/* y = rmsnorm(x), then quantised. */
static void norm_rows(model_pass *p, const float *norm, int32_t from, int32_t to)
{
    const model_shape *s = &p->r->layout->shape;
    workspace *ws = p->r->ws;
    for (int32_t i = from; i < to; i++)
        p->r->kernels->rmsnorm(ws->y + i * pass_embd_ld(p), ws->x + i * pass_embd_ld(p), norm,
                               s->n_embd, s->norm_eps);
    quantise_rows(p, from, to);
}

static void step_attn_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    norm_rows(p, layer_of(p)->attn_norm, from, to);
}

void pass_norm_attention(model_pass *p)
{
    const layer_layout *y = layer_of(p);
    set_source(p, p->r->ws->y, pass_embd_ld(p), p->r->layout->shape.n_embd,
               (weight *[]){y->q, y->k, y->v}, 3);
    each_row(p, step_attn_norm);
}

/* Adds a product and its bias (or NULL) to the residual stream. */
static void add_rows(const model_pass *p, const float *bias, int32_t from, int32_t to)
{
    const kernel_table *kernels = p->r->kernels;
    int64_t n = p->r->layout->shape.n_embd;
    for (int32_t i = from; i < to; i++) {
        float *y = p->r->ws->y + i * pass_embd_ld(p);
        if (bias)
            kernels->add(y, bias, n);
        kernels->add(p->r->ws->x + i * pass_embd_ld(p), y, n);
    }
}

static void step_ffn_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    add_rows(p, layer_of(p)->o_bias, from, to);
    norm_rows(p, layer_of(p)->ffn_norm, from, to);
}

void pass_norm_ffn(model_pass *p)
{
    const layer_layout *y = layer_of(p);
    set_source(p, p->r->ws->y, pass_embd_ld(p), p->r->layout->shape.n_embd,
               (weight *[]){y->gate, y->up}, 2);
    each_row(p, step_ffn_norm);
}

static void step_add(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    add_rows(p, layer_of(p)->down_bias, from, to);
}

void pass_add_ffn(model_pass *p)
{
    each_row(p, step_add);
}

static void step_final_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const model_shape *s = &p->r->layout->shape;
    const workspace *ws = p->r->ws;
    for (int32_t i = from; i < to; i++)
        p->r->kernels->rmsnorm(ws->y + i * pass_embd_ld(p),
                               ws->x + ws->head_row[i] * pass_embd_ld(p), p->r->layout->final_norm,
                               s->n_embd, s->norm_eps);
    quantise_rows(p, from, to);
}

/* Lists the rows that need logits: of each group its own, then the deferred ones by position. */
static int32_t list_head_rows(const model_pass *p)
{
    workspace *ws = p->r->ws;
    int32_t n = 0, first_deferred[DREY_MAX_SESSIONS];
    for (int32_t g = 0; g < p->n_groups; g++) {
        const pass_group *group = &p->groups[g];
        for (int32_t i = group->n - group->n_logits; i < group->n; i++)
            ws->head_row[n++] = group->first_row + i;
        first_deferred[g] = n;
        n += group->n_deferred;
    }
    for (int32_t row = p->n_own; row < p->n_rows; row++)
        ws->head_row[first_deferred[ws->group[row]] + ws->pending[row]] = row;
    return n;
}

/* Weights that are finite can still have lost their meaning, and packed ones from a sidecar were
 * looked at when it was made: what a pass hands out has to come from numbers. */
static drey_status check_finite(const model_pass *p, drey_error *err)
{
    const runner *r = p->r;
    uint32_t most = 0;
    for (int32_t i = 0; i < p->n_rows; i++) {
        const float *x = r->ws->x + r->ws->head_row[i] * pass_embd_ld(p);
        for (int64_t j = 0; j < r->layout->shape.n_embd; j++) {
            uint32_t bits;
            memcpy(&bits, &x[j], sizeof bits);
            bits &= 0x7fffffff;
            most = bits > most ? bits : most;
        }
    }
    if (most >= 0x7f800000)
        FAIL(err, DREY_ERR_FORMAT,
             "%s: the numbers behind the last layer are not finite: the file is damaged, fetch it "
             "again",
             SHOWN_PATH(gguf_part_path(r->weights->file, 0)));
    return DREY_OK;
}

drey_status pass_norm_head(model_pass *p, drey_error *err)
{
    const model_shape *s = &p->r->layout->shape;
    p->n_rows = list_head_rows(p);
    assert(p->n_rows == p->n_logits);
    TRY(check_finite(p, err));
    set_source(p, p->r->ws->y, pass_embd_ld(p), s->n_embd, &(weight *){p->r->layout->head}, 1);
    each_row(p, step_final_norm);
    return DREY_OK;
}

/* ---- Attention ---- */

/* Biases and rotation; keys and values go to their slots of the cache. */
static void store_row(model_pass *p, int32_t i, void *scratch)
{
    const model_shape *s = &p->r->layout->shape;
    const kernel_table *kernels = p->r->kernels;
    const layer_layout *y = layer_of(p);
    workspace *ws = p->r->ws;
    kv_cache *kv = p->groups[ws->group[i]].kv;
    int32_t n_q = s->n_heads * s->head_dim, n_kv = s->n_heads_kv * s->head_dim;
    float *q = ws->q + i * pass_q_ld(p), *k = ws->k + i * pass_kv_ld(p),
          *v = ws->v + i * pass_kv_ld(p);
    if (y->q_bias)
        kernels->add(q, y->q_bias, n_q);
    if (y->k_bias)
        kernels->add(k, y->k_bias, n_kv);
    if (y->v_bias)
        kernels->add(v, y->v_bias, n_kv);
    const float *angles = ws->rope + (int64_t)i * s->n_rot;
    kernels->rope(q, angles, s->n_heads, s->head_dim, s->n_rot / 2, s->arch->rope_neox);
    kernels->rope(k, angles, s->n_heads_kv, s->head_dim, s->n_rot / 2, s->arch->rope_neox);
    for (int32_t h = 0; h < s->n_heads_kv; h++) {
        size_t at = kv_at(kv, p->layer, h);
        kv_store_key(kernels, kv->format, kv->keys + at, ws->slot[i], k + h * s->head_dim,
                     s->head_dim, scratch);
        kv_store_value(kernels, kv->format, kv->values + at, ws->slot[i], v + h * s->head_dim,
                       s->head_dim, scratch);
    }
}

static void step_store(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    for (int32_t i = from; i < to; i++)
        store_row(p, i, p->r->ws->scratch[thread]);
}

static void attend_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    const model_pass *p = arg;
    for (int32_t i = 0; i < p->n_runs; i++)
        attend_work(&p->r->ws->attend[i], p->r->ws->scratch[thread]);
}

/* What a run of rows, [first, end), asks of their cache. */
static void set_attention(model_pass *p, attend_layer *a, int32_t first, int32_t end,
                          int32_t n_threads)
{
    const model_shape *s = &p->r->layout->shape;
    workspace *ws = p->r->ws;
    const kv_cache *kv = p->groups[ws->group[first]].kv;
    size_t at = kv_at(kv, p->layer, 0);
    a->head = (attention){.kernels = p->r->kernels,
                          .format = kv->format,
                          .head_dim = s->head_dim,
                          .n_q = s->n_heads / s->n_heads_kv,
                          .n_rows = end - first,
                          .scale = 1.0f / sqrtf((float)s->head_dim),
                          .keys = kv->keys + at,
                          .values = kv->values + at,
                          .n_prefix = ws->n_prefix + first,
                          .n_path = ws->n_path + first,
                          .path = ws->path + (int64_t)first * ws->limits.max_pending,
                          .path_ld = ws->limits.max_pending,
                          .q = ws->q + first * pass_q_ld(p),
                          .out = ws->att + first * pass_q_ld(p),
                          .ld = pass_q_ld(p)};
    a->head_bytes = kv->head_bytes;
    a->n_heads = s->n_heads_kv;
    a->n_threads = n_threads;
    /* Threads go from one run to the next; only behind the last could one be left alone. */
    a->partials = ws->partials;
    a->n_partials = end == p->n_rows ? ws->n_partials : 0;
    attend_cut(a);
}

/* Rows of one cache that stand together: with deferred rows a cache may have several such runs. */
static void set_runs(model_pass *p, int32_t n_threads)
{
    const int32_t *group = p->r->ws->group;
    p->n_runs = 0;
    for (int32_t first = 0, end; first < p->n_rows; first = end) {
        for (end = first + 1; end < p->n_rows && group[end] == group[first];)
            end++;
        set_attention(p, &p->r->ws->attend[p->n_runs++], first, end, n_threads);
    }
}

/* Multiplications of this layer, about. */
static int64_t attend_size(const model_pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    int64_t positions = 0;
    for (int32_t i = 0; i < p->n_rows; i++)
        positions += p->r->ws->position[i] + 1;
    return positions * s->n_heads * s->head_dim;
}

static void attend_rows(model_pass *p)
{
    int64_t start = p->r->trace ? clock_ns() : 0;
    bool alone = attend_size(p) < p->r->weights->tuning.attend_alone;
    int32_t n_threads = alone ? 1 : pool_n_threads(p->r->pool);
    set_runs(p, n_threads);
    if (alone)
        attend_thread(p, 0, 1);
    else
        pool_run(p->r->pool, attend_thread, p);
    if (p->r->trace)
        trace_add(p->r->trace, 0, TRACE_ATTEND, start, clock_ns(), p->n_rows);
}

static void step_quantise(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    quantise_rows(p, from, to);
}

void pass_attend(model_pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    each_row(p, step_store);
    attend_rows(p);
    set_source(p, p->r->ws->att, pass_q_ld(p), (int64_t)s->n_heads * s->head_dim,
               &(weight *){layer_of(p)->o}, 1);
    each_row(p, step_quantise);
}

/* ---- Activation ---- */

/* Biases and swiglu of rows [from, to), columns [k_from, k_to). */
static void swiglu_part(const model_pass *p, int32_t from, int32_t to, int64_t k_from, int64_t k_to)
{
    const kernel_table *kernels = p->r->kernels;
    const float *gate_bias = layer_of(p)->gate_bias, *up_bias = layer_of(p)->up_bias;
    for (int32_t i = from; i < to; i++) {
        float *gate = p->r->ws->gate + i * pass_ff_ld(p) + k_from;
        float *up = p->r->ws->up + i * pass_ff_ld(p) + k_from;
        if (gate_bias)
            kernels->add(gate, gate_bias + k_from, k_to - k_from);
        if (up_bias)
            kernels->add(up, up_bias + k_from, k_to - k_from);
        kernels->swiglu(gate, gate, up, k_to - k_from);
    }
}

static void step_swiglu(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    swiglu_part(p, from, to, 0, p->source_k);
    quantise_rows(p, from, to);
}

/* A thread's columns of a tile's swiglu, in whole blocks, and their quantised form. */
static void swiglu_columns(void *arg, int32_t thread, int32_t n_threads)
{
    const model_pass *p = arg;
    int64_t k = p->source_k, n_blocks = ceil_div_i64(k, ACT_COLUMNS);
    int64_t from = n_blocks * thread / n_threads * ACT_COLUMNS;
    int64_t to = min_i64(n_blocks * (thread + 1) / n_threads * ACT_COLUMNS, k);
    if (from >= to)
        return;
    swiglu_part(p, 0, p->n_rows, from, to);
    for (int kind = 0; kind < ACT_KINDS; kind++)
        if (p->kinds[kind])
            p->r->kernels->quantise[kind](
                act_columns((act_kind)kind, p->r->ws->acts[kind], p->n_rows, from),
                p->source + from, p->source_ld, 0, p->n_rows, p->n_rows, to - from);
}

void pass_activate(model_pass *p)
{
    set_source(p, p->r->ws->gate, pass_ff_ld(p), p->r->layout->shape.n_ff,
               &(weight *){layer_of(p)->down}, 1);
    if (p->n_rows <= TOKEN_TILE && p->n_rows * p->source_k >= p->r->weights->tuning.shared_numbers)
        pool_run(p->r->pool, swiglu_columns, p);
    else
        each_row(p, step_swiglu);
}
