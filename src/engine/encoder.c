/* Reading an input with an encoder: see encoder.h. */
#include "engine/encoder.h"

#include "common/num.h"
#include "engine/config.h"
#include "model/pass.h"
#include "state/cache.h"
#include "state/cache_room.h"
#include "state/kept_positions.h"
#include "unit/units.h"

/* Its weights are read once per input; a ring of this size does that at the disk's speed. */
static const uint64_t ring_bytes = 4 << 20;

drey_status encoder_bind(engine_encoder *c, const drey_model *m, const encoder_needs *needs,
                         drey_error *err)
{
    if (!shape_reads(&m->shape))
        return DREY_OK;
    c->kernels = needs->kernels;
    const model_shape shape = shape_of_encoder(&m->shape);
    TRY(arena_init(&c->layout_memory, model_layout_bytes(&shape, m->file), false, err));
    TRY(encoder_layout_init(&c->layout, &m->shape, m->file, needs->kernels, &c->layout_memory,
                            err));
    uint64_t read_bytes = needs->config->reads.bytes;
    for (int32_t i = 0; read_bytes && i < c->layout.n_matrices; i++)
        weight_set_read(&c->layout.matrix[i], (int64_t)read_bytes);
    return DREY_OK;
}

/* A whole input in one pass, without logits. */
static workspace_limits limits_of(const encoder_needs *needs)
{
    return (workspace_limits){.max_rows = needs->config->n_context,
                              .max_groups = 1,
                              .max_pending = 1, /* no row has a path: they are a chain */
                              .n_slots = needs->config->n_context,
                              .n_threads = needs->config->n_threads,
                              .n_attending = 1,
                              .n_devices =
                                  needs->units ? needs->units->n - needs->units->n_clusters : 0,
                              .n_logits = GROUP_ROWS};
}

/* The cache of one layer. */
static cache_spec rows_spec(const engine_encoder *c, const encoder_needs *needs)
{
    model_shape s = c->layout.shape;
    s.n_layers = 1;
    return model_cache_spec(&s, needs->kernels->kv_plain);
}

static size_t ring_of(const engine_encoder *c)
{
    return max_size(weights_ring_least(c->layout.matrix, c->layout.n_matrices), ring_bytes);
}

static size_t memory_bytes(const engine_encoder *c, const drey_model *m, const encoder_needs *needs)
{
    const model_layout *l = &c->layout;
    const cache_spec spec = rows_spec(c, needs);
    const workspace_limits limits = limits_of(needs);
    int32_t n = needs->config->n_context;
    size_t total =
        weights_overhead_bytes(l->matrix, l->n_matrices, l->embedding, gguf_n_shards(m->file),
                               needs->config->n_threads, needs->units) +
        ring_of(c) + 4096;
    for (int32_t i = 0; i < l->n_matrices; i++)
        total += residency_arena_bytes(&l->matrix[i].residency);
    return total + workspace_bytes(&l->shape, &l->program.blocks, &limits) +
           cache_bytes(&spec, n, n);
}

uint64_t encoder_bytes(const engine_encoder *c, const drey_model *m, const encoder_needs *needs)
{
    const model_layout *l = &c->layout;
    if (!encoder_is_there(c))
        return 0;
    return c->layout_memory.size_bytes + memory_bytes(c, m, needs) +
           weights_stream_bytes(l->matrix, l->n_matrices, gguf_n_shards(m->file));
}

drey_status encoder_open(engine_encoder *c, const drey_model *m, const encoder_needs *needs,
                         drey_error *err)
{
    model_layout *l = &c->layout;
    int32_t n = needs->config->n_context;
    if (!encoder_is_there(c))
        return DREY_OK;
    TRY(arena_init(&c->memory, memory_bytes(c, m, needs), false, err));
    weights_options options = {.file = m->file,
                               .matrix = l->matrix,
                               .n_matrices = l->n_matrices,
                               .embedding = l->embedding,
                               .ring_bytes = ring_of(c),
                               .n_threads = needs->config->n_threads,
                               .units = needs->units,
                               .io = needs->config->reads.io,
                               .tuning = needs->cpu};
    TRY(weights_open(&c->weights, &options, &c->memory, err));
    TRY(model_layout_read(l, m->file, &c->weights, err));
    TRY(arena_check(&c->layout_memory, err));
    const workspace_limits limits = limits_of(needs);
    const cache_spec spec = rows_spec(c, needs);
    workspace_init(&c->ws, &l->shape, &l->program.blocks, &limits, &c->memory);
    cache_init(&c->rows, &spec, n, n, &c->memory);
    return arena_check(&c->memory, err);
}

void encoder_close(engine_encoder *c)
{
    weights_close(&c->weights);
    arena_free(&c->memory);
    arena_free(&c->layout_memory);
    *c = (engine_encoder){0};
}

/* The weights of the next input are not read before it comes. */
static drey_status run_pass(runner *r, pass_group *group, drey_error *err)
{
    model_pass p;
    TRY(pass_begin(&p, r, group, 1, err));
    weights_read_to(r->weights, NULL);
    pass_state state = PASS_CONTINUES;
    while (state != PASS_DONE) {
        TRY(pass_step(&p, 0, &state, err));
        if (state == PASS_STARVED)
            pass_wait(&p);
    }
    return pass_end(&p, err);
}

drey_status encoder_read(engine_encoder *c, pool *threads, const int32_t *ids, int32_t n,
                         text_cache *cross, const _Atomic bool *cancel, drey_error *err)
{
    runner r = {.layout = &c->layout,
                .weights = &c->weights,
                .ws = &c->ws,
                .pool = threads,
                .kernels = c->kernels,
                .cache = &c->rows,
                .cross = cross,
                .cancel = cancel};
    for (int32_t i = 0; i < n; i++)
        c->ws.rows[i] = (pass_row){.token = ids[i], .parent = i - 1};
    pass_group group = {.cache = &c->rows, .rows = c->ws.rows, .n = n, .head = HEAD_NONE};
    cache_clear(cross);
    pass_hold_from(&r, 0);
    drey_status status = run_pass(&r, &group, err);
    cache_clear(&c->rows);
    if (status == DREY_OK)
        cache_restore(cross, n);
    return status;
}
