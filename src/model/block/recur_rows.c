/* Rows of a layer with a running state: see block.h and state/recurrent.h. */
#include <stdatomic.h>
#include <string.h>

#include "base/fmath.h"
#include "model/binder.h"
#include "model/block/block.h"
#include "model/pass_steps.h"
#include "model/workspace.h"
#include "os/clock.h"
#include "os/pool.h"

static const layer_layout *present_layer(const model_pass *p)
{
    return layer_of(p, p->walk.step);
}

/* The place of the present step's state. */
static layer_place present_place(const model_pass *p)
{
    const model_layout *l = p->r->layout;
    const int32_t block = p->walk.step->first_buffer / BLOCK_BUFFERS;
    return l->program.blocks.class[block] == &ngram_block ? l->ngram.state
                                                          : present_layer(p)->state;
}

static recurrent_store *store_of(const model_pass *p, const text_cache *cache)
{
    return recurrent_of(cache, present_place(p).store);
}

/* The rows of one group, in the order of their paths: deferred ones, which stand after the pass's
 * own, the later the further to the front, and are committed; then its own. */
static void walk_group(model_pass *p, int32_t group, int32_t unit, recurrent_rows_fn *compute,
                       int32_t thread)
{
    const workspace *ws = p->r->ws;
    const pass_group *g = &p->groups[group];
    const int32_t end = cache_end(g->cache);
    recurrent_walk w = {.store = store_of(p, g->cache),
                        .cache = g->cache,
                        .layer = present_place(p).index,
                        .unit = unit,
                        .thread = thread};
    recurrent_walk_begin(&w, compute, p);
    for (int32_t i = p->n_rows - 1; i >= p->n_own; i--)
        if (ws->group[i] == group)
            recurrent_walk_row(&w, ws->position[i], i);
    for (int32_t i = g->first_row; i < g->first_row + g->n; i++)
        recurrent_walk_row(&w, end + ws->pending[i], i);
    recurrent_walk_end(&w);
}

/* Units of all groups, which threads take. */
typedef struct recur_units {
    model_pass *p;
    recurrent_rows_fn *compute;
    int32_t n; /* units of a group */
    _Atomic int32_t next;
} recur_units;

static void recur_thread(void *arg, int32_t thread, int32_t n_threads)
{
    recur_units *u = arg;
    (void)n_threads;
    for (int32_t i; (i = atomic_fetch_add(&u->next, 1)) < u->n * u->p->n_groups;)
        walk_group(u->p, i / u->n, i % u->n, u->compute, thread);
}

void block_recur(model_pass *p, recurrent_rows_fn *compute)
{
    const int64_t start = p->r->trace ? clock_ns() : 0;
    recur_units units = {.p = p, .compute = compute};
    int64_t n_state = 0;
    for (int32_t g = 0; g < p->n_groups; g++) {
        recurrent_store *r = store_of(p, p->groups[g].cache);
        r->kernels = p->r->kernels;
        units.n = r->n_units;
        n_state = r->n_state;
    }
    if (units.n == 1 || p->n_rows * n_state < p->r->weights->tuning.attend_alone)
        recur_thread(&units, 0, 1);
    else
        pool_run(p->r->pool, recur_thread, &units);
    for (int32_t g = 0; g < p->n_groups; g++)
        recurrent_advanced(store_of(p, p->groups[g].cache), p->groups[g].cache,
                           present_place(p).index);
    if (p->r->trace)
        trace_add(p->r->trace, 0, TRACE_ATTEND, start, clock_ns(), p->n_rows);
}

/* ---- Alike in all blocks ---- */

static const recur_tensors *tensors_of(const model_pass *p, const program_step *s)
{
    return layer_of(p, s)->own;
}

drey_status block_bind_recur(binder *b, recur_tensors *t, recurrent_rows_fn *compute)
{
    const model_shape *s = &b->layout->shape;
    t->compute = compute;
    if (!shape_has_form(s, FORM_BESIDE) && s->streams.n == 0)
        TRY(bind_vector(b, "attn_norm.weight", s->n_embd, &t->norm));
    return block_bind_sums(b, "attn_norm", &t->added);
}

static void norm(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_norm(p, tensors_of(p, s)->norm, NULL, from, to);
}

static drey_status mix(model_pass *p, const program_step *s, drey_error *err)
{
    (void)err;
    block_recur(p, tensors_of(p, s)->compute);
    return DREY_OK;
}

static void add(model_pass *p, const program_step *s, int32_t from, int32_t to, int32_t thread)
{
    (void)thread;
    block_add(p, &tensors_of(p, s)->added, from, to);
}

void block_write_recur_norm(program_writer *w)
{
    const recur_tensors *t = w->layout->layer[w->layer].own;
    if (w->layout->shape.streams.n == 0)
        write_rows(w, t->norm ? norm : block_take_normed);
    write_reads(w, BUFFER_Y, w->layout->shape.n_embd);
}

void block_write_recur(program_writer *w)
{
    write_mix(w, mix);
}

void block_write_recur_out(program_writer *w, int32_t buffer, int64_t n, const weight *out)
{
    write_reads(w, buffer, n);
    write_product(w, &(written_product){out, BUFFER_Y}, 1);
    write_rows(w, add);
}

/* ---- Convolutions ---- */

void block_conv_inputs(const float **x, const recurrent_row *row, size_t at, const float *before,
                       int64_t ld, int32_t n_taps)
{
    for (int32_t tap = 0; tap <= n_taps; tap++) {
        const int32_t t = row->n - 1 - n_taps + tap; /* below 0: before the block */
        x[tap] = t < 0 ? before + (n_taps + t) * ld
                       : (const float *)(const void *)(row->records[t] + at);
    }
}

void block_keep_inputs(float *to, uint8_t *const records[RECURRENT_BLOCK], size_t at,
                       int32_t n_taps, int64_t n)
{
    for (int32_t i = 0; i < n_taps; i++)
        memcpy(to + i * n, records[RECURRENT_BLOCK - n_taps + i] + at, (size_t)n * sizeof *to);
}

double block_softplus(double x)
{
    return x > 30 ? x : log_f64(1.0 + exp_f64(x));
}
