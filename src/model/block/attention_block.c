/* Attention of a row to the rows before it, with their keys and values: see block.h. */
#include <string.h>

#include "base/fmath.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "state/kv.h"

/* ---- Tensors ---- */

static drey_status bind_qkv(binder *b, attention_tensors *t)
{
    const model_shape *s = &b->layout->shape;
    const attention_shape *a = layer_attention(s, b->layer);
    int64_t n_q = attention_queries(a), n_k = attention_keys(a), n_v = attention_values(a);
    int64_t k = shape_is_eagle(s) ? 2 * s->n_embd : s->n_embd;
    if (shape_has_form(s, FORM_GATED_IN_Q) && a->v_dim != a->head_dim)
        FAIL(b->err, DREY_ERR_UNSUPPORTED,
             "values have %d numbers a head, and queries with their gates %d; drey computes such "
             "models where these are equal",
             a->v_dim, a->head_dim);
    if (shape_has_form(s, FORM_GATED_IN_Q))
        n_q *= 2;
    int64_t all = n_q + n_k + n_v;
    static const char whole[] = "attn_qkv.weight";
    if (s->layer[b->layer].kv_before > 0)
        return bind_matrix(b, "attn_q.weight", n_q, k, &t->q);
    if (!binder_has(b, whole)) {
        TRY(bind_matrix(b, "attn_q.weight", n_q, k, &t->q));
        TRY(bind_matrix(b, "attn_k.weight", n_k, k, &t->k));
        if (shape_has_form(s, FORM_UNIT_VALUES) && !binder_has(b, "attn_v.weight"))
            return DREY_OK;
        return bind_matrix(b, "attn_v.weight", n_v, k, &t->v);
    }
    TRY(bind_rows(b, whole, all, 0, n_q, k, "attn_q.weight", &t->q));
    TRY(bind_rows(b, whole, all, n_q, n_k, k, "attn_k.weight", &t->k));
    return bind_rows(b, whole, all, n_q + n_k, n_v, k, "attn_v.weight", &t->v);
}

static drey_status bind_qkv_bias(binder *b, attention_tensors *t)
{
    const attention_shape *a = layer_attention(&b->layout->shape, b->layer);
    int64_t n_q = attention_queries(a), n_k = attention_keys(a), n_v = attention_values(a);
    if (!binder_has(b, "attn_qkv.weight")) {
        TRY(bind_vector_if(b, "attn_q.bias", n_q, &t->q_bias));
        TRY(bind_vector_if(b, "attn_k.bias", n_k, &t->k_bias));
        return bind_vector_if(b, "attn_v.bias", n_v, &t->v_bias);
    }
    TRY(bind_vector_if(b, "attn_qkv.bias", n_q + n_k + n_v, &t->q_bias));
    t->k_bias = t->q_bias && b->arena ? t->q_bias + n_q : NULL;
    t->v_bias = t->q_bias && b->arena ? t->k_bias + n_k : NULL;
    return DREY_OK;
}

/* Binds the norm of what Q, K and V read; a layer after a target norms its token's embedding as
 * well. */
static drey_status bind_norm(binder *b, attention_tensors *t)
{
    const model_shape *s = &b->layout->shape;
    const bool old = shape_is_eagle(s) && binder_has(b, "hidden_norm.weight");
    const char *name = old ? "hidden_norm.weight" : "attn_norm_2.weight";
    if (s->arch->norms_sums || shape_has_form(s, FORM_NORMS_AFTER) || s->streams.n > 0)
        return DREY_OK;
    if (!shape_is_eagle(s))
        return block_bind_norm(b, "attn_norm", &t->norm, &t->norm_bias);
    TRY(bind_vector(b, "attn_norm.weight", s->n_embd, &t->token_norm));
    return bind_vector(b, name, s->n_embd, &t->norm);
}

/* The biases of a layer's buckets, and their table by distance, which is filled later; of layers
 * without buckets those of the first one. */
static drey_status bind_buckets(binder *b, attention_tensors *t)
{
    static const char role[] = "attn_rel_b.weight";
    const model_shape *s = &b->layout->shape;
    const bool encodes = shape_encodes(s);
    const int32_t n_heads = layer_attention(s, b->layer)->n_heads;
    const int32_t n_after = encodes ? LAYOUT_BUCKETS_END : 0, ld = n_after + LAYOUT_BUCKETS_END + 1;
    if (s->encoder.n_buckets == 0)
        return DREY_OK;
    if (!binder_has(b, role)) {
        if (b->layer == 0)
            FAIL(b->err, DREY_ERR_FORMAT,
                 "tensor %s is missing, which has the biases of relative positions; convert the "
                 "model again",
                 binder_name(b, (char[64]){0}, role));
        if (b->arena)
            t->positions.bias = b->layout->layer[0].attention.positions.bias;
        return DREY_OK;
    }
    TRY(bind_vectors(b, role, n_heads, s->encoder.n_buckets, &t->positions.buckets));
    bind_room(b, (int64_t)n_heads * ld, &t->positions.by_distance);
    t->positions.bias = (attend_bias){.of = t->positions.by_distance,
                                      .ld = ld,
                                      .n_after = n_after,
                                      .n_before = LAYOUT_BUCKETS_END};
    return DREY_OK;
}

