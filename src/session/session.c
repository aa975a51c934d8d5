/* A session: opened, written step by step, truncated, closed. See session.h for its states. */
#include "draft/draft.h"
#include "session/exits.h"
#include "session/overlap.h"
#include "session/sharing.h"
#include "session/step.h"
#include "session/verified_text.h"
#include "store/store.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "os/clock.h"
#include "os/float_mode.h"

/* ---- Opening and closing ---- */

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

/* Ids of a timeline: all positions and the root after them. */
static size_t timeline_bytes(const drey_engine *e)
{
    return (size_t)(e->config.n_context + 1) * sizeof(int32_t);
}

static size_t input_bytes(const drey_engine *e)
{
    return encoder_is_there(&e->target.encoder) ? timeline_bytes(e) : 0;
}

static size_t policy_bytes(const drey_engine *e)
{
    return e->config.policy ? e->config.policy->bytes : 0;
}

static size_t drafter_bytes(const drey_engine *e)
{
    const drafter_kind *kind = e->config.drafter;
    return kind ? kind->session_bytes(&e->source) : 0;
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

static size_t blend_session_bytes(const drey_engine *e)
{
    return e->config.lookup != LOOKUP_OFF ? blend_bytes(e->source.looked_up) : 0;
}

static void make_policy(drey_session *s, const policy_class *c)
{
    drey_engine *e = s->engine;
    bool measures = sharing_measures(e);
    s->policy = policy_init(arena_take(&s->memory.arena, c->bytes), c, e->config.drafted.nodes,
                            e->config.without);
    policy_set_numbers(s->policy, &e->config.numbers);
    if (e->source.has_trees && c->expect)
        c->expect(s->policy, e->source.right, TREE_MAX_GUESSES, e->config.lookup == LOOKUP_BLENDS);
    bool timed = drafting_may_be_timed(e->config.exit);
    if (timed && c->seed)
        seed_policy(s, c);
    if (!timed || !e->tuning.untimed)
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
    const cache_spec spec = model_cache_spec(&e->draft.layout.shape, engine_kv_format(e));
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
    draft_seat seat = {
        .sampler = &s->sampler, .run = make_side(s), .chunk = e->draft.ws.limits.max_rows};
    s->drafter = kind->make(&e->source, &seat, arena_take(&s->memory.arena, drafter_bytes(e)));
    if (e->config.lookup != LOOKUP_OFF)
        s->drafter =
            blend_init(arena_take(&s->memory.arena, blend_session_bytes(e)), src->looked_up,
                       s->drafter, &s->sampler, config_known(&e->config),
                       src->has_trees ? src->right : NULL, e->config.lookup == LOOKUP_PEEKS);
}

size_t engine_session_state_bytes(const drey_engine *e)
{
    int32_t n_vocab = e->target.layout.shape.n_vocab;
    return sampler_bytes(n_vocab) + penalties_bytes(n_vocab, e->config.n_context) +
           arena_size(timeline_bytes(e)) + arena_size(input_bytes(e)) +
           arena_size(policy_bytes(e)) + arena_size(drafter_bytes(e)) +
           arena_size(blend_session_bytes(e)) + turn_log_bytes(e->config.trace_spans) +
           exits_bytes(e) + (1 << 16);
}

kv_format engine_kv_format(const drey_engine *e)
{
    return e->config.kv == DREY_KV_Q8_0 ? KV_Q8_0 : e->kernels->kv_plain;
}

/* Devices that compute attention read the target's keys and values in place. */
static void lend_cache(drey_session *s)
{
    const kv_store *kv = kv_of(&s->target_cache);
    unit_set *us = s->engine->units;
    for (int32_t side = 0; us && side < kv_n_sides(&kv->store.shape); side++)
        units_lend(us, kv->side[side].numbers, kv_layer_bytes(kv, side), kv->store.shape.n_layers);
}

static void take_cache_back(drey_session *s)
{
    const kv_store *kv = kv_of(&s->target_cache);
    for (int32_t side = 0; s->engine->units && side < kv_n_sides(&kv->store.shape); side++)
        units_take_back(s->engine->units, kv->side[side].numbers);
}

static drey_status session_init(drey_session *s, drey_engine *e, drey_error *err)
{
    const plan_result *p = &e->plan;
    tree_reset(&s->tree, 0);
    TRY(arena_init(&s->memory.arena, p->session_bytes, false, err));
    cache_spec spec = model_cache_spec(&e->target.layout.shape, engine_kv_format(e));
    spec.max_deferred = e->inputs.deferred_rows;
    cache_init(&s->target_cache, &spec, p->n_slots, p->max_pending, &s->memory.arena);
    if (p->window)
        kv_file_lend(&e->target.kv_file, &s->target_cache);
    make_cross(s, &e->target, &s->target_cache, &s->input.target);
    s->input.ids = arena_take(&s->memory.arena, input_bytes(e));
    deferred_init(&s->deferred, &e->target.layout.shape, e->inputs.deferred_rows, &s->memory.arena);
    s->timeline = arena_take(&s->memory.arena, timeline_bytes(e));
    s->loading[PLAN_TARGET] =
        (progress_line){e, DREY_PROGRESS_LOAD_TARGET, load_total(&e->target.weights)};
    make_runner(s, &s->target, &e->target, &s->target_cache, &s->loading[PLAN_TARGET]);
    s->target.route = e->tuning.route.see ? &e->tuning.route : NULL;
    if (e->tuning.part.ranks) {
        s->target.beyond = &e->tuning.part.ranks->beyond;
        ranks_open_cache(e->tuning.part.ranks, &s->target_cache);
    }
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

/* The text's memory. */
static void release_text(generation *g)
{
    detokenizer_free(&g->detokenizer);
    detokenizer_free(&g->provisional.detokenizer);
    free(g->stops);
    free(g->biases);
    g->stops = NULL;
    g->biases = NULL;
}

/* Another text may have it now. */
static void release_grammar(drey_session *s)
{
    drey_grammar *grammar = s->text.options.grammar;
    if (!grammar)
        return;
    grammar_hold(grammar, NULL, 0);
    *grammar_in_use(grammar) = false;
    s->text.options.grammar = s->tree.grammar = NULL;
}

void drey_session_close(drey_session **session)
{
    if (!session || !*session)
        return;
    drey_session *s = *session;
    drey_engine *e = s->engine;
    release_grammar(s);
    release_text(&s->text);
    take_cache_back(s);
    if (e->tuning.part.ranks)
        ranks_close_cache(e->tuning.part.ranks, &s->target_cache);
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

/* ---- The timeline ---- */

static drey_status check_ids(const drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    int32_t n_vocab = tokenizer_n_vocab(s->engine->config.target->tokenizer);
    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || ids[i] >= n_vocab)
            FAIL(err, DREY_ERR_USAGE, "token id %d does not exist; the model has ids 0 to %d",
                 ids[i], n_vocab - 1);
    return DREY_OK;
}

/* Whether n more tokens, and one to write, fit after the first `from`. */
static drey_status check_room(const drey_session *s, int32_t from, size_t n, drey_error *err)
{
    int32_t room = max_i32(s->engine->config.n_context - from, 0);
    if (n >= (size_t)room)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "the prompt has %zu tokens, but the context has room for %d (one of them to "
                  "write); shorten the prompt or take a larger context",
                  n, room);
    return DREY_OK;
}

/* Keeps the first `n` tokens, and at most `known` positions of the cache. Returns how many of
 * those: the next text reads what is missing. The draft finds what it can keep when it gets the
 * timeline. */
static int32_t cut(drey_session *s, int32_t n, int32_t known)
{
    s->n_timeline = s->text.n_kept = n;
    known = min_i32(known, cache_end(&s->target_cache));
    return known < cache_end(&s->target_cache) ? cache_cut(&s->target_cache, known) : known;
}

void session_forget(drey_session *s, int32_t n)
{
    int32_t stay = cache_cut(&s->target_cache, n);
    assert(stay == n);
    (void)stay;
}

static void append(drey_session *s, const int32_t *ids, size_t n)
{
    if (n)
        memcpy(s->timeline + s->n_timeline, ids, n * sizeof *ids);
    s->n_timeline += (int32_t)n;
}

void session_take_timeline(drey_session *s, const int32_t *ids, int32_t n)
{
    assert(s->state == SESSION_IDLE && s->n_timeline == 0 && cache_end(&s->target_cache) < n);
    append(s, ids, (size_t)n);
    assert(session_is_valid(s));
}

/* ---- The input of an encoder ---- */

/* How many tokens a decoder's timeline begins with, before those that the model writes. */
static int32_t n_given(const drey_session *s)
{
    return s->engine->target.layout.shape.encoder.forced_id >= 0 ? 2 : 1;
}

static drey_status check_input(const drey_session *s, size_t n, drey_error *err)
{
    const model_shape *shape = &s->engine->target.layout.shape;
    int32_t room = s->engine->config.n_context;
    if (n_given(s) > room)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "the model's texts begin with %d tokens, which is more than the context has; "
                  "take a larger one",
                  n_given(s));
    if (n > (size_t)room && shape->context.ends && room == shape->n_context_train)
        FAIL(
            err, DREY_ERR_CONTEXT,
            "the input has %zu tokens, but the model has positions for %d only; shorten the prompt",
            n, room);
    if (n > (size_t)room)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "the input has %zu tokens, but the context lets the encoder read %d; shorten the "
                  "prompt or take a larger context",
                  n, room);
    return DREY_OK;
}

