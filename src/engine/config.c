/* Makes a configuration of public options: see config.h. */
#include "engine/config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/error.h"
#include "draft/drafter_kind.h"
#include "text/tokenizer.h"
#include "state/cache_room.h"
#include "state/kv.h"

void drey_engine_options_init(drey_engine_options *options)
{
    *options = (drey_engine_options){.memory_bytes = DREY_MEMORY_AUTO};
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

/* ---- What does not go together ---- */

typedef struct choice { /* the options, with defaults filled in */
    const drey_engine_options *o;
    const drafter_kind *drafter;
    drey_policy policy;
    drey_research research;
} choice;

typedef struct contradiction {
    bool is;
    const char *before, *name, *after; /* the message; name and after may be NULL */
} contradiction;

static drey_status refuse_first(const contradiction *c, size_t n, drey_error *err)
{
    for (size_t i = 0; i < n; i++)
        if (c[i].is)
            FAIL(err, DREY_ERR_USAGE, "%s%s%s", c[i].before, c[i].name ? c[i].name : "",
                 c[i].after ? c[i].after : "");
    return DREY_OK;
}

#define REFUSE_FIRST(table, err) refuse_first(table, sizeof(table) / sizeof *(table), err)

/* Returns whether the policy uses no drafter. */
static bool is_plain(drey_policy policy)
{
    return policy == DREY_POLICY_NONE || policy == DREY_POLICY_STD || policy == DREY_POLICY_DRAFT;
}

static drey_status check_choices(const choice *c, drey_error *err)
{
    const drey_engine_options *o = c->o;
    const drey_research *r = &c->research;
    const drafter_kind *kind = c->drafter;
    const bool takes_model = kind && kind->side == DRAFT_SIDE_MODEL,
               may_take_model = takes_model || (kind && kind->side == DRAFT_SIDE_BLOCK);
    const contradiction table[] = {
        {!drey_policy_name(o->policy) || !drey_drafter_name(o->drafter) || !drey_io_name(o->io) ||
             !drey_kv_name(o->kv) || !drey_exit_name(o->exit) || !drey_fallback_name(r->fallback) ||
             (o->tuning &&
              (!drey_fetch_name(o->tuning->fetch) || !drey_tile_name(o->tuning->tile))),
         "policy, drafter, io, kv, exit, fallback, fetch or tile is not one of those in drey.h",
         NULL, NULL},
        {r->without >> DREY_PART_LOOKUP > 1,
         "what is to be left out is not one of the parts in drey/research.h", NULL, NULL},
        {r->with & ~DREY_WITH(DREY_PART_LOOKUP) || r->with & r->without,
         "the part \"lookup\" alone can be asked for, and not be left out at the same time", NULL,
         NULL},
        {!o->target, "no target model was given", NULL, NULL},
        {o->draft ? !may_take_model : takes_model,
         "a draft model and the drafter \"model\", \"eagle\" or \"mtp\" go together", NULL, NULL},
        {o->heads && !(kind && kind->file_ending),
         "a file of heads and the drafter \"medusa\" go together", NULL, NULL},
        {c->policy == DREY_POLICY_DRAFT && !o->draft,
         "the policy \"draft\" lets the draft model write; give one", NULL, NULL},
        {!is_plain(c->policy) && !kind, "a drafting policy needs a draft: a model, or \"lookup\"",
         NULL, NULL},
    };
    return REFUSE_FIRST(table, err);
}

/* Exits are compared with the target's own text, which some policies do not write. */
static drey_status check_exits(const choice *c, drey_error *err)
{
    const drey_engine_options *o = c->o;
    const drafter_kind *kind = is_plain(c->policy) ? NULL : c->drafter;
    const char *conflict = kind ? kind->exit_conflict : NULL;
    char with[160];
    if (o->exit == DREY_EXIT_OFF)
        return DREY_OK;
    if (!(o->exit_threshold >= 0 && o->exit_threshold <= 1))
        FAIL(err, DREY_ERR_USAGE, "a threshold of %g is not possible for early exits (0 to 1)",
             (double)o->exit_threshold);
    snprintf(with, sizeof with, "\" do not go together: %s; choose another draft, or none",
             conflict ? conflict : "");
    const contradiction table[] = {
        {drey_policy_is_lossy(c->policy) || c->policy == DREY_POLICY_STD,
         "early exits and the policy \"", drey_policy_name(c->policy),
         "\" do not go together; take another policy"},
        {conflict, "early exits and the drafter \"", kind ? kind->name : "", with},
    };
    return REFUSE_FIRST(table, err);
}

/* q8_0 has a scale for every 32 numbers of a head. A file may have numbers for only some of the
 * positions. */
static drey_status check_model(const drey_engine_options *o, const drey_model *m, const char *who,
                               bool writes, drey_error *err)
{
    const model_shape *s = &m->shape;
    if (writes && s->taps.n)
        FAIL(err, DREY_ERR_USAGE,
             "%s is a layer after another model and cannot write alone: use it as that model's "
             "draft",
             SHOWN_PATH(gguf_shard_path(m->file, 0)));
    if (s->context.most_seen > 0 && o->n_context > s->n_context_train)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s attends to %d positions that it chooses, which drey does not compute: ask for a "
             "context of up to %d tokens, where it sees all of them",
             SHOWN_PATH(gguf_shard_path(m->file, 0)), s->context.most_seen, s->n_context_train);
    if (s->context.ends && o->n_context > s->n_context_train)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "%s has positions for %d tokens only, not for a context of %d: ask for a shorter one",
             SHOWN_PATH(gguf_shard_path(m->file, 0)), s->n_context_train, o->n_context);
    for (int32_t i = 0; i < s->n_attentions; i++) {
        const attention_shape *a = &s->attention[i];
        if (o->kv == DREY_KV_Q8_0 && (a->head_dim % 32 || a->v_dim % 32))
            FAIL(err, DREY_ERR_UNSUPPORTED,
                 "a q8_0 cache needs heads of a multiple of 32 numbers; the %s's have %d; use f16",
                 who, a->head_dim % 32 ? a->head_dim : a->v_dim);
    }
    return DREY_OK;
}

