/* One pass: see pass.h.
 *
 *   x = embedding
 *   each layer (layer.h):  x += O attend(Q n, K n, V n)      n = norm(x)
 *                          x += Down (act(Gate m) * Up m)    m = norm(x)
 *   logits = Head norm(x)
 *
 * A stage is what was done last; advance() does the steps after it (pass_steps.h) and opens the
 * next stage's product, which may then take several calls:
 *
 *   LOADED -> Q, K, V -> OUT -> GATE_UP -> DOWN -> LAYER -+-> HEAD -> COMPLETE
 *               ^                                        |
 *               +-------------- next layer --------------+
 *
 * A decoder that reads an encoder's output has OUT -> CROSS_Q -> CROSS_OUT -> GATE_UP. A pass of an
 * encoder, whose rows are all of the input, has in place of HEAD a READER for each decoder layer:
 * its keys and values of the output.
 *
 * At LAYER a pass may be looked into and stopped (STOPPED), and groups may leave it. Deferred rows
 * join it before their first product, after the rows that are there: no row moves in the middle of
 * a pass.
 *
 * FUSE comes between LOADED and the first layer, in a model that is a layer after another one
 * (arch.h: tap_shape): its rows begin as a product with the other model's states.
 *
 * A layer of a mixture of experts (mixture.h) has in place of GATE_UP and DOWN:
 *
 *   ROUTE -> [SHARED] -> EXPERTS_UP -> EXPERTS_DOWN -> LAYER
 *                            ^-------------+
 *
 * Where others compute the last layers, AWAY comes after the last own one. Layers that have others
 * before and after them (model_layout.inner) begin with rows and end after their last one.
 *
 * LOADED, HEAD and, where the head is left out, its loading have products of no rows in a first
 * pass: those bring what is pinned and not multiplied. */
#include "model/pass.h"

#include <assert.h>
#include <stdatomic.h>

#include "common/num.h"
#include "model/layer.h"
#include "model/mixture.h"
#include "model/pass_steps.h"
#include "os/clock.h"
#include "weights/weights.h"

enum {
    LOADED,
    LOADING,
    FUSE,
    QKV,
    OUT,
    CROSS_Q,
    CROSS_OUT,
    GATE_UP,
    DOWN,
    ROUTE,
    SHARED,
    EXPERTS_UP,
    EXPERTS_DOWN,
    LAYER,
    AWAY,
    READER,
    HEAD,
    COMPLETE,
    STOPPED
};

static void open_product(model_pass *p, int stage, const product *products, int32_t n)
{
    const pass_inputs *inputs = p->r->inputs;
    if (inputs)
        inputs->see(inputs->user, products->matrix, -1, p->source, p->source_ld, p->n_rows);
    product_begin(p->r->weights, products, n, p->r->ws->acts, p->n_rows);
    p->stage = stage;
    p->in_product = true;
}

/* ---- Stages ---- */

static void open_qkv(model_pass *p)
{
    const layer_layout *y = &p->r->layout->layer[p->layer];
    workspace *ws = p->r->ws;
    layer_norm_attention(p);
    open_product(p, QKV,
                 (product[]){{y->q, ws->q, pass_q_ld(p)},
                             {y->k, ws->k, pass_kv_ld(p)},
                             {y->v, ws->v, pass_kv_ld(p)}},
                 3);
}

static drey_status open_out(model_pass *p, drey_error *err)
{
    TRY(layer_attend(p, err));
    open_product(p, OUT, &(product){p->r->layout->layer[p->layer].o, p->r->ws->y, pass_embd_ld(p)},
                 1);
    return DREY_OK;
}

static void open_cross_q(model_pass *p)
{
    layer_norm_cross(p);
    weight *q = p->r->layout->layer[p->layer].encdec.cross_q;
    open_product(p, CROSS_Q, &(product){q, p->r->ws->q, pass_q_ld(p)}, 1);
}

static void open_cross_out(model_pass *p)
{
    layer_attend_cross(p);
    weight *o = p->r->layout->layer[p->layer].encdec.cross_o;
    open_product(p, CROSS_OUT, &(product){o, p->r->ws->y, pass_embd_ld(p)}, 1);
}

