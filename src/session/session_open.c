/* Opening and closing a session: its memory, in the order of the plan, and what must be true of it
 * between steps. */
#include "session/exits/exits.h"
#include "session/session.h"
#include "session/sharing.h"

#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "os/clock.h"
#include "draft/blend.h"
#include "state/cache.h"
#include "state/cache_room.h"
#include "state/kv.h"
#include "store/session_file.h"
#include "unit/units.h"

/* ---- Opening ---- */

static void make_runner(drey_session *s, runner *r, engine_side *side, text_cache *cache,
                        progress_line *loading)
{
    *r = (runner){.layout = &side->layout,
                  .weights = &side->weights,
                  .cache = cache,
                  .ws = &side->ws,
                  .pool = s->engine->pool,
                  .kernels = s->engine->kernels,
                  .cancel = &s->cancel,
                  .loading = prompt_report,
                  .loading_user = loading};
}

static uint64_t load_total(const weights *w)
{
    uint64_t total = 0;
    for (int64_t i = 0; i < w->reading.n_first; i++)
        total += w->reading.first[i].n_bytes;
    return total;
}

/* Some drafters' files contain how good their guesses are, for use without a profile. */
static void seed_policy(drey_session *s, const policy_class *c)
{
    const drey_engine *e = s->engine;
    drey_profile known;
    drey_profile_init(&known);
    if (config_known(&e->config))
        known = *config_known(&e->config);
    known.trees = e->inputs.draft.trees;
    if (e->config.lookup ==
        LOOKUP_BLENDS) { /* profiles have the draft's own confidences, not mixtures */
        memset(known.guessed, 0, sizeof known.guessed);
        memset(known.right, 0, sizeof known.right);
    }
    if (config_known(&e->config) || known.trees)
        c->seed(s->policy, &known);
}

static void make_policy(drey_session *s, const policy_class *c)
{
    drey_engine *e = s->engine;
    bool measures = sharing_measures(e);
    s->policy = policy_init(arena_take(&s->memory.arena, c->bytes), c, e->config.drafted.nodes,
                            e->config.research.without);
    policy_set_numbers(s->policy, &e->config.research);
    if (e->source.out.has_right && c->expect)
        c->expect(s->policy, e->source.out.right, TREE_MAX_GUESSES,
                  e->config.lookup == LOOKUP_BLENDS);
    bool timed = drafting_may_be_timed(e->config.exit);
    if (timed && c->seed)
        seed_policy(s, c);
    if (!timed || !e->hooks.untimed)
        s->policy->cost = &e->cost;
    if (measures)
        s->policy->now_ns = clock_ns;
}

/* The cache of the output of a side's encoder, if it has one. */
static void make_cross(drey_session *s, const engine_side *side, text_cache *cache,
                       text_cache *cross)
{
    const drey_engine *e = s->engine;
    if (!encoder_is_there(&side->encoder))
        return;
    const cache_spec spec = model_cache_spec(&side->layout.shape, engine_kv_format(e));
    cache_init(cross, &spec, e->config.n_context, 0, &s->memory.arena);
    cache_set_cross(cache, cross);
}

/* The cache of the drafter's side, and a runner on it. */
static runner *make_side(drey_session *s)
{
    drey_engine *e = s->engine;
    const plan_result *p = &e->plan;
    draft_side side = engine_draft_side(e);
    if (side == DRAFT_SIDE_NONE)
        return NULL;
    const cache_spec spec = plan_cache_spec(&e->inputs, p, PLAN_DRAFT);
    if (side == DRAFT_SIDE_VIEW)
        cache_view_init(&s->draft_cache, &s->target_cache, p->draft_slots, p->draft_pending,
                        &s->memory.arena);
    else
        cache_init(&s->draft_cache, &spec, p->draft_slots, p->draft_pending, &s->memory.arena);
    make_cross(s, &e->draft, &s->draft_cache, &s->input.draft);
    s->loading[PLAN_DRAFT] =
        (progress_line){e, DREY_PROGRESS_LOAD_DRAFT, load_total(&e->draft.weights)};
    make_runner(s, &s->draft, &e->draft, &s->draft_cache, &s->loading[PLAN_DRAFT]);
    s->draft.tokens = &e->target.weights;
    return &s->draft;
}

static void make_drafter(drey_session *s)
{
    drey_engine *e = s->engine;
    const drafter_kind *kind = e->config.drafter;
    const draft_source *src = &e->source;
    if (e->config.policy)
        make_policy(s, e->config.policy);
    if (!kind)
        return;
    const session_sizes bytes = engine_session_bytes(e);
    drafter_context context = {
        .sampler = &s->sampler, .run = make_side(s), .chunk = e->draft.ws.limits.max_rows};
    s->drafter = kind->make(&e->source, &context, arena_take(&s->memory.arena, bytes.drafter));
    if (e->config.lookup != LOOKUP_OFF)
        s->drafter = blend_init(arena_take(&s->memory.arena, bytes.blend), src->in.looked_up,
                                s->drafter, &s->sampler, config_known(&e->config),
                                src->out.has_right ? src->out.right : NULL,
                                e->config.lookup == LOOKUP_PEEKS);
}

