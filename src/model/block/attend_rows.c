/* Attention of a pass's rows: which rows see which positions of which cache, and who computes it.
 * The order of arithmetic is kernel/attend.h's. */
#include "common/num.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "os/pool.h"
#include "state/kv.h"
#include "state/kv_file.h"
#include "unit/attend_split.h"
#include "unit/units.h"

static size_t scratch_bytes(const model_shape *s)
{
    size_t most = 0;
    for (int32_t i = 0; i < s->n_attentions; i++)
        most = max_size(most, attend_scratch_bytes(s->attention[i].head_dim, s->attention[i].v_dim,
                                                   s->attention[i].latent));
    return most;
}

/* Sizes of the widest kind of attention. */
typedef struct attend_widths {
    int64_t q, k, v, out; /* numbers of a row */
    int32_t n_heads;
    size_t partials; /* floats */
} attend_widths;

/* Raises the sizes of a row to those of a kind of attention. */
static void widen(attend_widths *w, const buffer_needs *n, const attention_shape *a)
{
    const workspace_limits *l = n->limits;
    const int32_t n_shared = a->n_heads / a->n_heads_kv;
    w->q = max_i64(w->q, attention_queries(a));
    w->k = max_i64(w->k, attention_keys(a));
    w->v = max_i64(w->v, a->latent ? 0 : attention_values(a));
    w->out = max_i64(w->out, attention_out(a));
    w->n_heads = max_i32(w->n_heads, a->n_heads);
    w->partials =
        max_size(w->partials, attend_partials_wanted(n_shared, a->v_dim, l->n_slots, l->n_threads));
    if (l->n_attending > 1)
        w->partials = max_size(w->partials, attend_split_partials(a->n_heads_kv, n_shared, a->v_dim,
                                                                  n->n_rows, l->n_slots));
}

void attend_needs(buffer_needs *n)
{
    const model_shape *s = n->shape;
    const workspace_limits *l = n->limits;
    const size_t ints = (size_t)n->n_rows * sizeof(int32_t);
    const size_t n_runs = (size_t)(l->max_groups + l->max_deferred);
    const int32_t n_slots = l->n_threads + l->n_devices;
    const bool divided = l->n_attending > 1, has_encoder = s->encoder.n_layers > 0;
    attend_widths most = {0};
    for (int32_t i = 0; i < s->n_attentions; i++)
        widen(&most, n, &s->attention[i]);
    need_rows(n, ATTEND_Q, n->n_rows, most.q);
    need_rows(n, ATTEND_K, n->n_rows, most.k);
    need_rows(n, ATTEND_V, n->n_rows, most.v);
    need_rows(n, ATTEND_OUT, n->n_rows, most.out);
    need_lasting(n, ATTEND_SCRATCH, (size_t)n_slots * scratch_bytes(s));
    need_bytes(n, ATTEND_RUNS, n_runs * sizeof(attend_layer));
    need_bytes(n, ATTEND_MORE, has_encoder ? n_runs * sizeof(attend_more) : 0);
    need_bytes(n, ATTEND_NOTHING, has_encoder ? ints : 0);
    need_bytes(n, ATTEND_SEEN, has_encoder ? ints : 0);
    need_bytes(n, ATTEND_PARTIALS, most.partials * sizeof(float));
    need_bytes(n, ATTEND_KEPT, l->offloads ? ints * 2 * (size_t)most.n_heads : 0);
    if (shape_has_form(s, FORM_GATED | FORM_GATED_IN_Q))
        need_rows(n, ATTEND_GATE, n->n_rows, max_i64(most.out, 2 * most.q));
    need_bytes(n, ATTEND_SPLIT, divided ? attend_split_bytes(n_slots) : 0);
    need_acts(n, n->n_rows, max_i64(most.out, s->n_embd), 1);
}

void *attend_scratch(const model_pass *p, const program_step *s, int32_t slot)
{
    return (uint8_t *)block_buffer(p, s, ATTEND_SCRATCH)->at +
           (size_t)slot * scratch_bytes(&p->r->layout->shape);
}

static void *scratch_of(const model_pass *p, int32_t slot)
{
    return attend_scratch(p, p->walk.step, slot);
}

static const attention_shape *present_shape(const model_pass *p)
{
    return layer_attention(&p->r->layout->shape, p->layer);
}

static const attention_tensors *present_layer(const model_pass *p)
{
    return &p->r->layout->layer[p->layer].attention;
}

/* The present layer's keys and values. */
static const kv_store *layer_kv(const model_pass *p, const text_cache *cache)
{
    return kv_in(cache, p->r->layout->layer[p->layer].kv.store);
}