static void open_gate_up(model_pass *p)
{
    const layer_layout *y = &p->r->layout->layer[p->layer];
    workspace *ws = p->r->ws;
    layer_norm_ffn(p);
    product gate = {y->gate, ws->gate, pass_ff_ld(p)}, up = {y->up, ws->up, pass_ff_ld(p)};
    if (y->gate)
        open_product(p, GATE_UP, (product[]){gate, up}, 2);
    else
        open_product(p, GATE_UP, &(product){y->up, ws->gate, pass_ff_ld(p)}, 1);
}

static void open_down(model_pass *p, int stage, float *to)
{
    layer_activate(p);
    open_product(p, stage, &(product){p->r->layout->layer[p->layer].down, to, pass_embd_ld(p)}, 1);
}

/* Of a mixture: the router, and the shared expert where there is one. */
static void open_route(model_pass *p)
{
    const layer_layout *y = &p->r->layout->layer[p->layer];
    workspace *ws = p->r->ws;
    layer_norm_ffn(p);
    open_product(p, ROUTE,
                 (product[]){{y->experts.router, ws->mixture.logits,
                              row_stride(y->experts.router->form.n_rows)},
                             {y->gate, ws->gate, pass_ff_ld(p)},
                             {y->up, ws->up, pass_ff_ld(p)}},
                 y->up ? 3 : 1);
}

/* The layer's feed-forward part. */
static void open_ffn(model_pass *p)
{
    if (p->r->layout->layer[p->layer].experts.of)
        open_route(p);
    else
        open_gate_up(p);
}

/* The layer is complete but for the sum. */
static void end_layer(model_pass *p)
{
    layer_add_ffn(p);
    p->layer++;
    p->stage = LAYER;
    pass_take_taps(p);
}

/* The next experts, or what follows them. */
static void open_experts(model_pass *p)
{
    if (!mixture_next(p)) {
        mixture_add(p);
        end_layer(p);
        return;
    }
    mixture_begin_up(p);
    p->stage = EXPERTS_UP;
    p->in_product = true;
}

static void open_experts_down(model_pass *p)
{
    mixture_begin_down(p);
    p->stage = EXPERTS_DOWN;
    p->in_product = true;
}

/* The router has its logits. The shared expert is computed while the others are read. */
static drey_status open_chosen(model_pass *p, drey_error *err)
{
    TRY(mixture_choose(p, err));
    if (p->r->layout->layer[p->layer].up)
        open_down(p, SHARED, p->r->ws->mixture.shared);
    else
        open_experts(p);
    return DREY_OK;
}

/* Brings what is pinned of a matrix that this pass does not multiply. */
static void open_loading(model_pass *p, int stage, weight *m)
{
    product_begin(p->r->weights, &(product){.matrix = m}, 1, NULL, 0);
    p->stage = stage;
    p->in_product = true;
}

static bool needs_head(const model_pass *p)
{
    const model_layout *l = p->r->layout;
    return p->n_logits > 0 || shape_encodes(&l->shape) || l->inner;
}

/* A mixture loads what its passes use in the order of a pass before the first layer: experts are
 * read by that layer when it has chosen them, into a ring that must not wait for later layers. */
static drey_status open_next_loading(model_pass *p, drey_error *err)
{
    const model_layout *l = p->r->layout;
    if (p->n_loaded < l->n_matrices) {
        open_loading(p, LOADING, &l->matrix[p->n_loaded++]);
        return DREY_OK;
    }
    p->stage = LOADED;
    TRY(weights_pass_end(p->r->weights, err));
    return weights_pass_begin(p->r->weights, needs_head(p), err);
}

