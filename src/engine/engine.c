/* Opening and closing an engine: options, plan, memory, threads, in this order. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include "os/memory.h"

enum { CONTEXT_MOST = 1 << 30 }; /* so that counts of slots and rows stay in range */

void drey_engine_options_init(drey_engine_options *options)
{
    *options = (drey_engine_options){.memory_bytes = DREY_MEMORY_AUTO};
}

static drey_status check_choices(drey_engine_options *o, drey_error *err)
{
    if ((unsigned)o->policy > DREY_POLICY_LLMCAD || (unsigned)o->drafter > DREY_DRAFTER_NGRAM ||
        (unsigned)o->io > DREY_IO_BUFFERED || (unsigned)o->kv > DREY_KV_Q8_0)
        FAIL(err, DREY_ERR_USAGE, "policy, drafter, io or kv is not one of those in drey.h");
    if (!o->target)
        FAIL(err, DREY_ERR_USAGE, "no target model was given");
    if ((o->drafter == DREY_DRAFTER_MODEL) != (o->draft != NULL))
        FAIL(err, DREY_ERR_USAGE, "a draft model and the drafter \"model\" go together");
    if (o->policy == DREY_POLICY_AUTO)
        o->policy = o->drafter == DREY_DRAFTER_NONE ? DREY_POLICY_NONE : DREY_POLICY_LLMCAD;
    if (o->policy == DREY_POLICY_NONE)
        o->drafter = DREY_DRAFTER_NONE; /* nothing would ask it */
    else if (o->drafter == DREY_DRAFTER_NONE)
        FAIL(err, DREY_ERR_USAGE, "a drafting policy needs a draft: a model, or \"ngram\"");
    if (o->drafter != DREY_DRAFTER_MODEL)
        o->draft = NULL;
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

static drey_status check_numbers(drey_engine_options *o, drey_error *err)
{
    if (o->n_context < 1 || o->n_context > CONTEXT_MOST)
        FAIL(err, DREY_ERR_USAGE, "a context of %d tokens is not possible (1 to %d)", o->n_context,
             CONTEXT_MOST);
    if (o->n_threads < 0 || o->n_threads > 1024)
        FAIL(err, DREY_ERR_USAGE, "%d threads are not possible (1 to 1024)", o->n_threads);
    if (o->draft_tokens < 0 || o->draft_tokens >= TREE_MAX_NODES)
        FAIL(err, DREY_ERR_USAGE, "a draft of %d tokens is not possible (1 to %d)", o->draft_tokens,
             TREE_MAX_NODES - 1);
    if (o->tree_nodes < 0 || o->tree_nodes >= TREE_MAX_NODES)
        FAIL(err, DREY_ERR_USAGE, "a tree of %d nodes is not possible (1 to %d)", o->tree_nodes,
             TREE_MAX_NODES - 1);
    if (o->prompt_chunk < 0 || o->prompt_chunk > 4096)
        FAIL(err, DREY_ERR_USAGE, "a prompt chunk of %d rows is not possible (1 to 4096)",
             o->prompt_chunk);
    TRY(stream_check_read_bytes(o->read_bytes, err));
    o->draft_tokens = o->draft_tokens ? o->draft_tokens : 8;
    o->tree_nodes = o->tree_nodes ? o->tree_nodes : 32;
    o->n_threads = o->n_threads ? o->n_threads : pool_default_threads();
    return DREY_OK;
}

drey_status engine_check_options(drey_engine *e, const drey_engine_options *options,
                                 drey_error *err)
{
    *e = (drey_engine){.options = *options};
    drey_engine_options *o = &e->options;
    TRY(check_choices(o, err));
    TRY(check_numbers(o, err));
    TRY(check_kv(o, err));
    e->kernels = kernel_select(o->cpu_tier);
    if (!e->kernels)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the CPU tier \"%s\" does not run on this machine; the best that does is %s",
             o->cpu_tier, kernel_tiers()[0]);
    e->has_draft = o->draft != NULL;
    if (e->has_draft)
        TRY(tokenizer_compare(o->target->tokenizer, o->draft->tokenizer, err));
    engine_plan *p = &e->plan;
    p->tree_nodes = o->policy == DREY_POLICY_NONE       ? 0
                    : o->policy == DREY_POLICY_SEQUENCE ? o->draft_tokens
                                                        : o->tree_nodes;
    p->report.n_threads = o->n_threads;
    p->report.n_context = o->n_context;
    p->report.budget_bytes =
        o->memory_bytes == DREY_MEMORY_AUTO ? memory_auto_budget() : o->memory_bytes;
    return DREY_OK;
}

