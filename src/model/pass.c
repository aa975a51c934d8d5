/* One pass: see pass.h. It goes through the steps of its program (pass_program.h) and knows of none
 * what it computes.
 *
 * A first pass brings what is pinned and not multiplied by products of no rows: the embedding in
 * front of the steps, the head where it is left out; of a mixture all matrices in front of the
 * steps, as experts are read by the layer that has chosen them, into a ring that must not wait for
 * later layers.
 *
 * Deferred rows join a layer before its first step, after the rows that are there: no row moves in
 * the middle of a layer. */
#include "model/pass.h"

#include <assert.h>
#include <stdatomic.h>

#include "common/num.h"
#include "model/arch.h"
#include "model/deferred.h"
#include "model/layout.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "os/pool.h"
#include "state/cache.h"
#include "weights/experts.h"
#include "weights/row_lookup.h"
#include "weights/weights.h"

/* ---- Products ---- */

void pass_open_product(model_pass *p, const product *products, int32_t n)
{
    const pass_inputs *inputs = p->r->inputs;
    if (inputs)
        inputs->see(inputs->user, products->matrix, -1, p->source, p->source_ld, p->n_rows);
    product_begin(p->r->weights, products, n, p->r->ws->acts, p->n_rows);
    p->in_product = true;
}

void pass_open_loading(model_pass *p, weight *m)
{
    product_begin(p->r->weights, &(product){.matrix = m}, 1, NULL, 0);
    p->in_product = true;
}

static bool needs_head(const model_pass *p)
{
    const model_layout *l = p->r->layout;
    return p->n_logits > 0 || shape_encodes(&l->shape) || l->inner;
}

static drey_status load_next(model_pass *p, drey_error *err)
{
    const model_layout *l = p->r->layout;
    if (p->loading.n < l->n_matrices) {
        pass_open_loading(p, &l->matrix[p->loading.n++]);
        return DREY_OK;
    }
    p->loading.goes_on = false;
    TRY(weights_pass_end(p->r->weights, err));
    return weights_pass_begin(p->r->weights, needs_head(p), err);
}

/* ---- Steps ---- */

static const program_step *next_step(const model_pass *p)
{
    return &p->r->layout->program.step[p->at];
}

/* Sets the inputs of the products after a step, in the kinds that they want. */
static void set_reads(model_pass *p, const program_step *s)
{
    const program *steps = &p->r->layout->program;
    const workspace_buffer *from = &p->r->ws->buffer[s->reads.from];
    weight *matrix[PRODUCTS_MAX];
    pass_set_source(p, from->at, from->ld, s->reads.k, NULL, 0);
    p->source_heads.n = s->reads.n_heads;
    p->source_heads.ld = s->reads.head_ld;
    for (int32_t i = (int32_t)(s - steps->step) + 1; i <= s->reads.last; i++) {
        const program_step *reader = &steps->step[i];
        for (int32_t j = 0; reader->kind == STEP_PRODUCT && j < reader->product.n; j++)
            matrix[j] = &p->r->layout->matrix[reader->product.of[j].matrix];
        if (reader->kind == STEP_PRODUCT)
            pass_add_kinds(p, matrix, reader->product.n);
    }
}

static void walk_tile(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    const program_step *s = p->walk.step;
    for (int32_t i = 0; i < p->walk.n; i++, s++)
        s->rows(p, s, from, to, thread);
    if (p->walk.step[p->walk.n - 1].reads.k > 0)
        pass_quantise_rows(p, from, to);
}

/* The steps of rows that follow each other, up to the first that products read. */
static void run_rows(model_pass *p)
{
    p->walk.step = next_step(p);
    p->walk.n = 1;
    const program_step *last = p->walk.step;
    for (; last->reads.k == 0 && last[1].kind == STEP_ROWS; last++)
        p->walk.n++;
    if (last->reads.k > 0)
        set_reads(p, last);
    p->at += p->walk.n;
    pass_each_row(p, walk_tile);
}

