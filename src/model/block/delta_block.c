/* A gated delta net: see block.h and kernel/delta.h.
 *
 *   [q; k; v] = silu of a convolution of QKV n over the last rows        n = norm(x)
 *   q, k        of each head, divided by their lengths; q by sqrt(S) as well
 *   beta        = sigmoid(Beta n)
 *   g           = softplus(Alpha n + dt) * a                             of each head of values
 *   o           = what the head's state gives for q, after k and v
 *   x          += Out (norm(o) * silu(Z n))
 *
 * A unit is a head of keys, with those of values that share it. Its part of a state is a matrix for
 * each of these, and the inputs of the convolution of the last rows before the block; its part of a
 * record is L (kernel/delta.h), the row's key, d of each head, and the row's own inputs. */
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "kernel/delta.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "state/recurrent.h"

/* ---- The store ---- */

/* A unit's parts that are convolved: q, k, and v of each head. */
enum { PART_Q, PART_K, PART_V };

static int32_t n_shared(const store_shape *s) /* heads of values of a unit */
{
    return s->n_heads / s->n_key_heads;
}

static int32_t n_parts(const store_shape *s)
{
    return PART_V + n_shared(s);
}

static int32_t n_units(const store_shape *s)
{
    return s->n_key_heads;
}

/* A unit's part of a record. */
typedef struct delta_record {
    double *decay;         /* [n_shared]: L */
    float *k, *d, *inputs; /* [S], [n_shared][S], [n_parts][S] */
} delta_record;

static size_t decay_bytes(const store_shape *s)
{
    return ((size_t)n_shared(s) * sizeof(double) + 63) / 64 * 64;
}

static size_t unit_bytes(const store_shape *s)
{
    const size_t n = (size_t)(1 + n_shared(s) + n_parts(s)) * (size_t)s->v_dim;
    return decay_bytes(s) + (n * sizeof(float) + 63) / 64 * 64;
}

static size_t record_bytes(const store_shape *s)
{
    return (size_t)s->n_key_heads * unit_bytes(s);
}

/* Bytes from the beginning of a record to a unit's inputs. */
static size_t inputs_at(const store_shape *s, int32_t unit)
{
    return (size_t)unit * unit_bytes(s) + decay_bytes(s) +
           (size_t)(1 + n_shared(s)) * (size_t)s->v_dim * sizeof(float);
}

static delta_record record_of(const store_shape *s, int32_t unit, uint8_t *record)
{
    uint8_t *at = record + (size_t)unit * unit_bytes(s);
    float *k = (float *)(void *)(at + decay_bytes(s)), *d = k + s->v_dim;
    return (delta_record){(double *)(void *)at, k, d, d + n_shared(s) * s->v_dim};
}

static int64_t matrix_numbers(const store_shape *s)
{
    return (int64_t)s->k_dim * s->v_dim;
}

static int64_t state_numbers(const store_shape *s) /* [n_shared][S][S], [n_taps][n_parts][S] */
{
    return n_shared(s) * matrix_numbers(s) + (int64_t)s->n_taps * n_parts(s) * s->v_dim;
}

static void end_matrix(const store_shape *s, const delta_kernel *kernel, int32_t head, float *to,
                       const float *from, const delta_record *records)
{
    const float *k[RECURRENT_BLOCK], *d[RECURRENT_BLOCK];
    const double last = records[RECURRENT_BLOCK - 1].decay[head];
    float exponent[RECURRENT_BLOCK + 1];
    for (int32_t t = 0; t < RECURRENT_BLOCK; t++) {
        k[t] = records[t].k;
        d[t] = records[t].d + head * s->v_dim;
        exponent[t] = (float)(last - records[t].decay[head]);
    }
    exponent[RECURRENT_BLOCK] = (float)last;
    kernel->end(to, from, &(delta_records){k, d, exponent, RECURRENT_BLOCK, s->k_dim, s->v_dim});
}

static void end(const store_shape *s, const kernel_table *kernels, int32_t unit, float *to,
                const float *from, uint8_t *const records[RECURRENT_BLOCK])
{
    const int64_t n = matrix_numbers(s);
    delta_record r[RECURRENT_BLOCK];
    for (int32_t t = 0; t < RECURRENT_BLOCK; t++)
        r[t] = record_of(s, unit, records[t]);
    for (int32_t head = 0; head < n_shared(s); head++, to += n, from += n)
        end_matrix(s, kernels->delta, head, to, from, r);
    block_keep_inputs(to, records, inputs_at(s, unit), s->n_taps, (int64_t)n_parts(s) * s->v_dim);
}