/* Turns to the layer's slots of a store; an encoder's serve the layer that is under way alone. */
static void set_slots(const model_pass *p, attend_layer *a, const kv_store *kv)
{
    const int32_t layer =
        shape_encodes(&p->r->layout->shape) ? 0 : p->r->layout->layer[p->layer].kv.index;
    a->head.keys = kv_at(kv, KV_KEYS, layer, 0);
    a->head.values = kv_at(kv, KV_VALUES, layer, 0);
    a->key_bytes = kv->side[KV_KEYS].head_bytes;
    a->value_bytes = kv->side[KV_VALUES].head_bytes;
}

/* Uses the cluster's kernels; sleeps if a test asked for a slow cluster. */
static void attend_on_unit(attend_layer *l, const unit_worker *worker, void *scratch)
{
    for (bool more = true; more;) {
        int64_t start = worker->slow > 1 ? clock_ns() : 0;
        more = attend_next(l, worker->kernels, scratch);
        if (more && worker->slow > 1)
            unit_linger(worker, start);
    }
}

static void attend_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    const model_pass *p = arg;
    const unit_set *units = p->r->weights->units;
    attend_layer *runs = mix_buffer(p, ATTEND_RUNS);
    void *scratch = scratch_of(p, thread);
    for (int32_t i = 0; i < p->n_runs; i++) {
        if (units)
            attend_on_unit(&runs[i], &units->worker[thread], scratch);
        else
            attend_work(&runs[i], scratch);
    }
}

static void split_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    const model_pass *p = arg;
    attend_split_work(mix_buffer(p, ATTEND_SPLIT), thread, scratch_of(p, thread));
}

static void split_driver(void *arg, int32_t slot)
{
    const model_pass *p = arg;
    attend_split_drive(mix_buffer(p, ATTEND_SPLIT), slot, scratch_of(p, slot));
}

/* Attention that is divided. When a device fails after the threads have left, they come back. */
static void attend_divided(model_pass *p)
{
    attend_split *split = mix_buffer(p, ATTEND_SPLIT);
    if (split->devices)
        units_start(split->units, split_driver, p);
    pool_run(p->r->pool, split_thread, p);
    if (!split->devices)
        return;
    units_wait(split->units);
    if (attend_split_left(split))
        pool_run(p->r->pool, split_thread, p);
}

/* Lets the rows of a run see the same positions, in a model with an encoder: an encoder's rows see
 * each other; a decoder's rows see the encoder's output and nothing else. */
static void see_all(const model_pass *p, attend_layer *a, const text_cache *cache, int32_t first)
{
    int32_t n = p->attends_cross ? cache_end(cache) : p->n_rows;
    int32_t *seen = mix_buffer(p, ATTEND_SEEN), *nothing = mix_buffer(p, ATTEND_NOTHING);
    for (int32_t i = first; i < first + a->head.n_rows; i++) {
        seen[i] = n;
        nothing[i] = 0;
    }
    set_slots(p, a, layer_kv(p, cache));
    a->head.n_prefix = seen + first;
    a->head.n_path = nothing + first;
}

/* Biases by distance; positions that all rows see are then a second cache. */
static void set_bias(const model_pass *p, attend_layer *a, int32_t first)
{
    const attend_layer *runs = mix_buffer(p, ATTEND_RUNS);
    attention *head = &a->head;
    attend_more *more = (attend_more *)mix_buffer(p, ATTEND_MORE) + (a - runs);
    *more = (attend_more){.bias = present_layer(p)->positions.bias};
    head->more = more;
    if (!shape_encodes(&p->r->layout->shape))
        return;
    more->fixed = (attend_fixed){.keys = head->keys,
                                 .values = head->values,
                                 .key_bytes = a->key_bytes,
                                 .value_bytes = a->value_bytes,
                                 .n = p->n_rows,
                                 .at = p->r->ws->position + first};
    head->n_prefix = head->n_path;
}

