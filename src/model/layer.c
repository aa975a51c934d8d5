/* A layer, whatever the architecture: see layer.h. */
#include "model/layer.h"

#include <string.h>

#include "common/num.h"
#include "model/pass_steps.h"
#include "os/clock.h"
#include "state/kv.h"
#include "state/kv_file.h"

static const layer_layout *layer_of(const model_pass *p)
{
    return &p->r->layout->layer[p->layer];
}

/* ---- Norms ---- */

/* y = norm(x), then quantised. */
static void norm_rows(model_pass *p, const float *norm, const float *bias, int32_t from, int32_t to)
{
    workspace *ws = p->r->ws;
    for (int32_t i = from; i < to; i++)
        pass_norm(p->r, ws->y + i * pass_embd_ld(p), ws->x + i * pass_embd_ld(p), norm, bias);
    pass_quantise_rows(p, from, to);
}

static void step_attn_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    norm_rows(p, layer_of(p)->attn_norm, layer_of(p)->attn_norm_bias, from, to);
}

/* [norm(e); norm(x)] of rows whose tokens' embeddings are in `wide`. */
static void step_wide_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const model_shape *s = &p->r->layout->shape;
    const layer_layout *y = layer_of(p);
    for (int32_t i = from; i < to; i++) {
        float *x = p->r->ws->x + i * pass_embd_ld(p),
              *wide = p->r->ws->taps.wide + i * pass_wide_ld(p);
        pass_norm(p->r, wide, wide, y->token_norm, NULL);
        pass_norm(p->r, wide + s->n_embd, x, y->attn_norm, y->attn_norm_bias);
        if (s->taps.normed)
            memcpy(x, wide + s->n_embd, (size_t)s->n_embd * sizeof *x);
    }
    pass_quantise_rows(p, from, to);
}

void layer_norm_attention(model_pass *p)
{
    const layer_layout *y = layer_of(p);
    const workspace *ws = p->r->ws;
    int64_t d = p->r->layout->shape.n_embd;
    bool is_wide = y->token_norm;
    pass_set_source(p, is_wide ? ws->taps.wide : ws->y, is_wide ? pass_wide_ld(p) : pass_embd_ld(p),
                    is_wide ? 2 * d : d, (weight *[]){y->q, y->k, y->v}, 3);
    pass_each_row(p, is_wide ? step_wide_norm : step_attn_norm);
}

/* Adds a product with its bias to the residual stream. Some architectures norm the product first,
 * others the sum. */
static void add_rows(const model_pass *p, int32_t sum, int32_t from, int32_t to)
{
    const kernel_table *kernels = p->r->kernels;
    const model_shape *s = &p->r->layout->shape;
    const layer_layout *l = layer_of(p);
    const layer_encdec *e = &l->encdec;
    const float *bias = (float *const[]){l->o_bias, e->cross_o_bias, l->down_bias}[sum];
    const float *norm = (float *const[]){l->post_norm.attn, NULL, l->post_norm.ffn}[sum];
    int64_t n = s->n_embd;
    for (int32_t i = from; i < to; i++) {
        float *x = p->r->ws->x + i * pass_embd_ld(p), *y = p->r->ws->y + i * pass_embd_ld(p);
        if (bias)
            kernels->add(y, bias, n);
        if (norm)
            kernels->rmsnorm(y, y, norm, n, s->norm_eps);
        pass_scale(y, s->residual_scale, n);
        kernels->add(x, y, n);
        if (e->sum_norm[sum])
            pass_norm(p->r, x, x, e->sum_norm[sum], e->sum_bias[sum]);
    }
}

static void step_cross_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    add_rows(p, SUM_ATTN, from, to);
    norm_rows(p, layer_of(p)->encdec.cross_norm, NULL, from, to);
}

void layer_norm_cross(model_pass *p)
{
    pass_set_source(p, p->r->ws->y, pass_embd_ld(p), p->r->layout->shape.n_embd,
                    &(weight *){layer_of(p)->encdec.cross_q}, 1);
    pass_each_row(p, step_cross_norm);
}

static void step_ffn_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    add_rows(p, layer_of(p)->encdec.cross_q ? SUM_CROSS : SUM_ATTN, from, to);
    norm_rows(p, layer_of(p)->ffn_norm, layer_of(p)->ffn_norm_bias, from, to);
}

