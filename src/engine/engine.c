/* Opening and closing an engine: options, inputs, plan, memory, threads, in this order. */
#include "engine/engine.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "exit/exit_file.h"
#include "os/float_mode.h"
#include "os/memory.h"
#include "os/pool.h"
#include "state/cache_room.h"
#include "text/tokenizer.h"
#include "unit/units.h"

/* Resolves "auto" once, because its meaning changes all the time. */
static drey_status resolve_budget(drey_engine *e, drey_error *err)
{
    e->budget_bytes = e->config.memory.bytes;
    if (e->config.memory.bytes != DREY_MEMORY_AUTO)
        return DREY_OK;
    e->budget_bytes = memory_auto_budget(&e->inputs.facts.budget_is_estimate);
    if (!e->budget_bytes)
        FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
                  "the system does not say how much memory is free; give memory_bytes a number");
    return DREY_OK;
}

drey_status engine_configure(drey_engine *e, const drey_engine_options *options,
                             const engine_hooks *hooks, drey_error *err)
{
    *e = (drey_engine){.ranks = options->ranks, .team = engine_team_of(options->ranks)};
    if (hooks)
        e->hooks = *hooks;
    TRY(config_resolve(options, hooks, &e->config, err));
    const config_units *units = &e->config.units;
    e->cpu = *cpu_tuning_default();
    if (units->has_tuning)
        e->cpu.shape = engine_shape_of(&units->tuning);
    e->kernels = kernel_select_shape(units->tier, e->cpu.shape);
    if (!e->kernels)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the CPU tier \"%s\" does not run on this machine; the best that does is %s",
             units->tier, kernel_tiers()[0]);
    TRY(engine_take_units(e, err));
    return resolve_budget(e, err);
}

void engine_leave_draft(drey_engine *e)
{
    draft_source *src = &e->source;
    encoder_close(&e->draft.encoder);
    weights_close(&e->draft.weights);
    arena_free(&e->draft.weight_memory);
    arena_free(&e->draft.layout_memory);
    arena_free(&e->memory.plan);
    if (src->kind && src->kind->close)
        src->kind->close(src);
    arena_free(&src->memory);
    exit_close(&e->predictors);
    e->draft = (engine_side){0};
    *src = (draft_source){0};
}

void engine_release(drey_engine *e)
{
    prefix_close(&e->prefixes);
    kv_file_close(&e->target.kv_file);
    arena_free(&e->target.kv_memory);
    arena_free(&e->memory.prefixes);
    encoder_close(&e->target.encoder);
    weights_close(&e->target.weights);
    engine_leave_draft(e);
    arena_free(&e->target.weight_memory);
    arena_free(&e->target.layout_memory);
    units_lend_work(e->units, NULL, 0);
    arena_free(&e->memory.work);
    pool_close(&e->pool);
    units_close(&e->units);
    free(e->sidecar.path);
    e->sidecar.path = NULL;
    config_free(&e->config);
}

/* ---- Opening ---- */

void engine_apply_plan(drey_engine *e)
{
    engine_side *const sides[PLAN_MODELS] = {&e->target, &e->draft};
    for (int i = 0; i < PLAN_MODELS; i++)
        for (int32_t j = 0; j < e->inputs.model[i].n_matrices; j++)
            sides[i]->layout.matrix[j].residency = e->plan.residency[i][j];
}

/* A head over a slice of the vocabulary: tokens that a text may hold anywhere, above all those that
 * end it, are always in it. */
static drey_status open_table(engine_side *side, const tokenizer *t, drey_error *err)
{
    enum { KEPT = 64 };
    model_layout *l = &side->layout;
    if (!model_layout_is_sliced(l))
        return DREY_OK;
    int32_t ids[KEPT], n = 0, most = min_i32(KEPT, model_layout_room(l) / 2);
    row_table_init(&side->table, &side->weights, l->head, model_layout_room(l),
                   &side->weight_memory);
    TRY(arena_check(&side->weight_memory, err));
    for (int ends = 1; ends >= 0; ends--)
        for (int32_t id = (int32_t)l->head->form.n_rows; id < tokenizer_n_vocab(t) && n < most;
             id++)
            if (tokenizer_is_special(t, id) && tokenizer_is_end(t, id) == (bool)ends)
                ids[n++] = id;
    TRY(row_table_take(&side->table, ids, n, err));
    row_table_keep(&side->table);
    l->table = &side->table;
    return DREY_OK;
}

