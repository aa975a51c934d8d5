/* The steps between a pass's products: see pass_steps.h. */
#include "model/pass_steps.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"
#include "model/arch.h"
#include "model/deferred.h"
#include "model/layout.h"
#include "model/workspace.h"
#include "os/pool.h"
#include "state/cache.h"
#include "state/kv.h"
#include "weights/row_table.h"

int64_t pass_embd_ld(const model_pass *p)
{
    return row_stride(p->r->layout->shape.n_embd);
}

int64_t pass_x_ld(const model_pass *p)
{
    return pass_rows_stride(p->r);
}

static float *wide_row(const model_pass *p, int32_t row)
{
    const workspace_buffer *wide = &p->r->ws->buffer[BUFFER_WIDE];
    return (float *)wide->at + row * wide->ld;
}

/* ---- Sharing rows among threads ---- */

static void tiles_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    model_pass *p = arg;
    for (;;) {
        int32_t from =
            atomic_fetch_add_explicit(&p->walk.next_row, TOKEN_TILE, memory_order_relaxed);
        if (from >= p->n_rows)
            return;
        p->walk.tile(p, from, min_i32(from + TOKEN_TILE, p->n_rows), thread);
    }
}

void pass_each_row(model_pass *p, pass_rows_fn *step)
{
    if (p->n_rows <= TOKEN_TILE) {
        step(p, 0, p->n_rows, 0);
        return;
    }
    p->walk.tile = step;
    atomic_store_explicit(&p->walk.next_row, 0, memory_order_relaxed);
    pool_run(p->r->pool, tiles_thread, p);
}

void pass_set_source(model_pass *p, const float *source, int64_t ld, int64_t k,
                     weight *const matrices[], int32_t n)
{
    p->source = source;
    p->source_ld = ld;
    p->source_k = k;
    p->source_heads.n = 0;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        p->kinds[kind] = false;
    pass_add_kinds(p, matrices, n);
}

void pass_add_kinds(model_pass *p, weight *const matrices[], int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        if (matrices[i])
            p->kinds[matrices[i]->form.kernel->act] = true;
}

/* The same of heads one by one. */
static void quantise_heads(const model_pass *p, act_kind kind, int32_t from, int32_t to)
{
    const size_t bytes = product_head_bytes(kind, p->n_rows, p->source_k);
    for (int32_t h = 0; h < p->source_heads.n; h++)
        p->r->kernels->quantise[kind]((uint8_t *)p->r->ws->acts[kind] + (size_t)h * bytes,
                                      p->source + (int64_t)h * p->source_heads.ld, p->source_ld,
                                      from, to, p->n_rows, p->source_k);
}

void pass_quantise_rows(model_pass *p, int32_t from, int32_t to)
{
    const kernel_table *kernels = p->r->kernels;
    for (int kind = 0; kind < ACT_KINDS && p->source_heads.n > 0; kind++)
        if (p->kinds[kind])
            quantise_heads(p, (act_kind)kind, from, to);
    if (p->source_heads.n > 0)
        return;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        if (p->kinds[kind])
            kernels->quantise[kind](p->r->ws->acts[kind], p->source, p->source_ld, from, to,
                                    p->n_rows, p->source_k);
}

/* ---- Places and tokens ---- */

/* Row i of the pass: where it is in its cache, and which slots it sees. */
static void place_row(workspace *ws, text_cache *cache, int32_t i, int32_t self, int32_t parent)
{
    const int32_t depth = cache_place_row(cache, self, parent),
                  first = kv_pending_slot(kv_of(cache), cache);
    ws->pending[i] = self;
    ws->slot[i] = first + self;
    ws->position[i] = cache_end(cache) + depth;
    /* In a chain every row is in the slot of its position, and there is no path to list. */
    bool chain = depth == self && !cache_is_view(cache);
    ws->n_path[i] = chain ? 0 : depth + 1;
    ws->n_prefix[i] = ws->position[i] + 1 - ws->n_path[i];
    int32_t *path = ws->path + (int64_t)i * ws->limits.max_pending;
    cache_path(cache, self, path, ws->n_path[i]);
    for (int32_t at = 0; at < ws->n_path[i]; at++)
        path[at] += first;
}