/* A layer of a mixture knows what it reads when it has chosen: a pass that leaves early would save
 * little, and the rows that it defers would need their experts again. What stays of a mixture is no
 * small model of it. */
static drey_status check_experts(const choice *c, const drey_model *target, drey_error *err)
{
    const contradiction table[] = {
        {c->o->exit != DREY_EXIT_OFF, "early exits and a mixture of experts do not go together",
         NULL, "; write without exits"},
        {c->drafter && c->drafter->side == DRAFT_SIDE_VIEW && !is_plain(c->policy),
         "the drafter \"", c->drafter ? c->drafter->name : "",
         "\" needs planes of the target's weights, which a mixture of experts does not have; "
         "choose "
         "another draft"},
    };
    return target->shape.experts.router.n_experts ? REFUSE_FIRST(table, err) : DREY_OK;
}

/* A view of the target has its own rows, but a state is computed from the target's alone. */
static drey_status check_states(const choice *c, const drey_model *target, drey_error *err)
{
    const contradiction table[] = {
        {c->drafter && c->drafter->side == DRAFT_SIDE_VIEW && !is_plain(c->policy),
         "the drafter \"", c->drafter ? c->drafter->name : "",
         "\" computes rows on the target's own caches, where layers with a running state have "
         "one for both; choose another draft"},
    };
    return shape_has_states(&target->shape) ? REFUSE_FIRST(table, err) : DREY_OK;
}