static int32_t most_rows(const drey_engine *e)
{
    const workspace_limits limits = plan_workspace(&e->inputs, &e->plan, PLAN_TARGET);
    return limits.max_rows + limits.max_deferred;
}

static drey_status open_side(drey_engine *e, int model, engine_side *side, const drey_model *m,
                             drey_error *err)
{
    model_layout *l = &side->layout;
    size_t ring = e->plan.ring_bytes[model];
    size_t bytes = (size_t)e->inputs.model[model].overhead_bytes + ring + 4096;
    for (int32_t i = 0; i < l->n_matrices; i++)
        bytes += residency_arena_bytes(&l->matrix[i].residency);
    int32_t n_slots = e->plan.expert_slots[model];
    if (l->experts)
        bytes += weights_experts_bytes(l->experts, l->shape.n_layers, n_slots, e->config.n_threads,
                                       e->units);
    TRY(arena_init(&side->weight_memory, bytes, true, err));
    weights_options options = {.file = m->file,
                               .matrix = l->matrix,
                               .n_matrices = l->n_matrices,
                               .embedding = l->embedding,
                               .looked_up = l->looked_up,
                               .experts = l->experts,
                               .n_layers = l->shape.n_layers,
                               .n_slots = n_slots,
                               .sidecar = model == PLAN_TARGET ? e->sidecar.path : NULL,
                               .sidecar_stamp = e->sidecar.stamp,
                               .ring_bytes = ring,
                               .n_threads = e->config.n_threads,
                               .units = e->units,
                               .most_rows = model == PLAN_TARGET ? most_rows(e) : 0,
                               .io = e->config.reads.io,
                               .in_turns = e->config.policy_id == DREY_POLICY_STD,
                               .tuning = &e->cpu,
                               .fault = e->hooks.fault,
                               .fault_user = e->hooks.fault_user};
    TRY(weights_open(&side->weights, &options, &side->weight_memory, err));
    TRY(model_layout_read(l, m->file, &side->weights, err));
    TRY(open_table(side, m->tokenizer, err));
    const encoder_needs needs = engine_encoder_needs(e);
    TRY(encoder_open(&side->encoder, m, &needs, err));
    TRY(arena_check(&side->layout_memory, err));
    return arena_check(&side->weight_memory, err);
}

encoder_needs engine_encoder_needs(const drey_engine *e)
{
    return (encoder_needs){
        .config = &e->config, .kernels = e->kernels, .units = e->units, .cpu = &e->cpu};
}

size_t engine_view_bytes(const drey_engine *e)
{
    const model_layout *l = &e->target.layout;
    return weights_view_bytes(l->matrix, l->n_matrices, e->config.n_threads, e->units) +
           weights_lookup_bytes(l->looked_up, e->config.n_threads) +
           arena_size((size_t)l->n_matrices * sizeof(weight));
}

/* The target as a view, with the bits that are in memory. */
static drey_status open_view(drey_engine *e, drey_error *err)
{
    engine_side *view = &e->draft;
    const model_layout *l = &e->target.layout;
    TRY(arena_init(&view->weight_memory, engine_view_bytes(e), false, err));
    weight *matrix = arena_take(&view->weight_memory, (size_t)l->n_matrices * sizeof *matrix);
    weights_view(&view->weights, &e->target.weights, matrix, &view->weight_memory);
    model_layout_view(&view->layout, l, matrix);
    return arena_check(&view->weight_memory, err);
}

/* Loads what the drafter keeps in memory besides its side. */
static drey_status load_source(drey_engine *e, drey_error *err)
{
    draft_source *src = &e->source;
    src->in.weights = &e->target.weights;
    src->in.pool = e->pool;
    if (!src->kind || !src->kind->load)
        return DREY_OK;
    TRY(arena_init(&src->memory, (size_t)(src->out.resident_bytes + src->out.work_bytes), true,
                   err));
    return src->kind->load(src, err);
}