static drey_status open_head(model_pass *p, drey_error *err)
{
    runner *r = p->r;
    p->stage = COMPLETE;
    if (p->n_logits > 0) {
        TRY(pass_norm_head(p, err));
        weight *head = r->layout->head;
        row_table *table = r->layout->table;
        product products[] = {{head, r->ws->logits, pass_logits_stride(r)},
                              {table ? &table->matrix : NULL, r->ws->logits + head->form.n_rows,
                               pass_logits_stride(r)}};
        open_product(p, HEAD, products, table && row_table_places(table) > 0 ? 2 : 1);
    } else if (!weights_loaded(r->weights) && residency_any(&r->layout->head->stays)) {
        open_loading(p, COMPLETE, r->layout->head);
    }
    return DREY_OK;
}

/* Rows of a layer after a target: its states, one below the other, become one of this model. */
static void open_fuse(model_pass *p)
{
    weight *fuse = p->r->layout->fuse;
    if (pass_take_tapped(p))
        open_product(p, FUSE, &(product){fuse, p->r->ws->x, pass_embd_ld(p)}, 1);
    else if (!weights_loaded(p->r->weights))
        open_loading(p, FUSE, fuse);
    else
        p->stage = FUSE;
}

/* Keys and values of an encoder's output, of one decoder layer after the other. */
static void open_reader(model_pass *p)
{
    const reader_layout *y = &p->r->layout->readers[p->reader];
    workspace *ws = p->r->ws;
    open_product(p, READER, (product[]){{y->k, ws->k, pass_kv_ld(p)}, {y->v, ws->v, pass_kv_ld(p)}},
                 2);
}

/* What follows the last own layer. */
static drey_status open_end(model_pass *p, drey_error *err)
{
    const pass_beyond *beyond = p->r->beyond;
    if (p->r->layout->inner) {
        p->stage = COMPLETE;
        return DREY_OK;
    }
    if (!beyond)
        return open_head(p, err);
    p->stage = AWAY;
    p->is_away = p->n_logits > 0; /* else nobody asks for them */
    return beyond->send(beyond->user, p, err);
}

/* What follows the layers that are complete. */
static drey_status open_layer(model_pass *p, drey_error *err)
{
    pass_join(p);
    pass_read_on(p, p->layer + 1); /* a layer that begins is finished */
    if (p->layer == p->r->layout->shape.n_layers && shape_encodes(&p->r->layout->shape)) {
        layer_norm_output(p);
        open_reader(p);
        return DREY_OK;
    }
    if (p->layer == p->r->layout->shape.n_layers)
        return open_end(p, err);
    open_qkv(p);
    return DREY_OK;
}

/* The rows are known; what follows. */
static drey_status begin_layers(model_pass *p, drey_error *err)
{
    TRY(pass_embed(p, err));
    pass_take_taps(p);
    return open_layer(p, err);
}

/* What comes after the stage that is complete, up to the next product. */
static drey_status advance(model_pass *p, drey_error *err)
{
    switch (p->stage) {
    case LOADED:
        if (p->r->layout->fuse)
            open_fuse(p);
        else
            TRY(begin_layers(p, err));
        break;
    case LOADING:
        TRY(open_next_loading(p, err));
        break;
    case FUSE:
        TRY(begin_layers(p, err));
        break;
    case QKV:
        TRY(open_out(p, err));
        break;
    case OUT:
        if (p->r->layout->layer[p->layer].encdec.cross_q)
            open_cross_q(p);
        else
            open_ffn(p);
        break;
    case CROSS_Q:
        open_cross_out(p);
        break;
    case CROSS_OUT:
        open_gate_up(p);
        break;
    case GATE_UP:
        open_down(p, DOWN, p->r->ws->y);
        break;
    case DOWN:
        end_layer(p);
        break;
    case ROUTE:
        TRY(open_chosen(p, err));
        break;
    case SHARED:
    case EXPERTS_DOWN:
        open_experts(p);
        break;
    case EXPERTS_UP:
        open_experts_down(p);
        break;
    case LAYER:
        TRY(open_layer(p, err));
        break;
    case AWAY:
        TRY(open_head(p, err));
        break;
    case READER:
        layer_store_output(p);
        p->stage = COMPLETE;
        if (++p->reader < p->r->layout->shape.encoder.n_readers)
            open_reader(p);
        break;
    case HEAD:
        pass_finish_logits(p);
        p->stage = COMPLETE;
        break;
    default:
        assert(0 && "a complete pass has nothing to advance to");
    }
    return DREY_OK;
}

