/* Latent attention (DeepSeek-V2, 2.1): see block.h. A row keeps one vector that all heads share:
 *
 *   [c; r] = Kv n         c = norm(c), the latent; r is rotated         key [c; r], value c
 *   [q; r] = a head's part of Q n, or of Qb norm(Qa n); r is rotated    query [Kb q; r]
 *   x += O [Vb o of each head]      o = the sum of latents that attention gives for the query
 *
 * Kb and Vb, matrices of each head, stand for those that would make keys and values of c: so the
 * cache has the latent alone, and attention is that of many heads of queries to one of keys. They
 * multiply in one order, whatever the number of rows. Files may have both in one tensor, attn_kv_b,
 * whose part for keys is turned: it is kept as floats. */
#include <string.h>

#include "common/num.h"
#include "kernel/kernel.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "os/pool.h"
#include "state/kv.h"

enum {
    LATENT_Q_A = ATTEND_OTHERS, /* [B][q_rank] */
    LATENT_Q,                   /* [B][H * (n_plain + n_rot)] */
    LATENT_OUT                  /* [B][H * v_dim] */
};

/* Tensors besides those that attention_tensors has: there q is Qa, or Q, and k is Kv. */
typedef struct latent_tensors {
    weight *k_b, *v_b;      /* [H][kv_rank][n_plain], [H][v_dim][kv_rank] */
    float *kv_b;            /* [H][n_plain + v_dim][kv_rank]; NULL: the two are there */
    float *q_norm, *c_norm; /* [q_rank], [kv_rank] */
} latent_tensors;

static const latent_tensors *tensors_of(const model_pass *p, const program_step *s)
{
    return layer_of(p, s)->own;
}

static const attention_shape *shape_of(const model_pass *p, const program_step *s)
{
    return layer_attention(&p->r->layout->shape, s->layer);
}

/* Numbers of a head's queries as they are made. */
static int32_t q_dim(const latent_shape *l)
{
    return l->n_plain + l->n_rot;
}

/* ---- Tensors ---- */

static drey_status bind_queries(binder *b, attention_tensors *t, latent_tensors *own)
{
    const model_shape *s = &b->layout->shape;
    const latent_shape *l = &s->latent;
    const int64_t n_q = (int64_t)layer_attention(s, b->layer)->n_heads * q_dim(l);
    if (l->q_rank == 0)
        return bind_matrix(b, "attn_q.weight", n_q, s->n_embd, &t->q);
    TRY(bind_vector(b, "attn_q_a_norm.weight", l->q_rank, &own->q_norm));
    return bind_matrix(b, "attn_q_a.weight", l->q_rank, s->n_embd, &t->q);
}

/* Binds the matrices of heads, which come after the others that rows are multiplied with. */
static drey_status bind_kv_b(binder *b, latent_tensors *own)
{
    const latent_shape *l = &b->layout->shape.latent;
    const attention_shape *a = layer_attention(&b->layout->shape, b->layer);
    if (binder_has(b, "attn_kv_b.weight") && !binder_has(b, "attn_k_b.weight"))
        return bind_floats(b, "attn_kv_b.weight", l->kv_rank,
                           (int64_t)a->n_heads * (l->n_plain + l->v_dim), &own->kv_b);
    TRY(bind_heads(b, "attn_k_b.weight", a->n_heads, l->kv_rank, l->n_plain, a->head_dim,
                   &own->k_b));
    return bind_heads(b, "attn_v_b.weight", a->n_heads, l->v_dim, l->kv_rank, l->v_dim, &own->v_b);
}

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const latent_shape *l = &s->latent;
    const int32_t n_heads = layer_attention(s, b->layer)->n_heads;
    attention_tensors *t = &y->attention;
    latent_tensors *own = bind_own(b, y, sizeof *own);
    TRY(bind_queries(b, t, own));
    TRY(bind_matrix(b, "attn_kv_a_mqa.weight", l->kv_rank + l->n_rot, s->n_embd, &t->k));
    if (l->q_rank > 0)
        TRY(bind_matrix(b, "attn_q_b.weight", (int64_t)n_heads * q_dim(l), l->q_rank, &t->q_b));
    TRY(bind_kv_b(b, own));
    TRY(bind_matrix(b, "attn_output.weight", s->n_embd, (int64_t)n_heads * l->v_dim, &t->o));
    TRY(bind_vector(b, "attn_kv_a_norm.weight", l->kv_rank, &own->c_norm));
    TRY(block_bind_norm(b, "attn_norm", &t->norm, &t->norm_bias));
    return block_bind_sums(b, "attn_norm", &t->added);
}