/* Devices that compute attention read the target's keys and values in place. */
static void lend_cache(drey_session *s)
{
    unit_set *us = s->engine->units;
    for (int32_t i = 0; us && i < cache_n_stores(&s->target_cache); i++) {
        const kv_store *kv = kv_in(&s->target_cache, i);
        for (int32_t side = 0; kv && side < kv_n_sides(&kv->store.shape); side++)
            units_lend(us, kv->side[side].numbers, kv_layer_bytes(kv, side),
                       kv->store.shape.n_layers);
    }
}

static void take_cache_back(drey_session *s)
{
    unit_set *us = s->engine->units;
    for (int32_t i = 0; us && i < cache_n_stores(&s->target_cache); i++) {
        const kv_store *kv = kv_in(&s->target_cache, i);
        for (int32_t side = 0; kv && side < kv_n_sides(&kv->store.shape); side++)
            units_take_back(us, kv->side[side].numbers);
    }
}

static drey_status session_init(drey_session *s, drey_engine *e, drey_error *err)
{
    const plan_result *p = &e->plan;
    const session_sizes bytes = engine_session_bytes(e);
    tree_reset(&s->tree, 0);
    TRY(arena_init(&s->memory.arena, p->session_bytes, false, err));
    const cache_spec spec = plan_cache_spec(&e->inputs, p, PLAN_TARGET);
    cache_init(&s->target_cache, &spec, p->n_slots, p->max_pending, &s->memory.arena);
    if (p->window)
        kv_file_lend(&e->target.kv_file, &s->target_cache);
    make_cross(s, &e->target, &s->target_cache, &s->input.target);
    s->input.ids = arena_take(&s->memory.arena, bytes.input);
    deferred_init(&s->deferred, &e->target.layout.shape, e->inputs.deferred_rows, &s->memory.arena);
    s->timeline = arena_take(&s->memory.arena, bytes.timeline);
    s->loading[PLAN_TARGET] =
        (progress_line){e, DREY_PROGRESS_LOAD_TARGET, load_total(&e->target.weights)};
    make_runner(s, &s->target, &e->target, &s->target_cache, &s->loading[PLAN_TARGET]);
    s->target.route = e->hooks.route.see ? &e->hooks.route : NULL;
    e->team->opened(e, &s->target);
    make_drafter(s);
    turn_log_init(&s->turns, e->config.trace_spans, &s->memory.arena);
    exits_init(s);
    s->memory.base_mark = arena_mark(&s->memory.arena);
    TRY(arena_check(&s->memory.arena, err));
    lend_cache(s);
    return DREY_OK;
}

drey_status drey_session_open(drey_session **out, drey_engine *engine, drey_error *err)
{
    *out = NULL;
    if (engine->n_sessions >= engine->config.n_sessions)
        FAIL(
            err, DREY_ERR_USAGE,
            "the engine carries %d sessions already, as many as n_sessions allows; close one first",
            engine->n_sessions);
    drey_session *s = calloc(1, sizeof *s);
    if (!s)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for a session");
    s->engine = engine;
    drey_generate_options_init(&s->text.options);
    engine->sessions[engine->n_sessions++] = s;
    drey_status status = session_init(s, engine, err);
    if (status != DREY_OK) {
        drey_session_close(&s);
        return status;
    }
    *out = s;
    return DREY_OK;
}

/* ---- Closing ---- */

void drey_session_close(drey_session **session)
{
    if (!session || !*session)
        return;
    drey_session *s = *session;
    drey_engine *e = s->engine;
    text_release_grammar(s);
    text_release(&s->text);
    take_cache_back(s);
    e->team->closed(e, &s->target_cache);
    kv_file_take_back(&s->target_cache);
    arena_free(&s->memory.arena);
    int32_t i = 0;
    while (e->sessions[i] != s)
        i++;
    for (e->n_sessions--; i < e->n_sessions; i++)
        e->sessions[i] = e->sessions[i + 1];
    free(s);
    *session = NULL;
}

/* ---- What must be true between steps ---- */

static bool draft_is_valid(const drey_session *s)
{
    const drafter *d = s->drafter;
    return !d || !d->class->is_valid || d->class->is_valid(d, s->timeline, s->n_timeline);
}

static bool deferred_are_valid(const drey_session *s)
{
    const pass_observer *o = s->observer;
    int32_t n = s->deferred.n;
    return deferred_is_valid(&s->deferred, cache_end(&s->target_cache)) &&
           s->n_unverified == (o && o->holds_back ? n : 0) &&
           (n == 0 || (o && s->state != SESSION_IDLE));
}

bool session_is_valid(const drey_session *s)
{
    const text_cache *cache = &s->target_cache;
    int32_t n = s->n_timeline, n_vocab = s->engine->target.layout.shape.n_vocab;
    bool valid = n >= 0 && n <= s->engine->config.n_context;
    for (int32_t i = 0; valid && i < n; i++)
        valid = s->timeline[i] >= 0 && s->timeline[i] < n_vocab;
    valid = valid && cache_is_valid(cache) && cache_pending(cache) == 0;
    valid = valid && cache_end(cache) <= max_i32(n - 1, 0) && s->unfinished.n_nodes == 0;
    valid = valid && deferred_are_valid(s);
    valid = valid && (s->text.detokenizer.tokenizer != NULL) == (s->state != SESSION_IDLE);
    if (!valid || s->state == SESSION_IDLE)
        return valid;
    if (s->text.done || n == 0)
        return false;
    return s->state == SESSION_PROMPT ||
           (cache_end(cache) == n - 1 && tree_is_valid(&s->tree) &&
            s->tree.nodes[0].token == s->timeline[n - 1] && draft_is_valid(s));
}
