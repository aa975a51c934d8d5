/* Hyper connections: a residual stream of n parts of D numbers each, W = n D, and gates that make a
 * block's input of them: see block.h. They stand for a layer's norms.
 *
 *   m   = norm(x)                              each part by itself
 *   g   = sigmoid(Up silu(Down m / n))         [W]
 *   y   = mean over the parts of g * m         [D], which the block reads
 *   x_s = x_s + (what the block gives) * 2 sigmoid((Inject m)_s / n)
 *
 * The last line is done where the block adds (block_add). Between the two the products of Inject
 * are in BUFFER_WIDE. In front of the head the same makes y of what comes out of the last layer. */
#include "base/fmath.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"

#include <stdio.h>

enum {
    HYPER_NORMED = BUFFER_OWN, /* [B][W]: m */
    HYPER_LOW,                 /* [B][rank] */
    HYPER_GATES                /* [B][W] */
};

static void needs(buffer_needs *n)
{
    const model_shape *s = n->shape;
    need_rows(n, HYPER_NORMED, n->n_rows, shape_width(s));
    need_rows(n, HYPER_LOW, n->n_rows, s->streams.rank);
    need_rows(n, HYPER_GATES, n->n_rows, shape_width(s));
    need_acts(n, n->n_rows, shape_width(s), 1);
}

/* ---- Tensors ---- */

drey_status block_bind_hyper(binder *b, const char *name, hyper_tensors *t)
{
    const model_shape *s = &b->layout->shape;
    const int64_t w = shape_width(s), rank = s->streams.rank;
    const bool of_layer = b->layer < s->n_layers;
    char role[64], full[64];
    const struct {
        const char *what;
        int64_t rows, k;
        weight **out;
    } matrices[] = {{"down", rank, w, &t->down},
                    {"inject", s->streams.n, w, &t->inject},
                    {"up", w, rank, &t->up}};
    for (int i = 0; i < 3; i++) {
        if (matrices[i].out == &t->inject && !of_layer)
            continue;
        snprintf(role, sizeof role, "%s_%s.weight", name, matrices[i].what);
        if (of_layer)
            TRY(bind_matrix(b, role, matrices[i].rows, matrices[i].k, matrices[i].out));
        else
            TRY(bind_whole(b, role, matrices[i].k, matrices[i].rows, matrices[i].out));
    }
    snprintf(role, sizeof role, "%s_norm.weight", name);
    return bind_whole_vectors(b, of_layer ? binder_name(b, full, role) : role, w, 1, &t->norm);
}

static drey_status bind(binder *b, layer_layout *y)
{
    return block_bind_hyper(b, "hc_attn", &y->hyper[0]);
}

static drey_status bind_ffn(binder *b, layer_layout *y)
{
    return block_bind_hyper(b, "hc_ffn", &y->hyper[1]);
}

/* ---- Steps ---- */

/* Norms row `from` of x as row `to` of m, each part by itself. */
static void norm_row(const model_pass *p, const program_step *s, const float *norm, int32_t from,
                     int32_t to)
{
    const model_shape *shape = &p->r->layout->shape;
    const float *x = p->r->ws->x + from * pass_x_ld(p);
    float *m = block_row(p, s, HYPER_NORMED, to);
    for (int64_t at = 0; at < shape_width(shape); at += shape->n_embd)
        p->r->kernels->rmsnorm(m + at, x + at, norm + at, shape->n_embd, shape->norm_eps);
}

static void norm(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        norm_row(p, s, layer_of(p, s)->hyper[0].norm, i, i);
}

static void norm_ffn(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        norm_row(p, s, layer_of(p, s)->hyper[1].norm, i, i);
}

static void activate(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const stream_shape *streams = &p->r->layout->shape.streams;
    for (int32_t i = from; i < to; i++) {
        float *low = block_row(p, s, HYPER_LOW, i);
        pass_scale(low, 1.0f / (float)streams->n, streams->rank);
        p->r->kernels->gate(low, low, low, streams->rank);
    }
}