static void needs(buffer_needs *n)
{
    const latent_shape *l = &n->shape->latent;
    const int32_t n_rows = ceil_div_i32(n->n_rows, TOKEN_TILE) * TOKEN_TILE;
    int32_t n_heads = 0;
    for (int32_t i = 0; i < n->shape->n_attentions; i++)
        n_heads = max_i32(n_heads, n->shape->attention[i].n_heads);
    attend_needs(n);
    if (l->q_rank > 0)
        need_rows(n, LATENT_Q_A, n->n_rows, l->q_rank);
    need_rows(n, LATENT_Q, n->n_rows, (int64_t)n_heads * q_dim(l));
    need_rows(n, LATENT_OUT, n->n_rows, (int64_t)n_heads * l->v_dim);
    need_acts(n, n_rows * n_heads, max_i32(l->n_plain, l->kv_rank), n_heads);
    need_acts(n, n->n_rows, max_i64(l->q_rank, (int64_t)n_heads * l->v_dim), 1);
}

/* ---- Steps ---- */

static void norm(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_norm(p, layer_of(p, s)->attention.norm, layer_of(p, s)->attention.norm_bias, from, to);
}

static void norm_q(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const model_shape *shape = &p->r->layout->shape;
    for (int32_t i = from; i < to; i++) {
        float *q = block_row(p, s, LATENT_Q_A, i);
        p->r->kernels->rmsnorm(q, q, tensors_of(p, s)->q_norm, shape->latent.q_rank,
                               shape->norm_eps);
    }
}

static void rotate(const model_pass *p, const attention_shape *a, float *x, int32_t row,
                   int32_t n_heads, int32_t head_dim)
{
    const model_shape *s = &p->r->layout->shape;
    if (a->rope == ROPE_OF_NONE)
        return;
    const rope_shape *rope = &s->rope[a->rope];
    p->r->kernels->rope(x, p->r->ws->rope + (int64_t)row * s->n_angles + rope->first, n_heads,
                        head_dim, rope->n_rot / 2, s->arch->rope == ROPE_HALVES);
}

/* The latent goes to its slot; the rotated part of queries to its place after what Kb makes. */
static void store_row(const model_pass *p, const program_step *at, int32_t i, void *scratch)
{
    const model_shape *s = &p->r->layout->shape;
    const latent_shape *l = &s->latent;
    const attention_shape *a = shape_of(p, at);
    const workspace *ws = p->r->ws;
    const layer_place place = layer_of(p, at)->kv;
    float *q = block_row(p, at, LATENT_Q, i), *key = block_row(p, at, ATTEND_K, i),
          *query = block_row(p, at, ATTEND_Q, i) + l->kv_rank;
    p->r->kernels->rmsnorm(key, key, tensors_of(p, at)->c_norm, l->kv_rank, s->norm_eps);
    rotate(p, a, key + l->kv_rank, i, 1, l->n_rot);
    block_store_heads(p, at, kv_in(p->groups[ws->group[i]].cache, place.store), place.index, i,
                      ws->slot[i], scratch);
    rotate(p, a, q + l->n_plain, i, a->n_heads, q_dim(l));
    pass_scale(q, attend_temperature(s, a, ws->position[i]), (int64_t)a->n_heads * q_dim(l));
    for (int32_t h = 0; h < a->n_heads; h++, q += q_dim(l), query += a->head_dim)
        memcpy(query, q + l->n_plain, (size_t)l->n_rot * sizeof *query);
}

static void store_rows(model_pass *p, const program_step *s, int32_t from, int32_t to,
                       int32_t thread)
{
    for (int32_t i = from; i < to; i++)
        store_row(p, s, i, attend_scratch(p, s, thread));
}

/* Leaves what a product made, which the next one reads. */
static void as_it_is(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)p;
    (void)s;
    (void)from;
    (void)to;
    (void)thread;
}

static void add(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, &layer_of(p, s)->attention.added, from, to);
}

/* ---- Matrices of heads in one tensor: sums in the order of a row's numbers ---- */

/* y = the sum of q[i] times row i of w [n][k]. */
static void add_rows(float *restrict y, const float *restrict w, const float *restrict q, int32_t n,
                     int32_t k)
{
    memset(y, 0, (size_t)k * sizeof *y);
    for (int32_t i = 0; i < n; i++, w += k)
        for (int32_t j = 0; j < k; j++)
            y[j] += q[i] * w[j];
}

/* y[i] = row i of w [n][k] times x, by 16 lanes and sum16. */
static void dot_rows(float *y, const float *w, const float *x, int32_t n, int32_t k)
{
    for (int32_t i = 0; i < n; i++, w += k) {
        float lane[SUM_LANES] = {0};
        int32_t j = 0;
        for (; j + SUM_LANES <= k; j += SUM_LANES)
            for (int32_t c = 0; c < SUM_LANES; c++)
                lane[c] += w[j + c] * x[j + c];
        for (; j < k; j++)
            lane[j % SUM_LANES] += w[j] * x[j];
        y[i] = sum16(lane);
    }
}

