/* N-grams: the last tokens of a row's path, looked up in a table and added to a residual stream of
 * n parts, W = n D: see block.h.
 *
 *   e    = rows of a table on the disk, one for each head, one after the other
 *   k, q = norm(Key e), norm(x)                     each part by itself
 *   g_s  = (k_s . q_s) / sqrt(D), and then sign(g_s) sqrt(max(|g_s|, 1e-6))
 *   y_s  = sigmoid(g_s) Value e
 *   x   += y + silu(taps of norm(y))                of rows that are n_tokens apart
 *
 * The number of a head's row follows from the last 2 tokens, or 3, ...: rows are asked for when the
 * tokens are known, at the beginning of a pass (pass_lookup.c). A token before the text, or one at
 * or before the last end token that comes before the row's, counts as an end token.
 *
 * The state are normed y of the last rows, and their tokens; a row's record is its own. A unit is
 * some channels, and has the tokens besides: number and 1, 0 being none. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "kernel/delta.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "state/recurrent.h"

bool layer_has_ngrams(const model_shape *s, int32_t layer)
{
    return s->ngram.n_heads > 0 && s->ngram.layer == s->first_layer + layer;
}

/* ---- The store ---- */

enum { MOST_CHANNELS = 256, RECORD_TOKEN = 2 /* numbers of a record's part for its token */ };

/* Channels of a unit: as many in each, and an even number. */
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

static int32_t unit_numbers(const store_shape *s)
{
    return n_channels(s) + RECORD_TOKEN;
}

static size_t record_bytes(const store_shape *s)
{
    return (size_t)n_units(s) * (size_t)unit_numbers(s) * sizeof(float);
}

static int64_t state_numbers(const store_shape *s) /* [n_taps][n_channels], [n_heads] tokens */
{
    return (int64_t)s->n_taps * n_channels(s) + s->n_heads;
}

static float *part_of(const store_shape *s, int32_t unit, uint8_t *record)
{
    return (float *)(void *)record + unit * unit_numbers(s);
}

static void end(const store_shape *s, const kernel_table *kernels, int32_t unit, float *to,
                const float *from, uint8_t *const records[RECURRENT_BLOCK])
{
    const int32_t n = n_channels(s);
    (void)kernels;
    (void)from;
    for (int32_t i = 0; i < s->n_taps; i++, to += n)
        memcpy(to, part_of(s, unit, records[RECURRENT_BLOCK - s->n_taps + i]),
               (size_t)n * sizeof *to);
    for (int32_t i = 0; i < s->n_heads; i++)
        to[i] = part_of(s, unit, records[RECURRENT_BLOCK - s->n_heads + i])[n];
}

static const recurrent_class ngram_class = {.store = RECURRENT_STORE("n-grams"),
                                            .n_units = n_units,
                                            .record_bytes = record_bytes,
                                            .state_numbers = state_numbers,
                                            .end = end};

static void sizes(const model_shape *s, int32_t layer, store_shape *out)
{
    const ngram_shape *n = &s->ngram;
    (void)layer;
    out->v_dim = shape_width(s);
    out->n_taps = (n->n_taps - 1) * n->dilation;
    out->n_heads = n->n_tokens - 1;
}

/* ---- Rows of the table ---- */

/* The token of a position before a row's. */
static int32_t token_at(const model_pass *p, int32_t group, int32_t position)
{
    const model_layout *l = p->r->layout;
    const pass_group *g = &p->groups[group];
    const int32_t first = cache_end(g->cache) + g->first_pending;
    const float *base;
    store_shape s = {.n_layers = 0};
    int32_t n, none = l->shape.ngram.end_id;
    if (position < 0)
        return none;
    if (position >= first)
        return g->rows[position - first].token;
    sizes(&l->shape, 0, &s);
    const uint8_t *record = recurrent_record(recurrent_of(g->cache, l->ngram.state.store), g->cache,
                                             l->ngram.state.index, position, &base, &n);
    const float *tokens = base + (int64_t)s.n_taps * n_channels(&s) + s.n_heads;
    const float token =
        record ? ((const float *)(const void *)record)[n_channels(&s)] : tokens[position - n];
    return token > 0 ? (int32_t)token - 1 : none; /* also where it is no number */
}

void ngram_rows(const model_pass *p, int32_t row, int32_t token, int64_t *out)
{
    const ngram_shape *n = &p->r->layout->shape.ngram;
    const workspace *ws = p->r->ws;
    assert(row >= 0); /* passes of such models are not stopped, and no row is deferred */
    const int32_t group = ws->group[row], n_each = n->n_heads / (n->n_tokens - 1);
    const text_cache *cache = p->groups[group].cache;
    uint64_t mixed = (uint64_t)token * n->factor[0];
    int32_t position = cache_end(cache) + ws->pending[row];
    bool ended = false;
    for (int32_t i = 1, head = 0; i < n->n_tokens; i++) {
        position = ended ? -1 : recurrent_before(cache, position);
        const int32_t before = token_at(p, group, position);
        ended = before == n->end_id;
        mixed ^= (uint64_t)before * n->factor[i];
        for (int32_t j = 0; j < n_each; j++, head++)
            out[head] = n->first[head] + (int64_t)(mixed % (uint64_t)n->n[head]);
    }
}

/* ---- The block ---- */

enum {
    NGRAM_E = BUFFER_OWN, /* [B][E] */
    NGRAM_KEY,            /* [B][W]: k, and then norm(y) */
    NGRAM_VALUE,          /* [B][D] */
    NGRAM_QUERY           /* [B][W]: q, and then y */
};

static int64_t n_read(const model_shape *s)
{
    return (int64_t)s->ngram.n_heads * s->ngram.width;
}