/* Values have a factor, and so what attention adds. */
static drey_status scale_values(const binder *b, attention_tensors *t)
{
    float scale = 1;
    TRY(binder_number_if(b, "attention.value_scale", &scale));
    t->added.scale *= scale != 0 ? scale : 1;
    return DREY_OK;
}

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    attention_tensors *t = &y->attention;
    const attention_shape *a = layer_attention(s, b->layer);
    const bool halves = s->encoder.n_layers > 0;
    TRY(bind_qkv(b, t));
    TRY(block_bind_gate(b, t));
    TRY(bind_matrix(b, halves ? "attn_o.weight" : "attn_output.weight", s->n_embd, attention_out(a),
                    &t->o));
    TRY(bind_qkv_bias(b, t));
    TRY(bind_norm(b, t));
    TRY(block_bind_head_norms(b, t));
    TRY(bind_buckets(b, t));
    if (s->arch->sinks || binder_has(b, "attn_sinks.weight"))
        TRY(bind_vector(b, "attn_sinks.weight", a->n_heads, &t->positions.sinks));
    TRY(bind_vector_if(b, "attn_output.bias", s->n_embd, &t->added.bias));
    if (halves)
        TRY(bind_vector_if(b, "attn_o.bias", s->n_embd, &t->added.bias));
    if (s->arch->post_norms)
        TRY(bind_vector(b, "post_attention_norm.weight", s->n_embd, &t->added.norm));
    TRY(block_bind_sums(b, "attn_norm", &t->added));
    return s->arch->keys & KEYS_VALUE_SCALE ? scale_values(b, t) : DREY_OK;
}

/* ---- Steps ---- */

static void attn_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                      int32_t thread)
{
    (void)thread;
    block_norm(p, layer_of(p, s)->attention.norm, layer_of(p, s)->attention.norm_bias, from, to);
}

/* The norm of a layer of which another block reads it as well. */
static void shared_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                        int32_t thread)
{
    (void)thread;
    const attention_tensors *y = &layer_of(p, s)->attention;
    const workspace_buffer *b = &p->r->ws->buffer[BUFFER_WIDE];
    for (int32_t i = from; i < to; i++)
        pass_norm(p->r, (float *)b->at + i * b->ld, p->r->ws->x + i * pass_embd_ld(p), y->norm,
                  y->norm_bias);
}

/* [norm(e); norm(x)] of rows whose tokens' embeddings are in `wide`. */
static void wide_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                      int32_t thread)
{
    (void)thread;
    const model_shape *shape = &p->r->layout->shape;
    const attention_tensors *y = &layer_of(p, s)->attention;
    const workspace_buffer *b = &p->r->ws->buffer[BUFFER_WIDE];
    for (int32_t i = from; i < to; i++) {
        float *x = p->r->ws->x + i * pass_embd_ld(p), *wide = (float *)b->at + i * b->ld;
        pass_norm(p->r, wide, wide, y->token_norm, NULL);
        pass_norm(p->r, wide + shape->n_embd, x, y->norm, y->norm_bias);
        if (shape->taps.normed)
            memcpy(x, wide + shape->n_embd, (size_t)shape->n_embd * sizeof *x);
    }
}

/* ---- Attention ---- */

static void rotate(const model_pass *p, const attention_shape *a, float *x, int32_t row,
                   int32_t n_heads)
{
    const model_shape *s = &p->r->layout->shape;
    if (a->rope == ROPE_OF_NONE)
        return;
    const rope_shape *rope = &s->rope[a->rope];
    const float *angles = p->r->ws->rope + (int64_t)row * s->n_angles + rope->first;
    p->r->kernels->rope(x, angles, n_heads, a->head_dim, rope->n_rot / 2,
                        s->arch->rope == ROPE_HALVES);
}

float attend_temperature(const model_shape *s, const attention_shape *a, int32_t position)
{
    if (s->temperature.scale == 0 || (s->temperature.still_alone && a->rope != ROPE_OF_NONE))
        return 1;
    const int32_t lengths = (position + s->temperature.after) / s->temperature.length;
    return (float)(1 + (double)s->temperature.scale * log_f64(1.0 + lengths));
}

void block_store_heads(const model_pass *p, const program_step *step, const kv_store *kv,
                       int32_t layer, int32_t i, int32_t slot, void *scratch)
{
    const store_shape *s = &kv->store.shape;
    const float *k = block_row(p, step, ATTEND_K, i), *v = block_row(p, step, ATTEND_V, i);
    for (int32_t h = 0; h < s->n_heads; h++, k += s->k_dim, v += s->v_dim) {
        kv_store_key(p->r->kernels, s->format, kv_at(kv, KV_KEYS, layer, h), slot, k, s->k_dim,
                     scratch);
        if (!s->latent)
            kv_store_value(p->r->kernels, s->format, kv_at(kv, KV_VALUES, layer, h), slot, v,
                           s->v_dim, scratch);
    }
}