/* Makes ids[0..n) the input and begins the timeline. True: it was the input before. */
static bool set_input(drey_session *s, const int32_t *ids, size_t n)
{
    session_input *in = &s->input;
    const encoder_shape *e = &s->engine->target.layout.shape.encoder;
    bool same = n == (size_t)in->n && (n == 0 || memcmp(in->ids, ids, n * sizeof *ids) == 0);
    if (!same) {
        if (n)
            memcpy(in->ids, ids, n * sizeof *ids);
        in->n = (int32_t)n;
        in->unread = true;
        cache_clear(&s->draft_cache);
    }
    cut(s, 0, 0);
    if (n)
        append(s, (int32_t[]){e->start_id, e->forced_id}, (size_t)n_given(s));
    return same;
}

static drey_status sync_input(drey_session *s, const int32_t *ids, size_t n, size_t *n_kept,
                              drey_error *err)
{
    TRY(check_ids(s, ids, n, err));
    TRY(check_input(s, n, err));
    session_end(s, DREY_FINISH_INTERRUPTED);
    bool same = set_input(s, ids, n);
    if (n_kept)
        *n_kept = same ? n : 0;
    assert(session_is_valid(s));
    return DREY_OK;
}

drey_status session_read_input(drey_session *s, drey_error *err)
{
    drey_engine *e = s->engine;
    session_input *in = &s->input;
    if (!in->unread)
        return DREY_OK;
    int64_t start = clock_ns();
    TRY(encoder_read(&e->target.encoder, e->pool, in->ids, in->n, &in->target, &s->cancel, err));
    if (encoder_is_there(&e->draft.encoder))
        TRY(encoder_read(&e->draft.encoder, e->pool, in->ids, in->n, &in->draft, &s->cancel, err));
    if (s->drafter && s->drafter->class->take_input)
        s->drafter->class->take_input(s->drafter, in->ids, in->n);
    trace_add(&e->trace, 0, TRACE_PROMPT, start, clock_ns(), in->n);
    in->unread = false;
    progress_line line = {e, DREY_PROGRESS_PROMPT, (uint64_t)in->n};
    prompt_report(&line, line.total);
    return DREY_OK;
}