static void place_angles(workspace *ws, const model_layout *l, int32_t i)
{
    float *out = ws->rope + (int64_t)i * l->shape.n_angles;
    for (int32_t rope = 0; rope < l->shape.n_ropes; rope++)
        for (int32_t j = 0; j < l->shape.rope[rope].n_rot / 2; j++, out += 2) {
            double angle = ws->position[i] * l->angles.frequency[rope][j];
            out[0] = (float)(cos_f64(angle) * l->angles.scale[rope]);
            out[1] = (float)(sin_f64(angle) * l->angles.scale[rope]);
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
            place_row(ws, group->cache, row, group->first_pending + i, group->rows[i].parent);
            place_angles(ws, p->r->layout, row);
        }
    }
}

void pass_norm(const runner *r, float *y, const float *x, const float *norm, const float *bias)
{
    const model_shape *s = &r->layout->shape;
    if (!norm)
        memcpy(y, x, (size_t)s->n_embd * sizeof *y);
    else if (s->arch->layer_norm)
        r->kernels->layernorm(y, x, norm, bias, s->n_embd, s->norm_eps);
    else
        r->kernels->rmsnorm(y, x, norm, s->n_embd, s->norm_eps);
}

/* NaN stays. */
static void relu(float *x, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] < 0.0f ? 0.0f : x[i];
}

/* Makes FFN_SWIGLU_CUT of SwiGLU: with h = 1.702 g it is h * sigmoid(h) * ((u + 1) / 1.702). NaN
 * stays. */
static void cut_gates(float *gate, float *up, int64_t n)
{
    const float limit = 7.0f, alpha = 1.702f, inverse = 1 / alpha;
    for (int64_t i = 0; i < n; i++) {
        float g = gate[i] > limit ? limit : gate[i], u = up[i] > limit ? limit : up[i];
        gate[i] = alpha * g;
        up[i] = ((u < -limit ? -limit : u) + 1) * inverse;
    }
}

static void square_relu(float *x, int64_t n)
{
    relu(x, n);
    for (int64_t i = 0; i < n; i++)
        x[i] *= x[i];
}

static void xielu(float *x, const act_numbers *a, int64_t n)
{
    const float p = a->xielu.p, b = a->xielu.b, eps = a->xielu.eps;
    for (int64_t i = 0; i < n; i++) {
        float least = x[i] < eps ? x[i] : eps;
        float above = p * x[i] * x[i], below = (exp_f32(least) - 1.0f - x[i]) * a->xielu.n;
        x[i] = (x[i] > 0.0f ? above : below) + b * x[i];
    }
}

/* SwiGLU where silu(gate) and up have a limit. NaN stays. */
static void limited_swiglu(const kernel_table *kernels, float *gate, float *up, float limit,
                           int64_t n)
{
    kernels->gate(gate, gate, gate, n);
    for (int64_t i = 0; i < n; i++) {
        float g = gate[i] > limit ? limit : gate[i], u = up[i] > limit ? limit : up[i];
        gate[i] = g * (u < -limit ? -limit : u);
    }
}

/* Activation of products without gates. */
static void activate_alone(const runner *r, const act_numbers *numbers, float *x, int64_t n)
{
    switch (r->layout->shape.arch->ffn) {
    case FFN_RELU:
        relu(x, n);
        break;
    case FFN_RELU_SQUARED:
        square_relu(x, n);
        break;
    case FFN_XIELU:
        xielu(x, numbers, n);
        break;
    case FFN_ERF:
        r->kernels->gelu(x, x, n);
        break;
    default:
        r->kernels->geglu(x, x, NULL, n);
    }
}

void pass_activate(const runner *r, const act_numbers *numbers, float *gate, float *up, int64_t n)
{
    const kernel_table *kernels = r->kernels;
    ffn_kind kind = r->layout->shape.arch->ffn;
    if (!up) {
        activate_alone(r, numbers, gate, n);
    } else if (kind != FFN_SWIGLU && kind != FFN_SWIGLU_CUT) {
        kernels->geglu(gate, gate, up, n);
    } else if (numbers->limit > 0) {
        limited_swiglu(kernels, gate, up, numbers->limit, n);
    } else {
        if (kind == FFN_SWIGLU_CUT)
            cut_gates(gate, up, n);
        kernels->swiglu(gate, gate, up, n);
    }
}