void layer_norm_ffn(model_pass *p)
{
    const layer_layout *y = layer_of(p);
    pass_set_source(p, p->r->ws->y, pass_embd_ld(p), p->r->layout->shape.n_embd,
                    (weight *[]){y->up, y->gate, y->experts.router}, 3);
    pass_each_row(p, step_ffn_norm);
}

static void step_add(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    add_rows(p, SUM_FFN, from, to);
}

void layer_add_ffn(model_pass *p)
{
    pass_each_row(p, step_add);
}

/* ---- Attention ---- */

static void norm_heads(const model_pass *p, float *x, const float *norm, int32_t n_heads)
{
    const model_shape *s = &p->r->layout->shape;
    int32_t n = s->arch->wide_norms ? n_heads * s->head_dim : s->head_dim;
    for (int32_t at = 0; norm && at < n_heads * s->head_dim; at += n)
        p->r->kernels->rmsnorm(x + at, x + at, norm, n, s->norm_eps);
}

static void rotate(const model_pass *p, float *x, int32_t row, int32_t n_heads)
{
    const model_shape *s = &p->r->layout->shape;
    if (s->n_rot == 0)
        return;
    const float *angles =
        p->r->ws->rope + ((int64_t)row * s->n_ropes + layer_of(p)->positions.rope) * s->n_rot;
    p->r->kernels->rope(x, angles, n_heads, s->head_dim, s->n_rot / 2,
                        s->arch->rope == ROPE_HALVES);
}

/* An encoder's keys and values serve the layer that is under way alone. */
static size_t heads_at(const model_pass *p, const kv_store *kv)
{
    return kv_at(kv, shape_encodes(&p->r->layout->shape) ? 0 : p->layer, 0);
}

/* A row's keys and values to a slot of a layer, whose first head's are at *keys, *values. */
static void store_heads(const model_pass *p, const kv_store *kv, size_t at, int32_t i, int32_t slot,
                        void *scratch)
{
    const model_shape *s = &p->r->layout->shape;
    const float *k = p->r->ws->k + i * pass_kv_ld(p), *v = p->r->ws->v + i * pass_kv_ld(p);
    const kv_format format = kv->store.shape.format;
    for (int32_t h = 0; h < s->n_heads_kv; h++, at += kv->head_bytes) {
        kv_store_key(p->r->kernels, format, kv->keys + at, slot, k + h * s->head_dim, s->head_dim,
                     scratch);
        kv_store_value(p->r->kernels, format, kv->values + at, slot, v + h * s->head_dim,
                       s->head_dim, scratch);
    }
}

/* Biases, norms and rotation; keys and values go to their slots of the cache. */
static void store_row(model_pass *p, int32_t i, void *scratch)
{
    const model_shape *s = &p->r->layout->shape;
    const kernel_table *kernels = p->r->kernels;
    const layer_layout *y = layer_of(p);
    workspace *ws = p->r->ws;
    const kv_store *kv = kv_of(p->groups[ws->group[i]].cache);
    int32_t n_q = s->n_heads * s->head_dim, n_kv = s->n_heads_kv * s->head_dim;
    float *q = ws->q + i * pass_q_ld(p), *k = ws->k + i * pass_kv_ld(p),
          *v = ws->v + i * pass_kv_ld(p);
    if (y->q_bias)
        kernels->add(q, y->q_bias, n_q);
    if (y->k_bias)
        kernels->add(k, y->k_bias, n_kv);
    if (y->v_bias)
        kernels->add(v, y->v_bias, n_kv);
    norm_heads(p, q, y->head_norm.q, s->n_heads);
    norm_heads(p, k, y->head_norm.k, s->n_heads_kv);
    rotate(p, q, i, s->n_heads);
    rotate(p, k, i, s->n_heads_kv);
    store_heads(p, kv, heads_at(p, kv), i, ws->slot[i], scratch);
}

static void step_store(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    for (int32_t i = from; i < to; i++)
        store_row(p, i, p->r->ws->attention.scratch[thread]);
}

/* With a cluster's own kernels, and as slow as it was made. */
static void attend_on_unit(attend_layer *l, const unit_slot *slot, void *scratch)
{
    for (bool more = true; more;) {
        int64_t start = slot->slow > 1 ? clock_ns() : 0;
        more = attend_next(l, slot->kernels, scratch);
        if (more && slot->slow > 1)
            unit_linger(slot, start);
    }
}

