/* A layer with a running sum: see sum_block.h. */
#include "support/toys/sum_block.h"

#include <math.h>

#include "common/num.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/workspace.h"
#include "state/recurrent.h"

/* ---- The store: a unit is a head ---- */

static int32_t n_units(const store_shape *s)
{
    return s->n_heads;
}

static int64_t state_numbers(const store_shape *s)
{
    return s->v_dim;
}

/* Decays, then values, of all heads. */
static size_t record_bytes(const store_shape *s)
{
    return 2 * sizeof(float) * (size_t)(s->n_heads * s->v_dim);
}

static void add(const store_shape *s, int32_t unit, float *state, const uint8_t *record)
{
    const int64_t n = s->v_dim;
    const float *decays = (const float *)(const void *)record + unit * n;
    const float *values = decays + s->n_heads * n;
    for (int64_t i = 0; i < n; i++)
        state[i] = state[i] * decays[i] + values[i];
}

static void end(const store_shape *s, const kernel_table *kernels, int32_t unit, float *to,
                const float *from, uint8_t *const records[RECURRENT_BLOCK])
{
    (void)kernels;
    memmove(to, from, (size_t)s->v_dim * sizeof *to);
    for (int32_t i = 0; i < RECURRENT_BLOCK; i++)
        add(s, unit, to, records[i]);
}

static const recurrent_class sum_class = {.store = RECURRENT_STORE("a running sum"),
                                          .n_units = n_units,
                                          .record_bytes = record_bytes,
                                          .state_numbers = state_numbers,
                                          .end = end};

static void sizes(const model_shape *s, int32_t layer, store_shape *out)
{
    (void)layer;
    out->n_heads = s->attention[0].n_heads_kv;
    out->v_dim = s->attention[0].v_dim;
}

/* ---- The block ---- */

enum { SUM_Q = BUFFER_OWN, SUM_K, SUM_V, SUM_OUT };

static void needs(buffer_needs *n)
{
    const attention_shape *a = &n->shape->attention[0];
    need_rows(n, SUM_Q, n->n_rows, attention_queries(a));
    need_rows(n, SUM_K, n->n_rows, attention_keys(a));
    need_rows(n, SUM_V, n->n_rows, attention_values(a));
    need_rows(n, SUM_OUT, n->n_rows, attention_out(a));
    need_acts(n, n->n_rows, max_i64(attention_out(a), n->shape->n_embd), 1);
}

typedef struct sum_tensors {
    recur_tensors recur;
    weight *q, *k, *v, *o;
} sum_tensors;

static recurrent_rows_fn compute;

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const attention_shape *a = &s->attention[0];
    const int64_t n_q = attention_queries(a), n_k = attention_keys(a), n_v = attention_values(a);
    sum_tensors *t = bind_own(b, y, sizeof *t);
    TRY(bind_matrix(b, "attn_q.weight", n_q, s->n_embd, &t->q));
    TRY(bind_matrix(b, "attn_k.weight", n_k, s->n_embd, &t->k));
    TRY(bind_matrix(b, "attn_v.weight", n_v, s->n_embd, &t->v));
    TRY(bind_matrix(b, "attn_output.weight", s->n_embd, attention_out(a), &t->o));
    return block_bind_recur(b, &t->recur, compute);
}

/* Writes a unit's part of a row's record. */
static void make_record(const model_pass *p, const program_step *s, int32_t unit,
                        const recurrent_row *row)
{
    const attention_shape *a = &p->r->layout->shape.attention[0];
    const int64_t n = attention_values(a), v_dim = a->v_dim, k_dim = a->head_dim;
    const float *k = block_row(p, s, SUM_K, row->row) + unit * k_dim,
                *v = block_row(p, s, SUM_V, row->row) + unit * v_dim;
    float *record = (float *)(void *)row->records[row->n - 1] + unit * v_dim;
    for (int64_t j = 0; j < v_dim; j++) {
        const float x = k[j % k_dim];
        record[j] = 0.5f + 0.45f * x / (1 + fabsf(x));
        record[n + j] = v[j];
    }
}

static void compute(void *user, int32_t thread, int32_t unit, const float *state,
                    const recurrent_row *rows, int32_t n)
{
    (void)thread;
    const model_pass *p = user;
    store_shape sum = {.n_layers = 0};
    sizes(&p->r->layout->shape, 0, &sum);
    for (int32_t i = 0; i < n; i++) {
        float *out = block_row(p, p->walk.step, SUM_V, rows[i].row) + unit * sum.v_dim;
        make_record(p, p->walk.step, unit, &rows[i]);
        memcpy(out, state, (size_t)sum.v_dim * sizeof *out);
        for (int32_t j = 0; j < rows[i].n; j++)
            add(&sum, unit, out, rows[i].records[j]);
    }
}

static void gate(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    const attention_shape *a = &p->r->layout->shape.attention[0];
    const int64_t n_q = a->n_heads / a->n_heads_kv, v_dim = a->v_dim, k_dim = a->head_dim;
    (void)thread;
    for (int32_t i = from; i < to; i++) {
        const float *q = block_row(p, s, SUM_Q, i), *sum = block_row(p, s, SUM_V, i);
        float *out = block_row(p, s, SUM_OUT, i);
        for (int64_t j = 0; j < attention_out(a); j++)
            out[j] =
                q[j / v_dim * k_dim + j % v_dim % k_dim] * sum[j / v_dim / n_q * v_dim + j % v_dim];
    }
}

static void write(program_writer *w)
{
    const sum_tensors *t = w->layout->layer[w->layer].own;
    block_write_recur_norm(w);
    write_product(w, (written_product[]){{t->q, SUM_Q}, {t->k, SUM_K}, {t->v, SUM_V}}, 3);
    block_write_recur(w);
    write_rows(w, gate);
    block_write_recur_out(w, SUM_OUT, attention_out(&w->layout->shape.attention[0]), t->o);
}

static const block_class sum_block = {.name = "sum",
                                      .bind = bind,
                                      .write = write,
                                      .needs = needs,
                                      .store = &sum_class.store,
                                      .store_shape = sizes};

/* ---- The architecture ---- */

static const block_class *const *blocks_of(const model_shape *s, int32_t layer)
{
    static const block_class *const attends[] = {&attention_block, &feed_forward_block, NULL};
    static const block_class *const sums[] = {&sum_block, &feed_forward_block, NULL};
    (void)s;
    return layer % 2 ? sums : attends;
}

static const arch_layers layers = {.blocks = blocks_of, .states = true};
const arch sum_arch = {.name = "sum", .layers = &layers};