static const recurrent_class delta_class = {.store = RECURRENT_STORE("a gated delta net"),
                                            .n_units = n_units,
                                            .record_bytes = record_bytes,
                                            .state_numbers = state_numbers,
                                            .end = end};

static void sizes(const model_shape *s, int32_t layer, store_shape *out)
{
    const recurrent_shape *r = &s->recurrent;
    (void)layer;
    out->n_heads = r->n_v_heads;
    out->n_key_heads = r->n_k_heads;
    out->k_dim = out->v_dim = r->head_dim;
    out->n_taps = r->n_taps;
}

/* ---- Tensors ---- */

enum {
    DELTA_IN = BUFFER_OWN, /* [B][(2 K + V) S]: q, k, v of all heads; or with z, by units */
    DELTA_Z,               /* [B][V S] */
    DELTA_BETA,            /* [B][V], or with alpha [B][2 V] */
    DELTA_ALPHA,           /* [B][V] */
    DELTA_OUT              /* [B][V S] */
};

typedef struct delta_tensors {
    recur_tensors recur;
    weight *in;    /* [(2 K + V) S][D]; without z [K][(2 + 2 V / K) S][D]: q, k, v, z of a unit */
    weight *z;     /* [V S][D] */
    weight *beta;  /* [V][D]; without alpha [K][2 V / K][D]: betas and alphas of a unit */
    weight *alpha; /* [V][D] */
    weight *out;   /* [D][V S] */
    float *taps;   /* [n_taps + 1][(2 K + V) S] */
    float *dt, *a; /* [V] twice */
    float *head_norm; /* [S] */
} delta_tensors;

static const delta_tensors *tensors_of(const model_pass *p, const program_step *s)
{
    return layer_of(p, s)->own;
}

static int64_t channels(const recurrent_shape *r)
{
    return (int64_t)(2 * r->n_k_heads + r->n_v_heads) * r->head_dim;
}

static int64_t values(const recurrent_shape *r)
{
    return (int64_t)r->n_v_heads * r->head_dim;
}

static void needs(buffer_needs *n)
{
    const recurrent_shape *r = &n->shape->recurrent;
    need_rows(n, DELTA_IN, n->n_rows, channels(r) + values(r));
    need_rows(n, DELTA_Z, n->n_rows, values(r));
    need_rows(n, DELTA_BETA, n->n_rows, 2 * r->n_v_heads);
    need_rows(n, DELTA_ALPHA, n->n_rows, r->n_v_heads);
    need_rows(n, DELTA_OUT, n->n_rows, values(r));
    need_acts(n, n->n_rows, values(r), 1);
}

/* Old files of qwen3next have q, k, v and z in one matrix. */
static drey_status bind_in(binder *b, delta_tensors *t)
{
    const model_shape *s = &b->layout->shape;
    const recurrent_shape *r = &s->recurrent;
    if (binder_has(b, "ssm_in.weight"))
        return bind_matrix(b, "ssm_in.weight", channels(r) + values(r), s->n_embd, &t->in);
    TRY(bind_matrix(b, "attn_qkv.weight", channels(r), s->n_embd, &t->in));
    return bind_matrix(b, "attn_gate.weight", values(r), s->n_embd, &t->z);
}

static recurrent_rows_fn compute;

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const recurrent_shape *r = &s->recurrent;
    delta_tensors *t = bind_own(b, y, sizeof *t);
    TRY(bind_in(b, t));
    if (binder_has(b, "ssm_ba.weight")) {
        TRY(bind_matrix(b, "ssm_ba.weight", 2 * r->n_v_heads, s->n_embd, &t->beta));
    } else {
        TRY(bind_matrix(b, "ssm_beta.weight", r->n_v_heads, s->n_embd, &t->beta));
        TRY(bind_matrix(b, "ssm_alpha.weight", r->n_v_heads, s->n_embd, &t->alpha));
    }
    TRY(bind_matrix(b, "ssm_out.weight", s->n_embd, values(r), &t->out));
    TRY(bind_turned(b, "ssm_conv1d.weight", r->n_taps + 1, channels(r), &t->taps));
    TRY(bind_vector(b, "ssm_dt.bias", r->n_v_heads, &t->dt));
    TRY(bind_vector(b, "ssm_a", r->n_v_heads, &t->a));
    TRY(bind_vector(b, "ssm_norm.weight", r->head_dim, &t->head_norm));
    return block_bind_recur(b, &t->recur, compute);
}

/* ---- A unit's rows ---- */

