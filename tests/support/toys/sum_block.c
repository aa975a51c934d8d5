/* A layer with a running sum: see sum_block.h. */
#include "support/toys/sum_block.h"

#include <math.h>

#include "common/num.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "state/recurrent.h"

/* ---- The store ---- */

static int64_t state_numbers(const store_shape *s)
{
    return (int64_t)s->n_heads * s->v_dim;
}

static int64_t record_numbers(const store_shape *s) /* decays, then values */
{
    return 2 * state_numbers(s);
}

static void add_record(float *state, const float *record, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        state[i] = state[i] * record[i] + record[n + i];
}

static void add(const store_shape *s, float *state, const float *const *records, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        add_record(state, records[i], state_numbers(s));
}

static void read(const store_shape *s, const float *state, const float *const *records, int32_t n,
                 float *out)
{
    memcpy(out, state, (size_t)state_numbers(s) * sizeof *out);
    add(s, out, records, n);
}

static const recurrent_class sum_class = {.store = RECURRENT_STORE("a running sum"),
                                          .record_numbers = record_numbers,
                                          .state_numbers = state_numbers,
                                          .add = add,
                                          .read = read};

/* ---- The block ---- */

enum { SUM_Q = BUFFER_OWN, SUM_K, SUM_V, SUM_OUT };

static void needs(buffer_needs *n)
{
    const model_shape *s = n->shape;
    const attention_shape *a = &s->attention[0];
    need_rows(n, SUM_Q, n->n_rows, attention_queries(a));
    need_rows(n, SUM_K, n->n_rows, attention_keys(a));
    need_rows(n, SUM_V, n->n_rows, attention_values(a));
    need_rows(n, SUM_OUT, n->n_rows, attention_out(a));
    need_acts(n, n->n_rows, max_i64(attention_out(a), s->n_embd), 1);
}

typedef struct sum_tensors {
    weight *q, *k, *v, *o;
    float *norm;
    added_tensors added;
} sum_tensors;

static const sum_tensors *tensors_of(const model_pass *p, const program_step *s)
{
    return layer_of(p, s)->own;
}

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
    return bind_vector(b, "attn_norm.weight", s->n_embd, &t->norm);
}

static void norm(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_norm(p, tensors_of(p, s)->norm, NULL, from, to);
}

static void store(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    const attention_shape *a = &p->r->layout->shape.attention[0];
    const int64_t n = attention_values(a), v_dim = a->v_dim, k_dim = a->head_dim;
    (void)thread;
    for (int32_t i = from; i < to; i++) {
        const float *k = block_row(p, s, SUM_K, i), *v = block_row(p, s, SUM_V, i);
        float *record = block_record(p, s, i);
        for (int64_t j = 0; j < n; j++) {
            const float x = k[j / v_dim * k_dim + j % v_dim % k_dim];
            record[j] = 0.5f + 0.45f * x / (1 + fabsf(x));
            record[n + j] = v[j];
        }
    }
}

static drey_status recur(model_pass *p, const program_step *s, drey_error *err)
{
    (void)err;
    block_recur(p, s, SUM_V);
    return DREY_OK;
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

static void add_up(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, &tensors_of(p, s)->added, from, to);
}

static void write(program_writer *w)
{
    const sum_tensors *t = w->layout->layer[w->layer].own;
    const model_shape *s = &w->layout->shape;
    write_rows(w, norm);
    write_reads(w, BUFFER_Y, s->n_embd);
    write_product(w, (written_product[]){{t->q, SUM_Q}, {t->k, SUM_K}, {t->v, SUM_V}}, 3);
    write_rows(w, store);
    write_mix(w, recur);
    write_rows(w, gate);
    write_reads(w, SUM_OUT, attention_out(&s->attention[0]));
    write_product(w, &(written_product){t->o, BUFFER_Y}, 1);
    write_rows(w, add_up);
}

static const block_class sum_block = {
    .name = "sum", .bind = bind, .write = write, .needs = needs, .store = &sum_class.store};

/* ---- The architecture ---- */

static const block_class *const *blocks_of(const model_shape *s, int32_t layer)
{
    static const block_class *const attends[] = {&attention_block, &feed_forward_block, NULL};
    static const block_class *const sums[] = {&sum_block, &feed_forward_block, NULL};
    (void)s;
    return layer % 2 ? sums : attends;
}

static const arch_layers layers = {blocks_of, &sum_class.store};
const arch sum_arch = {.name = "sum", .layers = &layers};