/* y = mean of the gated parts, added up in their order. */
static void mean(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const model_shape *shape = &p->r->layout->shape;
    const int64_t n = shape->n_embd;
    for (int32_t i = from; i < to; i++) {
        float *m = block_row(p, s, HYPER_NORMED, i), *y = p->r->ws->y + i * pass_embd_ld(p);
        p->r->kernels->gate(m, m, block_row(p, s, HYPER_GATES, i), shape_width(shape));
        for (int64_t j = 0; j < n; j++)
            y[j] = m[j];
        for (int32_t part = 1; part < shape->streams.n; part++)
            p->r->kernels->add(y, m + part * n, n);
        pass_scale(y, 1.0f / (float)shape->streams.n, n);
    }
}

void block_add_to_parts(const model_pass *p, int32_t from, int32_t to)
{
    const model_shape *s = &p->r->layout->shape;
    const workspace_buffer *shares = &p->r->ws->buffer[BUFFER_WIDE];
    const int64_t n = s->n_embd;
    for (int32_t i = from; i < to; i++) {
        const float *inject = (const float *)shares->at + i * shares->ld;
        const float *y = p->r->ws->y + i * pass_embd_ld(p);
        float *x = p->r->ws->x + i * pass_x_ld(p);
        for (int32_t part = 0; part < s->streams.n; part++, x += n) {
            const float share = 2 / (1 + exp_f32(-inject[part] / (float)s->streams.n));
            for (int64_t j = 0; j < n; j++)
                x[j] += share * y[j];
        }
    }
}

/* The steps after m is there. */
static void write_gates(program_writer *w, const hyper_tensors *t)
{
    const model_shape *s = &w->layout->shape;
    write_reads(w, HYPER_NORMED, shape_width(s));
    write_product(w, (written_product[]){{t->down, HYPER_LOW}, {t->inject, BUFFER_WIDE}}, 2);
    write_rows(w, activate);
    write_reads(w, HYPER_LOW, s->streams.rank);
    write_product(w, &(written_product){t->up, HYPER_GATES}, 1);
    write_rows(w, mean);
}

static void write(program_writer *w)
{
    write_rows(w, norm);
    write_gates(w, &w->layout->layer[w->layer].hyper[0]);
}

static void write_ffn(program_writer *w)
{
    write_rows(w, norm_ffn);
    write_gates(w, &w->layout->layer[w->layer].hyper[1]);
}

/* ---- In front of the head ---- */

static void norm_head(model_pass *p, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        norm_row(p, p->walk.step, p->r->layout->last.hyper.norm,
                 p->n_logits > 0 ? p->r->ws->head_row[i] : i, i);
}

/* A pass without logits has the products all the same, because their matrices are in its order. */
static drey_status take_head(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    if (p->n_logits > 0)
        TRY(pass_take_head(p, err));
    pass_each_row(p, norm_head);
    return DREY_OK;
}

void write_hyper_head(program_writer *w)
{
    write_as(w, &hyper_ffn_block);
    write_mix(w, take_head);
    write_gates(w, &w->layout->last.hyper);
}

const block_class hyper_block = {
    .name = "hyper connection", .bind = bind, .write = write, .needs = needs};
const block_class hyper_ffn_block = {
    .name = "hyper connection", .bind = bind_ffn, .write = write_ffn, .needs = needs};

/* ---- Layers ---- */

static const block_class *const *blocks_of(const model_shape *s, int32_t layer)
{
    static const block_class *const blocks[2][2][6] = {
        {{&ngram_block, &hyper_block, &delta_block, &hyper_ffn_block, &feed_forward_block},
         {&ngram_block, &hyper_block, &delta_block, &hyper_ffn_block, &experts_block}},
        {{&ngram_block, &hyper_block, &attention_block, &hyper_ffn_block, &feed_forward_block},
         {&ngram_block, &hyper_block, &attention_block, &hyper_ffn_block, &experts_block}}};
    const int32_t own = layer - s->first_layer;
    return blocks[layer_attention(s, own) != NULL][layer_has_experts(s, own)] +
           !layer_has_ngrams(s, own);
}

const arch_layers hyper_layers = {.blocks = blocks_of, .states = true, .rows = ngram_rows};
