/* The plan: what a memory budget buys, as a pure function of inputs that are gathered once
 * (gather.c). It opens no file, takes no memory and changes no engine, so it can be asked for any
 * number of budgets; engine_open applies one result. */
#ifndef DREY_PLAN_PLAN_H
#define DREY_PLAN_PLAN_H

#include "common/error.h"
#include "draft/drafter_kind.h"
#include "drey/tune.h"
#include "kernel/planes.h"
#include "model/deferred.h"
#include "model/workspace.h"

/* The models of an engine. All but the target are side models, whose weights stay in memory. They
 * may be views of the target, which have no weights of their own, and may have no passes. */
enum { PLAN_TARGET, PLAN_DRAFT, PLAN_MODELS };

/* A matrix of packed groups, each of which is pinned or not. */
typedef struct plan_matrix {
    int32_t n_groups;
    uint64_t group_bytes;      /* of a pinned group */
    uint64_t group_read_bytes; /* what a pass reads for a group that is not pinned, */
    uint64_t last_read_bytes;  /* and for the last one, which may have fewer rows */
    double numbers;            /* [n_rows][k] */
    bool in_pass;              /* false: never streamed; its rows are looked up, or it is pinned */
    bool must_stay;            /* pinned whatever the budget is */
    bool split;                /* in planes: */
    int32_t first_bits;        /* of a weight that are in the first one */
    uint64_t plane_bytes[N_PLANES]; /* of a group */
} plan_matrix;

typedef struct plan_model {
    const model_shape *shape;  /* borrowed; NULL: it has no passes */
    const plan_matrix *matrix; /* [n_matrices], borrowed, as in the layout: the head is the last */
    int32_t n_matrices;
    bool is_view;              /* its weights and committed positions are the target's */
    uint64_t resident_bytes;   /* of weights that stay and are none of these matrices */
    uint64_t overhead_bytes;   /* beside pinned groups and ring */
    uint64_t queue_bytes;      /* of its reader, and what the kernel takes for that */
    uint64_t ring_least_bytes; /* of its ring, for one unit */
    int32_t n_logits;          /* numbers of a row of logits; 0: one for each of the vocabulary */
} plan_model;

/* How the draft is used. */
typedef struct plan_drafting {
    const drafter_kind *kind;       /* NULL: nobody drafts */
    const drey_profile *profile;    /* what was measured of it, borrowed; or NULL */
    const drey_static_trees *trees; /* what is known of its guesses, borrowed; or NULL */
    int32_t n_ids;                  /* of the slice that its head is over; 0: of all */
    int32_t tree_nodes;             /* most drafted nodes */
    int32_t steps;                  /* that it takes for those, about */
    int32_t cache_nodes;            /* most nodes of a tree that its cache holds */
} plan_drafting;

/* Of the process, whatever the budget is. */
typedef struct plan_process {
    uint64_t program_bytes, tokenizer_bytes, stack_bytes, reserve_bytes;
    uint64_t held_bytes;   /* the caller's */
    uint64_t prefix_bytes; /* for prefixes that are kept */
} plan_process;

/* Facts that a plan repeats. */
typedef struct plan_facts {
    uint64_t target_bytes; /* all its tensors */
    drey_kv kv_name;
    bool sidecar;
    const char *sidecar_refused; /* borrowed; "": none was */
    bool budget_is_estimate;
} plan_facts;

typedef struct plan_inputs {
    plan_model model[PLAN_MODELS];
    plan_drafting draft;
    int32_t n_units; /* sets of threads, or devices, that compute: each holds pieces of a ring */
    int32_t n_attending; /* units that have a part in attention: above 1 it is divided */
    int32_t n_devices;
    int32_t n_sessions; /* each with caches and a state of its own; a workspace serves all */
    uint64_t session_state_bytes; /* of a session, its drafter included, beside its caches */
    int32_t n_context, n_threads;
    int32_t spare_rows;    /* that caches hold beside a pass's rows */
    int32_t prompt_chunk;  /* rows of a prompt pass; 0: for the plan to choose */
    int32_t deferred_rows; /* most of a session, and of a pass; 0: no pass is stopped */
    double exit_layers; /* that passes go through in the mean, where they may be stopped; 0: all */
    int32_t least_logit_rows; /* room for the logits of so many rows, whatever the policy needs */
    kv_format kv, kv_plain;   /* what caches hold; what they would hold if nothing were asked for */
    bool set_share;           /* for measurements: pin this share of every matrix, whatever the */
    double share;             /* budget allows (0 .. 1) */
    plan_process process;
    plan_facts facts;
} plan_inputs;