/* Refuses what needs all layers of the target in one place. */
static drey_status check_ranks(const choice *c, drey_error *err)
{
    const drey_engine_options *o = c->o;
    const drafter_kind *kind = is_plain(c->policy) ? NULL : c->drafter;
    bool layers =
        kind && (kind->side == DRAFT_SIDE_VIEW || kind == &drafter_eagle || kind == &drafter_mtp);
    const contradiction table[] = {
        {o->exit != DREY_EXIT_OFF, "early exits need all layers on one machine", NULL,
         "; leave them out, or use one rank"},
        {layers, "the drafter \"", layers ? kind->name : "",
         "\" needs all layers on one machine; choose another draft, or use one rank"},
        {c->policy == DREY_POLICY_DRAFT, "the policy \"draft\" runs one small model", NULL,
         "; use one rank"},
        {o->target->shape.encoder.n_layers > 0,
         "a model with an encoder cannot be divided between ranks", NULL, "; use one rank"},
        {shape_is_tied(&o->target->shape),
         "a model whose layers share keys and values, or have embeddings of their tokens, cannot "
         "be divided between ranks",
         NULL, "; use one rank"},
        {o->prefixes && o->prefixes->memory_bytes > 0, "prefixes cannot be kept with several ranks",
         NULL, "; leave them out"},
        {o->units, "units and ranks do not go together", NULL, "; leave one of them out"},
    };
    if (!o->ranks && o->rank_layers)
        FAIL(
            err, DREY_ERR_USAGE,
            "layers are divided between ranks, and this is one process: start several with mpirun, "
            "or leave the ranks' layers out");
    return o->ranks ? REFUSE_FIRST(table, err) : DREY_OK;
}

/* Returns how many sizes keys and values have. */
static int32_t n_kv_stores(const drey_model *m)
{
    const cache_spec spec = model_cache_spec(&m->shape, KV_F16);
    int32_t n = 0;
    for (int32_t i = 0; i < spec.n_stores; i++)
        n += spec.store[i].class == &kv_class;
    return n;
}

/* Refuses what needs all keys and values of the target in memory. */
static drey_status check_kv_file(const choice *c, drey_error *err)
{
    const drey_engine_options *o = c->o;
    const drafter_kind *kind = is_plain(c->policy) ? NULL : c->drafter;
    bool views = kind && kind->side == DRAFT_SIDE_VIEW;
    const contradiction table[] = {
        {o->exit != DREY_EXIT_OFF, "early exits need all keys and values in memory", NULL,
         "; leave them out, or name no folder for keys and values"},
        {views, "the drafter \"", views ? kind->name : "",
         "\" needs all keys and values in memory; choose another draft, or name no folder for "
         "them"},
        {o->ranks, "keys and values in a file and several ranks do not go together yet", NULL,
         "; leave one of them out"},
        {o->target->shape.encoder.n_layers > 0 || n_kv_stores(o->target) > 1,
         "a model with an encoder, or with several sizes of heads, needs its keys and values in "
         "memory",
         NULL, "; name no folder for them"},
    };
    return o->kv_folder ? REFUSE_FIRST(table, err) : DREY_OK;
}

enum { MOST_ROLLBACK = 100 }; /* -log of the least probability of a float */

static drey_status check_research(const drey_research *r, drey_error *err)
{
    const struct {
        float value;
        const char *what;
    } shares[] = {{r->ahead, "drafting ahead from"},
                  {r->fallback_step, "an alpha that changes by"},
                  {r->bld_fallback, "a bld that hands over below"}};
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++)
        if (!(shares[i].value >= 0 && shares[i].value <= 1))
            FAIL(err, DREY_ERR_USAGE, "%s %g is not possible (above 0, at most 1)", shares[i].what,
                 (double)shares[i].value);
    if (!(r->alpha >= 0 && r->alpha < 1))
        FAIL(err, DREY_ERR_USAGE, "a first alpha of %g is not possible (above 0, below 1)",
             (double)r->alpha);
    if (!(r->bld_rollback >= 0 && r->bld_rollback <= MOST_ROLLBACK))
        FAIL(err, DREY_ERR_USAGE,
             "a bld that takes tokens back from %g on is not possible (above 0, at most %d)",
             (double)r->bld_rollback, MOST_ROLLBACK);
    return DREY_OK;
}