static void columns_tile(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    p->walk.step->columns(p, p->walk.step, from, to, 0, p->source_k);
    pass_quantise_rows(p, from, to);
}

/* A thread's columns of a tile, in whole blocks, and their quantised form. */
static void columns_thread(void *arg, int32_t thread, int32_t n_threads)
{
    model_pass *p = arg;
    int64_t k = p->source_k, n_blocks = ceil_div_i64(k, ACT_COLUMNS);
    int64_t from = n_blocks * thread / n_threads * ACT_COLUMNS;
    int64_t to = min_i64(n_blocks * (thread + 1) / n_threads * ACT_COLUMNS, k);
    if (from >= to)
        return;
    p->walk.step->columns(p, p->walk.step, 0, p->n_rows, from, to);
    for (int kind = 0; kind < ACT_KINDS; kind++)
        if (p->kinds[kind])
            p->r->kernels->quantise[kind](
                act_columns((act_kind)kind, p->r->ws->acts[kind], p->n_rows, from),
                p->source + from, p->source_ld, 0, p->n_rows, p->n_rows, to - from);
}

static void run_columns(model_pass *p)
{
    p->walk.step = next_step(p);
    p->at++;
    set_reads(p, p->walk.step);
    if (p->n_rows <= TOKEN_TILE && p->n_rows * p->source_k >= p->r->weights->tuning.shared_numbers)
        pool_run(p->r->pool, columns_thread, p);
    else
        pass_each_row(p, columns_tile);
}

static void quantise_tile(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    pass_quantise_rows(p, from, to);
}

static drey_status run_mix(model_pass *p, drey_error *err)
{
    const program_step *s = p->walk.step = next_step(p);
    p->at++;
    TRY(s->mix(p, s, err));
    if (s->reads.k == 0)
        return DREY_OK;
    set_reads(p, s);
    pass_each_row(p, quantise_tile);
    return DREY_OK;
}

static void run_product(model_pass *p)
{
    const program_step *s = next_step(p);
    product products[PRODUCTS_MAX];
    for (int32_t i = 0; i < s->product.n; i++) {
        const workspace_buffer *to = &p->r->ws->buffer[s->product.of[i].to];
        weight *matrix = &p->r->layout->matrix[s->product.of[i].matrix];
        products[i] = (product){matrix, to->at, to->ld};
    }
    p->at++;
    pass_open_product(p, products, s->product.n);
}

static void begin_layer(model_pass *p)
{
    p->at++;
    pass_join(p);
    pass_read_on(p, p->layer + 1); /* a layer that begins is finished */
}

static void end_layer(model_pass *p)
{
    p->at++;
    p->layer++;
    p->place = PASS_AT_LAYER;
    pass_take_taps(p);
}

drey_status pass_send_remote(model_pass *p, drey_error *err)
{
    const pass_remote *remote = p->r->remote;
    if (!remote)
        return DREY_OK;
    p->is_remote = p->n_logits > 0; /* else nobody asks for them */
    return remote->send(remote->user, p, err);
}

/* Up to the next product, the next place between two layers, or the end. */
static drey_status advance(model_pass *p, drey_error *err)
{
    if (p->loading.goes_on)
        return load_next(p, err);
    p->place = PASS_IN_STEPS;
    while (!p->in_product && !p->is_remote && p->place == PASS_IN_STEPS)
        switch (next_step(p)->kind) {
        case STEP_ROWS:
            run_rows(p);
            break;
        case STEP_COLUMNS:
            run_columns(p);
            break;
        case STEP_MIX:
            TRY(run_mix(p, err));
            break;
        case STEP_PRODUCT:
            run_product(p);
            break;
        case STEP_BEGIN_LAYER:
            begin_layer(p);
            break;
        case STEP_END_LAYER:
            end_layer(p);
            break;
        case STEP_END:
            p->place = PASS_OVER;
            break;
        }
    return DREY_OK;
}

/* ---- Continuing ---- */

