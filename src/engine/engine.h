/* Inside of the engine: a model is a file's header and tokenizer (config.h), an engine has the
 * weights of its models under one budget, a session has one timeline (session/session.h). Memory is
 * taken in arenas, whose sizes are in the plan.
 *
 *   options --engine_configure--> config --engine_gather--> inputs --plan_make--> plan
 *
 * engine_open takes these steps and then opens what the plan says: pool, weights, workspaces, kept
 * prefixes. A planner ends with the plan. */
#pragma once

#include <stdatomic.h>

#include "base/trace.h"
#include "draft/drafter_kind.h"
#include "engine/config.h"
#include "engine/encoder.h"
#include "exit/exit.h"
#include "os/energy.h"
#include "plan/plan.h"
#include "policy/cost.h"
#include "policy/shared_drafting.h"
#include "ranks/ranks.h"
#include "state/kv_file.h"
#include "store/prefix_store.h"
#include "weights/row_table.h"
#include "weights/weights.h"

typedef struct pool pool;
typedef struct unit_set unit_set;

typedef struct engine_side { /* the target, or the draft */
    model_layout layout;
    weights weights;
    workspace ws;    /* workspace of all sessions, whose passes take turns */
    row_table table; /* rows of a head over a slice of the vocabulary, then the layout's head */
    arena layout_memory, weight_memory;
    engine_encoder encoder; /* encoder that reads the input */
    kv_file kv_file;        /* file of its caches, if the plan has a window of them; the target's */
    arena kv_memory;
} engine_side;

typedef struct engine_sidecar { /* the target's */
    char *path;                 /* owned; NULL: none is in use */
    file_stamp stamp;           /* when it was checked */
    char refused[500];
} engine_sidecar;

/* Calls of a session to the process that computes the target's layers alone, or to rank 0, whose
 * cache the others' follow. (engine_ranks.c) */
typedef struct engine_team {
    bool is_alone; /* the process reads all weights, and has all keys and values */
    /* A session's cache is there, with the runner of its passes; it is about to be closed. */
    void (*opened)(drey_engine *e, runner *target);
    void (*closed)(drey_engine *e, const text_cache *cache);
    /* Makes positions up to n of a cache those of another. It may copy nothing. */
    void (*copy)(drey_engine *e, text_cache *to, text_cache *from, int32_t n);
    /* A step has ended, and its reads count. */
    void (*stepped)(drey_engine *e);
    /* Returns the time so far in which the others did not compute while passes were theirs. */
    int64_t (*idle_ns)(const drey_engine *e);
    /* Experts used so far, by all. */
    expert_counts (*experts)(const drey_engine *e);
} engine_team;

struct drey_engine {
    engine_config config;
    engine_hooks hooks;
    drey_ranks *ranks; /* borrowed; whom it leads; NULL: none */
    const engine_team *team;
    uint64_t budget_bytes; /* config.memory.bytes, resolved */
    cpu_tuning cpu;        /* settings for computing on this machine */
    const kernel_table *kernels;
    pool *pool;
    unit_set *units;           /* NULL: one cluster, whose threads are alike */
    engine_side target, draft; /* draft: source.kind's side, if it has one */
    draft_source source;       /* state that drafters share; its kind is config.drafter */
    plan_inputs inputs;
    plan_result plan; /* applied, once the engine is open */
    struct {
        arena plan, work, prefixes;
    } memory;
    drey_session *sessions[DREY_MAX_SESSIONS]; /* [n_sessions]: those that are open */
    int32_t n_sessions;
    prefix_store prefixes;
    turn_cost cost;       /* cost of turns, shared or not (sharing.h) */
    drafting_trust trust; /* in their drafts */
    double promised;      /* lately, to texts whose drafts still have to read (sharing.c) */
    struct {
        stream_counters reads; /* reads of the target, when the last pass began */
        energy_meter energy;
        int64_t drafted_away_ns; /* while the rows of passes were with other ranks */
    } meters;
    trace trace;                /* trace of the engine's threads, and of its reads */
    exit_predictors predictors; /* exits.h; of early exits */
    engine_sidecar sidecar;
};

struct drey_planner {
    drey_engine engine;    /* engine that has only gathered its inputs */
    plan_inputs of_target; /* the inputs before anything about the draft was gathered */
};

/* The steps of opening an engine. Each needs the one before it; engine_release undoes them all.
 * This one settles the options into *e. hooks: NULL: none. */
drey_status engine_configure(drey_engine *e, const drey_engine_options *options,
                             const engine_hooks *hooks, drey_error *err);
/* The model that its drafter's steps are passes over. */
static inline draft_side engine_draft_side(const drey_engine *e)
{
    return e->config.drafter ? e->config.drafter->side : DRAFT_SIDE_NONE;
}
/* Binds the models' tensors, finds the sidecar, and fills e->inputs: all that planning reads. The
 * first step gathers what belongs to the target, which no drafter changes; the second all else. */