/* ---- Continuing ---- */

static void tell_loading(const runner *r)
{
    if (!r->loading || weights_loaded(r->weights))
        return;
    stream_counters count;
    weights_count(r->weights, &count);
    r->loading(r->loading_user, count.read_bytes);
}

/* Continues the open product; *state is PASS_GOES_ON when it is done. */
static drey_status run_product(model_pass *p, int64_t until_ns, bool *done, pass_state *state,
                               drey_error *err)
{
    runner *r = p->r;
    int64_t start = r->trace ? clock_ns() : 0;
    product_state now;
    TRY(product_run(r->weights, r->pool, until_ns, &now, err));
    if (r->trace)
        trace_add(r->trace, 0, TRACE_MATMUL, start, clock_ns(), p->n_rows);
    *done = now == PRODUCT_DONE;
    *state = now == PRODUCT_STARVED ? PASS_STARVED : PASS_GOES_ON;
    if (!*done)
        return DREY_OK;
    p->in_product = false;
    tell_loading(r);
    if (atomic_load_explicit(r->cancel, memory_order_relaxed))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    return DREY_OK;
}

/* The rows are with others. */
static drey_status run_away(model_pass *p, bool *done, pass_state *state, drey_error *err)
{
    const pass_beyond *beyond = p->r->beyond;
    if (atomic_load_explicit(p->r->cancel, memory_order_relaxed))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    TRY(beyond->take(beyond->user, p, done, err));
    *state = *done ? PASS_GOES_ON : PASS_STARVED;
    p->is_away = !*done;
    return DREY_OK;
}

static drey_status go_on(model_pass *p, int64_t until_ns, pass_state *state, drey_error *err)
{
    *state = PASS_GOES_ON;
    do {
        bool done = true;
        if (p->in_product)
            TRY(run_product(p, until_ns, &done, state, err));
        else if (p->is_away)
            TRY(run_away(p, &done, state, err));
        if (!done)
            return DREY_OK;
        if (p->stage == COMPLETE) {
            *state = PASS_DONE;
            return DREY_OK;
        }
        TRY(advance(p, err));
    } while (p->stage != LAYER && (until_ns == 0 || clock_ns() < until_ns));
    return DREY_OK;
}

/* ---- For the caller ---- */

static void count_rows(model_pass *p)
{
    int32_t n_deferred = 0;
    for (int32_t g = 0; g < p->n_groups; g++) {
        pass_group *group = &p->groups[g];
        const deferred_rows *d = group->deferred;
        assert(cache_has_room(group->cache, group->n));
        assert(!d || deferred_is_valid(d, cache_end(group->cache)));
        group->first_row = p->n_rows;
        group->first_pending = cache_pending(group->cache);
        group->n_logits = group->head == HEAD_ALL ? group->n : group->head == HEAD_LAST;
        group->n_deferred = group->n_waiting = d ? d->n : 0;
        group->logits = group->deferred_logits = NULL;
        group->hidden = group->deferred_hidden = NULL;
        for (int32_t t = 0; t < group->n_taps; t++) {
            group->taps[t].out = NULL;
            p->n_tap_rows += group->taps[t].n;
        }
        assert(group->n + group->n_deferred >= 1 && group->n_logits <= group->n);
        p->n_rows += group->n;
        p->n_logits += group->n_logits;
        n_deferred += group->n_deferred;
    }
    const workspace_limits *limits = &p->r->ws->limits;
    assert(p->n_rows <= limits->max_rows && p->n_logits <= limits->max_logit_rows &&
           n_deferred <= limits->max_deferred && p->n_tap_rows <= limits->max_tap_rows);
    (void)limits;
    p->n_own = p->n_rows;
    p->n_logits += n_deferred;
}

