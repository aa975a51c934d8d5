/* The feed-forward part of a layer that is a mixture of experts.
 *
 *   m = norm(x)                     w, chosen = the router's choice for each row (router.h)
 *   y = sum over the chosen experts e, by rising number, of
 *         w_e (Down_e act(Gate_e m + bias, Up_e m + bias) + bias), biases where there are some,
 *       + sigmoid(s . m) * (the shared expert's), where there is one
 *
 * Latent experts read Latent_down m in place of m, and Latent_up makes a row of their sum, before
 * the shared expert's is added.
 *
 * A row's sum has one order and one place, step_sum: neither slots nor waves, other rows or threads
 * can show in it. Experts are multiplied with in waves and batches (weights/experts.h):
 *
 *   router --choose--> [shared] --> bring a wave --> up --activate--> down --+--> sum
 *                                       ^           ^------ next batch ------+
 *                                       +---------------- next wave ---------+ */
#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/fmath.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "os/pool.h"
#include "weights/expert_slots.h"
#include "weights/experts.h"
#include "common/num.h"

static const expert_tensors *experts_of(const model_pass *p)
{
    return &p->r->layout->layer[p->layer].experts;
}

static const router_shape *router_of(const model_pass *p)
{
    return &p->r->layout->shape.experts.router;
}

/* ---- Buffers ---- */

/* V is B n_used, a row for each expert that a row takes, sorted by expert. L is D, or the width of
 * latent experts. Gate and up have a batch of them, or a shared expert's rows. */
enum {
    EXPERTS_ROUTER = FFN_OTHERS, /* [B][n_experts]: logits, and then the weights of all */
    EXPERTS_CHOSEN,              /* int32_t [B][n_used] */
    EXPERTS_WEIGHT,              /* float [B][n_used] */
    EXPERTS_PLACE,               /* int32_t [B][n_used]: which of V it is */
    EXPERTS_SHARED,              /* [B][D]: of the shared expert, */
    EXPERTS_SHARED_WEIGHT,       /* float [B]: and what it counts */
    EXPERTS_ROWS,                /* [V][L]: normed rows, and then what their experts make of them */
    EXPERTS_LATENT,              /* [B][L]: inputs of latent experts, and then sums */
    EXPERTS_RUNS,                /* run_list */
    EXPERTS_AT,                  /* int32_t [n_experts]: of a run of a batch, in gate and up */
    EXPERTS_ACTS,                /* void * [n_experts][ACT_KINDS] of a batch: in the pass's acts */
    EXPERTS_PRODUCTS,            /* expert_product [2 n_experts] */
    EXPERTS_WORTH                /* float [n_experts]: of guesses about the next layer */
};

typedef struct run_list {
    int32_t n, n_brought; /* runs of the layer; those of them that are in waves so far */
    expert_run run[];     /* [n_experts] */
} run_list;

/* Rows of a batch: one row's experts always fit. */
static int32_t batch_rows(const model_shape *s, int32_t n_rows)
{
    return max_i32(n_rows, s->experts.router.n_used);
}

static int64_t width_of(const model_shape *s)
{
    return s->experts.n_latent > 0 ? s->experts.n_latent : s->n_embd;
}

static void needs(buffer_needs *n)
{
    const model_shape *s = n->shape;
    const expert_shape *e = &s->experts;
    const int32_t batch = batch_rows(s, n->n_rows), n_ff = max_i32(e->n_ff, e->n_ff_shared);
    const bool shared = e->n_ff_shared > 0;
    const size_t n_experts = (size_t)e->router.n_experts;
    const size_t n_chosen = (size_t)n->n_rows * (size_t)e->router.n_used;
    need_rows(n, FFN_GATE, batch, n_ff);
    need_rows(n, FFN_UP, batch, n_ff);
    need_rows(n, EXPERTS_ROUTER, n->n_rows, e->router.n_experts);
    need_bytes(n, EXPERTS_CHOSEN, n_chosen * sizeof(int32_t));
    need_bytes(n, EXPERTS_WEIGHT, n_chosen * sizeof(float));
    need_bytes(n, EXPERTS_PLACE, n_chosen * sizeof(int32_t));
    need_rows(n, EXPERTS_SHARED, shared ? n->n_rows : 0, s->n_embd);
    need_bytes(n, EXPERTS_SHARED_WEIGHT, shared ? (size_t)n->n_rows * sizeof(float) : 0);
    need_rows(n, EXPERTS_ROWS, (int32_t)n_chosen, width_of(s));
    need_rows(n, EXPERTS_LATENT, e->n_latent > 0 ? n->n_rows : 0, e->n_latent);
    need_bytes(n, EXPERTS_RUNS, sizeof(run_list) + n_experts * sizeof(expert_run));
    need_bytes(n, EXPERTS_AT, n_experts * sizeof(int32_t));
    need_bytes(n, EXPERTS_ACTS, n_experts * ACT_KINDS * sizeof(void *));
    need_bytes(n, EXPERTS_PRODUCTS, 2 * n_experts * sizeof(expert_product));
    need_bytes(n, EXPERTS_WORTH, n_experts * sizeof(float));
    need_acts(n, batch, max_i64(max_i64(n_ff, s->n_embd), e->n_latent),
              min_i32(batch, e->router.n_experts));
}