drey_status drey_session_sync(drey_session *s, const int32_t *ids, size_t n, size_t *n_kept,
                              drey_error *err)
{
    if (session_reads_input(s))
        return sync_input(s, ids, n, n_kept, err);
    TRY(check_ids(s, ids, n, err));
    TRY(check_room(s, 0, n, err));
    session_end(s, DREY_FINISH_INTERRUPTED);
    int32_t same = 0, most = min_i32(s->n_timeline, (int32_t)n);
    while (same < most && s->timeline[same] == ids[same])
        same++;
    int32_t known = cut(s, same, min_i32(same, max_i32((int32_t)n - 1, 0)));
    append(s, ids + same, n - (size_t)same);
    if (n_kept)
        *n_kept = (size_t)known;
    assert(session_is_valid(s));
    return DREY_OK;
}

drey_status drey_session_truncate(drey_session *s, size_t n, drey_error *err)
{
    int32_t n_verified = session_n_verified(s);
    if (n > (size_t)n_verified)
        FAIL(err, DREY_ERR_USAGE, "the first %zu tokens cannot be kept: the session has %d", n,
             n_verified);
    session_end(s, DREY_FINISH_INTERRUPTED);
    cut(s, (int32_t)n, max_i32((int32_t)n - 1, 0));
    assert(session_is_valid(s));
    return DREY_OK;
}

