/* A state space with a scalar decay for each head (Mamba 2): see block.h and kernel/delta.h.
 *
 *   z, [x; B; C], dt = In n                                 n = norm of the residual stream
 *   x, B, C    = silu of a convolution over the last rows
 *   dt         = softplus(dt + bias),  g = dt * a           of each head
 *   y          = what the head's state gives for C, after B and dt x; and skip * x
 *   x         += Out norm(y * silu(z))                      the norm of each group, if any
 *
 * B and C are those of a group of heads. A unit is some heads of a group. Its part of a state is a
 * matrix [N][P] for each of them, and the inputs of the convolution of the last rows before the
 * block; its part of a record is L (kernel/delta.h) and d of each head, B, and the row's own
 * inputs. So units of a group each have its B, and need nothing of each other. */
#include <string.h>

#include "common/num.h"
#include "kernel/delta.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"

/* ---- The store ---- */

enum { MOST_HEADS = 8 }; /* heads of a unit */

static int32_t n_heads(const store_shape *s)
{
    const int32_t of_group = s->n_heads / s->n_key_heads;
    int32_t n = MOST_HEADS;
    while (of_group % n != 0)
        n--;
    return n;
}

static int32_t n_units(const store_shape *s)
{
    return s->n_heads / n_heads(s);
}

/* Numbers of a unit's x, and of its inputs: x, B, C. */
static int32_t n_x(const store_shape *s)
{
    return n_heads(s) * s->v_dim;
}

static int32_t n_inputs(const store_shape *s)
{
    return n_x(s) + 2 * s->k_dim;
}

/* A unit's part of a record. */
typedef struct mamba_record {
    double *decay;         /* [n_heads]: L */
    float *b, *d, *inputs; /* [N], [n_heads][P], [n_inputs] */
} mamba_record;

static size_t decay_bytes(const store_shape *s)
{
    return ((size_t)n_heads(s) * sizeof(double) + 63) / 64 * 64;
}

static size_t unit_bytes(const store_shape *s)
{
    const size_t n = (size_t)(s->k_dim + n_x(s) + n_inputs(s));
    return decay_bytes(s) + (n * sizeof(float) + 63) / 64 * 64;
}

static size_t record_bytes(const store_shape *s)
{
    return (size_t)n_units(s) * unit_bytes(s);
}

/* Bytes from the beginning of a record to a unit's inputs. */
static size_t inputs_at(const store_shape *s, int32_t unit)
{
    return (size_t)unit * unit_bytes(s) + decay_bytes(s) +
           (size_t)(s->k_dim + n_x(s)) * sizeof(float);
}

static mamba_record record_of(const store_shape *s, int32_t unit, uint8_t *record)
{
    uint8_t *at = record + (size_t)unit * unit_bytes(s);
    float *b = (float *)(void *)(at + decay_bytes(s)), *d = b + s->k_dim;
    return (mamba_record){(double *)(void *)at, b, d, d + n_x(s)};
}

static int64_t matrix_numbers(const store_shape *s)
{
    return (int64_t)s->k_dim * s->v_dim;
}

static int64_t state_numbers(const store_shape *s) /* [n_heads][N][P], [n_taps][n_inputs] */
{
    return n_heads(s) * matrix_numbers(s) + (int64_t)s->n_taps * n_inputs(s);
}

static void end_matrix(const store_shape *s, const delta_kernel *kernel, int32_t head, float *to,
                       const float *from, const mamba_record *records)
{
    const float *b[RECURRENT_BLOCK], *d[RECURRENT_BLOCK];
    const double last = records[RECURRENT_BLOCK - 1].decay[head];
    float exponent[RECURRENT_BLOCK + 1];
    for (int32_t t = 0; t < RECURRENT_BLOCK; t++) {
        b[t] = records[t].b;
        d[t] = records[t].d + head * s->v_dim;
        exponent[t] = (float)(last - records[t].decay[head]);
    }
    exponent[RECURRENT_BLOCK] = (float)last;
    kernel->end(to, from, &(delta_records){b, d, exponent, RECURRENT_BLOCK, s->k_dim, s->v_dim});
}