/* ---- Tensors ---- */

drey_status block_bind_slots(binder *b, layer_layout *y)
{
    static const char *const names[EXPERT_MATRICES] = {"ffn_gate_exps.weight", "ffn_up_exps.weight",
                                                       "ffn_down_exps.weight"};
    const model_shape *s = &b->layout->shape;
    const int64_t n_ff = s->experts.n_ff, width = width_of(s);
    expert_layer *of = b->arena ? &b->layout->experts[b->layer] : NULL;
    const bool fused = binder_has(b, "ffn_gate_up_exps.weight"), gate = block_has_gate(b);
    y->experts.of = of;
    if (of)
        of->n_experts = s->experts.router.n_experts;
    if (fused)
        TRY(bind_experts_of(b, of, EXPERT_GATE, 2, "ffn_gate_up_exps.weight", width, n_ff));
    for (int32_t i = fused  ? EXPERT_DOWN
                     : gate ? EXPERT_GATE
                            : EXPERT_UP;
         i < EXPERT_MATRICES; i++) {
        bool down = i == EXPERT_DOWN;
        TRY(bind_experts_of(b, of, i, 1, names[i], down ? n_ff : width, down ? width : n_ff));
    }
    if (of && !fused && !gate) {
        of->matrix[EXPERT_GATE] = of->matrix[EXPERT_UP];
        of->matrix[EXPERT_GATE].n_groups = 0;
    }
    return DREY_OK;
}

/* Biases of each expert; of some architectures always. */
static drey_status bind_biases(binder *b, expert_tensors *t)
{
    const model_shape *s = &b->layout->shape;
    const int64_t n = s->experts.router.n_experts;
    const struct {
        const char *role;
        int64_t n, rows;
        float **out;
    } biases[] = {{"ffn_gate_inp.bias", n, 1, &t->router_bias},
                  {"ffn_gate_exps.bias", s->experts.n_ff, n, &t->gate_bias},
                  {"ffn_up_exps.bias", s->experts.n_ff, n, &t->up_bias},
                  {"ffn_down_exps.bias", s->n_embd, n, &t->down_bias}};
    for (size_t i = 0; i < sizeof biases / sizeof *biases; i++)
        if (s->arch->experts.biases || binder_has(b, biases[i].role))
            TRY(bind_vectors(b, biases[i].role, biases[i].n, biases[i].rows, biases[i].out));
    return DREY_OK;
}

/* Scales of each expert's products, where the file has them. */
static drey_status bind_scales(binder *b, expert_tensors *t)
{
    const int64_t n = b->layout->shape.experts.router.n_experts;
    const bool fused = binder_has(b, "ffn_gate_up_exps.scale");
    const char *both = "ffn_gate_up_exps.scale";
    TRY(bind_vector_if(b, fused ? both : "ffn_gate_exps.scale", n, &t->gate_scale));
    TRY(bind_vector_if(b, fused ? both : "ffn_up_exps.scale", n, &t->up_scale));
    return bind_vector_if(b, "ffn_down_exps.scale", n, &t->down_scale);
}