typedef struct unit_job {
    const model_pass *p;
    const delta_tensors *t;
    const delta_kernel *kernel;
    const recurrent_row *rows; /* [n] */
    const float *state;
    store_shape s;
    int32_t unit, n;
    /* Keys and queries of rows; their products with a head's state; with the keys of their paths */
    float x[RECURRENT_ROWS][2][DELTA_MOST_DIM], y[RECURRENT_ROWS][2][DELTA_MOST_DIM];
    float kk[RECURRENT_ROWS][RECURRENT_BLOCK], qk[RECURRENT_ROWS][RECURRENT_BLOCK];
} unit_job;

/* The number of a head of values. */
static int32_t head_of(const unit_job *j, int32_t head)
{
    const recurrent_shape *r = &j->p->r->layout->shape.recurrent;
    return r->in_turns ? head * r->n_k_heads + j->unit : j->unit * n_shared(&j->s) + head;
}

static const float *row_of(const unit_job *j, int32_t buffer, int32_t i)
{
    return block_row(j->p, j->p->walk.step, buffer, j->rows[i].row);
}

/* The first of a part's channels among all. */
static int32_t channel_of(const unit_job *j, int32_t part)
{
    const int32_t n = part < PART_V ? part * j->s.n_key_heads + j->unit
                                    : 2 * j->s.n_key_heads + head_of(j, part - PART_V);
    return n * j->s.v_dim;
}

static const float *input_of(const unit_job *j, int32_t i, int32_t part)
{
    const float *in = row_of(j, DELTA_IN, i);
    if (j->t->z)
        return in + channel_of(j, part);
    return in + (j->unit * (n_parts(&j->s) + n_shared(&j->s)) + part) * j->s.v_dim;
}

static const float *z_of(const unit_job *j, int32_t i, int32_t head)
{
    return j->t->z ? row_of(j, DELTA_Z, i) + head_of(j, head) * j->s.v_dim
                   : input_of(j, i, n_parts(&j->s) + head);
}

static delta_record record_at(const unit_job *j, int32_t i, int32_t t)
{
    return record_of(&j->s, j->unit, j->rows[i].records[t]);
}

static delta_record own_record(const unit_job *j, int32_t i)
{
    return record_at(j, i, j->rows[i].n - 1);
}

static void take_inputs(const unit_job *j, int32_t i)
{
    const int32_t dim = j->s.v_dim;
    for (int32_t part = 0; part < n_parts(&j->s); part++)
        memcpy(own_record(j, i).inputs + part * dim, input_of(j, i, part),
               (size_t)dim * sizeof(float));
}

/* y = a part of row i, whose last rows have their inputs. */
static void convolve(const unit_job *j, int32_t i, int32_t part, float *y)
{
    const store_shape *s = &j->s;
    const float *before = j->state + n_shared(s) * matrix_numbers(s);
    const float *x[DELTA_MOST_TAPS];
    const int32_t first = part * s->v_dim;
    block_conv_inputs(x, &j->rows[i], inputs_at(s, j->unit) + (size_t)first * sizeof *y,
                      before + first, (int64_t)n_parts(s) * s->v_dim, s->n_taps);
    const recurrent_shape *r = &j->p->r->layout->shape.recurrent;
    j->kernel->conv(y,
                    &(conv_taps){.x = x,
                                 .w = j->t->taps + channel_of(j, part),
                                 .ld = channels(r),
                                 .n_taps = s->n_taps + 1,
                                 .silu = true},
                    s->v_dim);
}

/* Its key, its query, and their products with the keys of its path. */
static void make_key(unit_job *j, int32_t i)
{
    const float eps = 1e-6f; /* as in the model's own code */
    const int32_t dim = j->s.k_dim, n = j->rows[i].n;
    const float *keys[RECURRENT_BLOCK];
    float *k = own_record(j, i).k, *q = j->x[i][1];
    take_inputs(j, i);
    convolve(j, i, PART_Q, q);
    convolve(j, i, PART_K, k);
    j->kernel->unit(q, q, dim, eps, 1.0f / sqrtf((float)dim));
    j->kernel->unit(k, k, dim, eps, 1.0f);
    memcpy(j->x[i][0], k, (size_t)dim * sizeof *k);
    for (int32_t t = 0; t < n; t++)
        keys[t] = record_at(j, i, t).k;
    j->kernel->dots(j->kk[i], k, keys, n - 1, dim);
    j->kernel->dots(j->qk[i], q, keys, n, dim);
}

/* A head's beta and log decay of row i. */
static void read_gates(const unit_job *j, int32_t i, int32_t head, float *beta, double *decay)
{
    const int32_t h = head_of(j, head), n = n_shared(&j->s);
    const float *both = row_of(j, DELTA_BETA, i) + (j->t->alpha ? h : j->unit * 2 * n + head);
    const float alpha = j->t->alpha ? row_of(j, DELTA_ALPHA, i)[h] : both[n];
    *beta = (float)(1.0 / (1.0 + exp_f64(-(double)*both)));
    *decay = block_softplus((double)alpha + (double)j->t->dt[h]) * (double)j->t->a[h];
}

