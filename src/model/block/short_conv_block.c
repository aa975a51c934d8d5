/* A short convolution over the rows of a text: see block.h.
 *
 *   [b; c; x] = In n           n = norm of the residual stream
 *   u = b * x                  of each channel
 *   y = c * (w_0 u_(t-T) + .. + w_T u_t)
 *   x += Out y
 *
 * The state are the last T rows of u; a row's record is its own. A unit is some channels. */
#include <string.h>

#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "state/recurrent.h"

/* ---- The store ---- */

enum { MOST_CHANNELS = 256 };

/* Channels of a unit: as many in each. */
static int32_t n_channels(const store_shape *s)
{
    int32_t n = MOST_CHANNELS;
    while (s->v_dim % n != 0)
        n /= 2;
    return n;
}

static int32_t n_units(const store_shape *s)
{
    return s->v_dim / n_channels(s);
}

static size_t record_bytes(const store_shape *s)
{
    return (size_t)s->v_dim * sizeof(float);
}

static int64_t state_numbers(const store_shape *s) /* [n_taps][n_channels] */
{
    return (int64_t)s->n_taps * n_channels(s);
}

/* Bytes from the beginning of a record to a unit's u. */
static size_t u_at(const store_shape *s, int32_t unit)
{
    return (size_t)(unit * n_channels(s)) * sizeof(float);
}

static void end(const store_shape *s, const kernel_table *kernels, int32_t unit, float *to,
                const float *from, uint8_t *const records[RECURRENT_BLOCK])
{
    (void)kernels;
    (void)from;
    block_keep_inputs(to, records, u_at(s, unit), s->n_taps, n_channels(s));
}

static const recurrent_class conv_class = {.store = RECURRENT_STORE("a short convolution"),
                                           .n_units = n_units,
                                           .record_bytes = record_bytes,
                                           .state_numbers = state_numbers,
                                           .end = end};

static void sizes(const model_shape *s, int32_t layer, store_shape *out)
{
    (void)layer;
    out->v_dim = s->n_embd;
    out->n_taps = s->recurrent.n_taps;
}

/* ---- The block ---- */

enum { CONV_IN = BUFFER_OWN, CONV_OUT }; /* [B][3 D], [B][D] */

static void needs(buffer_needs *n)
{
    need_rows(n, CONV_IN, n->n_rows, 3 * (int64_t)n->shape->n_embd);
    need_rows(n, CONV_OUT, n->n_rows, n->shape->n_embd);
    need_acts(n, n->n_rows, n->shape->n_embd, 1);
}

typedef struct conv_tensors {
    recur_tensors recur;
    weight *in, *out; /* [3 D][D], [D][D] */
    float *taps;      /* [D][n_taps + 1] */
} conv_tensors;

static const conv_tensors *tensors_of(const model_pass *p, const program_step *s)
{
    return layer_of(p, s)->own;
}

static recurrent_rows_fn compute;

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    conv_tensors *t = bind_own(b, y, sizeof *t);
    TRY(bind_matrix(b, "shortconv.in_proj.weight", 3 * (int64_t)s->n_embd, s->n_embd, &t->in));
    TRY(bind_matrix(b, "shortconv.out_proj.weight", s->n_embd, s->n_embd, &t->out));
    TRY(bind_vectors(b, "shortconv.conv.weight", s->recurrent.n_taps + 1, s->n_embd, &t->taps));
    return block_bind_recur(b, &t->recur, compute);
}

/* y of n channels: taps [n][n_taps + 1]. */
static void convolve(float *y, const float *c, const float *taps, const float *const *u,
                     int32_t n_taps, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        y[i] = taps[i * (n_taps + 1)] * u[0][i];
    for (int32_t j = 1; j <= n_taps; j++)
        for (int32_t i = 0; i < n; i++)
            y[i] += taps[i * (n_taps + 1) + j] * u[j][i];
    for (int32_t i = 0; i < n; i++)
        y[i] *= c[i];
}

static void compute_row(const model_pass *p, const store_shape *s, int32_t unit, const float *state,
                        const recurrent_row *row)
{
    const program_step *at = p->walk.step;
    const int32_t n = n_channels(s), first = unit * n, own = row->n - 1;
    const float *b = block_row(p, at, CONV_IN, row->row) + first, *c = b + s->v_dim,
                *x = c + s->v_dim, *u[RECURRENT_BLOCK];
    float *record = (float *)(void *)row->records[own] + first;
    for (int32_t i = 0; i < n; i++)
        record[i] = b[i] * x[i];
    block_conv_inputs(u, row, u_at(s, unit), state, n, s->n_taps);
    convolve(block_row(p, at, CONV_OUT, row->row) + first, c,
             tensors_of(p, at)->taps + first * (s->n_taps + 1), u, s->n_taps, n);
}

static void compute(void *user, int32_t thread, int32_t unit, const float *state,
                    const recurrent_row *rows, int32_t n)
{
    (void)thread;
    const model_pass *p = user;
    store_shape s = {.n_layers = 0};
    sizes(&p->r->layout->shape, p->walk.step->layer, &s);
    for (int32_t i = 0; i < n; i++)
        compute_row(p, &s, unit, state, &rows[i]);
}

static void write(program_writer *w)
{
    const conv_tensors *t = w->layout->layer[w->layer].own;
    block_write_recur_norm(w);
    write_product(w, &(written_product){t->in, CONV_IN}, 1);
    block_write_recur(w);
    block_write_recur_out(w, CONV_OUT, w->layout->shape.n_embd, t->out);
}

const block_class short_conv_block = {.name = "short convolution",
                                      .bind = bind,
                                      .write = write,
                                      .needs = needs,
                                      .store = &conv_class.store,
                                      .store_shape = sizes};

/* ---- Layers ---- */

/* `layer` counts those before the first one, which others have. */
static const block_class *const *blocks_of(const model_shape *s, int32_t layer)
{
    static const block_class *const blocks[2][2][3] = {
        {{&short_conv_block, &feed_forward_block}, {&short_conv_block, &experts_block}},
        {{&attention_block, &feed_forward_block}, {&attention_block, &experts_block}}};
    const int32_t own = layer - s->first_layer;
    return blocks[layer_attention(s, own) != NULL][layer_has_experts(s, own)];
}

const arch_layers short_conv_layers = {.blocks = blocks_of, .states = true};