static void attend_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    const model_pass *p = arg;
    const unit_set *units = p->r->weights->units;
    for (int32_t i = 0; i < p->n_runs; i++) {
        attend_layer *l = &p->r->ws->attend[i];
        if (units)
            attend_on_unit(l, &units->slot[thread], p->r->ws->attention.scratch[thread]);
        else
            attend_work(l, p->r->ws->attention.scratch[thread]);
    }
}

static void split_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    const model_pass *p = arg;
    attend_split_work(p->r->ws->attention.split, thread, p->r->ws->attention.scratch[thread]);
}

static void split_driver(void *arg, int32_t slot)
{
    const model_pass *p = arg;
    attend_split_drive(p->r->ws->attention.split, slot, p->r->ws->attention.scratch[slot]);
}

/* Attention that is divided. When a device fails after the threads have left, they come back. */
static void attend_divided(model_pass *p)
{
    attend_split *split = p->r->ws->attention.split;
    if (split->devices)
        units_start(split->units, split_driver, p);
    pool_run(p->r->pool, split_thread, p);
    if (!split->devices)
        return;
    units_wait(split->units);
    if (attend_split_left(split))
        pool_run(p->r->pool, split_thread, p);
}

/* Of a model with an encoder: what all rows see in the slots of their numbers. An encoder's rows
 * see each other; a decoder's rows see the encoder's output, and then nothing else. */
static void see_all(const model_pass *p, attend_layer *a, const text_cache *cache, int32_t first)
{
    const workspace *ws = p->r->ws;
    const kv_store *kv = kv_of(cache);
    size_t at = heads_at(p, kv);
    int32_t n = p->attends_cross ? cache_end(cache) : p->n_rows;
    for (int32_t i = first; i < first + a->head.n_rows; i++)
        ws->attention.seen[i] = n;
    a->head.keys = kv->keys + at;
    a->head.values = kv->values + at;
    a->head_bytes = kv->head_bytes;
    a->head.n_prefix = ws->attention.seen + first;
    a->head.n_path = ws->attention.nothing;
}

/* Biases by distance; positions that all rows see are then a second cache. */
static void set_bias(const model_pass *p, attend_layer *a, int32_t first)
{
    const workspace *ws = p->r->ws;
    attention *head = &a->head;
    attend_more *more = &ws->attention.more[a - ws->attend];
    *more = (attend_more){.bias = layer_of(p)->encdec.bias};
    head->more = more;
    if (!shape_encodes(&p->r->layout->shape))
        return;
    more->fixed = (attend_fixed){.keys = head->keys,
                                 .values = head->values,
                                 .head_bytes = a->head_bytes,
                                 .n = p->n_rows,
                                 .at = ws->position + first};
    head->n_prefix = ws->attention.nothing;
}