/* One for each thread, and one for the reads of each model. */
static int32_t trace_lanes(const drey_engine *e)
{
    return e->config.n_threads + PLAN_MODELS;
}

/* Spans are recorded of the caller's thread, which shows what the engine does, and of the reads. */
size_t engine_trace_bytes(const drey_engine *e)
{
    size_t kept = arena_size((size_t)e->config.trace_spans * sizeof(trace_span));
    return trace_bytes(trace_lanes(e), 0) + (1 + PLAN_MODELS) * kept;
}

static void init_trace(drey_engine *e)
{
    int32_t n_spans = e->config.trace_spans;
    trace_init(&e->trace, trace_lanes(e), 0, &e->memory.work);
    e->trace.kinds &= ~(1u << TRACE_PACK); /* one for each group: no other would stay */
    if (n_spans)
        trace_keep(&e->trace, 0, n_spans, &e->memory.work);
    for (int32_t i = 0; n_spans && i < PLAN_MODELS; i++)
        trace_keep(&e->trace, e->config.n_threads + i, n_spans, &e->memory.work);
}

static drey_status open_workspace(drey_engine *e, drey_error *err)
{
    const plan_result *p = &e->plan;
    TRY(arena_init(&e->memory.work, p->work_bytes + engine_trace_bytes(e), false, err));
    init_trace(e);
    e->target.weights.reading.trace = e->draft.weights.reading.trace = &e->trace;
    e->target.weights.reading.trace_lane = e->config.n_threads;
    e->draft.weights.reading.trace_lane = e->config.n_threads + 1;
    workspace_limits limits = plan_workspace(&e->inputs, p, PLAN_TARGET);
    const model_layout *l = &e->target.layout;
    workspace_init(&e->target.ws, &l->shape, &l->program.blocks, &limits, &e->memory.work);
    l = &e->draft.layout;
    limits = plan_workspace(&e->inputs, p, PLAN_DRAFT);
    if (engine_draft_side(e) != DRAFT_SIDE_NONE)
        workspace_init(&e->draft.ws, &l->shape, &l->program.blocks, &limits, &e->memory.work);
    units_lend_work(e->units, e->memory.work.base, e->memory.work.size_bytes);
    return arena_check(&e->memory.work, err);
}

kv_format engine_kv_format(const drey_engine *e)
{
    return e->config.memory.kv == DREY_KV_Q8_0 ? KV_Q8_0 : e->kernels->kv_plain;
}

drey_status engine_saved_origin(const drey_engine *e, saved_origin *o, drey_error *err)
{
    return saved_origin_make(o, e->config.target->file, &e->target.layout.shape,
                             engine_kv_format(e), e->kernels->kv_plain == KV_F32, err);
}

static drey_status open_prefixes(drey_engine *e, drey_error *err)
{
    const cache_spec spec = model_cache_spec(&e->target.layout.shape, engine_kv_format(e));
    saved_origin origin;
    if (e->inputs.process.prefix_bytes == 0)
        return DREY_OK;
    TRY(engine_saved_origin(e, &origin, err));
    TRY(arena_init(&e->memory.prefixes, e->inputs.process.prefix_bytes, false, err));
    const prefix_sizes sizes = prefix_sizes_of(&spec, e->config.n_context);
    return prefix_open(&e->prefixes, &e->config.prefixes, &origin, &sizes, &e->memory.prefixes,
                       err);
}

/* The expected cost of turns, before any has been timed. If the target drafts for itself, a step of
 * the draft reads what stays of the target. */
static void begin_costs(drey_engine *e)
{
    const drey_plan *plan = &e->plan.report;
    if (!drafting_may_be_timed(e->config.exit)) {
        /* Trees have the size that is assumed to be best for a target in memory. */
        cost_init(&e->cost, plan->target_bytes, 0, plan->draft_bytes, 0);
        return;
    }
    plan_cost(&e->inputs, &e->plan, &e->cost);
    engine_add_ranks_cost(e);
    if (config_known(&e->config))
        cost_seed(&e->cost, config_known(&e->config));
}