void pass_scale(float *x, float factor, int64_t n)
{
    for (int64_t i = 0; i < n && factor != 1.0f; i++)
        x[i] *= factor;
}

static int64_t x_bytes(const model_pass *p)
{
    return shape_width(&p->r->layout->shape) * (int64_t)sizeof(float);
}

static const pass_group *group_of(const model_pass *p, int32_t row)
{
    return &p->groups[p->r->ws->group[row]];
}

/* Its number in its group. */
static int32_t place_of(const model_pass *p, int32_t row)
{
    return p->r->ws->pending[row] - group_of(p, row)->first_pending;
}

int32_t pass_token(const model_pass *p, int32_t row)
{
    const pass_group *group = group_of(p, row);
    return row < p->n_own ? group->rows[place_of(p, row)].token
                          : group->deferred->token[p->r->ws->pending[row]];
}

static void look_up(model_pass *p, int32_t row, float *out, int32_t thread)
{
    drey_error err;
    weights *w = p->r->layout->embedding ? p->r->weights : p->r->tokens;
    if (weights_row(w, pass_token(p, row), out, thread, &err) != DREY_OK &&
        !atomic_exchange(&p->failed, true))
        p->error = err;
}

/* Deferred row i of a group: it sees its whole prefix, each in the slot of its position. */
static void join_row(model_pass *p, int32_t g, int32_t i)
{
    const pass_group *group = &p->groups[g];
    workspace *ws = p->r->ws;
    int32_t row = p->n_rows++;
    ws->group[row] = g;
    ws->pending[row] = i;
    ws->position[row] = ws->slot[row] = cache_end(group->cache) - group->n_deferred + i;
    ws->n_path[row] = 0;
    ws->n_prefix[row] = ws->position[row] + 1;
    place_angles(ws, p->r->layout, row);
    memcpy(ws->x + row * pass_x_ld(p), group->deferred->x + i * pass_x_ld(p), (size_t)x_bytes(p));
    pass_join_looked_up(p, row);
    if (p->r->layout->shape.lookup.width > 0) {
        look_up(p, row, wide_row(p, row), 0);
        pass_scale(wide_row(p, row), p->r->layout->shape.scale.embedding,
                   p->r->layout->shape.n_embd);
    }
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
    memcpy(d->x + i * pass_x_ld(p), p->r->ws->x + row * pass_x_ld(p), (size_t)x_bytes(p));
    d->next_layer[i] = p->layer;
    d->token[i] = p->r->layout->shape.lookup.n > 0 ? pass_token(p, row) : -1;
}

void pass_put_back(const model_pass *p)
{
    const workspace *ws = p->r->ws;
    for (int32_t row = p->n_own; row < p->n_rows; row++)
        pass_keep_row(p, row, p->groups[ws->group[row]].deferred, ws->pending[row]);
}

static void move_rows(void *rows, size_t row_bytes, int32_t to, int32_t from, int32_t end)
{
    memmove((uint8_t *)rows + (size_t)to * row_bytes, (uint8_t *)rows + (size_t)from * row_bytes,
            (size_t)(end - from) * row_bytes);
}

void pass_drop_rows(model_pass *p, int32_t first, int32_t n)
{
    const model_shape *s = &p->r->layout->shape;
    workspace *ws = p->r->ws;
    int32_t from = first + n, end = p->n_rows;
    int32_t *numbers[] = {ws->group,  ws->pending,  ws->slot,     ws->position,
                          ws->n_path, ws->n_prefix, ws->looked_up};
    const workspace_buffer *wide = &ws->buffer[BUFFER_WIDE];
    move_rows(ws->x, (size_t)pass_x_ld(p) * sizeof(float), first, from, end);
    move_rows(ws->rope, (size_t)s->n_angles * sizeof(float), first, from, end);
    move_rows(ws->path, (size_t)ws->limits.max_pending * sizeof(int32_t), first, from, end);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i] != ws->looked_up || s->lookup.n > 0)
            move_rows(numbers[i], sizeof(int32_t), first, from, end);
    if (s->lookup.width > 0)
        move_rows(wide->at, (size_t)wide->ld * sizeof(float), first, from, end);
    p->n_rows -= n;
    p->n_own -= n;
}