static void end(const store_shape *s, const kernel_table *kernels, int32_t unit, float *to,
                const float *from, uint8_t *const records[RECURRENT_BLOCK])
{
    const int64_t n = matrix_numbers(s);
    mamba_record r[RECURRENT_BLOCK];
    for (int32_t t = 0; t < RECURRENT_BLOCK; t++)
        r[t] = record_of(s, unit, records[t]);
    for (int32_t head = 0; head < n_heads(s); head++, to += n, from += n)
        end_matrix(s, kernels->delta, head, to, from, r);
    block_keep_inputs(to, records, inputs_at(s, unit), s->n_taps, n_inputs(s));
}

static const recurrent_class mamba_class = {.store = RECURRENT_STORE("a state space"),
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
    out->k_dim = r->state_dim;
    out->v_dim = r->head_dim;
    out->n_taps = r->n_taps;
}

/* ---- Tensors ---- */

/* Letters used for shapes: H heads with P numbers each, G groups, N numbers of a B and of a C. */
enum { MAMBA_IN = BUFFER_OWN, MAMBA_OUT }; /* [B][H P | channels | H], [B][H P] */

typedef struct mamba_tensors {
    recur_tensors recur;
    weight *in, *out;     /* [2 H P + 2 G N + H][D], [D][H P] */
    float *taps, *bias;   /* [n_taps + 1][channels], [channels]; bias NULL: 0 */
    float *dt, *a, *skip; /* [H] each */
    float *group_norm;    /* [H P]; NULL: none */
} mamba_tensors;

static const mamba_tensors *tensors_of(const model_pass *p, const program_step *s)
{
    return layer_of(p, s)->own;
}

static int64_t values(const recurrent_shape *r)
{
    return (int64_t)r->n_v_heads * r->head_dim;
}

static int64_t channels(const recurrent_shape *r)
{
    return values(r) + 2 * (int64_t)r->n_k_heads * r->state_dim;
}

static int64_t inputs(const recurrent_shape *r)
{
    return values(r) + channels(r) + r->n_v_heads;
}

static void needs(buffer_needs *n)
{
    const recurrent_shape *r = &n->shape->recurrent;
    need_rows(n, MAMBA_IN, n->n_rows, inputs(r));
    need_rows(n, MAMBA_OUT, n->n_rows, values(r));
    need_acts(n, n->n_rows, max_i64(values(r), n->shape->n_embd), 1);
}

static recurrent_rows_fn compute;

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const recurrent_shape *r = &s->recurrent;
    mamba_tensors *t = bind_own(b, y, sizeof *t);
    TRY(bind_matrix(b, "ssm_in.weight", inputs(r), s->n_embd, &t->in));
    TRY(bind_matrix(b, "ssm_out.weight", s->n_embd, values(r), &t->out));
    TRY(bind_turned(b, "ssm_conv1d.weight", r->n_taps + 1, channels(r), &t->taps));
    TRY(bind_vector_if(b, "ssm_conv1d.bias", channels(r), &t->bias));
    TRY(bind_vector(b, "ssm_dt.bias", r->n_v_heads, &t->dt));
    TRY(bind_vectors(b, "ssm_a", 1, r->n_v_heads, &t->a));
    TRY(bind_vectors(b, "ssm_d", 1, r->n_v_heads, &t->skip));
    if (!shape_has_form(s, FORM_BESIDE) || binder_has(b, "ssm_norm.weight"))
        TRY(bind_vectors(b, "ssm_norm.weight", values(r) / r->n_k_heads, r->n_k_heads,
                         &t->group_norm));
    return block_bind_recur(b, &t->recur, compute);
}

/* ---- A unit's rows ---- */

typedef struct unit_job {
    const model_pass *p;
    const mamba_tensors *t;
    const delta_kernel *kernel;
    const recurrent_shape *shape;
    const recurrent_row *rows; /* [n] */
    const float *state;
    store_shape s;
    int32_t unit, n;
    /* C of rows, its products with a head's state, and with B of the rows of their paths */
    float c[RECURRENT_ROWS][DELTA_MOST_DIM], w[RECURRENT_ROWS][DELTA_MOST_DIM];
    float cb[RECURRENT_ROWS][RECURRENT_BLOCK];
} unit_job;

