/* Opening and closing an engine: options, inputs, plan, memory, threads, in this order. */
#include "engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "exit/exit_file.h"
#include "os/cpu.h"
#include "os/float_mode.h"
#include "os/memory.h"

void drey_engine_options_init(drey_engine_options *options)
{
    *options = (drey_engine_options){.memory_bytes = DREY_MEMORY_AUTO};
}

void drey_tuning_init(drey_tuning *tuning)
{
    int32_t shape = cpu_tuning_default()->shape;
    *tuning = (drey_tuning){.whole_lines = shape & SHAPE_LINES, .near_fetch = shape & SHAPE_NEAR};
}

void drey_cpu_id(char *out, size_t capacity)
{
    const cpu_identity id = cpu_identify();
    if (id.vendor[0])
        snprintf(out, capacity, "%s-%d-%d-%d", id.vendor, id.family, id.model, id.stepping);
    else
        cpu_name(out, capacity);
}

drey_engine_options engine_options_alone(const drey_engine_options *options)
{
    drey_engine_options o = *options;
    o.drafter = DREY_DRAFTER_NONE;
    o.policy = DREY_POLICY_NONE;
    o.draft = NULL;
    o.heads = NULL;
    o.exit = DREY_EXIT_OFF;
    o.profile = NULL;
    return o;
}

static drey_status check_choices(drey_engine_options *o, drey_error *err)
{
    if (!drey_policy_name(o->policy) || !drey_drafter_name(o->drafter) || !drey_io_name(o->io) ||
        !drey_kv_name(o->kv) || !drey_exit_name(o->exit))
        FAIL(err, DREY_ERR_USAGE, "policy, drafter, io, kv or exit is not one of those in drey.h");
    if (o->without >> DREY_PART_LOOKUP > 1)
        FAIL(err, DREY_ERR_USAGE, "what is to be left out is not one of the parts in drey.h");
    if (o->with & ~DREY_WITH(DREY_PART_LOOKUP) || o->with & o->without)
        FAIL(err, DREY_ERR_USAGE,
             "the part \"lookup\" alone can be asked for, and not be left out at the same time");
    if (!o->target)
        FAIL(err, DREY_ERR_USAGE, "no target model was given");
    if ((o->drafter == DREY_DRAFTER_MODEL) != (o->draft != NULL))
        FAIL(err, DREY_ERR_USAGE, "a draft model and the drafter \"model\" go together");
    if (o->heads && o->drafter != DREY_DRAFTER_MEDUSA)
        FAIL(err, DREY_ERR_USAGE, "a file of heads and the drafter \"medusa\" go together");
    if (o->policy == DREY_POLICY_AUTO)
        o->policy = o->drafter == DREY_DRAFTER_NONE ? DREY_POLICY_NONE : DREY_POLICY_OPTIMAL;
    if (o->policy == DREY_POLICY_OPTIMAL && o->drafter == DREY_DRAFTER_MEDUSA)
        o->with |= DREY_WITH(DREY_PART_LOOKUP) & ~o->without;
    if (o->policy == DREY_POLICY_DRAFT && !o->draft)
        FAIL(err, DREY_ERR_USAGE, "the policy \"draft\" lets the draft model write; give one");
    if (o->policy == DREY_POLICY_NONE || o->policy == DREY_POLICY_STD ||
        o->policy == DREY_POLICY_DRAFT)
        o->drafter = DREY_DRAFTER_NONE; /* nothing would ask it */
    else if (o->drafter == DREY_DRAFTER_NONE)
        FAIL(err, DREY_ERR_USAGE, "a drafting policy needs a draft: a model, or \"lookup\"");
    if (o->drafter != DREY_DRAFTER_MODEL)
        o->draft = NULL;
    if (o->drafter != DREY_DRAFTER_MEDUSA)
        o->heads = NULL;
    return DREY_OK;
}

/* Predictors of exits have learnt from one source of guesses. */
static bool blends(const drey_engine_options *o)
{
    return o->with & DREY_WITH(DREY_PART_LOOKUP) && o->drafter != DREY_DRAFTER_NONE &&
           o->drafter != DREY_DRAFTER_LOOKUP && o->exit == DREY_EXIT_OFF;
}