void drey_session_reset(drey_session *s)
{
    drey_session_truncate(s, 0, NULL);
}

/* ---- Writing ---- */

void drey_generate_options_init(drey_generate_options *options)
{
    *options = (drey_generate_options){.n_predict = 512, .sampling = {.top_p = 1.0f}};
}

static drey_status copy_stops(generation *g, drey_error *err)
{
    size_t n = g->options.n_stops, bytes = n * sizeof(char *);
    if (n == 0)
        return DREY_OK;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(g->options.stops[i]) + 1;
    g->stops = malloc(bytes);
    if (!g->stops)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for %zu stop texts", n);
    char *text = (char *)(g->stops + n);
    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(g->options.stops[i]) + 1;
        g->stops[i] = memcpy(text, g->options.stops[i], length);
        text += length;
    }
    g->options.stops = (const char *const *)g->stops;
    return DREY_OK;
}

static drey_status copy_biases(drey_session *s, drey_error *err)
{
    generation *g = &s->text;
    size_t n = (size_t)g->options.n_biases;
    if (n == 0)
        return DREY_OK;
    g->biases = malloc(n * (sizeof *g->biases + sizeof(float)));
    if (!g->biases)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for %zu biases", n);
    memcpy(g->biases, g->options.biases, n * sizeof *g->biases);
    g->options.biases = s->sampler.biases = g->biases;
    s->sampler.unbiased = (float *)(g->biases + n);
    s->sampler.n_biases = (int32_t)n;
    return DREY_OK;
}

static drey_status check_biases(const drey_session *s, const drey_generate_options *o,
                                drey_error *err)
{
    int32_t n_vocab = tokenizer_n_vocab(s->engine->config.target->tokenizer);
    for (int32_t i = 0; i < o->n_biases; i++)
        if (o->biases[i].id < 0 || o->biases[i].id >= n_vocab || isnan(o->biases[i].bias))
            FAIL(err, DREY_ERR_USAGE,
                 "the bias %g of token id %d: the model has ids 0 to %d, and a bias is a number",
                 (double)o->biases[i].bias, o->biases[i].id, n_vocab - 1);
    if (o->n_biases < 0 || o->n_top < 0 || o->n_top > DREY_MAX_TOP)
        FAIL(err, DREY_ERR_USAGE, "%d biases and the %d most likely tokens: 0 to %d of those",
             o->n_biases, o->n_top, DREY_MAX_TOP);
    if (o->on_logprobs && s->observer)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "log-probabilities are known of passes that go to their end: open the engine without "
             "early exits");
    return DREY_OK;
}

static drey_status check_grammar(const drey_session *s, const drey_generate_options *o,
                                 drey_error *err)
{
    drey_grammar *g = o->grammar;
    if (!g)
        return DREY_OK;
    if (grammar_tokenizer(g) != s->engine->config.target->tokenizer)
        FAIL(err, DREY_ERR_USAGE, "the grammar was opened for another model; open it for this one");
    if (*grammar_in_use(g))
        FAIL(err, DREY_ERR_USAGE,
             "another text is being written with this grammar; open one for each");
    if (o->ignore_eos)
        FAIL(err, DREY_ERR_USAGE,
             "a text with a grammar ends where the grammar says: do not ignore its end");
    if (s->observer)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "grammars are for passes that go to their end: open the engine without early exits");
    if (session_reads_input(s))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the model has an encoder, and its texts have no grammars; write it without one");
    return DREY_OK;
}

static drey_status check_penalties(const drey_session *s, const drey_penalties *p, drey_error *err)
{
    if (!p)
        return DREY_OK;
    TRY(penalties_check(p, err));
    if (s->observer && penalties_are_there(p))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "penalties are for passes that go to their end: open the engine without early exits");
    return DREY_OK;
}