/* Binds the part that all rows take: the shared expert, or the layer's feed-forward part. */
static drey_status bind_shared(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const bool dense = shape_has_form(s, FORM_DENSE_BESIDE);
    const int64_t d = s->n_embd, n_ff = s->experts.n_ff_shared;
    if (n_ff == 0 && !dense)
        return DREY_OK;
    if (block_has_gate(b))
        TRY(bind_matrix(b, dense ? "ffn_gate.weight" : "ffn_gate_shexp.weight", n_ff, d,
                        &y->ffn.gate));
    TRY(bind_matrix(b, dense ? "ffn_up.weight" : "ffn_up_shexp.weight", n_ff, d, &y->ffn.up));
    return bind_matrix(b, dense ? "ffn_down.weight" : "ffn_down_shexp.weight", d, n_ff,
                       &y->ffn.down);
}

static drey_status bind_norms(binder *b, expert_tensors *t)
{
    const int64_t d = b->layout->shape.n_embd;
    if (!shape_has_form(&b->layout->shape, FORM_DENSE_BESIDE))
        return DREY_OK;
    TRY(bind_vector(b, "ffn_gate_inp.scale", d, &t->norm.router));
    TRY(bind_vector(b, "pre_ffw_norm_2.weight", d, &t->norm.before));
    TRY(bind_vector(b, "post_ffw_norm_1.weight", d, &t->norm.after_shared));
    return bind_vector(b, "post_ffw_norm_2.weight", d, &t->norm.after);
}

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const int64_t d = s->n_embd, n = s->experts.router.n_experts, n_ff = s->experts.n_ff_shared;
    expert_tensors *t = &y->experts;
    TRY(bind_matrix(b, "ffn_gate_inp.weight", n, d, &t->router));
    if (s->experts.n_latent > 0) {
        TRY(bind_matrix(b, "ffn_latent_down.weight", s->experts.n_latent, d, &t->latent_down));
        TRY(bind_matrix(b, "ffn_latent_up.weight", d, s->experts.n_latent, &t->latent_up));
    }
    TRY(bind_shared(b, y));
    TRY(bind_norms(b, t));
    TRY(bind_vector_if(b, "exp_probs_b.bias", n, &t->choice_bias));
    if (!t->choice_bias)
        TRY(bind_vector_if(b, "exp_probs_b", n, &t->choice_bias));
    TRY(bind_vector_if(b, "ffn_gate_inp_shexp.weight", d, &t->shared_gate));
    TRY(bind_biases(b, t));
    TRY(bind_scales(b, t));
    if (s->arch->keys & KEYS_CLAMPS) {
        TRY(binder_number_if(b, "swiglu_clamp_exp", &t->act.limit));
        TRY(binder_number_if(b, "swiglu_clamp_shexp", &y->ffn.act.limit));
    }
    TRY(block_bind_ffn(b, y));
    if (n_ff > 0 && shape_has_form(s, FORM_MEAN_SHARED))
        y->ffn.added.scale *= 0.5f;
    return DREY_OK;
}

/* ---- Norms of a router, and of experts besides a feed-forward part ---- */

static void norm_for_router(const model_pass *p, const layer_layout *of, int32_t i)
{
    const int64_t n = p->r->layout->shape.n_embd;
    float *y = p->r->ws->y + i * pass_embd_ld(p);
    pass_norm(p->r, y, p->r->ws->x + i * pass_embd_ld(p), of->experts.norm.router, NULL);
    pass_scale(y, 1.0f / sqrtf((float)n), n);
}

static void router_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                        int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        norm_for_router(p, layer_of(p, s), i);
}

static void experts_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                         int32_t thread)
{
    (void)thread;
    block_norm(p, layer_of(p, s)->experts.norm.before, NULL, from, to);
}

/* ---- The choice ---- */

static float sigmoid_of_product(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return (float)(1 / (1 + exp_f64(-sum)));
}

static void step_choose(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const program_step *s = p->walk.step;
    const expert_tensors *e = experts_of(p);
    const router_shape *r = router_of(p);
    int32_t *chosen = mix_buffer(p, EXPERTS_CHOSEN);
    float *counts = mix_buffer(p, EXPERTS_WEIGHT);
    float *shared_weight = mix_buffer(p, EXPERTS_SHARED_WEIGHT);
    for (int32_t i = from; i < to; i++) {
        float *logits = block_row(p, s, EXPERTS_ROUTER, i);
        if (e->router_bias)
            p->r->kernels->add(logits, e->router_bias, r->n_experts);
        if (!router_choose(r, logits, e->choice_bias, chosen + (int64_t)i * r->n_used,
                           counts + (int64_t)i * r->n_used))
            atomic_store(&p->failed, true);
        if (e->shared_gate)
            shared_weight[i] = sigmoid_of_product(p->r->ws->y + i * pass_embd_ld(p), e->shared_gate,
                                                  p->r->layout->shape.n_embd);
    }
}