/* A thread's heads, each of all rows. */
static void absorb_thread(void *arg, int32_t thread, int32_t n_threads)
{
    const model_pass *p = arg;
    const program_step *s = p->walk.step;
    const latent_shape *l = &p->r->layout->shape.latent;
    const attention_shape *a = shape_of(p, s);
    for (int32_t h = thread; h < a->n_heads; h += n_threads) {
        const float *w = tensors_of(p, s)->kv_b + (int64_t)h * (l->n_plain + l->v_dim) * l->kv_rank;
        for (int32_t i = 0; i < p->n_rows; i++)
            add_rows(block_row(p, s, ATTEND_Q, i) + (int64_t)h * a->head_dim, w,
                     block_row(p, s, LATENT_Q, i) + (int64_t)h * q_dim(l), l->n_plain, l->kv_rank);
    }
}

static void expand_thread(void *arg, int32_t thread, int32_t n_threads)
{
    const model_pass *p = arg;
    const program_step *s = p->walk.step;
    const latent_shape *l = &p->r->layout->shape.latent;
    const attention_shape *a = shape_of(p, s);
    for (int32_t h = thread; h < a->n_heads; h += n_threads) {
        const float *w = tensors_of(p, s)->kv_b +
                         ((int64_t)h * (l->n_plain + l->v_dim) + l->n_plain) * l->kv_rank;
        for (int32_t i = 0; i < p->n_rows; i++)
            dot_rows(block_row(p, s, LATENT_OUT, i) + (int64_t)h * l->v_dim, w,
                     block_row(p, s, ATTEND_OUT, i) + (int64_t)h * l->kv_rank, l->v_dim,
                     l->kv_rank);
    }
}

static drey_status absorb(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    (void)err;
    pool_run(p->r->pool, absorb_thread, p);
    return DREY_OK;
}

static drey_status expand(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    (void)err;
    pool_run(p->r->pool, expand_thread, p);
    return DREY_OK;
}

static void write_heads(program_writer *w, const attention_shape *a, const latent_shape *l,
                        const latent_tensors *own)
{
    if (own->kv_b) {
        write_rows(w, store_rows);
        write_mix(w, absorb);
        write_mix(w, attend_before);
        write_mix(w, expand);
        return;
    }
    write_rows(w, store_rows);
    write_reads_by_heads(w, LATENT_Q, l->n_plain, a->n_heads, q_dim(l));
    write_product(w, &(written_product){own->k_b, ATTEND_Q}, 1);
    write_mix(w, attend_before);
    write_reads_by_heads(w, ATTEND_OUT, l->kv_rank, a->n_heads, l->kv_rank);
    write_product(w, &(written_product){own->v_b, LATENT_OUT}, 1);
    write_rows(w, as_it_is);
}

static void write(program_writer *w)
{
    const attention_tensors *t = &w->layout->layer[w->layer].attention;
    const model_shape *s = &w->layout->shape;
    const latent_shape *l = &s->latent;
    const attention_shape *a = layer_attention(s, w->layer);
    write_rows(w, norm);
    write_reads(w, BUFFER_Y, s->n_embd);
    write_product(w, (written_product[]){{t->q, t->q_b ? LATENT_Q_A : LATENT_Q}, {t->k, ATTEND_K}},
                  2);
    if (t->q_b) {
        write_rows(w, norm_q);
        write_reads(w, LATENT_Q_A, l->q_rank);
        write_product(w, &(written_product){t->q_b, LATENT_Q}, 1);
    }
    write_heads(w, a, l, w->layout->layer[w->layer].own);
    write_reads(w, LATENT_OUT, (int64_t)a->n_heads * l->v_dim);
    write_product(w, &(written_product){t->o, BUFFER_Y}, 1);
    write_rows(w, add);
}

const block_class latent_block = {
    .name = "latent attention", .bind = bind, .write = write, .needs = needs, .attends = true};

/* ---- Layers ---- */

/* `layer` counts those before the first one, which others have. */
static const block_class *const *blocks_of(const model_shape *s, int32_t layer)
{
    static const block_class *const dense[] = {&latent_block, &feed_forward_block, NULL},
                                    *const mixture[] = {&latent_block, &experts_block, NULL};
    return layer_has_experts(s, layer - s->first_layer) ? mixture : dense;
}

const arch_layers latent_layers = {.blocks = blocks_of};