/* Sets the attention of a run of rows, [first, end), to their cache. */
static void set_attention(model_pass *p, attend_layer *a, int32_t first, int32_t end,
                          int32_t n_threads)
{
    const model_shape *s = &p->r->layout->shape;
    const attention_shape *shape = present_shape(p);
    workspace *ws = p->r->ws;
    const text_cache *cache = p->groups[ws->group[first]].cache;
    const kv_store *kv = layer_kv(p, cache);
    const workspace_buffer *partials = block_buffer(p, p->walk.step, ATTEND_PARTIALS);
    a->head = (attention){.kernels = p->r->kernels,
                          .format = kv->store.shape.format,
                          .k_dim = shape->head_dim,
                          .v_dim = shape->v_dim,
                          .n_q = shape->n_heads / shape->n_heads_kv,
                          .n_rows = end - first,
                          .scale = shape->scale,
                          .cap = s->cap.attention,
                          .window = shape->window,
                          .sinks = present_layer(p)->positions.sinks,
                          .n_prefix = ws->n_prefix + first,
                          .n_path = ws->n_path + first,
                          .path = ws->path + (int64_t)first * ws->limits.max_pending,
                          .path_ld = ws->limits.max_pending,
                          .q = block_row(p, p->walk.step, ATTEND_Q, first),
                          .out = block_row(p, p->walk.step, ATTEND_OUT, first),
                          .q_ld = block_buffer(p, p->walk.step, ATTEND_Q)->ld,
                          .out_ld = block_buffer(p, p->walk.step, ATTEND_OUT)->ld};
    set_slots(p, a, kv);
    a->head.base = p->attends_cross ? 0 : kv->n_disk;
    if (a->head.base)
        a->head.kept = (float *)mix_buffer(p, ATTEND_KEPT) + 2 * (int64_t)first * shape->n_heads;
    a->n_heads = shape->n_heads_kv;
    a->n_threads = n_threads;
    /* Threads go from one run to the next; only after the last could one be left alone. */
    a->partials = partials->at;
    a->n_partials = end == p->n_rows ? partials->bytes / sizeof(float) : 0;
    if (shape_encodes(s) || p->attends_cross)
        see_all(p, a, p->attends_cross ? cache_cross(cache) : cache, first);
    if (present_layer(p)->positions.bias.of && !p->attends_cross)
        set_bias(p, a, first);
    attend_cut(a);
}

/* Rows of one cache that stand together: with deferred rows a cache may have several such runs. */
static void set_runs(model_pass *p, int32_t n_threads)
{
    const int32_t *group = p->r->ws->group;
    attend_layer *runs = mix_buffer(p, ATTEND_RUNS);
    p->n_runs = 0;
    for (int32_t first = 0, end; first < p->n_rows; first = end) {
        for (end = first + 1; end < p->n_rows && group[end] == group[first];)
            end++;
        set_attention(p, &runs[p->n_runs++], first, end, n_threads);
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
    const attention_shape *a = present_shape(p);
    int64_t positions = 0;
    for (int32_t i = 0; i < p->n_rows; i++) {
        int32_t seen = attended(p, i);
        positions += seen - attend_first_seen(a->window, seen);
    }
    return positions * (attention_queries(a) + attention_out(a)) / 2;
}

/* The rows [first, end) with what is away of their cache: each chunk is read by all of them. */
static drey_status attend_away(model_pass *p, int32_t first, int32_t end, int32_t n_threads,
                               drey_error *err)
{
    const int32_t group = p->r->ws->group[first];
    const kv_store *kv = layer_kv(p, p->groups[group].cache);
    attend_layer *l = mix_buffer(p, ATTEND_RUNS);
    int32_t n, chunk = pass_offload_chunks(p, group, p->layer, &n);
    p->n_runs = 1;
    for (; chunk < n; chunk++) {
        const uint8_t *keys;
        int64_t start = p->r->trace ? clock_ns() : 0;
        TRY(pass_offload_wait(p, &keys, err));
        if (p->r->trace)
            trace_add(p->r->trace, 0, TRACE_STALL, start, clock_ns(), 0);
        set_attention(p, l, first, end, n_threads);
        l->key_bytes = kv_file_head_bytes(kv->file, KV_KEYS);
        l->value_bytes = kv_file_head_bytes(kv->file, KV_VALUES);
        l->head.keys = keys;
        if (l->head.values)
            l->head.values = keys + (size_t)kv->store.shape.n_heads * l->key_bytes;
        l->head.base = chunk * kv->chunk;
        l->head.end = l->head.base + kv->chunk;
        attend_cut(l);
        if (n_threads == 1)
            attend_thread(p, 0, 1);
        else
            pool_run(p->r->pool, attend_thread, p);
        pass_offload_next(p);
    }
    return DREY_OK;
}

/* The same of all runs. */
static drey_status attend_all_away(model_pass *p, int32_t n_threads, drey_error *err)
{
    const int32_t *group = p->r->ws->group;
    for (int32_t first = 0, end; p->offload.file && first < p->n_rows; first = end) {
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
    const weights *w = p->r->weights;
    attend_split *split = p->r->whole_heads ? NULL : mix_buffer(p, ATTEND_SPLIT);
    if (alone)
        attend_thread(p, 0, 1);
    else if (split && p->n_runs == 1 && !p->attends_cross &&
             attend_split_cut(split, w->units, mix_buffer(p, ATTEND_RUNS), w->attached))
        attend_divided(p);
    else
        pool_run(p->r->pool, attend_thread, p);
    if (p->r->trace)
        trace_add(p->r->trace, 0, TRACE_ATTEND, start, clock_ns(), p->n_rows);
    return DREY_OK;
}

drey_status block_attend(model_pass *p, bool cross, drey_error *err)
{
    p->attends_cross = cross;
    drey_status status = attend_rows(p, err);
    p->attends_cross = false;
    return status;
}
