/* Memory that a session will take, for the plan and for the session. */
#include "engine/engine.h"
#include "tree/turn_log.h"
#include "sample/penalties.h"
#include "draft/blend.h"

session_sizes engine_session_bytes(const drey_engine *e)
{
    const engine_config *c = &e->config;
    const size_t timeline = (size_t)(c->n_context + 1) * sizeof(int32_t);
    return (session_sizes){
        .timeline = timeline,
        .input = encoder_is_there(&e->target.encoder) ? timeline : 0,
        .policy = c->policy ? c->policy->bytes : 0,
        .drafter = c->drafter ? c->drafter->session_bytes(&e->source) : 0,
        .blend = c->lookup != LOOKUP_OFF ? blend_bytes(e->source.in.looked_up) : 0,
        .exits = c->exit != DREY_EXIT_OFF ? EXIT_SESSION_BYTES : 0,
    };
}

size_t engine_session_state_bytes(const drey_engine *e)
{
    enum { ALIGNMENT = 1 << 16 };
    const int32_t n_vocab = e->target.layout.shape.n_vocab;
    const session_sizes b = engine_session_bytes(e);
    return sampler_bytes(n_vocab) + penalties_bytes(n_vocab, e->config.n_context) +
           arena_size(b.timeline) + arena_size(b.input) + arena_size(b.policy) +
           arena_size(b.drafter) + arena_size(b.blend) + arena_size(b.exits) +
           turn_log_bytes(e->config.trace_spans) + ALIGNMENT;
}