static void show_route(const model_pass *p)
{
    int32_t n_used = router_of(p)->n_used, *chosen = mix_buffer(p, EXPERTS_CHOSEN);
    float *counts = mix_buffer(p, EXPERTS_WEIGHT);
    for (int32_t i = 0; i < p->n_rows; i++) {
        bool replaced = p->r->route->see(p->r->route->user, p, i, chosen + (int64_t)i * n_used);
        for (int32_t j = 0; j < n_used && replaced; j++)
            counts[(int64_t)i * n_used + j] = 1 / (float)n_used;
    }
}

/* A prompt's experts are used once for all of its rows, and must not evict experts that other texts
 * of the pass are using. */
static bool is_of_prompt(const model_pass *p, int32_t row)
{
    const pass_group *g = &p->groups[p->r->ws->group[row]];
    return pass_is_prompt(g->n, g->n_logits);
}

/* Sorts the rows' choices by expert. */
static void list_runs(model_pass *p)
{
    const router_shape *r = router_of(p);
    const int32_t *chosen = mix_buffer(p, EXPERTS_CHOSEN);
    run_list *list = mix_buffer(p, EXPERTS_RUNS);
    expert_run *run = list->run;
    int32_t n_places = p->n_rows * r->n_used, *place = mix_buffer(p, EXPERTS_PLACE);
    for (int32_t e = 0; e < r->n_experts; e++)
        run[e] = (expert_run){.expert = e, .passing = true};
    for (int32_t i = 0; i < n_places; i++) {
        expert_run *of = &run[chosen[i]];
        of->n++;
        of->passing = of->passing && is_of_prompt(p, i / r->n_used);
    }
    for (int32_t e = 1; e < r->n_experts; e++)
        run[e].first = run[e - 1].first + run[e - 1].n;
    for (int32_t i = 0; i < n_places; i++)
        place[i] = run[chosen[i]].first++;
    list->n = list->n_brought = 0;
    for (int32_t e = 0; e < r->n_experts; e++) {
        expert_run of = run[e];
        of.first -= of.n;
        if (of.n > 0)
            run[list->n++] = of;
    }
}

static void step_gather(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const int32_t *place = mix_buffer(p, EXPERTS_PLACE);
    const workspace_buffer *rows = block_buffer(p, p->walk.step, EXPERTS_ROWS);
    const model_shape *s = &p->r->layout->shape;
    const bool weighed = shape_has_form(s, FORM_WEIGHED_INPUTS);
    const float *all = s->experts.n_latent > 0 ? mix_buffer(p, EXPERTS_LATENT) : p->r->ws->y;
    const int64_t n_used = router_of(p)->n_used, n = width_of(s);
    for (int64_t i = from * n_used; i < to * n_used; i++) {
        float *row = (float *)rows->at + place[i] * rows->ld;
        memcpy(row, all + i / n_used * rows->ld, (size_t)n * sizeof(float));
        if (weighed)
            pass_scale(row, ((float *)mix_buffer(p, EXPERTS_WEIGHT))[i], n);
    }
}

static void bring(model_pass *p)
{
    const workspace_limits *limits = &p->r->ws->limits;
    const int32_t n_rows = limits->max_rows + limits->max_deferred;
    run_list *list = mix_buffer(p, EXPERTS_RUNS);
    list->n_brought +=
        experts_bring(p->r->weights, experts_of(p)->of, list->run + list->n_brought,
                      list->n - list->n_brought, batch_rows(&p->r->layout->shape, n_rows));
}

/* ---- What the next layer will choose ---- */

static void step_guess_norm(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const workspace *ws = p->r->ws;
    const layer_layout *next = &p->r->layout->layer[p->layer + 1];
    for (int32_t i = from; i < to && p->r->layout->shape.streams.n == 0; i++)
        if (next->experts.norm.router)
            norm_for_router(p, next, i);
        else
            pass_norm(p->r, ws->y + i * pass_embd_ld(p), ws->x + i * pass_embd_ld(p),
                      next->ffn.norm, next->ffn.norm_bias);
    pass_quantise_rows(p, from, to);
}