static drey_status check_numbers(const drey_engine_options *o, drey_error *err)
{
    const struct {
        int32_t value, shown_least, most;
        bool may_be_0; /* the usual */
        const char *before, *after;
    } table[] = {
        {o->n_context, 1, DREY_MAX_CONTEXT, false, "a context of ", " tokens is"},
        {o->n_threads, 1, DREY_MAX_THREADS, true, "", " threads are"},
        {o->draft_tokens, 1, TREE_MAX_DRAFTED, true, "a draft of ", " tokens is"},
        {o->tree_nodes, 1, TREE_MAX_DRAFTED, true, "a tree of ", " nodes is"},
        {o->prompt_chunk, 1, DREY_MAX_PROMPT_CHUNK, true, "a prompt chunk of ", " rows is"},
        {o->n_sessions, 1, DREY_MAX_SESSIONS, true, "", " sessions are"},
        {o->trace_spans, 0, DREY_MAX_TRACE_SPANS, true, "a trace of ", " spans is"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].value < !table[i].may_be_0 || table[i].value > table[i].most)
            FAIL(err, DREY_ERR_USAGE, "%s%d%s not possible (%d to %d)", table[i].before,
                 table[i].value, table[i].after, table[i].shown_least, table[i].most);
    return stream_check_read_bytes(o->read_bytes, err);
}

static drey_status check_shares(const drey_unit_shares *shares, drey_error *err)
{
    for (int32_t w = 0; shares && w < DREY_UNIT_WIDTHS; w++) {
        double sum = 0;
        for (int32_t i = 0; i < shares->n_units && i < DREY_MAX_UNITS; i++) {
            if (!(shares->share[w][i] >= 0))
                FAIL(err, DREY_ERR_USAGE, "a unit's share is %g; it is 0 or more",
                     shares->share[w][i]);
            sum += shares->share[w][i];
        }
        if (!(sum > 0) || isinf(sum))
            FAIL(err, DREY_ERR_USAGE, "the units' shares of passes of %d rows have no sum", 1 << w);
    }
    int32_t n = shares ? shares->n_boundaries : 0;
    if (n < 0 || n > DREY_UNIT_CONTEXTS)
        FAIL(err, DREY_ERR_USAGE,
             "attention has boundaries for up to %d lengths of context, not %d", DREY_UNIT_CONTEXTS,
             n);
    for (int32_t i = 0; i < n; i++)
        if (!(fabsf(shares->boundary[i]) <= 1))
            FAIL(err, DREY_ERR_USAGE, "attention's boundary is %g; it is between -1 and 1",
                 (double)shares->boundary[i]);
    return DREY_OK;
}

/* ---- What is taken ---- */

static choice choose(const drey_engine_options *o, const engine_hooks *hooks)
{
    const drafter_kind *named = drafter_kind_of(o->drafter);
    if (named == &drafter_model && o->draft)
        named = drafter_kind_of(drafter_for(&o->draft->shape));
    choice c = {
        .o = o, .drafter = hooks && hooks->drafter ? hooks->drafter : named, .policy = o->policy};
    if (o->research)
        c.research = *o->research;
    if (c.policy == DREY_POLICY_AUTO)
        c.policy = c.drafter ? DREY_POLICY_OPTIMAL : DREY_POLICY_NONE;
    bool helped = o->repeats && o->draft && c.drafter == &drafter_model && o->exit == DREY_EXIT_OFF;
    if (c.policy == DREY_POLICY_OPTIMAL && c.drafter && (c.drafter->blends || helped))
        c.research.with |= DREY_WITH(DREY_PART_LOOKUP) & ~c.research.without;
    return c;
}

static drey_status copy_text(char **out, const char *text, drey_error *err)
{
    *out = text ? strdup(text) : NULL;
    if (text && !*out)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for an engine's options");
    return DREY_OK;
}

/* Takes the files. With the policy "draft" the other model writes, and the sidecar is not its
 * own. */