/* Exits are compared with the target's own text, which policies of another text have not; and what
 * exits leave out of the cache until later, the target itself would draft with. */
static drey_status check_exits(const drey_engine_options *o, drey_error *err)
{
    if (o->exit == DREY_EXIT_OFF)
        return DREY_OK;
    if (!(o->exit_threshold >= 0 && o->exit_threshold <= 1))
        FAIL(err, DREY_ERR_USAGE, "a threshold of %g is not possible for early exits (0 to 1)",
             (double)o->exit_threshold);
    if (drey_policy_is_lossy(o->policy) || o->policy == DREY_POLICY_STD)
        FAIL(err, DREY_ERR_USAGE,
             "early exits and the policy \"%s\" do not go together; take another policy",
             drey_policy_name(o->policy));
    if (o->drafter == DREY_DRAFTER_SELF)
        FAIL(err, DREY_ERR_USAGE,
             "early exits and the drafter \"self\" do not go together: it would draft with what "
             "exits leave undone; take another draft, or none");
    if (o->drafter == DREY_DRAFTER_MEDUSA)
        FAIL(err, DREY_ERR_USAGE,
             "early exits and the drafter \"medusa\" do not go together: it guesses from the last "
             "layer, which a pass that ended early lacks; take another draft, or none");
    return DREY_OK;
}

/* q8_0 has a scale for every 32 numbers of a head. */
static drey_status check_kv(const drey_engine_options *o, drey_error *err)
{
    const drey_model *models[] = {o->target, o->draft};
    for (int i = 0; i < 2 && o->kv == DREY_KV_Q8_0; i++)
        if (models[i] && models[i]->shape.head_dim % 32 != 0)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "a q8_0 cache needs heads of a multiple of 32 numbers; the %s's have %d; use f16",
                 i ? "draft" : "target", models[i]->shape.head_dim);
    return DREY_OK;
}

/* Positions of which a file has numbers only up to some. */
static drey_status check_context(const drey_engine_options *o, drey_error *err)
{
    const drey_model *models[] = {o->target, o->draft};
    for (int i = 0; i < 2; i++) {
        const model_shape *s = models[i] ? &models[i]->shape : NULL;
        if (s && s->context_ends && o->n_context > s->n_context_train)
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "%s has positions for %d tokens only, not for a context of %d: ask for a shorter "
                 "one",
                 SHOWN_PATH(gguf_part_path(models[i]->file, 0)), s->n_context_train, o->n_context);
    }
    return DREY_OK;
}

static drey_status check_numbers(drey_engine_options *o, drey_error *err)
{
    if (o->n_context < 1 || o->n_context > DREY_MAX_CONTEXT)
        FAIL(err, DREY_ERR_USAGE, "a context of %d tokens is not possible (1 to %d)", o->n_context,
             DREY_MAX_CONTEXT);
    if (o->n_threads < 0 || o->n_threads > DREY_MAX_THREADS)
        FAIL(err, DREY_ERR_USAGE, "%d threads are not possible (1 to %d)", o->n_threads,
             DREY_MAX_THREADS);
    if (o->draft_tokens < 0 || o->draft_tokens > TREE_MAX_DRAFTED)
        FAIL(err, DREY_ERR_USAGE, "a draft of %d tokens is not possible (1 to %d)", o->draft_tokens,
             TREE_MAX_DRAFTED);
    if (o->tree_nodes < 0 || o->tree_nodes > TREE_MAX_DRAFTED)
        FAIL(err, DREY_ERR_USAGE, "a tree of %d nodes is not possible (1 to %d)", o->tree_nodes,
             TREE_MAX_DRAFTED);
    if (o->prompt_chunk < 0 || o->prompt_chunk > DREY_MAX_PROMPT_CHUNK)
        FAIL(err, DREY_ERR_USAGE, "a prompt chunk of %d rows is not possible (1 to %d)",
             o->prompt_chunk, DREY_MAX_PROMPT_CHUNK);
    if (o->n_sessions < 0 || o->n_sessions > DREY_MAX_SESSIONS)
        FAIL(err, DREY_ERR_USAGE, "%d sessions are not possible (1 to %d)", o->n_sessions,
             DREY_MAX_SESSIONS);
    if (o->trace_spans < 0 || o->trace_spans > DREY_MAX_TRACE_SPANS)
        FAIL(err, DREY_ERR_USAGE, "a trace of %d spans is not possible (0 to %d)", o->trace_spans,
             DREY_MAX_TRACE_SPANS);
    TRY(stream_check_read_bytes(o->read_bytes, err));
    o->n_sessions = o->n_sessions ? o->n_sessions : 1;
    return DREY_OK;
}