/* The next layer's router, on the rows as they are before this layer's experts; of several parts on
 * what this layer's router was given. What that one was given and has said is no longer needed. */
static void route_next(model_pass *p)
{
    workspace *ws = p->r->ws;
    const expert_tensors *next = &p->r->layout->layer[p->layer + 1].experts;
    weight *router = layout_matrix(p->r->layout, next->router);
    const workspace_buffer *logits = block_buffer(p, p->walk.step, EXPERTS_ROUTER);
    pass_set_source(p, ws->y, pass_embd_ld(p), p->r->layout->shape.n_embd, &router, 1);
    pass_each_row(p, step_guess_norm);
    product_run_aside(p->r->weights, p->r->pool, &(product){router, logits->at, logits->ld},
                      ws->acts, p->n_rows);
}

/* Adds to each expert's worth what row i would make of it; false: it cannot be said. */
static bool add_worth(const model_pass *p, int32_t i, float *worth)
{
    const router_shape *r = router_of(p);
    const expert_tensors *next = &p->r->layout->layer[p->layer + 1].experts;
    float *logits = block_row(p, p->walk.step, EXPERTS_ROUTER, i), counts[ROUTER_MOST];
    int32_t expert[ROUTER_MOST];
    if (next->router_bias)
        p->r->kernels->add(logits, next->router_bias, r->n_experts);
    if (!router_choose(r, logits, next->choice_bias, expert, counts))
        return false;
    for (int32_t j = 0; j < r->n_used; j++)
        worth[expert[j]] += counts[j];
    return true;
}

/* The likeliest experts of the next layer, the most promising first; returns how many. */
static int32_t list_guesses(model_pass *p, int32_t *expert, int32_t most)
{
    const router_shape *r = router_of(p);
    float *worth = mix_buffer(p, EXPERTS_WORTH);
    int32_t n = 0;
    memset(worth, 0, (size_t)r->n_experts * sizeof *worth);
    for (int32_t i = 0; i < p->n_rows; i++)
        if (!add_worth(p, i, worth))
            return 0;
    for (; n < most; n++) {
        int32_t best = 0;
        for (int32_t e = 1; e < r->n_experts; e++)
            if (worth[e] > worth[best])
                best = e;
        if (worth[best] <= 0)
            break;
        worth[best] = 0;
        expert[n] = best;
    }
    return n;
}

/* Has the disk read what the next layer will probably choose, once it has nothing else to do. */
static void guess_next(model_pass *p)
{
    const run_list *list = mix_buffer(p, EXPERTS_RUNS);
    const model_layout *l = p->r->layout;
    int32_t expert[ROUTER_MOST];
    expert_layer *next =
        p->layer + 1 < l->shape.n_layers ? l->layer[p->layer + 1].experts.of : NULL;
    if (!next || next->slots.n_slots == next->n_experts || pass_is_prompt(p->n_rows, p->n_logits) ||
        list->n_brought < list->n || !experts_trust_guesses(p->r->weights))
        return;
    const pass_route *route = p->r->route;
    int32_t n = route && route->guess ? route->guess(route->user, p, expert) : -1;
    if (n == 0)
        return;
    route_next(p); /* also where its time alone counts */
    if (n < 0)
        n = list_guesses(p, expert, router_of(p)->n_used);
    experts_guess(p->r->weights, next, expert, n);
}

static drey_status choose_experts(model_pass *p, drey_error *err)
{
    pass_each_row(p, step_choose);
    if (atomic_load(&p->failed)) {
        const gguf_tensor *t = experts_of(p)->router->form.tensor;
        FAIL(err, DREY_ERR_FORMAT,
             "%s: products with tensor %s are not finite: the file is damaged, fetch it again",
             SHOWN_PATH(gguf_shard_path(p->r->weights->file, t->part)), t->name);
    }
    if (p->r->route)
        show_route(p);
    list_runs(p);
    pass_each_row(p, step_gather);
    bring(p);
    guess_next(p);
    return DREY_OK;
}

/* ---- Products ---- */

static expert_wave *wave_of(const model_pass *p)
{
    return &p->r->weights->experts->wave;
}