drey_status engine_gather(drey_engine *e, drey_error *err);
drey_status engine_gather_target(drey_engine *e, drey_error *err);
drey_status engine_gather_draft(drey_engine *e, drey_error *err);
/* Undoes engine_gather_draft and closes the drafter's files. */
void engine_leave_draft(drey_engine *e);
/* Takes the header and tokenizer of a model that is open, and that is not the engine's, out of what
 * the process is planned to hold. */
void engine_without_header(drey_engine *e, const drey_model *m);
/* Returns what encoders need. */
encoder_needs engine_encoder_needs(const drey_engine *e);
/* engine_ranks.c. Memory of messages between ranks, which is 0 without. */
size_t engine_ranks_bytes(const drey_engine *e);
/* The options of a rank that computes for rank 0: without what concerns texts, for any context;
 * then for the part that rank 0 asks for. */
drey_engine_options engine_part_options(const drey_engine_options *options);
engine_part engine_join_options(drey_engine_options *options, const ranks_join *join);
/* Opens an engine of a part. */
drey_status engine_open_part(drey_engine **out, const drey_engine_options *options,
                             const engine_part *part, drey_error *err);
/* Returns a rank's message about its part's plan. */
ranks_ready engine_rank_ready(const drey_engine *e);
/* Returns what rank 0 asks all others for, once it has a plan. */
ranks_join engine_ranks_join(const drey_engine *e);
/* Divides the layers among e->ranks, by what their members have said, and sets rank 0's part. */
drey_status engine_divide_ranks(drey_engine *e, drey_error *err);
/* Makes a rank's message at the start. identity: of options->target. */
drey_status engine_rank_hello(const drey_engine_options *options, ranks_hello *hello,
                              drey_error *err);
/* Receives what the other ranks are, on rank 0, between engine_configure and engine_gather, and
 * divides the layers. After the plan: they open their part. */
drey_status engine_meet_ranks(drey_engine *e, const drey_engine_options *options, drey_error *err);
drey_status engine_join_ranks(drey_engine *e, drey_error *err);
/* Adds ranks to the cost, on rank 0: the expected cost of turns, with what other ranks read. */
void engine_add_ranks_cost(drey_engine *e);

/* Sets n_pinned of every matrix from e->plan. */
void engine_apply_plan(drey_engine *e);
/* Memory of the view with which the target drafts for itself. */
size_t engine_view_bytes(const drey_engine *e);
/* Memory of e->trace. */
size_t engine_trace_bytes(const drey_engine *e);
/* The kernels' shape that a tuning asks for. (machine_facts.c) */
int32_t engine_shape_of(const drey_tuning *tuning);
/* engine_units.c. Opens config.units and chooses the kernels' packing; needs e->kernels. */
drey_status engine_take_units(drey_engine *e, drey_error *err);
drey_status engine_open_pool(drey_engine *e, drey_error *err);
/* Memory of the units, with what their devices take of this machine's memory. */
size_t engine_units_bytes(const drey_engine *e);
void engine_release(drey_engine *e);
/* Returns the team of an engine that leads ranks, or that is alone. */
const engine_team *engine_team_of(const drey_ranks *ranks);
/* drey_engine_open with hooks; NULL: none. */
drey_status engine_open(drey_engine **out, const drey_engine_options *options,
                        const engine_hooks *hooks, drey_error *err);

/* The chat template of the model's file, with an end; the caller frees. With tools, the one that it
 * has for those, if it has one. DREY_ERR_UNSUPPORTED: there is none. */
drey_status model_chat_template(const drey_model *m, const char *tools_json, char **out,
                                drey_error *err);
/* Makes the token by which the chat template ends an answer one that ends texts. Keys often name
 * the base model's end alone. */
void model_learn_end(drey_model *m);

/* Memory of what a session has besides its caches: 0 for what it does not have. */
typedef struct session_sizes {
    size_t timeline; /* ids of all positions, and of the root after them */
    size_t input;    /* the same for an encoder */
    size_t policy, drafter, blend, exits;
} session_sizes;
session_sizes engine_session_bytes(const drey_engine *e);
/* Sum of these, with the sampler's and the kept turns. */
size_t engine_session_state_bytes(const drey_engine *e);
/* The format of both caches. */
kv_format engine_kv_format(const drey_engine *e);
/* The origin of the target's saved keys and values. Errors: as saved_origin_make. */
drey_status engine_saved_origin(const drey_engine *e, saved_origin *o, drey_error *err);
/* Finds the target's sidecar and checks it: its matrices are then read from there. A bad one next
 * to the target is ignored, which the plan reports; a bad one that options name is an error. */
drey_status engine_find_sidecar(drey_engine *e, drey_error *err);

/* A planner that has gathered its target and has no draft yet. planner_take_draft comes before all
 * other functions, and may be called again for another draft, also after a failure. Its options
 * differ from those of planner_open_target only in what they say about drafting. */
drey_status planner_open_target(drey_planner **out, const drey_engine_options *options,
                                drey_error *err);
drey_status planner_take_draft(drey_planner *planner, const drey_engine_options *options,
                               drey_error *err);
/* Plans for a budget; 0: the options'. The result is planner->engine.plan. */
drey_status planner_make(drey_planner *planner, uint64_t memory_bytes, drey_error *err);