static void report_loading(const runner *r)
{
    if (!r->loading || weights_loaded(r->weights))
        return;
    stream_counters count;
    weights_count(r->weights, &count);
    r->loading(r->loading_user, count.read_bytes);
}

/* Continues the open product; *state is PASS_CONTINUES when it is done. */
static drey_status continue_product(model_pass *p, int64_t until_ns, bool *done, pass_state *state,
                                    drey_error *err)
{
    runner *r = p->r;
    int64_t start = r->trace ? clock_ns() : 0;
    product_state now;
    TRY(product_run(r->weights, r->pool, until_ns, &now, err));
    if (r->trace)
        trace_add(r->trace, 0, TRACE_MATMUL, start, clock_ns(), p->n_rows);
    *done = now == PRODUCT_DONE;
    *state = now == PRODUCT_STARVED ? PASS_STARVED : PASS_CONTINUES;
    if (!*done)
        return DREY_OK;
    p->in_product = false;
    report_loading(r);
    if (atomic_load_explicit(r->cancel, memory_order_relaxed))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    return DREY_OK;
}

/* The rows are with others. */
static drey_status run_remote(model_pass *p, bool *done, pass_state *state, drey_error *err)
{
    const pass_remote *remote = p->r->remote;
    if (atomic_load_explicit(p->r->cancel, memory_order_relaxed))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    TRY(remote->take(remote->user, p, done, err));
    *state = *done ? PASS_CONTINUES : PASS_STARVED;
    p->is_remote = !*done;
    return DREY_OK;
}

static drey_status continue_pass(model_pass *p, int64_t until_ns, pass_state *state,
                                 drey_error *err)
{
    *state = PASS_CONTINUES;
    do {
        bool done = true;
        if (p->in_product)
            TRY(continue_product(p, until_ns, &done, state, err));
        else if (p->is_remote)
            TRY(run_remote(p, &done, state, err));
        if (!done)
            return DREY_OK;
        if (p->place == PASS_OVER) {
            *state = PASS_DONE;
            return DREY_OK;
        }
        TRY(advance(p, err));
    } while (p->place != PASS_AT_LAYER && (until_ns == 0 || clock_ns() < until_ns));
    return DREY_OK;
}

/* ---- For the caller ---- */