/* Makes the next batch ready for its products; false: there is none. */
static bool next_batch(model_pass *p)
{
    const run_list *list = mix_buffer(p, EXPERTS_RUNS);
    int32_t *first = mix_buffer(p, EXPERTS_AT);
    while (!experts_next_batch(p->r->weights)) {
        if (list->n_brought == list->n)
            return false;
        bring(p);
    }
    const expert_wave *v = wave_of(p);
    for (int32_t i = v->from, at = 0; i < v->to; at += v->run[i++].n)
        first[i] = at;
    return true;
}

/* Lays out the activations of the batch's experts, each with its own rows, k numbers in the kinds
 * that p->kinds says. */
static void place_acts(model_pass *p)
{
    void **acts = mix_buffer(p, EXPERTS_ACTS);
    const expert_wave *v = wave_of(p);
    for (int kind = 0; kind < ACT_KINDS; kind++) {
        size_t at = 0, row = act_bytes((act_kind)kind, 1, p->source_k) / TOKEN_TILE;
        for (int32_t i = v->from; i < v->to; i++) {
            acts[i * ACT_KINDS + kind] = (uint8_t *)p->r->ws->acts[kind] + at;
            at += ((size_t)v->run[i].n * row + 63) / 64 * 64;
        }
    }
}

static void quantise_run(const model_pass *p, int32_t i, const float *rows)
{
    void **acts = mix_buffer(p, EXPERTS_ACTS);
    int32_t n = wave_of(p)->run[i].n;
    for (int kind = 0; kind < ACT_KINDS; kind++)
        if (p->kinds[kind])
            p->r->kernels->quantise[kind](acts[i * ACT_KINDS + kind], rows, p->source_ld, 0, n, n,
                                          p->source_k);
}

static void quantise_in(const model_pass *p, int32_t i)
{
    quantise_run(p, i, p->source + wave_of(p)->run[i].first * p->source_ld);
}

/* Adds an expert's row of a bias, where there is one. */
static void add_bias(const model_pass *p, float *x, const float *bias, int32_t expert, int64_t n)
{
    if (bias)
        p->r->kernels->add(x, bias + expert * n, n);
}

/* Multiplies with an expert's scale, where there is one. */
static void scale_by(float *x, const float *scale, int32_t expert, int64_t n)
{
    if (scale)
        pass_scale(x, scale[expert], n);
}

static bool has_gates(const expert_layer *l)
{
    return l->matrix[EXPERT_GATE].n_groups > 0;
}

/* Biases and activation, quantised for Down. */
static void activate(const model_pass *p, int32_t i)
{
    const expert_tensors *e = experts_of(p);
    const bool gated = has_gates(wave_of(p)->layer);
    const int32_t first = ((int32_t *)mix_buffer(p, EXPERTS_AT))[i];
    expert_run run = wave_of(p)->run[i];
    for (int32_t row = first; row < first + run.n; row++) {
        float *gate = block_row(p, p->walk.step, FFN_GATE, row);
        float *up = gated ? block_row(p, p->walk.step, FFN_UP, row) : NULL;
        scale_by(gate, gated ? e->gate_scale : e->up_scale, run.expert, p->source_k);
        add_bias(p, gate, gated ? e->gate_bias : e->up_bias, run.expert, p->source_k);
        if (gated) {
            scale_by(up, e->up_scale, run.expert, p->source_k);
            add_bias(p, up, e->up_bias, run.expert, p->source_k);
        }
        pass_activate(p->r, &e->act, gate, up, p->source_k);
    }
    quantise_run(p, i, block_row(p, p->walk.step, FFN_GATE, first));
}

typedef struct run_job {
    model_pass *p;
    void (*step)(const model_pass *p, int32_t i);
    _Atomic int32_t next;
} run_job;

static void runs_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)thread;
    (void)n_threads;
    run_job *j = arg;
    for (int32_t i; (i = atomic_fetch_add(&j->next, 1)) < wave_of(j->p)->to;)
        j->step(j->p, i);
}

/* A step over the batch's experts, shared among threads where that is worth it. */
static void each_run(model_pass *p, void (*step)(const model_pass *p, int32_t i))
{
    const expert_wave *v = wave_of(p);
    const expert_run *last = &v->run[v->to - 1];
    int64_t rows = ((int32_t *)mix_buffer(p, EXPERTS_AT))[v->to - 1] + last->n;
    run_job job = {.p = p, .step = step, .next = v->from};
    if (rows * p->source_k < p->r->weights->tuning.shared_numbers)
        runs_thread(&job, 0, 1);
    else
        pool_run(p->r->pool, runs_thread, &job);
}