/* What a run of rows, [first, end), asks of their cache. */
static void set_attention(model_pass *p, attend_layer *a, int32_t first, int32_t end,
                          int32_t n_threads)
{
    const model_shape *s = &p->r->layout->shape;
    workspace *ws = p->r->ws;
    const text_cache *cache = p->groups[ws->group[first]].cache;
    const kv_store *kv = kv_of(cache);
    size_t at = heads_at(p, kv);
    a->head = (attention){.kernels = p->r->kernels,
                          .format = kv->store.shape.format,
                          .head_dim = s->head_dim,
                          .n_q = s->n_heads / s->n_heads_kv,
                          .n_rows = end - first,
                          .scale = s->attention_scale,
                          .cap = s->cap.attention,
                          .window = layer_of(p)->positions.window,
                          .sinks = layer_of(p)->positions.sinks,
                          .keys = kv->keys + at,
                          .values = kv->values + at,
                          .n_prefix = ws->n_prefix + first,
                          .n_path = ws->n_path + first,
                          .path = ws->path + (int64_t)first * ws->limits.max_pending,
                          .path_ld = ws->limits.max_pending,
                          .q = ws->q + first * pass_q_ld(p),
                          .out = ws->att + first * pass_q_ld(p),
                          .ld = pass_q_ld(p)};
    a->head.base = p->attends_cross ? 0 : kv->n_away;
    if (a->head.base)
        a->head.kept = ws->attention.kept + 2 * (int64_t)first * s->n_heads;
    a->head_bytes = kv->head_bytes;
    a->n_heads = s->n_heads_kv;
    a->n_threads = n_threads;
    /* Threads go from one run to the next; only after the last could one be left alone. */
    a->partials = ws->attention.partials;
    a->n_partials = end == p->n_rows ? ws->attention.n_partials : 0;
    if (shape_encodes(s) || p->attends_cross)
        see_all(p, a, p->attends_cross ? cache_cross(cache) : cache, first);
    if (layer_of(p)->encdec.bias.of && !p->attends_cross)
        set_bias(p, a, first);
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

/* Positions that a row attends to. */
static int32_t attended(const model_pass *p, int32_t row)
{
    const workspace *ws = p->r->ws;
    if (shape_encodes(&p->r->layout->shape))
        return p->n_rows;
    return p->attends_cross ? cache_end(cache_cross(p->groups[ws->group[row]].cache))
                            : ws->position[row] + 1;
}

/* Multiplications of this layer, about. */
static int64_t attend_size(const model_pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    int64_t positions = 0;
    int32_t window = layer_of(p)->positions.window;
    for (int32_t i = 0; i < p->n_rows; i++) {
        int32_t seen = attended(p, i);
        positions += window ? min_i32(seen, window) : seen;
    }
    return positions * s->n_heads * s->head_dim;
}

/* The rows [first, end) with what is away of their cache: each chunk is read by all of them. */
static drey_status attend_away(model_pass *p, int32_t first, int32_t end, int32_t n_threads,
                               drey_error *err)
{
    const int32_t group = p->r->ws->group[first];
    const kv_store *kv = kv_of(p->groups[group].cache);
    attend_layer *l = &p->r->ws->attend[0];
    int32_t n, chunk = pass_away_chunks(p, group, p->layer, &n);
    p->n_runs = 1;
    for (; chunk < n; chunk++) {
        const uint8_t *keys;
        int64_t start = p->r->trace ? clock_ns() : 0;
        TRY(pass_away_wait(p, &keys, err));
        if (p->r->trace)
            trace_add(p->r->trace, 0, TRACE_STALL, start, clock_ns(), 0);
        set_attention(p, l, first, end, n_threads);
        l->head_bytes = kv_file_head_bytes(kv->file);
        l->head.keys = keys;
        l->head.values = keys + (size_t)kv->store.shape.n_heads * l->head_bytes;
        l->head.base = chunk * kv->chunk;
        l->head.end = l->head.base + kv->chunk;
        attend_cut(l);
        if (n_threads == 1)
            attend_thread(p, 0, 1);
        else
            pool_run(p->r->pool, attend_thread, p);
        pass_away_next(p);
    }
    return DREY_OK;
}

/* The same of all runs. */
static drey_status attend_all_away(model_pass *p, int32_t n_threads, drey_error *err)
{
    const int32_t *group = p->r->ws->group;
    for (int32_t first = 0, end; p->away.file && first < p->n_rows; first = end) {
        for (end = first + 1; end < p->n_rows && group[end] == group[first];)
            end++;
        TRY(attend_away(p, first, end, n_threads, err));
    }
    return DREY_OK;
}

static drey_status attend_rows(model_pass *p, drey_error *err)
{
    int64_t start = p->r->trace ? clock_ns() : 0;
    bool alone = attend_size(p) < p->r->weights->tuning.attend_alone;
    int32_t n_threads = alone ? 1 : pool_n_threads(p->r->pool);
    if (!p->attends_cross)
        TRY(attend_all_away(p, n_threads, err));
    set_runs(p, n_threads);
    workspace *ws = p->r->ws;
    const weights *w = p->r->weights;
    if (alone)
        attend_thread(p, 0, 1);
    else if (ws->attention.split && p->n_runs == 1 && !p->attends_cross &&
             attend_split_cut(ws->attention.split, w->units, ws->attend, w->attached))
        attend_divided(p);
    else
        pool_run(p->r->pool, attend_thread, p);
    if (p->r->trace)
        trace_add(p->r->trace, 0, TRACE_ATTEND, start, clock_ns(), p->n_rows);
    return DREY_OK;
}

static void step_quantise(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    pass_quantise_rows(p, from, to);
}

/* For the product with `o`. */
static drey_status attend_for(model_pass *p, weight *o, drey_error *err)
{
    const model_shape *s = &p->r->layout->shape;
    TRY(attend_rows(p, err));
    pass_set_source(p, p->r->ws->att, pass_q_ld(p), (int64_t)s->n_heads * s->head_dim, &o, 1);
    pass_each_row(p, step_quantise);
    return DREY_OK;
}

drey_status layer_attend(model_pass *p, drey_error *err)
{
    pass_each_row(p, step_store);
    return attend_for(p, layer_of(p)->o, err);
}

static void step_cross_bias(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const model_shape *s = &p->r->layout->shape;
    for (int32_t i = from; i < to; i++)
        p->r->kernels->add(p->r->ws->q + i * pass_q_ld(p), layer_of(p)->encdec.cross_q_bias,
                           (int64_t)s->n_heads * s->head_dim);
}

void layer_attend_cross(model_pass *p)
{
    p->attends_cross = true;
    if (layer_of(p)->encdec.cross_q_bias)
        pass_each_row(p, step_cross_bias);
    (void)attend_for(p, layer_of(p)->encdec.cross_o, NULL); /* nothing of it is away */
    p->attends_cross = false;
}

/* ---- An encoder's output ---- */

static void step_output_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    norm_rows(p, p->r->layout->final_norm, NULL, from, to);
}