/* A pass without new rows has nothing to do before the first layer that a deferred row lacks. */
static void skip_layers(model_pass *p)
{
    const model_layout *l = p->r->layout;
    p->layer = l->shape.n_layers;
    for (int32_t g = 0; g < p->n_groups; g++) {
        const deferred_rows *d = p->groups[g].deferred;
        p->layer = min_i32(p->layer, d->next_layer[d->n - 1]);
    }
    weights_pass_skip(p->r->weights,
                      p->layer < l->shape.n_layers ? l->layer[p->layer].first : l->head);
}

drey_status pass_begin(model_pass *p, runner *r, pass_group *groups, int32_t n_groups,
                       drey_error *err)
{
    assert(n_groups >= 1 && n_groups <= r->ws->limits.max_groups);
    *p = (model_pass){.r = r, .groups = groups, .n_groups = n_groups};
    if (atomic_load_explicit(r->cancel, memory_order_relaxed))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    for (int32_t g = 0; g < n_groups; g++)
        TRY(cache_make_room(groups[g].cache, groups[g].n, err));
    count_rows(p);
    pass_place_rows(p);
    TRY(weights_pass_begin(r->weights, r->layout->experts || needs_head(p), err));
    pass_away_begin(p);
    if (p->n_own == 0)
        skip_layers(p);
    if (r->layout->experts && !weights_loaded(r->weights))
        return open_next_loading(p, err);
    if (r->layout->n_looked_up > 0 && !weights_loaded(r->weights))
        open_loading(p, LOADED, r->layout->embedding);
    return DREY_OK;
}

drey_status pass_step(model_pass *p, int64_t until_ns, pass_state *state, drey_error *err)
{
    drey_status status = go_on(p, until_ns, state, err);
    if (status != DREY_OK)
        pass_leave(p);
    return status;
}

bool pass_ready(const model_pass *p)
{
    if (p->is_away)
        return p->r->beyond->ready(p->r->beyond->user);
    return !p->in_product || product_ready(p->r->weights);
}

int64_t pass_room_ns(const model_pass *p)
{
    return p->is_away ? INT64_MAX : weights_room_ns(p->r->weights);
}

void pass_wait(model_pass *p)
{
    if (p->in_product) {
        product_wait(p->r->weights);
    } else if (p->is_away) {
        int64_t start = clock_ns();
        p->r->beyond->wait(p->r->beyond->user, p->r->cancel);
        trace_add(p->r->weights->reading.trace, 0, TRACE_RANKS, start, clock_ns(), 0);
    }
}

drey_status pass_end(model_pass *p, drey_error *err)
{
    assert(p->stage == COMPLETE && !p->in_product);
    drey_status status = weights_pass_end(p->r->weights, err);
    if (status != DREY_OK) {
        pass_leave(p);
        return status;
    }
    float *logits = p->r->ws->logits;
    const float *hidden = p->r->ws->y;
    for (int32_t g = 0; g < p->n_groups; g++) {
        pass_group *group = &p->groups[g];
        cache_add(group->cache, group->n);
        group->logits = group->n_logits > 0 ? logits : NULL;
        group->hidden = group->n_logits > 0 ? hidden : NULL;
        hidden += group->n_logits * pass_hidden_stride(p->r);
        group->deferred_hidden = group->n_deferred > 0 ? hidden : NULL;
        hidden += group->n_deferred * pass_hidden_stride(p->r);
        logits += group->n_logits * pass_logits_stride(p->r);
        group->deferred_logits = group->n_deferred > 0 ? logits : NULL;
        logits += group->n_deferred * pass_logits_stride(p->r);
        if (group->deferred)
            group->deferred->n = 0;
    }
    return DREY_OK;
}

bool pass_at_layer(const model_pass *p)
{
    return p->stage == LAYER;
}

bool pass_can_stop(const model_pass *p)
{
    bool can = p->stage == LAYER && weights_loaded(p->r->weights);
    for (int32_t g = 0; g < p->n_groups; g++)
        can = can && p->groups[g].deferred;
    return can;
}