static drey_status check_options(const drey_session *s, const drey_generate_options *o,
                                 drey_error *err)
{
    if (s->state != SESSION_IDLE)
        FAIL(err, DREY_ERR_USAGE, "the session is writing a text already; end that one first");
    if (o->n_predict < 1)
        FAIL(err, DREY_ERR_USAGE, "at least one token must be asked for, not %d", o->n_predict);
    if (o->no_draft && s->observer)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "early exits look at what was guessed: let this text be drafted for, or open the "
             "engine without early exits");
    TRY(check_grammar(s, o, err));
    TRY(check_penalties(s, o->sampling.penalties, err));
    return check_biases(s, o, err);
}

drey_status session_set_sampling(drey_session *s, const drey_sampling *settings, drey_error *err)
{
    int32_t n_vocab = tokenizer_n_vocab(s->engine->config.target->tokenizer);
    arena_rewind(&s->memory.arena, s->memory.base_mark);
    TRY(sampler_init(&s->sampler, settings, n_vocab, s->engine->kernels, &s->memory.arena, err));
    return arena_check(&s->memory.arena, err);
}

static bool holds_breaker(const char *text, size_t n, const drey_penalties *p)
{
    for (size_t b = 0; b < p->n_dry_breakers; b++) {
        size_t length = strlen(p->dry_breakers[b]);
        for (size_t i = 0; length > 0 && i + length <= n; i++)
            if (memcmp(text + i, p->dry_breakers[b], length) == 0)
                return true;
    }
    return false;
}

/* Repetitions end at these tokens. */
static drey_status find_breaks(drey_session *s, const drey_penalties *p, drey_error *err)
{
    const tokenizer *t = s->engine->config.target->tokenizer;
    char *text = malloc(tokenizer_longest_piece(t) + 1);
    if (!text)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for the texts of tokens");
    for (int32_t id = 0; id < tokenizer_n_vocab(t); id++) {
        size_t n = tokenizer_piece(t, id, true, false, text, tokenizer_longest_piece(t) + 1);
        if (holds_breaker(text, n, p))
            penalties_set_break(&s->text.penalties, id);
    }
    free(text);
    return DREY_OK;
}

static drey_status set_penalties(drey_session *s, const drey_penalties *p, drey_error *err)
{
    if (!penalties_are_there(p))
        return DREY_OK;
    penalties_init(&s->text.penalties, p, s->timeline,
                   tokenizer_n_vocab(s->engine->config.target->tokenizer),
                   s->engine->config.n_context, &s->memory.arena);
    TRY(arena_check(&s->memory.arena, err));
    s->sampler.penalties = &s->text.penalties;
    return p->dry_multiplier > 0 ? find_breaks(s, p, err) : DREY_OK;
}

/* Prepares a text; the timeline does not change. */
static drey_status make_text(drey_session *s, const drey_generate_options *o, drey_error *err)
{
    const tokenizer *t = s->engine->config.target->tokenizer;
    generation *g = &s->text;
    *g = (generation){.options = *o, .n_kept = g->n_kept};
    g->options.sampling.penalties = NULL; /* the session has its own */
    statistics_begin(s);
    if (s->observer)
        s->observer->class->text_begins(s);
    TRY(session_set_sampling(s, &o->sampling, err));
    TRY(set_penalties(s, o->sampling.penalties, err));
    if (s->policy)
        s->policy->sampled = o->sampling.temperature > 0;
    TRY(copy_biases(s, err));
    TRY(copy_stops(g, err));
    TRY(detokenizer_init(&g->detokenizer, t, g->options.stops, o->n_stops, o->special, err));
    if (o->on_event)
        TRY(detokenizer_init(&g->provisional.detokenizer, t, g->options.stops, o->n_stops,
                             o->special, err));
    if (o->grammar) {
        *grammar_in_use(o->grammar) = true;
        grammar_restart(o->grammar);
    }
    return DREY_OK;
}

/* Lookup has room for a timeline as long as the context: what the prompt leaves is the
 * prediction's, for as long as the text does not need it. An earlier one is forgotten. */