static void count_rows(model_pass *p)
{
    int32_t n_deferred = 0;
    for (int32_t g = 0; g < p->n_groups; g++) {
        pass_group *group = &p->groups[g];
        const deferred_rows *d = group->deferred;
        assert(group->whole ? cache_has_room_whole(group->cache, group->n)
                            : cache_has_room(group->cache, group->n));
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
    p->at = l->program.begin[p->layer];
    weights_pass_skip(p->r->weights, p->layer < l->shape.n_layers
                                         ? layout_matrix(l, l->layer[p->layer].first)
                                         : l->head);
}

drey_status pass_begin(model_pass *p, runner *r, pass_group *groups, int32_t n_groups,
                       drey_error *err)
{
    assert(n_groups >= 1 && n_groups <= r->ws->limits.max_groups);
    *p = (model_pass){.r = r, .groups = groups, .n_groups = n_groups};
    if (atomic_load_explicit(r->cancel, memory_order_relaxed))
        FAIL(err, DREY_ERR_CANCELLED, "cancelled");
    for (int32_t g = 0; g < n_groups; g++) {
        TRY(cache_make_room(groups[g].cache, groups[g].n, err));
        cache_pass_begins(groups[g].cache, groups[g].deferred ? groups[g].deferred->n : 0,
                          groups[g].whole ? groups[g].n : 0);
    }
    count_rows(p);
    pass_place_rows(p);
    TRY(pass_ask_looked_up(p, err));
    TRY(weights_pass_begin(r->weights, r->layout->experts || needs_head(p), err));
    pass_offload_begin(p);
    if (p->n_own == 0)
        skip_layers(p);
    p->loading.goes_on = r->layout->experts && !weights_loaded(r->weights);
    if (p->loading.goes_on)
        return load_next(p, err);
    if (r->layout->n_looked_up > 0 && !weights_loaded(r->weights))
        pass_open_loading(p, r->layout->embedding);
    return DREY_OK;
}

drey_status pass_step(model_pass *p, int64_t until_ns, pass_state *state, drey_error *err)
{
    drey_status status = continue_pass(p, until_ns, state, err);
    if (status != DREY_OK)
        pass_leave(p);
    return status;
}

bool pass_ready(const model_pass *p)
{
    if (p->is_remote)
        return p->r->remote->ready(p->r->remote->user);
    return !p->in_product || product_ready(p->r->weights);
}

int64_t pass_room_ns(const model_pass *p)
{
    return p->is_remote ? INT64_MAX : weights_room_ns(p->r->weights);
}

void pass_wait(model_pass *p)
{
    if (p->in_product) {
        product_wait(p->r->weights);
    } else if (p->is_remote) {
        int64_t start = clock_ns();
        p->r->remote->wait(p->r->remote->user, p->r->cancel);
        trace_add(p->r->weights->reading.trace, 0, TRACE_RANKS, start, clock_ns(), 0);
    }
}

drey_status pass_end(model_pass *p, drey_error *err)
{
    assert(p->place == PASS_OVER && !p->in_product);
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
    return p->place == PASS_AT_LAYER;
}

bool pass_can_stop(const model_pass *p)
{
    bool can = p->place == PASS_AT_LAYER && weights_loaded(p->r->weights) &&
               p->r->layout->shape.streams.n == 0;
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
    p->place = PASS_STOPPED;
    pass_take_left_taps(p);
    pass_put_back(p);
    for (int32_t g = 0; g < p->n_groups; g++)
        cache_add(p->groups[g].cache, p->groups[g].n);
    return DREY_OK;
}

void pass_drop(model_pass *p, int32_t group)
{
    pass_group *gone = &p->groups[group];
    assert(p->place == PASS_AT_LAYER && p->n_rows == p->n_own && p->n_rows > gone->n);
    pass_drop_rows(p, gone->first_row, gone->n);
    for (int32_t g = group + 1; g < p->n_groups; g++)
        p->groups[g].first_row -= gone->n;
    p->n_logits -= gone->n_logits;
    if (p->n_logits == 0 && gone->n_logits > 0)
        weights_pass_without_head(p->r->weights);
    gone->n = gone->n_logits = gone->n_taps = 0;
    pass_offload_begin(p); /* what is asked for may be its own */
}

static weight *first_of_layer(const runner *r, int32_t layer)
{
    return layer < r->layout->shape.n_layers
               ? layout_matrix(r->layout, r->layout->layer[layer].first)
               : NULL;
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
    assert(p->place == PASS_STOPPED && d->n + n <= d->max);
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
    pass_offload_leave(p);
    if (p->r->weights->lookup)
        row_lookup_leave(p->r->weights->lookup);
    p->in_product = p->is_remote = false;
    p->place = PASS_OVER;
}

int64_t pass_hidden_stride(const runner *r)
{
    return row_stride(r->layout->shape.n_embd);
}

int64_t pass_rows_stride(const runner *r)
{
    return row_stride(shape_width(&r->layout->shape));
}

int64_t pass_logits_stride(const runner *r)
{
    return row_stride(r->layout->n_logits);
}

drey_status pass_run(runner *r, pass_group *groups, int32_t n_groups, drey_error *err)
{
    model_pass p;
    TRY(pass_begin(&p, r, groups, n_groups, err));
    pass_state state = PASS_CONTINUES;
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
    group.whole = head != HEAD_ALL && cache_pending(r->cache) == 0;
    for (int32_t i = 0; i < n; i++)
        group.whole = group.whole && rows[i].parent == i - 1;
    return pass_run(r, &group, 1, err);
}

const float *pass_state_of(const runner *r, int32_t i)
{
    const model_layout *l = r->layout;
    pass_norm(r, r->ws->y, r->ws->x + i * pass_hidden_stride(r), l->last.norm, l->last.bias);
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
