/* Inside of the engine: a model is a file's header and tokenizer, an engine its weights under one
 * budget, a session one timeline. Each has one arena whose size the plan knew beforehand. */
#ifndef DREY_ENGINE_ENGINE_H
#define DREY_ENGINE_ENGINE_H

#include <stdatomic.h>

#include "tree/accept.h"
#include "base/trace.h"
#include "policy/shared_drafting.h"
#include "engine/config.h"
#include "plan/plan.h"
#include "store/prefix_store.h"
#include "store/kv_origin.h"
#include "exit/exit.h"
#include "weights/row_table.h"

typedef struct engine_side { /* the target, or the draft */
    model_layout layout;
    weights weights;
    workspace ws;    /* of all sessions: passes take turns */
    row_table table; /* of a head over a slice of the vocabulary, which is the layout's then */
    arena layout_memory, weight_memory;
} engine_side;

typedef struct engine_sidecar { /* the target's */
    char *path;                 /* owned; NULL: none is in use */
    file_stamp stamp;           /* when it was checked */
    char refused[500];
} engine_sidecar;

struct drey_engine {
    engine_config config;
    engine_tuning tuning;
    uint64_t budget_bytes; /* what config.memory_bytes means */
    cpu_tuning cpu;        /* how to compute on this machine */
    const kernel_table *kernels;
    pool *pool;
    unit_set *units;           /* NULL: one cluster, whose threads are alike */
    engine_side target, draft; /* draft: source.kind's side, if it has one */
    draft_source source;       /* what the drafter shares; its kind is config.drafter */
    plan_inputs inputs;
    plan_result plan; /* applied, once the engine is open */
    arena plan_memory, work_memory, prefix_memory;
    drey_session *sessions[DREY_MAX_SESSIONS]; /* [n_sessions]: those that are open */
    int32_t n_sessions;
    prefix_store prefixes;
    turn_cost cost;             /* of turns, shared or not (sharing.h) */
    drafting_trust trust;       /* in what is drafted for them */
    double promised;            /* of late to texts whose drafts have still to read (sharing.c) */
    stream_counters reads;      /* of the target, when a pass was last begun */
    trace trace;                /* of the engine's threads, and of its reads */
    exit_predictors predictors; /* exits.h; of early exits */
    engine_sidecar sidecar;
};

struct drey_planner {
    drey_engine engine; /* that has gathered its inputs and goes no further */
};

/* An engine's way to be open; each step wants the one before it, and engine_release undoes them
 * all. *e = options as given, settled. tuning: NULL: none. */
drey_status engine_configure(drey_engine *e, const drey_engine_options *options,
                             const engine_tuning *tuning, drey_error *err);
/* Of what its drafter computes with: of options.draft, or a view. */
static inline draft_side engine_draft_side(const drey_engine *e)
{
    return e->config.drafter ? e->config.drafter->side : DRAFT_SIDE_NONE;
}
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
/* engine_units.c. Opens config.units and settles how kernels lie; needs e->kernels. */
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