static void norm_heads(const model_pass *p, const program_step *at, float *q, float *k)
{
    const attention_tensors *y = &layer_of(p, at)->attention;
    const attention_shape *a = layer_attention(&p->r->layout->shape, at->layer);
    block_norm_heads(p, y, q, y->head_norm.q, a->n_heads, a->head_dim);
    block_norm_heads(p, y, k, y->head_norm.k, a->n_heads_kv, a->head_dim);
}

/* Values that are what the keys were, and their norm. */
static void make_values(const model_pass *p, const program_step *at, const float *k, float *v)
{
    const attention_shape *a = layer_attention(&p->r->layout->shape, at->layer);
    const attention_tensors *y = &layer_of(p, at)->attention;
    if (!y->v)
        memcpy(v, k, (size_t)attention_values(a) * sizeof *v);
    block_norm_heads(p, y, v, y->head_norm.v, a->n_heads_kv, a->v_dim);
}

/* The same of a row whose keys and values another layer has stored. */
static void make_queries(model_pass *p, const program_step *at, int32_t i)
{
    const attention_shape *a = layer_attention(&p->r->layout->shape, at->layer);
    const attention_tensors *y = &layer_of(p, at)->attention;
    float *q = block_row(p, at, ATTEND_Q, i);
    block_norm_heads(p, y, q, y->head_norm.q, a->n_heads, a->head_dim);
    rotate(p, a, q, i, a->n_heads);
}

/* Biases, norms and rotation; keys and values go to their slots of the cache. */
static void store_row(model_pass *p, const program_step *at, int32_t i, void *scratch)
{
    const model_shape *s = &p->r->layout->shape;
    const kernel_table *kernels = p->r->kernels;
    const attention_shape *a = layer_attention(s, at->layer);
    const attention_tensors *y = &layer_of(p, at)->attention;
    workspace *ws = p->r->ws;
    const layer_place place = layer_of(p, at)->kv;
    const kv_store *kv = kv_in(p->groups[ws->group[i]].cache, place.store);
    float *q = block_row(p, at, ATTEND_Q, i), *k = block_row(p, at, ATTEND_K, i),
          *v = block_row(p, at, ATTEND_V, i);
    if (y->q_bias)
        kernels->add(q, y->q_bias, attention_queries(a));
    if (y->k_bias)
        kernels->add(k, y->k_bias, attention_keys(a));
    if (y->v_bias)
        kernels->add(v, y->v_bias, attention_values(a));
    if (y->head_norm.v)
        make_values(p, at, k, v);
    if (!y->head_norm.rotated)
        norm_heads(p, at, q, k);
    rotate(p, a, q, i, a->n_heads);
    pass_scale(q, attend_temperature(s, a, ws->position[i]), attention_queries(a));
    rotate(p, a, k, i, a->n_heads_kv);
    if (y->head_norm.rotated)
        norm_heads(p, at, q, k);
    block_store_heads(p, at, kv, shape_encodes(s) ? 0 : place.index, i, ws->slot[i], scratch);
}

static void store_rows(model_pass *p, const program_step *s, int32_t from, int32_t to,
                       int32_t thread)
{
    for (int32_t i = from; i < to; i++)
        store_row(p, s, i, attend_scratch(p, s, thread));
}

static void make_rows(model_pass *p, const program_step *s, int32_t from, int32_t to,
                      int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        make_queries(p, s, i);
}

drey_status attend_before(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    return block_attend(p, false, err);
}

static void add(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, &layer_of(p, s)->attention.added, from, to);
}

/* The norm in front, and what the products after it read. */
static void write_norm(program_writer *w)
{
    const layer_layout *y = &w->layout->layer[w->layer];
    const model_shape *s = &w->layout->shape;
    const bool wide = y->attention.token_norm,
               shared = y->ffn.parallel || shape_has_form(s, FORM_BESIDE);
    if (s->streams.n == 0)
        write_rows(w, wide ? wide_norm : shared ? shared_norm : attn_norm);
    write_reads(w, wide || shared ? BUFFER_WIDE : BUFFER_Y, wide ? 2 * s->n_embd : s->n_embd);
}

static void write(program_writer *w)
{
    const attention_tensors *y = &w->layout->layer[w->layer].attention;
    const model_shape *s = &w->layout->shape;
    const bool in_q = shape_has_form(s, FORM_GATED_IN_Q);
    write_norm(w);
    write_product(w,
                  (written_product[]){{y->q, in_q ? ATTEND_GATE : ATTEND_Q},
                                      {y->k, ATTEND_K},
                                      {y->v, ATTEND_V},
                                      {y->gate, ATTEND_GATE}},
                  4);
    if (in_q)
        write_rows(w, block_take_queries);
    write_rows(w, y->k ? store_rows : make_rows);
    write_mix(w, attend_before);
    if (in_q || y->gate)
        write_rows(w, block_gate_attended);
    write_reads(w, ATTEND_OUT, attention_out(layer_attention(s, w->layer)));
    write_product(w, &(written_product){y->o, BUFFER_Y}, 1);
    write_rows(w, add);
}

const block_class attention_block = {
    .name = "attention", .bind = bind, .write = write, .needs = attend_needs, .attends = true};