void engine_release(drey_engine *e)
{
    weights_close(&e->target.weights);
    weights_close(&e->draft.weights);
    arena_free(&e->target.weight_memory);
    arena_free(&e->draft.weight_memory);
    arena_free(&e->target.layout_memory);
    arena_free(&e->draft.layout_memory);
    pool_close(&e->pool);
    free(e->sidecar);
    e->sidecar = NULL;
}

drey_status drey_plan_make(const drey_engine_options *options, const drey_speeds *speeds,
                           drey_plan *plan, drey_error *err)
{
    drey_engine e;
    drey_status status = engine_check_options(&e, options, err);
    if (status == DREY_OK)
        status = engine_plan_make(&e, err);
    if (status == DREY_OK && speeds)
        engine_predict(&e, speeds);
    *plan = e.plan.report;
    engine_release(&e);
    return status;
}

drey_status drey_plan_visit(const drey_engine_options *options, drey_plan_visit_fn *visit,
                            void *user, drey_error *err)
{
    drey_engine e;
    drey_status status = engine_check_options(&e, options, err);
    if (status == DREY_OK)
        status = engine_plan_make(&e, err);
    const model_layout *l = &e.target.layout;
    for (int32_t i = 0; status == DREY_OK && i < l->n_matrices; i++) {
        const weight *m = &l->matrix[i];
        uint64_t streamed = weight_streamed_bytes(m);
        if (!m->in_pass && !m->n_pinned)
            visit(user, m->tensor->name, m->tensor->n_bytes, DREY_LOOKED_UP);
        if (m->n_pinned)
            visit(user, m->tensor->name, m->tensor->n_bytes - streamed, DREY_PINNED);
        if (streamed)
            visit(user, m->tensor->name, streamed, DREY_STREAMED);
    }
    engine_release(&e);
    return status;
}

static drey_status open_side(drey_engine *e, engine_side *side, const drey_model *m,
                             size_t ring_bytes, size_t overhead_bytes, drey_error *err)
{
    model_layout *l = &side->layout;
    size_t bytes = overhead_bytes + ring_bytes + 4096;
    for (int32_t i = 0; i < l->n_matrices; i++)
        bytes += arena_size(weight_pinned_bytes(&l->matrix[i]));
    TRY(arena_init(&side->weight_memory, bytes, true, err));
    weights_options options = {.file = m->file,
                               .matrix = l->matrix,
                               .n_matrices = l->n_matrices,
                               .embedding = l->embedding,
                               .sidecar = side == &e->target ? e->sidecar : NULL,
                               .sidecar_stamp = e->sidecar_stamp,
                               .ring_bytes = ring_bytes,
                               .n_threads = e->options.n_threads,
                               .io = e->options.io,
                               .fault = e->tuning.fault,
                               .fault_user = e->tuning.fault_user};
    TRY(weights_open(&side->weights, &options, &side->weight_memory, err));
    TRY(model_layout_read(l, m->file, &side->weights, err));
    TRY(arena_check(&side->layout_memory, err));
    return arena_check(&side->weight_memory, err);
}

drey_status engine_open(drey_engine **out, const drey_engine_options *options,
                        const engine_tuning *tuning, drey_error *err)
{
    *out = NULL;
    drey_engine *e = malloc(sizeof *e);
    if (!e)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for an engine");
    memory_settle_code();
    drey_status status = engine_check_options(e, options, err);
    const engine_plan *p = &e->plan;
    if (tuning)
        e->tuning = *tuning;
    if (status == DREY_OK)
        status = engine_plan_make(e, err);
    if (status == DREY_OK)
        status = pool_open(&e->pool, e->options.n_threads, err);
    if (status == DREY_OK)
        status =
            open_side(e, &e->target, e->options.target, p->target_ring, p->target_overhead, err);
    if (status == DREY_OK && e->has_draft)
        status = open_side(e, &e->draft, e->options.draft, p->draft_ring, p->draft_overhead, err);
    if (status != DREY_OK) {
        drey_engine_close(&e);
        return status;
    }
    *out = e;
    return DREY_OK;
}

drey_status drey_engine_open(drey_engine **out, const drey_engine_options *options, drey_error *err)
{
    return engine_open(out, options, NULL, err);
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