typedef struct plan_result {
    drey_plan report;
    int32_t chunk;                      /* rows of a prompt pass */
    int32_t max_rows;                   /* rows of any pass */
    int32_t logit_rows;                 /* rows whose logits are kept at once */
    int32_t tree_nodes;                 /* most drafted nodes */
    int32_t max_pending, n_slots;       /* of a session's cache */
    int32_t draft_pending, draft_slots; /* and of its draft's, which has the rows of a whole tree */
    size_t work_bytes;                  /* of the workspaces */
    size_t session_bytes;               /* of a session's arena */
    size_t ring_bytes[PLAN_MODELS];
    int32_t *n_pinned[PLAN_MODELS]; /* [n_matrices] each, the caller's memory */
    /* Of the target, [n_matrices]: groups whose first planes are in memory, as in weight. NULL:
     * none of its matrices is split. */
    int32_t (*n_planes)[N_PLANES];
} plan_result;

/* Fills the result, whose n_pinned point to memory of the caller's. Everything that does not depend
 * on the budget is added up first; what is left pins the target: its head, then small matrices
 * (reading those would cost a request each), then an equal share of each other one, so that in each
 * product pinned rows are computed while streamed ones arrive. Where all that passes use is pinned,
 * embeddings whose rows would be looked up follow, the draft's first.
 *
 * Where passes end early in the mean, the first layers get a larger share and the last ones none,
 * if the mean pass is expected to be shorter so (plan_usual_pass_s).
 *
 * Where the target drafts for itself, the first plane of all that its passes multiply stays, as
 * matrices that are not split do. What is left buys a bit more of those weights that have the
 * fewest, an equal share of each of their matrices, and so on: that is worth most to the draft. (A
 * 1.5B model in Q4_K_M agreed with itself in 75 % of positions with 2 bits of Q4_K and 4 of Q6_K,
 * in 86 % with 3 and 4, in no more than 75 % with 2 and 6.)
 *
 * DREY_ERR_MEMORY: the budget is too small; the message and report.smallest_budget_bytes name the
 * least that works. It depends on the machine (threads, and the CPU tier's scratch for each of
 * them) and on what the process holds when it is gathered, which differs by some pages from run to
 * run; so it is rounded up to a MiB from half a MiB more. */
drey_status plan_make(const plan_inputs *in, uint64_t budget_bytes, plan_result *result,
                      drey_error *err);

/* What a model's passes have room for. The draft's are small, as its prompts lose little in short
 * chunks; they have a workspace of their own, so that they can run while the target's wait. */
workspace_limits plan_workspace(const plan_inputs *in, const plan_result *r, int model);

/* What a step of the draft reads: of a view, what stays of the target. */
uint64_t plan_step_bytes(const plan_inputs *in, const plan_result *r);
/* What a pass that goes to its end reads of the target's matrix i. */
uint64_t plan_streamed_bytes(const plan_inputs *in, const plan_result *r, int32_t i);
/* Seconds of a pass through `layers` layers and the head, at these speeds: the disk is ahead of the
 * threads by the ring at most. A part of a layer counts as such. (plan_front.c) */
double plan_pass_s(const plan_inputs *in, const plan_result *r, double layers, double disk_per_s,
                   double memory_per_s);
/* The same over a full tree, on a machine and disk of today. */
double plan_usual_pass_s(const plan_inputs *in, const plan_result *r, double layers);
/* Layers from the first on of which at least half stays. */
int64_t plan_front_layers(const plan_inputs *in, const plan_result *r);

/* The most tokens a second that any tree of the plan's drafter promises on texts of usual sorts.
 * turn_s: seconds of a turn over n_nodes drafted in n_steps. */
typedef double expect_turn_fn(const void *user, int32_t n_nodes, int32_t n_steps);
double expect_best(const plan_inputs *in, expect_turn_fn *turn_s, const void *user);
/* The same on a machine and disk of usual sorts, before anything is measured. */
double plan_expect(const plan_inputs *in, const plan_result *r);

/* Fills what the plan predicts. */
void plan_predict(const plan_inputs *in, const drey_speeds *speeds, plan_result *result);

#endif
