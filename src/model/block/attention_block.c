/* Attention of a row to the rows before it, with their keys and values: see block.h. */
#include <string.h>

#include "model/block/block.h"
#include "model/pass_steps.h"
#include "state/kv.h"

static void attn_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                      int32_t thread)
{
    (void)thread;
    block_norm(p, layer_of(p, s)->attn_norm, layer_of(p, s)->attn_norm_bias, from, to);
}

/* [norm(e); norm(x)] of rows whose tokens' embeddings are in `wide`. */
static void wide_norm(model_pass *p, const program_step *s, int32_t from, int32_t to,
                      int32_t thread)
{
    (void)thread;
    const model_shape *shape = &p->r->layout->shape;
    const layer_layout *y = layer_of(p, s);
    for (int32_t i = from; i < to; i++) {
        float *x = p->r->ws->x + i * pass_embd_ld(p),
              *wide = p->r->ws->taps.wide + i * pass_wide_ld(p);
        pass_norm(p->r, wide, wide, y->token_norm, NULL);
        pass_norm(p->r, wide + shape->n_embd, x, y->attn_norm, y->attn_norm_bias);
        if (shape->taps.normed)
            memcpy(x, wide + shape->n_embd, (size_t)shape->n_embd * sizeof *x);
    }
}

/* ---- Attention ---- */

static void norm_heads(const model_pass *p, float *x, const float *norm, int32_t n_heads)
{
    const model_shape *s = &p->r->layout->shape;
    int32_t n = s->arch->wide_norms ? n_heads * s->head_dim : s->head_dim;
    for (int32_t at = 0; norm && at < n_heads * s->head_dim; at += n)
        p->r->kernels->rmsnorm(x + at, x + at, norm, n, s->norm_eps);
}

static void rotate(const model_pass *p, const layer_layout *y, float *x, int32_t row,
                   int32_t n_heads)
{
    const model_shape *s = &p->r->layout->shape;
    if (s->n_rot == 0)
        return;
    const float *angles =
        p->r->ws->rope + ((int64_t)row * s->n_ropes + y->positions.rope) * s->n_rot;
    p->r->kernels->rope(x, angles, n_heads, s->head_dim, s->n_rot / 2,
                        s->arch->rope == ROPE_HALVES);
}

/* A row's keys and values to a slot of a layer, whose first head's are at *keys, *values. */
void block_store_heads(const model_pass *p, const kv_store *kv, size_t at, int32_t i, int32_t slot,
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
static void store_row(model_pass *p, const program_step *at, int32_t i, void *scratch)
{
    const model_shape *s = &p->r->layout->shape;
    const kernel_table *kernels = p->r->kernels;
    const layer_layout *y = layer_of(p, at);
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
    rotate(p, y, q, i, s->n_heads);
    rotate(p, y, k, i, s->n_heads_kv);
    block_store_heads(p, kv, kv_at(kv, shape_encodes(s) ? 0 : at->layer, 0), i, ws->slot[i],
                      scratch);
}

static void store_rows(model_pass *p, const program_step *s, int32_t from, int32_t to,
                       int32_t thread)
{
    for (int32_t i = from; i < to; i++)
        store_row(p, s, i, p->r->ws->attention.scratch[thread]);
}

static drey_status attend_before(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    return block_attend(p, false, err);
}

static void add(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, s, SUM_ATTN, from, to);
}

static void write(program_writer *w)
{
    const layer_layout *y = &w->layout->layer[w->layer];
    const model_shape *s = &w->layout->shape;
    if (y->token_norm) {
        write_rows(w, wide_norm);
        write_reads(w, BUFFER_WIDE, 2 * s->n_embd);
    } else {
        write_rows(w, attn_norm);
        write_reads(w, BUFFER_Y, s->n_embd);
    }
    write_product(w, (written_product[]){{y->q, BUFFER_Q}, {y->k, BUFFER_K}, {y->v, BUFFER_V}}, 3);
    write_rows(w, store_rows);
    write_mix(w, attend_before);
    write_reads(w, BUFFER_ATT, (int64_t)s->n_heads * s->head_dim);
    write_product(w, &(written_product){y->o, BUFFER_Y}, 1);
    write_rows(w, add);
}

const block_class attention_block = {"attention", write};