/* What "auto" means changes by the moment: it is asked once. */
static drey_status settle_budget(drey_engine *e, drey_error *err)
{
    e->budget_bytes = e->options.memory_bytes;
    if (e->options.memory_bytes != DREY_MEMORY_AUTO)
        return DREY_OK;
    e->budget_bytes = memory_auto_budget(&e->inputs.budget_is_estimate);
    if (!e->budget_bytes)
        FAIL_HINT(err, DREY_ERR_MEMORY, DREY_HINT_MEMORY_BYTES,
                  "the system does not say how much memory is free; give memory_bytes a number");
    return DREY_OK;
}

drey_status engine_check_options(drey_engine *e, const drey_engine_options *options,
                                 const engine_tuning *tuning, drey_error *err)
{
    *e = (drey_engine){.options = *options};
    if (tuning)
        e->tuning = *tuning;
    drey_engine_options *o = &e->options;
    TRY(check_choices(o, err));
    TRY(check_exits(o, err));
    TRY(check_numbers(o, err));
    TRY(check_context(o, err));
    TRY(check_kv(o, err));
    e->cpu = *cpu_tuning_default();
    if (o->tuning)
        e->cpu.shape =
            (o->tuning->whole_lines ? SHAPE_LINES : 0) | (o->tuning->near_fetch ? SHAPE_NEAR : 0);
    o->tuning = NULL; /* the caller's may go */
    if (o->prefixes)
        e->prefix_options = *o->prefixes;
    o->prefixes = NULL;
    TRY(engine_take_profile(e, err));
    e->kernels = kernel_select_shape(o->cpu_tier, e->cpu.shape);
    if (!e->kernels)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the CPU tier \"%s\" does not run on this machine; the best that does is %s",
             o->cpu_tier, kernel_tiers()[0]);
    TRY(engine_take_units(e, err));
    const drey_model *draft = options->draft; /* also the one that writes alone */
    if (draft && (o->draft || o->policy == DREY_POLICY_DRAFT))
        TRY(tokenizer_compare(o->target->tokenizer, draft->tokenizer, err));
    if (o->policy == DREY_POLICY_DRAFT) {
        o->target = draft;
        o->sidecar = NULL; /* of the other model */
    }
    e->has_draft = o->draft != NULL;
    e->self_draft = o->drafter == DREY_DRAFTER_SELF;
    e->has_heads = o->drafter == DREY_DRAFTER_MEDUSA;
    e->blends = blends(o);
    return settle_budget(e, err);
}

void engine_release(drey_engine *e)
{
    prefix_close(&e->prefixes);
    arena_free(&e->prefix_memory);
    weights_close(&e->target.weights);
    weights_close(&e->draft.weights);
    arena_free(&e->target.weight_memory);
    arena_free(&e->draft.weight_memory);
    arena_free(&e->target.layout_memory);
    arena_free(&e->draft.layout_memory);
    arena_free(&e->plan_memory);
    arena_free(&e->work_memory);
    arena_free(&e->heads_memory);
    medusa_close(&e->heads);
    exit_close(&e->predictors);
    pool_close(&e->pool);
    units_close(&e->units);
    free(e->sidecar);
    e->sidecar = NULL;
}

/* ---- Opening ---- */