drey_status pass_stop(model_pass *p, drey_error *err)
{
    assert(pass_can_stop(p));
    drey_status status = weights_pass_end(p->r->weights, err);
    pass_leave(p);
    if (status != DREY_OK)
        return status;
    p->stage = STOPPED;
    pass_take_left_taps(p);
    pass_put_back(p);
    for (int32_t g = 0; g < p->n_groups; g++)
        cache_add(p->groups[g].cache, p->groups[g].n);
    return DREY_OK;
}

void pass_drop(model_pass *p, int32_t group)
{
    pass_group *gone = &p->groups[group];
    assert(p->stage == LAYER && p->n_rows == p->n_own && p->n_rows > gone->n);
    pass_drop_rows(p, gone->first_row, gone->n);
    for (int32_t g = group + 1; g < p->n_groups; g++)
        p->groups[g].first_row -= gone->n;
    p->n_logits -= gone->n_logits;
    if (p->n_logits == 0 && gone->n_logits > 0)
        weights_pass_without_head(p->r->weights);
    gone->n = gone->n_logits = gone->n_taps = 0;
    pass_away_begin(p); /* what is asked for may be its own */
}

static weight *first_of_layer(const runner *r, int32_t layer)
{
    return layer < r->layout->shape.n_layers ? r->layout->layer[layer].first : NULL;
}

void pass_hold_from(runner *r, int32_t layer)
{
    weights_hold_from(r->weights, first_of_layer(r, layer));
}

void pass_read_on(const model_pass *p, int32_t layer)
{
    weights_read_to(p->r->weights, first_of_layer(p->r, layer));
}

void pass_defer(const model_pass *p, pass_group *group, const int32_t *path, int32_t n)
{
    deferred_rows *d = group->deferred;
    assert(p->stage == STOPPED && d->n + n <= d->max);
    for (int32_t i = 0; i < n; i++, d->n++) {
        int32_t row = (path ? path[i] : i) - group->first_pending;
        assert(row >= 0 && row < group->n);
        pass_keep_row(p, group->first_row + row, d, d->n);
    }
}

void pass_leave(model_pass *p)
{
    product_leave(p->r->weights);
    experts_leave(p->r->weights);
    weights_pass_leave(p->r->weights);
    pass_away_leave(p);
    p->in_product = p->is_away = false;
    p->stage = COMPLETE;
}

int64_t pass_hidden_stride(const runner *r)
{
    return row_stride(r->layout->shape.n_embd);
}

int64_t pass_logits_stride(const runner *r)
{
    return row_stride(r->layout->n_logits);
}

drey_status pass_run(runner *r, pass_group *groups, int32_t n_groups, drey_error *err)
{
    model_pass p;
    TRY(pass_begin(&p, r, groups, n_groups, err));
    pass_state state = PASS_GOES_ON;
    while (state != PASS_DONE) {
        TRY(pass_step(&p, 0, &state, err));
        if (state == PASS_STARVED)
            pass_wait(&p);
    }
    return pass_end(&p, err);
}

drey_status pass_rows(runner *r, const pass_row *rows, int32_t n, pass_head head, drey_error *err)
{
    pass_group group = {.cache = r->cache, .rows = rows, .n = n, .head = head};
    return pass_run(r, &group, 1, err);
}

const float *pass_state_of(const runner *r, int32_t i)
{
    const model_layout *l = r->layout;
    pass_norm(r, r->ws->y, r->ws->x + i * pass_hidden_stride(r), l->final_norm, l->final_norm_bias);
    return r->ws->y;
}

drey_status pass_prompt(runner *r, const int32_t *tokens, int32_t n, int32_t chunk, pass_head last,
                        void (*progress)(void *user, int32_t done), void *user, drey_error *err)
{
    pass_row *rows = r->ws->rows;
    for (int32_t done = 0; done < n;) {
        int32_t m = min_i32(n - done, chunk);
        for (int32_t i = 0; i < m; i++)
            rows[i] = (pass_row){.token = tokens[done + i], .parent = i - 1};
        TRY(pass_rows(r, rows, m, done + m < n ? HEAD_NONE : last, err));
        cache_commit(r->cache, NULL, m);
        done += m;
        if (progress)
            progress(user, done);
    }
    return DREY_OK;
}
