/* A session: one timeline with its caches. The centre of drey is session_step. */
#include <stdlib.h>
#include <string.h>

#include "engine/engine.h"

static void make_runner(drey_session *s, runner *r, engine_side *side, kv_cache *kv)
{
    *r = (runner){.layout = &side->layout,
                  .weights = &side->weights,
                  .kv = kv,
                  .ws = &side->ws,
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

/* Ids of a timeline: all positions and the root behind them. */
static size_t timeline_bytes(const drey_engine *e)
{
    return (size_t)(e->options.n_context + 1) * sizeof(int32_t);
}

static size_t policy_bytes(const drey_engine *e)
{
    const policy_class *c = policy_class_of(e->options.policy);
    return c ? arena_size(c->bytes) : 0;
}

static drey_status make_drafter(drey_session *s, drey_error *err)
{
    drey_engine *e = s->engine;
    const policy_class *c = policy_class_of(e->options.policy);
    if (c)
        s->policy = policy_init(arena_take(&s->memory, c->bytes), c, policy_size(&e->options));
    if (e->options.drafter == DREY_DRAFTER_NGRAM)
        return drafter_ngram_open(&s->drafter, e->options.n_context + 1, err);
    if (!e->has_draft)
        return DREY_OK;
    int32_t *timeline = arena_take(&s->memory, timeline_bytes(e));
    make_runner(s, &s->draft, &e->draft, &s->draft_kv);
    model_drafter_init(&s->model_drafter, &s->draft, &s->sampler, timeline, shared_ids(e),
                       e->draft.ws.limits.max_rows);
    s->drafter = &s->model_drafter.base;
    return DREY_OK;
}

size_t engine_session_state_bytes(const drey_engine *e)
{
    size_t models = e->has_draft ? 2 : 1;
    return sampler_bytes(e->target.layout.shape.n_vocab) + models * arena_size(timeline_bytes(e)) +
           policy_bytes(e) + (1 << 16);
}

size_t engine_drafter_bytes(const drey_engine *e)
{
    bool used = e->options.drafter == DREY_DRAFTER_NGRAM;
    return used ? drafter_ngram_bytes(e->options.n_context + 1) : 0;
}

kv_format engine_kv_format(const drey_engine *e)
{
    return e->options.kv == DREY_KV_Q8_0 ? KV_Q8_0 : e->kernels->kv_plain;
}

static drey_status session_init(drey_session *s, drey_engine *e, drey_error *err)
{
    const plan_result *p = &e->plan;
    s->engine = e;
    tree_reset(&s->tree, 0);
    TRY(arena_init(&s->memory, p->session_bytes, false, err));
    kv_format format = engine_kv_format(e);
    kv_init(&s->target_kv, &e->target.layout.shape, p->n_slots, p->max_pending, format, &s->memory);
    if (e->has_draft)
        kv_init(&s->draft_kv, &e->draft.layout.shape, p->n_slots, p->max_pending, format,
                &s->memory);
    s->timeline = arena_take(&s->memory, timeline_bytes(e));
    make_runner(s, &s->target, &e->target, &s->target_kv);
    TRY(make_drafter(s, err));
    s->base_mark = arena_mark(&s->memory);
    return arena_check(&s->memory, err);
}

drey_status drey_session_open(drey_session **out, drey_engine *engine, drey_error *err)
{
    *out = NULL;
    if (engine->n_sessions >= engine->options.n_sessions)
        FAIL(
            err, DREY_ERR_USAGE,
            "the engine carries %d sessions already, as many as n_sessions allows; close one first",
            engine->n_sessions);
    drey_session *s = calloc(1, sizeof *s);
    if (!s)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a session");
    drey_status status = session_init(s, engine, err);
    engine->n_sessions++;
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
    s->engine->n_sessions--;
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