void engine_apply_plan(drey_engine *e)
{
    engine_side *const sides[PLAN_MODELS] = {&e->target, &e->draft};
    for (int i = 0; i < PLAN_MODELS; i++)
        for (int32_t j = 0; j < e->inputs.model[i].n_matrices; j++)
            sides[i]->layout.matrix[j].n_pinned = e->plan.n_pinned[i][j];
    const model_layout *target = &e->target.layout;
    for (int32_t j = 0; e->plan.n_planes && j < target->n_matrices; j++)
        memcpy(target->matrix[j].n_planes, e->plan.n_planes[j], sizeof target->matrix[j].n_planes);
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
        for (int32_t id = (int32_t)l->head->n_rows; id < tokenizer_n_vocab(t) && n < most; id++)
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
        bytes += weight_memory_bytes(&l->matrix[i]);
    TRY(arena_init(&side->weight_memory, bytes, true, err));
    weights_options options = {.file = m->file,
                               .matrix = l->matrix,
                               .n_matrices = l->n_matrices,
                               .embedding = l->embedding,
                               .sidecar = model == PLAN_TARGET ? e->sidecar : NULL,
                               .sidecar_stamp = e->sidecar_stamp,
                               .ring_bytes = ring,
                               .n_threads = e->options.n_threads,
                               .units = e->units,
                               .most_rows = model == PLAN_TARGET ? most_rows(e) : 0,
                               .io = e->options.io,
                               .in_turns = e->options.policy == DREY_POLICY_STD,
                               .tuning = &e->cpu,
                               .fault = e->tuning.fault,
                               .fault_user = e->tuning.fault_user};
    TRY(weights_open(&side->weights, &options, &side->weight_memory, err));
    TRY(model_layout_read(l, m->file, &side->weights, err));
    TRY(open_table(side, m->tokenizer, err));
    TRY(arena_check(&side->layout_memory, err));
    return arena_check(&side->weight_memory, err);
}

size_t engine_view_bytes(const drey_engine *e)
{
    const model_layout *l = &e->target.layout;
    return weights_view_bytes(l->matrix, l->n_matrices, e->options.n_threads, e->units) +
           arena_size((size_t)l->n_matrices * sizeof(weight)) + model_layout_view_bytes(l);
}

/* The target once more, with the bits that are in memory. */
static drey_status open_view(drey_engine *e, drey_error *err)
{
    engine_side *view = &e->draft;
    const model_layout *l = &e->target.layout;
    TRY(arena_init(&view->weight_memory, engine_view_bytes(e), false, err));
    weight *matrix = arena_take(&view->weight_memory, (size_t)l->n_matrices * sizeof *matrix);
    weights_view(&view->weights, &e->target.weights, matrix, &view->weight_memory);
    model_layout_view(&view->layout, l, matrix, &view->weight_memory);
    return arena_check(&view->weight_memory, err);
}

static drey_status open_heads(drey_engine *e, drey_error *err)
{
    const weight *head = e->target.layout.head;
    size_t bytes = medusa_weight_bytes(&e->heads, head) + medusa_work_bytes(&e->heads, head);
    TRY(arena_init(&e->heads_memory, bytes, true, err));
    return medusa_load(&e->heads, &e->target.weights, head, e->pool, &e->heads_memory, err);
}

/* One for each thread, and one for the reads of each model. */
static int32_t trace_lanes(const drey_engine *e)
{
    return e->options.n_threads + PLAN_MODELS;
}

/* Spans are kept of the caller's thread, which tells what the engine does, and of the reads. */
size_t engine_trace_bytes(const drey_engine *e)
{
    size_t kept = arena_size((size_t)e->options.trace_spans * sizeof(trace_span));
    return trace_bytes(trace_lanes(e), 0) + (1 + PLAN_MODELS) * kept;
}

static void init_trace(drey_engine *e)
{
    int32_t n_spans = e->options.trace_spans;
    trace_init(&e->trace, trace_lanes(e), 0, &e->work_memory);
    e->trace.kinds &= ~(1u << TRACE_PACK); /* one for each group: no other would stay */
    if (n_spans)
        trace_keep(&e->trace, 0, n_spans, &e->work_memory);
    for (int32_t i = 0; n_spans && i < PLAN_MODELS; i++)
        trace_keep(&e->trace, e->options.n_threads + i, n_spans, &e->work_memory);
}