static drey_status take_files(engine_config *c, const drey_engine_options *o, drey_error *err)
{
    bool own_sidecar = c->policy_id != DREY_POLICY_DRAFT;
    c->files.no_sidecar = o->no_sidecar;
    TRY(copy_text(&c->memory.kv_folder, o->kv_folder, err));
    c->memory.kv_bytes = o->kv_memory_bytes;
    TRY(copy_text(&c->files.sidecar, own_sidecar ? o->sidecar : NULL, err));
    TRY(copy_text(&c->files.draft, c->drafter ? o->heads : NULL, err));
    return copy_text(&c->files.exit, o->exit_file, err);
}

static drey_status take_profile(engine_config *c, const drey_engine_options *o, drey_error *err)
{
    if (!o->profile)
        return DREY_OK;
    if (!drey_profile_is_sound(o->profile))
        FAIL(err, DREY_ERR_USAGE,
             "the profile has a time that is none, more right guesses than guesses, or a tree that "
             "is none");
    c->profile.is_known = true;
    c->profile.known = *o->profile;
    if (o->profile->trees) {
        c->profile.trees = *o->profile->trees;
        c->profile.known.trees = &c->profile.trees;
    }
    return DREY_OK;
}

static drey_status take_units(engine_config *c, const drey_engine_options *o,
                              const device_class *more, drey_error *err)
{
    TRY(unit_words_parse(&c->units.words, o->units, more, o->n_threads, err));
    TRY(check_shares(o->unit_shares, err));
    c->n_threads = unit_words_threads(&c->units.words);
    c->units.has_shares = o->unit_shares != NULL;
    if (o->unit_shares)
        c->units.shares = *o->unit_shares;
    return DREY_OK;
}

/* Takes the division. Whether it fits is known when the ranks are. */
static drey_status take_division(config_division *d, const drey_engine_options *o, drey_error *err)
{
    if (!o->rank_layers)
        return DREY_OK;
    if (o->n_rank_layers < 1 || o->n_rank_layers > RANKS_MOST)
        FAIL(err, DREY_ERR_USAGE,
             "%llu numbers of layers are not possible: give one for each rank, of which there are "
             "up to %d",
             (unsigned long long)o->n_rank_layers, RANKS_MOST);
    d->n = (int32_t)o->n_rank_layers;
    memcpy(d->layers, o->rank_layers, (size_t)d->n * sizeof *d->layers);
    return DREY_OK;
}

static drey_status take_prefixes(engine_config *c, const drey_prefix_options *prefixes,
                                 drey_error *err)
{
    char *folder = NULL;
    if (!prefixes)
        return DREY_OK;
    TRY(copy_text(&folder, prefixes->folder, err));
    c->prefixes = *prefixes;
    c->prefixes.folder = folder;
    return DREY_OK;
}

static config_lookup lookup_of(const engine_config *c, const choice *chosen)
{
    bool exits_of_trees = chosen->o->exit != DREY_EXIT_OFF && c->policy && !c->policy->alone &&
                          !(c->research.without & DREY_WITHOUT(DREY_PART_HYPER));
    if (!c->drafter || c->drafter->looks_up)
        return LOOKUP_OFF;
    if (chosen->research.with & DREY_WITH(DREY_PART_LOOKUP))
        return LOOKUP_BLENDS;
    return exits_of_trees ? LOOKUP_PEEKS : LOOKUP_OFF;
}

/* The MTP block of the target's file, as a model. */
static drey_status take_block(engine_config *c, const drey_model *target, drey_error *err)
{
    drey_model *m = malloc(sizeof *m);
    if (!m)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory for an engine's options");
    *m = *target;
    m->trie = NULL;
    c->files.block = m;
    c->draft = m;
    return mtp_shape_read(&m->shape, &target->shape, target->file, err);
}