static const float *input_row(const unit_job *j, int32_t i)
{
    return block_row(j->p, j->p->walk.step, MAMBA_IN, j->rows[i].row);
}

static mamba_record record_at(const unit_job *j, int32_t i, int32_t t)
{
    return record_of(&j->s, j->unit, j->rows[i].records[t]);
}

/* The first of the unit's channels of x, of B and of C among all; B is part 0. */
static int64_t x_channel(const unit_job *j)
{
    return (int64_t)j->unit * n_x(&j->s);
}

static int64_t group_channel(const unit_job *j, int32_t part)
{
    const int32_t of_group = j->s.n_heads / j->s.n_key_heads,
                  group = j->unit * n_heads(&j->s) / of_group;
    return values(j->shape) + ((int64_t)part * j->s.n_key_heads + group) * j->s.k_dim;
}

static void take_inputs(const unit_job *j, int32_t i)
{
    const store_shape *s = &j->s;
    const float *in = input_row(j, i) + values(j->shape);
    float *to = record_at(j, i, j->rows[i].n - 1).inputs;
    memcpy(to, in + x_channel(j), (size_t)n_x(s) * sizeof *to);
    for (int32_t part = 0; part < 2; part++)
        memcpy(to + n_x(s) + part * s->k_dim, in + group_channel(j, part),
               (size_t)s->k_dim * sizeof *to);
}

/* y = n numbers of row i, from input `first` of the unit's on, which is that channel. */
static void convolve(const unit_job *j, int32_t i, int32_t first, int64_t channel, int32_t n,
                     float *y)
{
    const store_shape *s = &j->s;
    const float *before = j->state + n_heads(s) * matrix_numbers(s) + first;
    const float *x[DELTA_MOST_TAPS];
    block_conv_inputs(x, &j->rows[i], inputs_at(s, j->unit) + (size_t)first * sizeof *y, before,
                      n_inputs(s), s->n_taps);
    j->kernel->conv(y,
                    &(conv_taps){.x = x,
                                 .w = j->t->taps + channel,
                                 .ld = channels(j->shape),
                                 .bias = j->t->bias ? j->t->bias + channel : NULL,
                                 .n_taps = s->n_taps + 1,
                                 .silu = true},
                    n);
}

/* A row's B and C, and the products of C with B of its path. */
static void make_key(unit_job *j, int32_t i)
{
    const store_shape *s = &j->s;
    const float *b[RECURRENT_BLOCK];
    const int32_t n = j->rows[i].n;
    take_inputs(j, i);
    convolve(j, i, n_x(s), group_channel(j, 0), s->k_dim, record_at(j, i, n - 1).b);
    convolve(j, i, n_x(s) + s->k_dim, group_channel(j, 1), s->k_dim, j->c[i]);
    for (int32_t t = 0; t < n; t++)
        b[t] = record_at(j, i, t).b;
    j->kernel->dots(j->cb[i], j->c[i], b, n, s->k_dim);
}

static void compute_head(const unit_job *j, int32_t i, int32_t head)
{
    const int32_t dim = j->s.v_dim, n = j->rows[i].n - 1, h = j->unit * n_heads(&j->s) + head;
    const mamba_record own = record_at(j, i, n);
    const float *past[RECURRENT_BLOCK];
    const float dt_in = input_row(j, i)[values(j->shape) + channels(j->shape) + h];
    const double dt = block_softplus((double)dt_in + (double)j->t->dt[h]);
    double decay = dt * (double)j->t->a[h] + (n > 0 ? record_at(j, i, n - 1).decay[head] : 0);
    float exponent[RECURRENT_BLOCK], x[DELTA_MOST_DIM];
    convolve(j, i, head * dim, x_channel(j) + head * dim, dim, x);
    for (int32_t t = 0; t < n; t++) {
        const mamba_record r = record_at(j, i, t);
        past[t] = r.d + head * dim;
        exponent[t] = (float)(decay - r.decay[head]);
    }
    exponent[n] = (float)decay;
    own.decay[head] = decay;
    j->kernel->scan(
        &(delta_row){.w = j->w[i],
                     .v = x,
                     .exponent = exponent,
                     .qk = j->cb[i],
                     .past = past,
                     .beta = (float)dt,
                     .skip = j->t->skip[h],
                     .n = n,
                     .v_dim = dim,
                     .d = own.d + head * dim,
                     .out = block_row(j->p, j->p->walk.step, MAMBA_OUT, j->rows[i].row) + h * dim});
}

