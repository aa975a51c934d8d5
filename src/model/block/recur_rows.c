/* Rows of a layer with a running state: see block.h and state/recurrent.h. */
#include <stdatomic.h>

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