static void step_tapped(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    size_t n = (size_t)tapped_numbers(&p->r->layout->shape);
    for (int32_t i = from; i < to; i++) {
        const pass_group *group = group_of(p, i);
        float *out = wide_row(p, i);
        if (group->tapped)
            memcpy(out, group->tapped + place_of(p, i) * row_stride((int64_t)n), n * sizeof *out);
        else
            memset(out, 0, n * sizeof *out);
    }
    pass_quantise_rows(p, from, to);
}

/* [norm(e); norm(f)] of an MTP block's rows, e being the token's embedding and f the state before
 * it: the target's, or what this layer has made of the token before. */
static void step_join(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    const model_layout *l = p->r->layout;
    const model_shape *s = &l->shape;
    for (int32_t i = from; i < to; i++) {
        const pass_group *group = group_of(p, i);
        float *token = wide_row(p, i), *state = token + s->n_embd;
        const float *own = group->tapped ? group->tapped : group->states;
        const float *norm = group->tapped ? l->after.target_norm : l->last.norm;
        look_up(p, i, token, thread);
        pass_scale(token, s->scale.embedding, s->n_embd);
        pass_norm(p->r, token, token, l->after.token_norm, NULL);
        if (own)
            memcpy(state, own + place_of(p, i) * pass_embd_ld(p), (size_t)x_bytes(p));
        else
            memset(state, 0, (size_t)x_bytes(p));
        if (l->after.target_norm)
            pass_norm(p->r, state, state, norm, NULL);
        pass_norm(p->r, state, state, l->after.state_norm, NULL);
    }
    pass_quantise_rows(p, from, to);
}

bool pass_take_tapped(model_pass *p)
{
    const model_layout *l = p->r->layout;
    const bool joins = shape_is_mtp(&l->shape);
    const int64_t n = joins ? 2 * l->shape.n_embd : tapped_numbers(&l->shape);
    bool any = joins;
    for (int32_t g = 0; g < p->n_groups; g++)
        any = any || p->groups[g].tapped;
    if (!any)
        return false;
    pass_set_source(p, wide_row(p, 0), p->r->ws->buffer[BUFFER_WIDE].ld, n,
                    &(weight *){l->after.fuse}, 1);
    pass_each_row(p, joins ? step_join : step_tapped);
    return true;
}

/* Embeds for a layer after a target: tokens go next to the rows, whose own states replace what
 * others' states gave. */
static void step_embed_tapped(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    for (int32_t i = from; i < to; i++) {
        const pass_group *group = group_of(p, i);
        float *x = p->r->ws->x + i * pass_embd_ld(p);
        look_up(p, i, wide_row(p, i), thread);
        if (group->states)
            memcpy(x, group->states + place_of(p, i) * pass_embd_ld(p), (size_t)x_bytes(p));
        else if (!group->tapped)
            memset(x, 0, (size_t)x_bytes(p));
    }
}

/* Rows that come from other layers. */
static void step_take_rows(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        memcpy(p->r->ws->x + i * pass_x_ld(p),
               group_of(p, i)->states + place_of(p, i) * pass_x_ld(p), (size_t)x_bytes(p));
}

static void step_embed(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    for (int32_t i = from; i < to; i++) {
        float *x = p->r->ws->x + i * pass_x_ld(p);
        look_up(p, i, x, thread);
        const model_shape *s = &p->r->layout->shape;
        pass_scale(x, s->scale.embedding, s->n_embd);
        if (p->r->layout->positions) { /* what is drafted after the last one will not count */
            int64_t position = min_i32(p->r->ws->position[i], s->n_context_train - 1);
            p->r->kernels->add(x, p->r->layout->positions + position * s->n_embd, s->n_embd);
        }
        if (p->r->layout->embd.norm)
            pass_norm(p->r, x, x, p->r->layout->embd.norm, p->r->layout->embd.bias);
        if (s->lookup.width > 0)
            memcpy(wide_row(p, i), x, (size_t)s->n_embd * sizeof *x);
        for (int32_t part = 1; part < s->streams.n; part++)
            memcpy(x + (int64_t)part * s->n_embd, x, (size_t)s->n_embd * sizeof *x);
    }
}

drey_status pass_embed(model_pass *p, drey_error *err)
{
    const model_layout *l = p->r->layout;
    if (!shape_is_mtp(&l->shape)) /* whose rows are there already */
        pass_each_row(p, l->inner        ? step_take_rows
                         : l->after.fuse ? step_embed_tapped
                                         : step_embed);
    if (!atomic_load(&p->failed))
        return DREY_OK;
    if (err)
        *err = p->error;
    return p->error.code;
}