static void needs(buffer_needs *n)
{
    const model_shape *s = n->shape;
    need_rows(n, NGRAM_E, n->n_rows, n_read(s));
    need_rows(n, NGRAM_KEY, n->n_rows, shape_width(s));
    need_rows(n, NGRAM_VALUE, n->n_rows, s->n_embd);
    need_rows(n, NGRAM_QUERY, n->n_rows, shape_width(s));
    need_acts(n, n->n_rows, n_read(s), 1);
}

static drey_status bind(binder *b, layer_layout *y)
{
    const model_shape *s = &b->layout->shape;
    const int64_t w = shape_width(s);
    ngram_tensors *t = &b->layout->ngram;
    (void)y;
    TRY(bind_looked_up(b, "per_layer_token_embd.weight", s->ngram.width, s->ngram.n_rows));
    TRY(bind_matrix(b, "ple_key.weight", w, n_read(s), &t->key));
    TRY(bind_matrix(b, "ple_value.weight", s->n_embd, n_read(s), &t->value));
    TRY(bind_vector(b, "ple_norm_key.weight", w, &t->norm_key));
    TRY(bind_vector(b, "ple_norm_query.weight", w, &t->norm_query));
    TRY(bind_vector(b, "ple_norm_conv.weight", w, &t->norm_conv));
    return bind_turned(b, "ple_conv1d.weight", s->ngram.n_taps, w, &t->taps);
}

static drey_status wait(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    return pass_wait_looked_up(p, err);
}

static void take(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    const ngram_shape *n = &p->r->layout->shape.ngram;
    for (int32_t i = from; i < to; i++)
        for (int32_t head = 0; head < n->n_heads; head++)
            pass_looked_up(p, i, head, 0, n->width,
                           block_row(p, s, NGRAM_E, i) + (int64_t)head * n->width, thread);
}

static float product_of(const float *x, const float *y, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += (double)x[i] * (double)y[i];
    return (float)(sum / sqrt((double)n));
}

/* sigmoid(sign(g) sqrt(max(|g|, 1e-6))); of 0 it is a half. */
static float gate_of(float g)
{
    const float least = 1e-6f, size = fabsf(g);
    const float root = sqrtf(size > least ? size : least);
    return 1 / (1 + exp_f32(g > 0 ? -root : g < 0 ? root : 0));
}

static void gate_row(const model_pass *p, const program_step *s, int32_t i)
{
    const ngram_tensors *t = &p->r->layout->ngram;
    const kernel_table *kernels = p->r->kernels;
    const model_shape *shape = &p->r->layout->shape;
    const int64_t n = shape->n_embd;
    const float *v = block_row(p, s, NGRAM_VALUE, i), *x = p->r->ws->x + i * pass_x_ld(p);
    for (int64_t at = 0; at < shape_width(shape); at += n) {
        float *k = block_row(p, s, NGRAM_KEY, i) + at, *q = block_row(p, s, NGRAM_QUERY, i) + at;
        kernels->rmsnorm(k, k, t->norm_key + at, n, shape->norm_eps);
        kernels->rmsnorm(q, x + at, t->norm_query + at, n, shape->norm_eps);
        const float gate = gate_of(product_of(k, q, n));
        for (int64_t j = 0; j < n; j++)
            q[j] = gate * v[j];
        kernels->rmsnorm(k, q, t->norm_conv + at, n, shape->norm_eps);
    }
}

static void gate(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    for (int32_t i = from; i < to; i++)
        gate_row(p, s, i);
}

/* A unit's channels of a row: x += y + silu(taps of norm(y)). */
static void compute_row(const model_pass *p, const store_shape *s, int32_t unit, const float *state,
                        const recurrent_row *row)
{
    const program_step *at = p->walk.step;
    const ngram_shape *shape = &p->r->layout->shape.ngram;
    const int32_t n = n_channels(s), first = unit * n, own = row->n - 1;
    float *record = part_of(s, unit, row->records[own]), sum[MOST_CHANNELS];
    const float *taps[DELTA_MOST_TAPS];
    memcpy(record, block_row(p, at, NGRAM_KEY, row->row) + first, (size_t)n * sizeof *record);
    record[n] = (float)(pass_token(p, row->row) + 1);
    for (int32_t i = 0; i < shape->n_taps; i++) {
        const int32_t t = own - (shape->n_taps - 1 - i) * shape->dilation; /* below 0: before the
                                                                              block */
        taps[i] = t < 0 ? state + (s->n_taps + t) * n : part_of(s, unit, row->records[t]);
    }
    p->r->kernels->delta->conv(sum,
                               &(conv_taps){.x = taps,
                                            .w = p->r->layout->ngram.taps + first,
                                            .ld = s->v_dim,
                                            .n_taps = shape->n_taps,
                                            .silu = true},
                               n);
    float *x = p->r->ws->x + row->row * pass_x_ld(p) + first;
    p->r->kernels->add(sum, block_row(p, at, NGRAM_QUERY, row->row) + first, n);
    p->r->kernels->add(x, sum, n);
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

static drey_status mix(model_pass *p, const program_step *s, drey_error *err)
{
    (void)s;
    (void)err;
    block_recur(p, compute);
    return DREY_OK;
}

static void write(program_writer *w)
{
    const ngram_tensors *t = &w->layout->ngram;
    write_mix(w, wait);
    write_rows(w, take);
    write_reads(w, NGRAM_E, n_read(&w->layout->shape));
    write_product(w, (written_product[]){{t->key, NGRAM_KEY}, {t->value, NGRAM_VALUE}}, 2);
    write_rows(w, gate);
    write_mix(w, mix);
}

const block_class ngram_block = {.name = "n-grams",
                                 .bind = bind,
                                 .write = write,
                                 .needs = needs,
                                 .store = &ngram_class.store,
                                 .store_shape = sizes};