static drey_status take_drafting(engine_config *c, const choice *chosen, drey_error *err)
{
    drey_engine_options o = *chosen->o;
    o.policy = chosen->policy;
    c->policy_id = chosen->policy;
    c->policy = policy_class_of(chosen->policy);
    c->drafter = is_plain(chosen->policy) ? NULL : chosen->drafter;
    c->draft = c->drafter ? o.draft : NULL;
    if (c->drafter && c->drafter->side == DRAFT_SIDE_BLOCK && !o.draft)
        TRY(take_block(c, o.target, err));
    c->research = chosen->research;
    c->lookup = lookup_of(c, chosen);
    c->drafted.nodes = policy_size(&o);
    c->drafted.steps = policy_steps(&o);
    const drey_model *writer = chosen->policy == DREY_POLICY_DRAFT ? o.draft : c->draft;
    c->target = chosen->policy == DREY_POLICY_DRAFT ? o.draft : o.target;
    return writer ? tokenizer_compare(o.target->tokenizer, writer->tokenizer, err) : DREY_OK;
}

static void take_numbers(engine_config *c, const drey_engine_options *o)
{
    c->n_context = o->n_context;
    c->n_sessions = o->n_sessions ? o->n_sessions : 1;
    c->prompt_chunk = o->prompt_chunk;
    c->trace_spans = o->trace_spans;
    c->memory = (config_memory){.bytes = o->memory_bytes, .held_bytes = o->held_bytes, .kv = o->kv};
    c->reads = (config_reads){o->io, o->read_bytes};
    c->exit = o->exit;
    c->exit_threshold = o->exit_threshold;
    c->progress = (config_progress){o->progress, o->progress_user};
    c->units.has_tuning = o->tuning != NULL;
    if (o->tuning)
        c->units.tuning = *o->tuning;
}

static drey_status take_routes(engine_config *c, const drey_engine_options *o, drey_error *err)
{
    int32_t n = o->target->shape.experts.router.n_experts;
    if (!o->routes)
        return DREY_OK;
    if (!drey_routes_are_sound(o->routes) || o->routes->n_experts != n)
        FAIL(err, DREY_ERR_USAGE,
             "the routes count nothing, or are of another model: pass those of this one, which has "
             "%d experts in a layer",
             n);
    c->profile.has_routes = true;
    c->profile.routes = *o->routes;
    return DREY_OK;
}

drey_status config_resolve(const drey_engine_options *o, const engine_hooks *hooks,
                           engine_config *c, drey_error *err)
{
    const choice chosen = choose(o, hooks);
    *c = (engine_config){.n_context = 0};
    TRY(check_choices(&chosen, err));
    TRY(check_exits(&chosen, err));
    TRY(check_numbers(o, err));
    TRY(check_research(&chosen.research, err));
    const drey_model *draft =
        !is_plain(chosen.policy) || chosen.policy == DREY_POLICY_DRAFT ? o->draft : NULL;
    TRY(check_model(o, o->target, "target", true, err));
    if (draft)
        TRY(check_model(o, draft, "draft", chosen.policy == DREY_POLICY_DRAFT, err));
    if (draft && shape_reads(&draft->shape) != shape_reads(&o->target->shape))
        FAIL(err, DREY_ERR_MISMATCH,
             "only one of target and draft has an encoder; use a draft of the target's own family");
    TRY(check_experts(&chosen, o->target, err));
    TRY(check_ranks(&chosen, err));
    TRY(check_states(&chosen, o->target, err));
    TRY(check_kv_file(&chosen, err));
    take_numbers(c, o);
    TRY(take_division(&c->division, o, err));
    TRY(take_profile(c, o, err));
    TRY(take_routes(c, o, err));
    TRY(take_units(c, o, hooks ? hooks->device : NULL, err));
    TRY(take_drafting(c, &chosen, err));
    TRY(take_prefixes(c, o->prefixes, err));
    TRY(copy_text(&c->units.tier, o->cpu_tier, err));
    return take_files(c, o, err);
}

void config_free(engine_config *c)
{
    free(c->files.sidecar);
    free(c->files.exit);
    free(c->files.draft);
    free(c->files.block);
    free(c->units.tier);
    free((char *)c->prefixes.folder);
    free(c->memory.kv_folder);
    c->memory.kv_folder = NULL;
    c->files = (config_files){.exit = NULL};
    c->units.tier = NULL;
    c->prefixes.folder = NULL;
}

const drey_profile *config_known(const engine_config *c)
{
    return c->profile.is_known ? &c->profile.known : NULL;
}