/* ---- Taps ---- */

static void take_tap(model_pass *p, const pass_group *group, pass_tap *tap)
{
    workspace *ws = p->r->ws;
    float *out = ws->tap_rows + p->n_tapped * pass_x_ld(p);
    tap->out = out;
    for (int32_t i = 0; i < tap->n; i++, p->n_tapped++, out += pass_x_ld(p)) {
        int32_t row = tap->rows ? tap->rows[i] : i;
        assert(row >= 0 && row < group->n);
        memcpy(out, ws->x + (group->first_row + row) * pass_x_ld(p), (size_t)x_bytes(p));
    }
}

static void take_taps(model_pass *p, int32_t first, int32_t last)
{
    for (int32_t g = 0; g < p->n_groups && p->n_tap_rows > 0; g++)
        for (int32_t t = 0; t < p->groups[g].n_taps; t++) {
            pass_tap *tap = &p->groups[g].taps[t];
            if (tap->layer >= first && tap->layer <= last)
                take_tap(p, &p->groups[g], tap);
        }
}

void pass_take_taps(model_pass *p)
{
    take_taps(p, p->layer, p->layer);
}

void pass_take_left_taps(model_pass *p)
{
    take_taps(p, p->layer + 1, p->r->layout->shape.n_layers);
}

/* ---- The head ---- */

static void step_final_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const model_layout *l = p->r->layout;
    const workspace *ws = p->r->ws;
    for (int32_t i = from; i < to; i++)
        pass_norm(p->r, ws->y + i * pass_embd_ld(p), ws->x + ws->head_row[i] * pass_x_ld(p),
                  l->last.norm, l->last.bias);
    pass_quantise_rows(p, from, to);
}

static void step_take_normed(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    pass_quantise_rows(p, from, to);
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
        const float *x = r->ws->x + r->ws->head_row[i] * pass_x_ld(p);
        for (int64_t j = 0; j < shape_width(&r->layout->shape); j++) {
            uint32_t bits;
            memcpy(&bits, &x[j], sizeof bits);
            bits &= 0x7fffffff;
            most = bits > most ? bits : most;
        }
    }
    if (most >= 0x7f800000)
        FAIL(err, DREY_ERR_FORMAT,
             "%s: the numbers after the last layer are not finite: the file is damaged, fetch it "
             "again",
             SHOWN_PATH(gguf_shard_path(r->weights->file, 0)));
    return DREY_OK;
}

drey_status pass_take_head(model_pass *p, drey_error *err)
{
    p->n_rows = list_head_rows(p);
    assert(p->n_rows == p->n_logits);
    return check_finite(p, err);
}

void pass_norm_head(model_pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    pass_set_source(p, p->r->ws->y, pass_embd_ld(p), s->n_embd, &(weight *){p->r->layout->head}, 1);
    pass_each_row(p, s->streams.n > 0 ? step_take_normed : step_final_norm);
}

static void add_head_bias(const model_layout *l, const int64_t *ids, float *logits, int64_t n)
{
    int64_t n_head = l->head->form.n_rows;
    for (int64_t i = 0; i < n; i++) {
        int64_t id = ids ? ids[i] : i < n_head ? i : l->table->id[i - n_head];
        if (id >= 0)
            logits[i] += l->head_bias[id];
    }
}

void pass_finish(const runner *r, const int64_t *ids, float *logits, int64_t n)
{
    const model_shape *s = &r->layout->shape;
    pass_scale(logits, s->scale.logit, n);
    if (r->layout->head_bias)
        add_head_bias(r->layout, ids, logits, n);
    if (s->cap.logit > 0)
        r->kernels->softcap(logits, n, s->cap.logit);
}

static void step_finish(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const runner *r = p->r;
    for (int32_t i = from; i < to; i++)
        pass_finish(r, NULL, r->ws->logits + i * pass_logits_stride(r), r->layout->n_logits);
}

void pass_finish_logits(model_pass *p)
{
    const model_shape *s = &p->r->layout->shape;
    if (s->scale.logit != 1.0f || s->cap.logit > 0 || p->r->layout->head_bias)
        pass_each_row(p, step_finish);
}