static void take_prediction(drey_session *s)
{
    int64_t room = (int64_t)s->engine->config.n_context - s->n_timeline;
    int64_t n = min_i64((int64_t)s->input.predicted.n, max_i64(room, 0));
    if (s->drafter && s->drafter->class->take_input && !session_reads_input(s))
        s->drafter->class->take_input(s->drafter, s->input.predicted.ids, (int32_t)n);
    s->input.predicted.n = 0;
}

drey_status drey_session_predict(drey_session *s, const int32_t *ids, size_t n, drey_error *err)
{
    if (s->state != SESSION_IDLE)
        FAIL(err, DREY_ERR_USAGE, "the session is writing a text already; end that one first");
    TRY(check_ids(s, ids, n, err));
    s->input.predicted.ids = ids;
    s->input.predicted.n = n;
    return DREY_OK;
}

/* Adds ids to the timeline and begins a text there: all of it, or nothing. */
static drey_status begin(drey_session *s, const int32_t *ids, size_t n,
                         const drey_generate_options *options, drey_statistics *report,
                         drey_error *err)
{
    if (n == 0 && s->n_timeline == 0)
        FAIL(err, DREY_ERR_USAGE, "the prompt is empty; give at least one token");
    if (n == 0 && s->n_timeline >= s->engine->config.n_context)
        FAIL_HINT(err, DREY_ERR_CONTEXT, DREY_HINT_N_CONTEXT,
                  "the context is full; reset the session or take a larger context");
    bool input = n > 0 && session_reads_input(s);
    if (n > 0)
        TRY(input ? check_input(s, n, err) : check_room(s, s->n_timeline, n, err));
    TRY(check_options(s, options, err));
    TRY(check_ids(s, ids, n, err));
    drey_status status = make_text(s, options, err);
    if (status != DREY_OK) {
        s->text.options.grammar = NULL; /* it was not taken */
        release_text(&s->text);
        return status;
    }
    if (n > 0)
        s->text.n_kept = s->n_timeline;
    if (input)
        set_input(s, ids, n);
    else
        append(s, ids, n);
    take_prediction(s);
    /* The prompt comes first: the first token keeps its space. An input is another text. */
    s->text.detokenizer.started = !session_reads_input(s) || s->n_timeline > n_given(s);
    prompt_take_known(s);
    s->text.report = report;
    s->text.prompt_from = cache_end(&s->target_cache);
    s->text.prompt_end = s->n_timeline;
    s->text.stats.prompt_tokens = n                 ? (int64_t)n
                                  : s->input.unread ? s->input.n
                                                    : s->n_timeline - cache_end(&s->target_cache);
    s->state = SESSION_PROMPT;
    atomic_store(&s->cancel, false); /* a cancel before the text was not meant for it */
    assert(session_is_valid(s));
    return DREY_OK;
}

drey_status drey_session_begin(drey_session *session, const drey_generate_options *options,
                               drey_statistics *statistics, drey_error *err)
{
    return begin(session, NULL, 0, options, statistics, err);
}

bool drey_session_is_writing(const drey_session *session)
{
    return session->state != SESSION_IDLE;
}

void session_end(drey_session *s, drey_finish why)
{
    generation *g = &s->text;
    if (s->state == SESSION_IDLE)
        return;
    if (!g->done)
        g->stats.finish = why;
    g->done = true;
    verified_text_flush(s);
    provisional_text_clear(s);
    verified_text_drop(s);
    prompt_keep(s, true);
    statistics_end(s);
    release_grammar(s);
    release_text(g);
    s->state = SESSION_IDLE;
    if (g->report)
        *g->report = g->stats;
    if (g->options.on_end) /* which may begin the next text */
        g->options.on_end(g->options.user);
}

void session_retry(drey_session *s)
{
    overlap_give_up(s);
    provisional_text_clear(s);
    if (s->state == SESSION_DECODE)
        s->state = SESSION_PROMPT;
}

void drey_session_end(drey_session *session)
{
    session_end(session, DREY_FINISH_INTERRUPTED);
}

void drey_session_cancel(drey_session *session)
{
    atomic_store(&session->cancel, true);
}

drey_status drey_session_step(drey_session *s, bool *done, drey_error *err)
{
    drey_status status = DREY_OK;
    if (s->state != SESSION_IDLE) {
        float_mode caller = float_mode_enter();
        status = sessions_step(&s, 1, err);
        if (status == DREY_ERR_CANCELLED)
            session_end(s, DREY_FINISH_INTERRUPTED);
        float_mode_leave(caller);
    }
    *done = s->state == SESSION_IDLE;
    assert(session_is_valid(s));
    return status;
}