static drey_status open_kv_file(drey_engine *e, drey_error *err)
{
    kv_file_options o = plan_kv_file(&e->inputs, &e->plan);
    if (e->plan.window == 0)
        return DREY_OK;
    o.folder = e->config.memory.kv_folder;
    o.may_be_memory = e->hooks.kv_in_memory;
    o.io = e->config.reads.io;
    o.fault = e->hooks.fault;
    o.fault_user = e->hooks.fault_user;
    TRY(arena_init(&e->target.kv_memory, kv_file_bytes(&o), false, err));
    return kv_file_open(&e->target.kv_file, &o, &e->target.kv_memory, err);
}

static drey_status open_planned(drey_engine *e, drey_error *err)
{
    engine_apply_plan(e);
    TRY(engine_open_pool(e, err));
    TRY(open_side(e, PLAN_TARGET, &e->target, e->config.target, err));
    if (e->config.draft)
        TRY(open_side(e, PLAN_DRAFT, &e->draft, e->config.draft, err));
    if (engine_draft_side(e) == DRAFT_SIDE_VIEW)
        TRY(open_view(e, err));
    TRY(load_source(e, err));
    begin_costs(e);
    TRY(open_prefixes(e, err));
    TRY(open_kv_file(e, err));
    return open_workspace(e, err);
}

static drey_status open_all(drey_engine *e, const drey_engine_options *options,
                            const engine_part *part, const engine_hooks *hooks, drey_error *err)
{
    TRY(engine_configure(e, options, hooks, err));
    if (part)
        e->config.part = *part;
    if (e->ranks)
        TRY(engine_meet_ranks(e, options, err));
    TRY(engine_gather(e, err));
    TRY(plan_make(&e->inputs, e->budget_bytes, &e->plan, err));
    if (e->ranks)
        TRY(engine_join_ranks(e, err));
    return open_planned(e, err);
}

static drey_status open_new(drey_engine **out, const drey_engine_options *options,
                            const engine_part *part, const engine_hooks *hooks, drey_error *err)
{
    *out = malloc(sizeof **out);
    if (!*out)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for an engine");
    drey_status status = open_all(*out, options, part, hooks, err);
    if (status != DREY_OK)
        drey_engine_close(out);
    return status;
}

drey_status engine_open(drey_engine **out, const drey_engine_options *options,
                        const engine_hooks *hooks, drey_error *err)
{
    return open_new(out, options, NULL, hooks, err);
}

drey_status engine_open_part(drey_engine **out, const drey_engine_options *options,
                             const engine_part *part, drey_error *err)
{
    return open_new(out, options, part, NULL, err);
}

drey_status drey_engine_open(drey_engine **out, const drey_engine_options *options, drey_error *err)
{
    float_mode caller = float_mode_enter();
    drey_status status = engine_open(out, options, NULL, err);
    float_mode_leave(caller);
    return status;
}

void drey_engine_close(drey_engine **engine)
{
    if (!engine || !*engine)
        return;
    assert((*engine)->n_sessions == 0);
    engine_release(*engine);
    free(*engine);
    *engine = NULL;
}

void drey_engine_plan(const drey_engine *engine, drey_plan *plan)
{
    *plan = engine->plan.report;
}

void drey_engine_prefixes(const drey_engine *engine, drey_prefixes *out)
{
    prefix_count(&engine->prefixes, out);
    out->memory_bytes = engine->inputs.process.prefix_bytes;
}

drey_status drey_engine_write_prefixes(drey_engine *engine, int64_t most, int64_t *n_left,
                                       drey_error *err)
{
    prefix_store *p = &engine->prefixes;
    for (int64_t i = 0; i < most && prefix_write(p); i++)
        ;
    if (n_left)
        *n_left = prefix_unwritten(p);
    if (p->count.lost_blocks > 0)
        FAIL(err, DREY_ERR_IO,
             "%lld blocks of kept prefixes could not be written to %s: its disk is full or fails; "
             "make room there, or name another folder",
             (long long)p->count.lost_blocks, SHOWN_PATH(engine->config.prefixes.folder));
    return DREY_OK;
}

void drey_settle_memory(void)
{
    memory_settle_code();
}
