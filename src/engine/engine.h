/* Inside of the engine: a model is a file's header and tokenizer, an engine its weights under one
 * budget, a session one timeline. Each has one arena whose size the plan knew beforehand. */
#ifndef DREY_ENGINE_ENGINE_H
#define DREY_ENGINE_ENGINE_H

#include <stdatomic.h>

#include "tree/accept.h"
#include "base/trace.h"
#include "policy/shared_drafting.h"
#include "draft/medusa_drafter.h"
#include "draft/model_drafter.h"
#include "policy/policy.h"
#include "plan/plan.h"
#include "store/prefix_store.h"
#include "store/kv_origin.h"
#include "exit/exit.h"
#include "text/tokenizer.h"
#include "weights/row_table.h"

struct drey_model {
    gguf *file;
    tokenizer *tokenizer;
    model_shape shape;
    char name[128];
};

typedef struct engine_tuning { /* what measurements and tests settle themselves */
    int32_t least_logit_rows;  /* room for the logits of so many rows, whatever the policy needs */
    size_t more_bytes;         /* that the caller holds beside the engine, within its budget */
    bool set_share;         /* pin this share of every matrix, whatever the budget would allow: */
    double share;           /* 0 .. 1 */
    bool untimed;           /* no policy hears of time: trees are the same in every run */
    stream_fault_fn *fault; /* of the streams' reads; NULL: none */
    void *fault_user;
    int32_t deferred_rows;         /* of plan_inputs, at least; */
    double exit_layers;            /* and this, where it is not 0 */
    int32_t slice_ids, slice_room; /* multiples of GROUP_ROWS; 0: the usual ones */
    /* Whether the token at `position` scores behind `layer` complete layers, whatever it is:
     * instead of predictors and candidates. NULL: those are asked. */
    bool (*exit_here)(void *user, int32_t layer, int32_t position);
    void *exit_user;
    bool whole_devices;         /* devices may be asked for all groups, whatever their share is */
    const device_class *device; /* that units may name, beside those of the build */
} engine_tuning;

typedef struct engine_side { /* the target, or the draft */
    model_layout layout;
    weights weights;
    workspace ws;    /* of all sessions: passes take turns */
    row_table table; /* of a head over a slice of the vocabulary, which is the layout's then */
    arena layout_memory, weight_memory;
} engine_side;

struct drey_engine {
    drey_engine_options options;
    uint64_t budget_bytes; /* what options.memory_bytes means */
    cpu_tuning cpu;        /* how to compute on this machine */
    drey_profile
        profile; /* what sessions begin with; options.profile is NULL where there is none */
    drey_static_trees trees; /* the profile's, or what heads say of themselves: inputs.trees */
    const kernel_table *kernels;
    pool *pool;
    unit_set *units; /* NULL: one cluster, whose threads are alike */
    engine_side target, draft;
    plan_inputs inputs;
    plan_result plan; /* applied, once the engine is open */
    arena plan_memory, work_memory, heads_memory;
    engine_tuning tuning;
    bool has_draft;
    bool self_draft; /* the target drafts for itself: draft is a view of it */
    bool has_heads;
    bool blends;                               /* lookup guesses beside the drafter */
    medusa_heads heads;                        /* its Medusa heads, where they draft */
    drey_session *sessions[DREY_MAX_SESSIONS]; /* [n_sessions]: those that are open */
    int32_t n_sessions;
    prefix_store prefixes;
    drey_prefix_options prefix_options; /* memory_bytes 0: none */
    arena prefix_memory;
    turn_cost cost;             /* of turns, shared or not (sharing.h) */
    company_trust trust;        /* in what is drafted for them */
    double promised;            /* of late to texts whose drafts have still to read (sharing.c) */
    stream_counters reads;      /* of the target, when a pass was last begun */
    trace trace;                /* of the engine's threads, and of its reads */
    exit_predictors predictors; /* exits.h; of early exits */
    char *sidecar;              /* the target's, in use; NULL: none */
    char sidecar_refused[500];
    file_stamp sidecar_stamp; /* when it was checked */
};

struct drey_planner {
    drey_engine engine; /* that has gathered its inputs and goes no further */
};

/* An engine's way to be open; each step wants the one before it, and engine_release undoes them
 * all. *e = options as given, with defaults filled in and checked. tuning: NULL: none. */
drey_status engine_check_options(drey_engine *e, const drey_engine_options *options,
                                 const engine_tuning *tuning, drey_error *err);
/* For an engine that measures or writes by the target alone: nobody drafts, no pass ends early, and
 * no profile is used. Everything else is as in `options`. */
drey_engine_options engine_options_alone(const drey_engine_options *options);
/* Copies options.profile and checks it. */
drey_status engine_take_profile(drey_engine *e, drey_error *err);
/* Shares as the heads' file has them; no shapes. */
void engine_heads_trees(drey_static_trees *out, const medusa_shape *heads);
/* Binds the models' tensors, finds the sidecar, and fills e->inputs: all that planning reads. */
drey_status engine_gather(drey_engine *e, drey_error *err);
/* Memory of the table that goes with a sliced head; 0 for a whole one. */
size_t engine_table_bytes(const model_layout *l);
/* Sets n_pinned of every matrix as e->plan has it. */
void engine_apply_plan(drey_engine *e);
/* Memory of the view that the target drafts with. */
size_t engine_view_bytes(const drey_engine *e);
/* Memory of e->trace. */
size_t engine_trace_bytes(const drey_engine *e);
/* engine_units.c. Reads options.units: settles n_threads and how kernels lie; needs e->kernels. */
drey_status engine_take_units(drey_engine *e, drey_error *err);
drey_status engine_open_pool(drey_engine *e, drey_error *err);
/* Memory of the units, and what their devices take of this machine's. */
size_t engine_units_bytes(const drey_engine *e);
void engine_release(drey_engine *e);
/* drey_engine_open with settings of its own; NULL: none. */
drey_status engine_open(drey_engine **out, const drey_engine_options *options,
                        const engine_tuning *tuning, drey_error *err);

/* Memory of a session beside its caches. */
size_t engine_session_state_bytes(const drey_engine *e);
/* What both caches hold. */
kv_format engine_kv_format(const drey_engine *e);
/* What the target's saved keys and values belong to. Errors: saved_origin_make's. */
drey_status engine_saved_origin(const drey_engine *e, saved_origin *o, drey_error *err);
/* Finds the target's sidecar and checks it: its matrices then lie there. A bad one beside the
 * target is passed over, which the plan tells; a bad one that was named is an error. */
drey_status engine_find_sidecar(drey_engine *e, drey_error *err);

/* Plans for a budget, 0 for the options'; the result is planner->engine.plan. */
drey_status planner_make(drey_planner *planner, uint64_t memory_bytes, drey_error *err);

#endif