/* out = norm(out) * silu(z), or sigmoid(z), of a head. */
static void norm_gated(const unit_job *j, float *out, const float *z)
{
    const model_shape *s = &j->p->r->layout->shape;
    const kernel_table *kernels = j->p->r->kernels;
    const int32_t dim = j->s.v_dim;
    if (!shape_has_form(s, FORM_DELTA_SIGMOID)) {
        j->kernel->gated_norm(out, out, j->t->head_norm, z, dim, s->norm_eps);
        return;
    }
    kernels->rmsnorm(out, out, j->t->head_norm, dim, s->norm_eps);
    kernels->gate(out, out, z, dim);
}

static void compute_head(const unit_job *j, int32_t i, int32_t head)
{
    const int32_t dim = j->s.v_dim, n = j->rows[i].n - 1, h = head_of(j, head);
    const delta_record own = own_record(j, i);
    const float *past[RECURRENT_BLOCK];
    float exponent[RECURRENT_BLOCK], v[DELTA_MOST_DIM], beta;
    double decay;
    float *out = block_row(j->p, j->p->walk.step, DELTA_OUT, j->rows[i].row) + h * dim;
    convolve(j, i, PART_V + head, v);
    read_gates(j, i, head, &beta, &decay);
    decay += n > 0 ? record_at(j, i, n - 1).decay[head] : 0;
    for (int32_t t = 0; t < n; t++) {
        const delta_record r = record_at(j, i, t);
        past[t] = r.d + head * dim;
        exponent[t] = (float)(decay - r.decay[head]);
    }
    exponent[n] = (float)decay;
    own.decay[head] = decay;
    j->kernel->join(&(delta_row){.u = j->y[i][0],
                                 .w = j->y[i][1],
                                 .v = v,
                                 .exponent = exponent,
                                 .kk = j->kk[i],
                                 .qk = j->qk[i],
                                 .past = past,
                                 .beta = beta,
                                 .n = n,
                                 .v_dim = dim,
                                 .d = own.d + head * dim,
                                 .out = out});
    norm_gated(j, out, z_of(j, i, head));
}

static void compute(void *user, int32_t thread, int32_t unit, const float *state,
                    const recurrent_row *rows, int32_t n)
{
    (void)thread;
    const model_pass *p = user;
    unit_job j = {.p = p,
                  .t = tensors_of(p, p->walk.step),
                  .kernel = p->r->kernels->delta,
                  .rows = rows,
                  .state = state,
                  .unit = unit,
                  .n = n};
    sizes(&p->r->layout->shape, p->walk.step->layer, &j.s);
    for (int32_t i = 0; i < n; i++)
        make_key(&j, i);
    for (int32_t head = 0; head < n_shared(&j.s); head++) {
        j.kernel->rows(j.y[0][0], DELTA_MOST_DIM, j.x[0][0], DELTA_MOST_DIM, 2 * n,
                       state + head * matrix_numbers(&j.s), j.s.k_dim, j.s.v_dim);
        for (int32_t i = 0; i < n; i++)
            compute_head(&j, i, head);
    }
}

/* ---- Steps ---- */

static void write(program_writer *w)
{
    const delta_tensors *t = w->layout->layer[w->layer].own;
    block_write_recur_norm(w);
    write_product(
        w,
        (written_product[]){
            {t->in, DELTA_IN}, {t->z, DELTA_Z}, {t->beta, DELTA_BETA}, {t->alpha, DELTA_ALPHA}},
        4);
    block_write_recur(w);
    block_write_recur_out(w, DELTA_OUT, values(&w->layout->shape.recurrent), t->out);
}

const block_class delta_block = {.name = "delta net",
                                 .bind = bind,
                                 .write = write,
                                 .needs = needs,
                                 .store = &delta_class.store,
                                 .store_shape = sizes};

static const block_class *const *blocks_of(const model_shape *s, int32_t layer)
{
    static const block_class *const lists[][3] = {{&attention_block, &feed_forward_block, NULL},
                                                  {&attention_block, &experts_block, NULL},
                                                  {&delta_block, &feed_forward_block, NULL},
                                                  {&delta_block, &experts_block, NULL}};
    const int32_t own = layer - s->first_layer;
    return lists[2 * (layer_attention(s, own) == NULL) + layer_has_experts(s, own)];
}

const arch_layers delta_layers = {.blocks = blocks_of, .states = true};