void layer_norm_output(model_pass *p)
{
    const model_layout *l = p->r->layout;
    pass_set_source(p, p->r->ws->y, pass_embd_ld(p), l->shape.n_embd, NULL, 0);
    for (int32_t i = 0; i < l->shape.encoder.n_readers; i++)
        p->kinds[l->readers[i].k->form.kernel->act] = p->kinds[l->readers[i].v->form.kernel->act] =
            true;
    pass_each_row(p, step_output_norm);
}

static void step_store_output(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    const kv_store *kv = kv_of(p->r->cross);
    const reader_layout *reader = &p->r->layout->readers[p->reader];
    const model_shape *s = &p->r->layout->shape;
    int64_t n = (int64_t)s->n_heads_kv * s->head_dim;
    for (int32_t i = from; i < to; i++) {
        if (reader->k_bias)
            p->r->kernels->add(p->r->ws->k + i * pass_kv_ld(p), reader->k_bias, n);
        if (reader->v_bias)
            p->r->kernels->add(p->r->ws->v + i * pass_kv_ld(p), reader->v_bias, n);
        store_heads(p, kv, kv_at(kv, p->reader, 0), i, i, p->r->ws->attention.scratch[thread]);
    }
}

void layer_store_output(model_pass *p)
{
    pass_each_row(p, step_store_output);
}

/* ---- Activation ---- */

/* Biases and activation of rows [from, to), columns [k_from, k_to). */
static void activate_part(const model_pass *p, int32_t from, int32_t to, int64_t k_from,
                          int64_t k_to)
{
    const kernel_table *kernels = p->r->kernels;
    const layer_layout *y = layer_of(p);
    const float *gate_bias = y->gate ? y->gate_bias : y->up_bias;
    int64_t n = k_to - k_from;
    for (int32_t i = from; i < to; i++) {
        float *gate = p->r->ws->gate + i * pass_ff_ld(p) + k_from;
        float *up = y->gate ? p->r->ws->up + i * pass_ff_ld(p) + k_from : NULL;
        if (gate_bias)
            kernels->add(gate, gate_bias + k_from, n);
        if (up && y->up_bias)
            kernels->add(up, y->up_bias + k_from, n);
        pass_activate(p->r, gate, up, n);
    }
}

static void step_activate(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    activate_part(p, from, to, 0, p->source_k);
    pass_quantise_rows(p, from, to);
}

/* A thread's columns of a tile's activation, in whole blocks, and their quantised form. */
static void activate_columns(void *arg, int32_t thread, int32_t n_threads)
{
    const model_pass *p = arg;
    int64_t k = p->source_k, n_blocks = ceil_div_i64(k, ACT_COLUMNS);
    int64_t from = n_blocks * thread / n_threads * ACT_COLUMNS;
    int64_t to = min_i64(n_blocks * (thread + 1) / n_threads * ACT_COLUMNS, k);
    if (from >= to)
        return;
    activate_part(p, 0, p->n_rows, from, to);
    for (int kind = 0; kind < ACT_KINDS; kind++)
        if (p->kinds[kind])
            p->r->kernels->quantise[kind](
                act_columns((act_kind)kind, p->r->ws->acts[kind], p->n_rows, from),
                p->source + from, p->source_ld, 0, p->n_rows, p->n_rows, to - from);
}

void layer_activate(model_pass *p)
{
    pass_set_source(p, p->r->ws->gate, pass_ff_ld(p), layer_of(p)->down->form.k,
                    &(weight *){layer_of(p)->down}, 1);
    if (p->n_rows <= TOKEN_TILE && p->n_rows * p->source_k >= p->r->weights->tuning.shared_numbers)
        pool_run(p->r->pool, activate_columns, p);
    else
        pass_each_row(p, step_activate);
}