drey_status drey_session_generate(drey_session *s, const int32_t *ids, size_t n,
                                  const drey_generate_options *options, drey_statistics *statistics,
                                  drey_error *err)
{
    drey_status status = begin(s, ids, n, options, statistics, err);
    if (status != DREY_OK) {
        if (statistics)
            *statistics = statistics_of_nothing(s->engine);
        return status;
    }
    for (bool done = false; status == DREY_OK && !done;)
        status = drey_session_step(s, &done, err);
    session_end(s, DREY_FINISH_ERROR);
    return status;
}

/* ---- In files ---- */

static drey_status check_all_here(const drey_session *s, drey_error *err)
{
    if (s->engine->tuning.part.ranks)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "a session of several ranks cannot be saved or loaded: each has a part of its keys "
             "and values; use one rank");
    if (cache_is_in_file(&s->target_cache))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "a session whose keys and values are in a file cannot be saved or loaded yet; give it "
             "memory for all of them, or a shorter context");
    return DREY_OK;
}

static drey_status contents_of(const drey_session *s, session_contents *out, drey_error *err)
{
    const drey_engine *e = s->engine;
    const drey_model *target = e->config.target;
    *out = (session_contents){.cache = &s->target_cache,
                              .timeline = s->timeline,
                              .n_timeline = s->n_timeline,
                              .input = s->input.ids,
                              .n_input = s->input.n,
                              .n_context = e->config.n_context,
                              .n_vocab = tokenizer_n_vocab(target->tokenizer),
                              .sampling = s->text.options.sampling,
                              .model_path = gguf_part_path(target->file, 0),
                              .kv_name = drey_kv_name(e->config.kv)};
    return engine_saved_origin(e, &out->origin, err);
}

uint64_t drey_session_save_bytes(const drey_session *s)
{
    session_contents contents;
    return contents_of(s, &contents, NULL) == DREY_OK ? session_file_bytes(&contents) : 0;
}

drey_status drey_session_save(const drey_session *s, const char *path, const void *note,
                              size_t n_note_bytes, drey_error *err)
{
    session_contents contents;
    TRY(check_all_here(s, err));
    if (s->state != SESSION_IDLE)
        FAIL(err, DREY_ERR_USAGE, "the session is writing a text; end that one before saving it");
    if (n_note_bytes > DREY_MAX_NOTE_BYTES)
        FAIL(err, DREY_ERR_USAGE, "a note of %zu bytes is too long to be saved (at most %d)",
             n_note_bytes, DREY_MAX_NOTE_BYTES);
    TRY(contents_of(s, &contents, err));
    return session_file_write(path, &contents, note, n_note_bytes, err);
}

static drey_status take_file(drey_session *s, session_file *f, drey_saved_session *saved,
                             drey_error *err)
{
    drey_saved_session taken;
    session_end(s, DREY_FINISH_INTERRUPTED);
    TRY(session_file_take(f, &s->target_cache, s->timeline, s->input.ids, &taken, err));
    s->n_timeline = (int32_t)taken.n_tokens;
    s->input.n = (int32_t)f->header.n_input;
    s->input.unread = s->input.n > 0; /* its output is computed again, with the same bits */
    if (s->input.unread)
        cache_clear(&s->draft_cache);
    s->text.options.sampling = taken.sampling;
    if (saved)
        *saved = taken;
    return DREY_OK;
}

drey_status drey_session_load(drey_session *s, const char *path, drey_saved_session *saved,
                              drey_error *err)
{
    session_contents contents;
    session_file f;
    TRY(check_all_here(s, err));
    TRY(contents_of(s, &contents, err));
    TRY(session_file_open(&f, path, &contents, saved != NULL, err));
    drey_status status = take_file(s, &f, saved, err);
    session_file_close(&f);
    assert(session_is_valid(s));
    return status;
}

void drey_session_timeline(const drey_session *s, const int32_t **ids, size_t *n)
{
    *ids = s->timeline;
    *n = (size_t)session_n_verified(s);
}