/* Run i of the batch reads these rows. */
static void show_input(const model_pass *p, int32_t i, const weight *matrix, const float *rows)
{
    const pass_inputs *inputs = p->r->inputs;
    const expert_run *run = &wave_of(p)->run[i];
    if (inputs)
        inputs->see(inputs->user, matrix, run->expert, rows, p->source_ld, run->n);
}

/* Adds a product of run i of the batch, into a buffer from a row on. */
static expert_product *add_product(const model_pass *p, expert_product *to, int32_t i,
                                   int32_t matrix, int32_t buffer, int32_t row)
{
    void **acts = (void **)mix_buffer(p, EXPERTS_ACTS) + i * ACT_KINDS;
    experts_product(to, p->r->weights, i, matrix, block_row(p, p->walk.step, buffer, row),
                    block_buffer(p, p->walk.step, buffer)->ld, acts);
    return to + 1;
}

static void begin_products(model_pass *p, const expert_product *end)
{
    expert_product *first = mix_buffer(p, EXPERTS_PRODUCTS);
    product_begin_experts(p->r->weights, first, (int32_t)(end - first));
    p->in_product = true;
}

static void begin_up(model_pass *p)
{
    const expert_wave *v = wave_of(p);
    const expert_matrix *of = v->layer->matrix;
    const int32_t *first = mix_buffer(p, EXPERTS_AT);
    const workspace_buffer *rows = block_buffer(p, p->walk.step, EXPERTS_ROWS);
    const bool gated = has_gates(v->layer);
    expert_product *to = mix_buffer(p, EXPERTS_PRODUCTS);
    pass_set_source(p, rows->at, rows->ld, of[EXPERT_UP].all->form.k,
                    (weight *[]){of[EXPERT_GATE].all, of[EXPERT_UP].all}, 2);
    place_acts(p);
    each_run(p, quantise_in);
    for (int32_t i = v->from; i < v->to; i++) {
        show_input(p, i, of[EXPERT_GATE].all, p->source + v->run[i].first * p->source_ld);
        if (gated)
            to = add_product(p, to, i, EXPERT_GATE, FFN_GATE, first[i]);
        to = add_product(p, to, i, EXPERT_UP, gated ? FFN_UP : FFN_GATE, first[i]);
    }
    begin_products(p, to);
}

static void begin_down(model_pass *p)
{
    const expert_wave *v = wave_of(p);
    weight *down = v->layer->matrix[EXPERT_DOWN].all;
    const workspace_buffer *gate = block_buffer(p, p->walk.step, FFN_GATE);
    const int32_t *first = mix_buffer(p, EXPERTS_AT);
    expert_product *to = mix_buffer(p, EXPERTS_PRODUCTS);
    pass_set_source(p, gate->at, gate->ld, down->form.k, &down, 1);
    place_acts(p);
    each_run(p, activate);
    for (int32_t i = v->from; i < v->to; i++) {
        show_input(p, i, down, p->source + first[i] * p->source_ld);
        to = add_product(p, to, i, EXPERT_DOWN, EXPERTS_ROWS, v->run[i].first);
    }
    begin_products(p, to);
}

/* ---- The sum ---- */

static void add_weighted(float *y, const float *x, float factor, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        y[i] += factor * x[i];
}