static drey_status open_workspace(drey_engine *e, drey_error *err)
{
    const plan_result *p = &e->plan;
    TRY(arena_init(&e->work_memory, p->work_bytes + engine_trace_bytes(e), false, err));
    init_trace(e);
    e->target.weights.trace = e->draft.weights.trace = &e->trace;
    e->target.weights.trace_lane = e->options.n_threads;
    e->draft.weights.trace_lane = e->options.n_threads + 1;
    workspace_limits limits = plan_workspace(&e->inputs, p, PLAN_TARGET);
    workspace_init(&e->target.ws, &e->target.layout.shape, &limits, &e->work_memory);
    limits = plan_workspace(&e->inputs, p, PLAN_DRAFT);
    if (e->has_draft || e->self_draft)
        workspace_init(&e->draft.ws, &e->draft.layout.shape, &limits, &e->work_memory);
    return arena_check(&e->work_memory, err);
}

drey_status engine_saved_origin(const drey_engine *e, saved_origin *o, drey_error *err)
{
    return saved_origin_make(o, e->options.target->file, &e->target.layout.shape,
                             engine_kv_format(e), e->kernels->kv_plain == KV_F32, err);
}

static drey_status open_prefixes(drey_engine *e, drey_error *err)
{
    drey_prefix_options *o = &e->prefix_options;
    saved_origin origin;
    if (e->inputs.prefix_bytes == 0)
        return DREY_OK;
    TRY(engine_saved_origin(e, &origin, err));
    TRY(arena_init(&e->prefix_memory, e->inputs.prefix_bytes, false, err));
    drey_status status = prefix_open(
        &e->prefixes, o, &origin, prefix_block_bytes(&e->target.layout.shape, engine_kv_format(e)),
        e->options.n_context, &e->prefix_memory, err);
    o->folder = NULL; /* the caller's may go */
    return status;
}

/* What turns are expected to cost, before any has been timed. A step of the draft reads what stays
 * of the target, where that drafts for itself. */
static void begin_costs(drey_engine *e)
{
    const drey_plan *plan = &e->plan.report;
    uint64_t step_bytes = e->inputs.self_draft ? plan->pinned_bytes : plan->draft_bytes;
    if (!drafting_may_be_timed(e->options.exit)) {
        /* Trees are as large as is assumed to be best for a target in memory. */
        cost_init(&e->cost, plan->target_bytes, 0, plan->draft_bytes, 0);
        return;
    }
    cost_init(&e->cost, plan->target_bytes, plan->streamed_bytes_per_pass, step_bytes,
              plan->ring_bytes);
    if (e->options.profile)
        cost_seed(&e->cost, e->options.profile);
}

static drey_status open_planned(drey_engine *e, drey_error *err)
{
    engine_apply_plan(e);
    TRY(engine_open_pool(e, err));
    TRY(open_side(e, PLAN_TARGET, &e->target, e->options.target, err));
    if (e->has_draft)
        TRY(open_side(e, PLAN_DRAFT, &e->draft, e->options.draft, err));
    if (e->self_draft)
        TRY(open_view(e, err));
    if (e->has_heads)
        TRY(open_heads(e, err));
    begin_costs(e);
    TRY(open_prefixes(e, err));
    return open_workspace(e, err);
}

drey_status engine_open(drey_engine **out, const drey_engine_options *options,
                        const engine_tuning *tuning, drey_error *err)
{
    drey_status status;
    *out = NULL;
    drey_engine *e = malloc(sizeof *e);
    if (!e)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for an engine");
    if ((status = engine_check_options(e, options, tuning, err)) != DREY_OK)
        goto fail;
    if ((status = engine_gather(e, err)) != DREY_OK)
        goto fail;
    if ((status = plan_make(&e->inputs, e->budget_bytes, &e->plan, err)) != DREY_OK)
        goto fail;
    if ((status = open_planned(e, err)) != DREY_OK)
        goto fail;
    *out = e;
    return DREY_OK;
fail:
    drey_engine_close(&e);
    return status;
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
    out->memory_bytes = engine->inputs.prefix_bytes;
}

void drey_settle_memory(void)
{
    memory_settle_code();
}