static void compute(void *user, int32_t thread, int32_t unit, const float *state,
                    const recurrent_row *rows, int32_t n)
{
    (void)thread;
    const model_pass *p = user;
    unit_job j = {.p = p,
                  .t = tensors_of(p, p->walk.step),
                  .kernel = p->r->kernels->delta,
                  .shape = &p->r->layout->shape.recurrent,
                  .rows = rows,
                  .state = state,
                  .unit = unit,
                  .n = n};
    sizes(&p->r->layout->shape, p->walk.step->layer, &j.s);
    for (int32_t i = 0; i < n; i++)
        make_key(&j, i);
    for (int32_t head = 0; head < n_heads(&j.s); head++) {
        j.kernel->rows(j.w[0], DELTA_MOST_DIM, j.c[0], DELTA_MOST_DIM, n,
                       state + head * matrix_numbers(&j.s), j.s.k_dim, j.s.v_dim);
        for (int32_t i = 0; i < n; i++)
            compute_head(&j, i, head);
    }
}

/* ---- Steps ---- */

/* y * silu(z), normed by groups, in the place of z. */
static void gate(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    const kernel_table *kernels = p->r->kernels;
    const model_shape *shape = &p->r->layout->shape;
    const float *norm = tensors_of(p, s)->group_norm;
    const int64_t n = values(&shape->recurrent), n_group = n / shape->recurrent.n_k_heads;
    for (int32_t i = from; i < to; i++) {
        float *z = block_row(p, s, MAMBA_IN, i);
        kernels->swiglu(z, z, block_row(p, s, MAMBA_OUT, i), n);
        for (int64_t at = 0; at < n && norm; at += n_group)
            kernels->rmsnorm(z + at, z + at, norm + at, n_group, shape->norm_eps);
    }
}

static void write(program_writer *w)
{
    const mamba_tensors *t = w->layout->layer[w->layer].own;
    block_write_recur_norm(w);
    write_product(w, &(written_product){t->in, MAMBA_IN}, 1);
    block_write_recur(w);
    write_rows(w, gate);
    block_write_recur_out(w, MAMBA_IN, values(&w->layout->shape.recurrent), t->out);
}

const block_class mamba_block = {.name = "state space",
                                 .bind = bind,
                                 .write = write,
                                 .needs = needs,
                                 .store = &mamba_class.store,
                                 .store_shape = sizes};

/* ---- Layers ---- */

/* One block: of a layer with a feed-forward part that, else attention or a state space. */
static const block_class *const *one_block(const model_shape *s, int32_t layer)
{
    static const block_class *const lists[][2] = {
        {&mamba_block}, {&attention_block}, {&feed_forward_block}, {&experts_block}};
    if (layer_has_experts(s, layer))
        return lists[3];
    return lists[s->layer[layer].n_ff > 0 ? 2 : layer_attention(s, layer) != NULL];
}

static const block_class *const *blocks_of(const model_shape *s, int32_t layer)
{
    static const block_class *const lists[][3] = {{&mamba_block, &feed_forward_block},
                                                  {&mamba_block, &experts_block},
                                                  {&attention_block, &feed_forward_block},
                                                  {&attention_block, &experts_block}};
    static const block_class *const beside[] = {&attention_block, &mamba_block, &feed_forward_block,
                                                NULL};
    const int32_t own = layer - s->first_layer;
    if (shape_has_form(s, FORM_ONE_BLOCK))
        return one_block(s, own);
    if (shape_has_form(s, FORM_BESIDE))
        return beside;
    return lists[2 * (layer_attention(s, own) != NULL) + layer_has_experts(s, own)];
}

const arch_layers mamba_layers = {.blocks = blocks_of, .states = true};