static void step_sum(model_pass *p, const program_step *at, int32_t from, int32_t to,
                     int32_t thread)
{
    (void)thread;
    const int32_t *place = block_buffer(p, at, EXPERTS_PLACE)->at;
    const int32_t *chosen = block_buffer(p, at, EXPERTS_CHOSEN)->at;
    const float *counts = block_buffer(p, at, EXPERTS_WEIGHT)->at;
    const float *shared_weight = block_buffer(p, at, EXPERTS_SHARED_WEIGHT)->at;
    int32_t n_used = router_of(p)->n_used;
    const int64_t n = width_of(&p->r->layout->shape), ld = pass_embd_ld(p);
    const expert_tensors *e = experts_of(p);
    const bool shared = p->r->layout->layer[p->layer].ffn.up && !e->latent_up;
    const bool weighed = shape_has_form(&p->r->layout->shape, FORM_WEIGHED_INPUTS);
    for (int32_t i = from; i < to; i++) {
        float *y = e->latent_up ? block_row(p, at, EXPERTS_LATENT, i) : p->r->ws->y + i * ld;
        memset(y, 0, (size_t)n * sizeof *y);
        for (int64_t j = (int64_t)i * n_used; j < (int64_t)(i + 1) * n_used; j++) {
            float *of = block_row(p, at, EXPERTS_ROWS, place[j]);
            scale_by(of, e->down_scale, chosen[j], n);
            add_bias(p, of, e->down_bias, chosen[j], n);
            add_weighted(y, of, weighed ? 1.0f : counts[j], n);
        }
        if (e->norm.after) {
            pass_norm(p->r, y, y, e->norm.after, NULL);
            pass_norm(p->r, block_row(p, at, EXPERTS_SHARED, i),
                      block_row(p, at, EXPERTS_SHARED, i), e->norm.after_shared, NULL);
        }
        if (shared)
            add_weighted(y, block_row(p, at, EXPERTS_SHARED, i),
                         e->shared_gate ? shared_weight[i] : 1.0f, n);
    }
}

/* Adds the shared expert's to what Latent_up has made. */
static void step_shared(model_pass *p, const program_step *at, int32_t from, int32_t to,
                        int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        p->r->kernels->add(p->r->ws->y + i * pass_embd_ld(p), block_row(p, at, EXPERTS_SHARED, i),
                           p->r->layout->shape.n_embd);
}

/* ---- Steps ---- */

/* The router has its logits. The shared expert is computed while the others are read. */
static drey_status choose(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    return choose_experts(p, err);
}

/* The next batch's gates and ups; after the last one its downs are left out. */
static drey_status up(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    (void)err;
    if (next_batch(p))
        begin_up(p);
    else
        p->at++;
    return DREY_OK;
}

/* The batch's downs; then back to `up`, the step before. */
static drey_status down(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    (void)err;
    begin_down(p);
    p->at -= 2;
    return DREY_OK;
}

static void write_shared(program_writer *w, const feed_forward_tensors *shared)
{
    write_columns(w, block_activate);
    write_reads(w, FFN_GATE, shared->down->form.k);
    write_product(w, &(written_product){shared->down, EXPERTS_SHARED}, 1);
}

/* The router, then what all rows take, which is computed while the experts are read. */
static void write_beside(program_writer *w)
{
    const feed_forward_tensors *dense = &w->layout->layer[w->layer].ffn;
    const expert_tensors *y = &w->layout->layer[w->layer].experts;
    write_rows(w, router_norm);
    write_reads(w, BUFFER_Y, w->layout->shape.n_embd);
    write_product(w, &(written_product){y->router, EXPERTS_ROUTER}, 1);
    write_rows(w, experts_norm);
    write_mix(w, choose);
    block_write_ffn_norm(w);
    write_product(w, (written_product[]){{dense->gate, FFN_GATE}, {dense->up, FFN_UP}}, 2);
    write_shared(w, dense);
}

static void write_one_input(program_writer *w)
{
    const feed_forward_tensors *shared = &w->layout->layer[w->layer].ffn;
    const expert_tensors *y = &w->layout->layer[w->layer].experts;
    block_write_ffn_norm(w);
    write_product(w,
                  (written_product[]){{y->router, EXPERTS_ROUTER},
                                      {y->latent_down, EXPERTS_LATENT},
                                      {shared->gate, FFN_GATE},
                                      {shared->up, shared->gate ? FFN_UP : FFN_GATE}},
                  4);
    write_mix(w, choose);
    if (shared->up)
        write_shared(w, shared);
}

static void write(program_writer *w)
{
    const expert_tensors *y = &w->layout->layer[w->layer].experts;
    if (w->layout->layer[w->layer].experts.norm.router)
        write_beside(w);
    else
        write_one_input(w);
    write_mix(w, up);
    write_mix(w, down);
    write_rows(w, step_sum);
    if (y->latent_up) {
        write_reads(w, EXPERTS_LATENT, w->layout->shape.experts.n_latent);
        write_product(w, &(written_product){y->latent_up, BUFFER_Y}, 1);
        if (w->layout->layer[w->layer].ffn.up)
            write_rows(w, step_shared);
    }
    write_rows(w, block_add_ffn);
}

const block_class experts_block = {.name = "experts", .bind = bind, .write = write, .needs = needs};
