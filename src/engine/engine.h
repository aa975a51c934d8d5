/* Inside of the engine: a model is a file's header and tokenizer, an engine its weights under one
 * budget, a session one timeline. Each has one arena whose size the plan knew beforehand. */
#ifndef DREY_ENGINE_ENGINE_H
#define DREY_ENGINE_ENGINE_H

#include <stdatomic.h>

#include "accept/accept.h"
#include "draft/model_drafter.h"
#include "text/tokenizer.h"

struct drey_model {
    gguf *file;
    tokenizer *tokenizer;
    model_shape shape;
    char name[128];
};

/* What the plan decided, beside what it tells. */
typedef struct engine_plan {
    drey_plan report;
    int32_t chunk;      /* rows of a prompt pass */
    int32_t logit_rows; /* rows whose logits are kept at once */
    int32_t tree_nodes; /* most drafted nodes */
    int32_t max_pending, n_slots;
    size_t target_ring, draft_ring;
    size_t target_overhead, draft_overhead;
} engine_plan;

typedef struct engine_tuning { /* what measurements and tests settle themselves */
    int32_t least_logit_rows;  /* room for the logits of so many rows, whatever the policy needs */
    bool set_share;         /* pin this share of every matrix, whatever the budget would allow: */
    double share;           /* 0 .. 1 */
    stream_fault_fn *fault; /* of the streams' reads; NULL: none */
    void *fault_user;
} engine_tuning;

typedef struct engine_side { /* the target, or the draft */
    model_layout layout;
    weights weights;
    arena layout_memory, weight_memory;
} engine_side;

struct drey_engine {
    drey_engine_options options;
    const kernel_table *kernels;
    pool *pool;
    engine_side target, draft;
    engine_plan plan;
    engine_tuning tuning;
    bool has_draft, in_session;
    char *sidecar;            /* the target's, in use; NULL: none */
    file_stamp sidecar_stamp; /* when it was checked */
};

/* Binds tensors and fits everything under the budget: sets n_pinned of every matrix. The engine
 * needs options, kernels and plan.report.n_threads; layouts are taken here, weights are not. */
drey_status engine_plan_make(drey_engine *e, drey_error *err);
size_t engine_session_bytes(const drey_engine *e);
/* What both caches hold. */
kv_format engine_kv_format(const drey_engine *e);
/* Fills what the plan predicts. */
void engine_predict(drey_engine *e, const drey_speeds *speeds);
/* Finds the target's sidecar and checks it: its matrices then lie there. A bad one beside the
 * target is passed over, which the plan tells; a bad one that was named is an error. */
drey_status engine_find_sidecar(drey_engine *e, drey_error *err);

/* options as given, with defaults filled in and checked. */
drey_status engine_check_options(drey_engine *e, const drey_engine_options *options,
                                 drey_error *err);
void engine_release(drey_engine *e);
/* drey_engine_open with settings of its own; NULL: none. */
drey_status engine_open(drey_engine **out, const drey_engine_options *options,
                        const engine_tuning *tuning, drey_error *err);

struct drey_session {
    drey_engine *engine;
    arena memory;
    kv_cache target_kv, draft_kv;
    workspace ws;
    runner target, draft;
    sampler sampler;
    model_drafter model_drafter;
    drafter *drafter; /* NULL: none */
    token_tree tree;
    accepted accepted;
    int32_t *timeline; /* [n_context]: committed tokens and the root, which is the last */
    int32_t n_timeline;
    _Atomic bool cancel;
    size_t base_mark; /* of the arena, below the sampler */
};

#endif
