/* A session: one timeline with its caches. The centre of drey is session_step. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

static void make_runner(drey_session *s, runner *r, engine_side *side, kv_cache *kv)
{
    *r = (runner){.layout = &side->layout,
                  .weights = &side->weights,
                  .kv = kv,
                  .ws = &s->ws,
                  .pool = s->engine->pool,
                  .kernels = s->engine->kernels,
                  .cancel = &s->cancel};
}

/* Ids that both models have. */
static int32_t shared_ids(const drey_engine *e)
{
    int32_t target = tokenizer_n_vocab(e->options.target->tokenizer);
    int32_t draft = tokenizer_n_vocab(e->options.draft->tokenizer);
    return target < draft ? target : draft;
}

static drey_status make_drafter(drey_session *s, drey_error *err)
{
    drey_engine *e = s->engine;
    if (e->options.drafter == DREY_DRAFTER_NGRAM)
        return drafter_ngram_open(&s->drafter, e->options.n_context + 1, err);
    if (!e->has_draft)
        return DREY_OK;
    int32_t *timeline =
        arena_take(&s->memory, (size_t)(e->options.n_context + 1) * sizeof(int32_t));
    make_runner(s, &s->draft, &e->draft, &s->draft_kv);
    model_drafter_init(&s->model_drafter, &s->draft, &s->sampler, timeline, shared_ids(e),
                       e->plan.chunk);
    s->drafter = &s->model_drafter.base;
    return DREY_OK;
}

static drey_status session_init(drey_session *s, drey_engine *e, drey_error *err)
{
    const engine_plan *p = &e->plan;
    s->engine = e;
    TRY(arena_init(&s->memory, engine_session_bytes(e), false, err));
    const model_shape *shapes[2] = {
        &e->target.layout.shape, e->has_draft ? &e->draft.layout.shape : &e->target.layout.shape};
    workspace_init(&s->ws, shapes, 2, p->chunk > p->logit_rows ? p->chunk : p->logit_rows,
                   p->logit_rows, p->max_pending, p->n_slots, e->options.n_threads, &s->memory);
    kv_format format = engine_kv_format(e);
    kv_init(&s->target_kv, shapes[0], p->n_slots, p->max_pending, format, &s->memory);
    if (e->has_draft)
        kv_init(&s->draft_kv, shapes[1], p->n_slots, p->max_pending, format, &s->memory);
    s->timeline = arena_take(&s->memory, (size_t)(e->options.n_context + 1) * sizeof(int32_t));
    make_runner(s, &s->target, &e->target, &s->target_kv);
    TRY(make_drafter(s, err));
    s->base_mark = arena_mark(&s->memory);
    return arena_check(&s->memory, err);
}

drey_status drey_session_open(drey_session **out, drey_engine *engine, drey_error *err)
{
    *out = NULL;
    if (engine->in_session)
        FAIL(err, DREY_ERR_USAGE, "the engine already carries a session; close that one first");
    drey_session *s = calloc(1, sizeof *s);
    if (!s)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a session");
    drey_status status = session_init(s, engine, err);
    engine->in_session = true;
    if (status != DREY_OK) {
        drey_session_close(&s);
        return status;
    }
    *out = s;
    return DREY_OK;
}

void drey_session_close(drey_session **session)
{
    if (!session || !*session)
        return;
    drey_session *s = *session;
    if (s->drafter)
        s->drafter->class->close(s->drafter);
    arena_free(&s->memory);
    s->engine->in_session = false;
    free(s);
    *session = NULL;
}

void drey_session_cancel(drey_session *session)
{
    atomic_store(&session->cancel, true);
}

void drey_session_reset(drey_session *s)
{
    kv_truncate(&s->target_kv, 0);
    s->n_timeline = 0;
}
