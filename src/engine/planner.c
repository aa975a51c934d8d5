/* Planners: an engine's inputs without its memory, for callers that compare budgets. */
#include <stdlib.h>

#include "engine/engine.h"

drey_status planner_open_target(drey_planner **out, const drey_engine_options *options,
                                drey_error *err)
{
    *out = NULL;
    drey_planner *p = malloc(sizeof *p);
    if (!p)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a planner");
    drey_status status = engine_configure(&p->engine, options, NULL, err);
    if (status == DREY_OK)
        status = engine_gather_target(&p->engine, err);
    p->of_target = p->engine.inputs;
    if (status != DREY_OK)
        drey_planner_close(&p);
    *out = p;
    return status;
}

drey_status planner_take_draft(drey_planner *p, const drey_engine_options *options, drey_error *err)
{
    drey_engine *e = &p->engine;
    engine_leave_draft(e);
    config_free(&e->config);
    e->inputs = p->of_target;
    TRY(config_resolve(options, NULL, &e->config, err));
    return engine_gather_draft(e, err);
}

drey_status drey_planner_open(drey_planner **out, const drey_engine_options *options,
                              drey_error *err)
{
    TRY(planner_open_target(out, options, err));
    drey_status status = engine_gather_draft(&(*out)->engine, err);
    if (status != DREY_OK)
        drey_planner_close(out);
    return status;
}

void drey_planner_close(drey_planner **planner)
{
    if (!planner || !*planner)
        return;
    engine_release(&(*planner)->engine);
    free(*planner);
    *planner = NULL;
}

drey_status planner_make(drey_planner *p, uint64_t memory_bytes, drey_error *err)
{
    drey_engine *e = &p->engine;
    return plan_make(&e->inputs, memory_bytes ? memory_bytes : e->budget_bytes, &e->plan, err);
}

drey_status drey_planner_make(drey_planner *p, uint64_t memory_bytes, const drey_speeds *speeds,
                              drey_plan *plan, drey_error *err)
{
    drey_status status = planner_make(p, memory_bytes, err);
    if (status == DREY_OK && speeds)
        plan_predict(&p->engine.inputs, speeds, &p->engine.plan);
    *plan = p->engine.plan.report;
    return status;
}

drey_status drey_planner_visit(drey_planner *p, uint64_t memory_bytes, drey_plan_visit_fn *visit,
                               void *user, drey_error *err)
{
    TRY(planner_make(p, memory_bytes, err));
    engine_apply_plan(&p->engine);
    const model_layout *l = &p->engine.target.layout;
    for (int32_t i = 0; i < l->n_matrices; i++) {
        const weight *m = &l->matrix[i];
        uint64_t streamed = residency_streamed_bytes(&m->residency);
        bool of_experts = p->engine.inputs.model[PLAN_TARGET].matrix[i].of_experts;
        if (of_experts)
            visit(user, m->form.tensor->name, m->form.tensor->n_bytes, DREY_IN_SLOTS);
        else if (!m->residency.in_pass && !residency_is_whole(&m->residency))
            visit(user, m->form.tensor->name, m->form.tensor->n_bytes, DREY_LOOKED_UP);
        if (m->residency.n_pinned)
            visit(user, m->form.tensor->name, m->form.tensor->n_bytes - streamed, DREY_PINNED);
        if (streamed)
            visit(user, m->form.tensor->name, streamed, DREY_STREAMED);
    }
    return DREY_OK;
}

drey_status drey_plan_make(const drey_engine_options *options, const drey_speeds *speeds,
                           drey_plan *plan, drey_error *err)
{
    drey_planner *p;
    *plan = (drey_plan){0};
    TRY(drey_planner_open(&p, options, err));
    drey_status status = drey_planner_make(p, 0, speeds, plan, err);
    drey_planner_close(&p);
    return status;
}
