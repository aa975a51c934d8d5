/* The plan: how a memory budget is spent, as a pure function of inputs that are gathered once
 * (gather.c). It opens no file, takes no memory and changes no engine, so plans can be made for any
 * number of budgets; engine_open applies one result. */
#pragma once

#include "common/error.h"
#include "drey/drey_plan.h"
#include "drey/profile.h"
#include "kernel/kernel.h"
#include "policy/policy.h"
#include "weights/residency.h"
#include "weights/weights.h"

typedef struct block_list block_list;
typedef struct cache_spec cache_spec;
typedef struct drafter_kind drafter_kind;
typedef struct drey_static_trees drey_static_trees;
typedef struct kv_file_options kv_file_options;
typedef struct model_shape model_shape;
typedef struct turn_cost turn_cost;
typedef struct workspace_limits workspace_limits;

/* The models of an engine. All but the target are side models, whose weights stay in memory. They
 * may be views of the target, without their own weights, and may have no passes. */
enum { PLAN_TARGET, PLAN_DRAFT, PLAN_MODELS };

typedef struct plan_matrix {
    residency groups; /* its groups, with none resident */
    double numbers;   /* [n_rows][k] */
    bool must_stay;   /* pinned whatever the budget is */
    bool of_experts;  /* parts of it come to slots; otherwise nothing of it is in memory */
    /* bits of a weight in the first plane, of a matrix in planes: of a weight that are in the
     * first one */
    int32_t first_bits;
} plan_matrix;

/* A mixture's experts: bytes are fixed_bytes + n * slot_bytes with n slots, in all layers
 * together. */
typedef struct plan_experts {
    int32_t n_layers;     /* layers that have experts */
    int32_t least, most;  /* slots; most 0: the model is no mixture */
    uint64_t fixed_bytes; /* rounded up, as is */
    uint64_t slot_bytes;  /* bytes of a slot with what belongs to it */
    uint64_t token_bytes; /* bytes that the experts of one row have in the file, */
    double token_numbers; /* and their numbers */
} plan_experts;

typedef struct plan_model {
    const model_shape *shape;  /* borrowed; NULL: it has no passes */
    const block_list *blocks;  /* blocks of its layers, borrowed */
    const plan_matrix *matrix; /* [n_matrices], borrowed, as in the layout: the head is the last */
    int32_t n_matrices;
    bool is_view;              /* its weights and committed positions are the target's */
    uint64_t resident_bytes;   /* bytes of resident weights that are none of these matrices */
    uint64_t overhead_bytes;   /* bytes besides pinned groups and ring */
    uint64_t queue_bytes;      /* bytes of its reader, with the kernel's part */
    uint64_t ring_least_bytes; /* bytes of its ring, for one unit */
    uint64_t encoder_bytes;    /* bytes of its encoder, which reads an input of n_context tokens */
    int32_t n_logits;          /* length of a row of logits; 0: the vocabulary's */
    plan_experts experts;
} plan_model;

/* Use of the draft. */
typedef struct plan_drafting {
    const drafter_kind *kind;       /* NULL: no drafting */
    const drey_profile *profile;    /* its measurements, borrowed; or NULL */
    const drey_static_trees *trees; /* records of its guesses, borrowed; or NULL */
    int32_t n_ids;                  /* ids in its head's slice; 0: all ids */
    int32_t tree_nodes;             /* most drafted nodes */
    int32_t steps;                  /* about how many it takes for those */
    int32_t cache_nodes;            /* most nodes of a tree that its cache holds */
} plan_drafting;

/* Keys and values of the target. */
typedef struct plan_offload {
    bool may_be;           /* in a file; */
    uint64_t memory_bytes; /* then they have so much memory; 0: for the plan to choose */
} plan_offload;

/* Memory of the process, whatever the budget is. */
typedef struct plan_process {
    uint64_t program_bytes, tokenizer_bytes, stack_bytes, reserve_bytes;
    uint64_t held_bytes;   /* the caller's */
    uint64_t prefix_bytes; /* for prefixes that are kept */
    plan_offload offload;
} plan_process;

/* Facts that are copied into a plan. */
typedef struct plan_facts {
    uint64_t target_bytes; /* all its tensors */
    drey_kv kv_name;
    bool sidecar;
    const char *sidecar_refused; /* reason; borrowed; "": it was not */
    bool budget_is_estimate;
} plan_facts;

/* Share of a pass that other ranks compute (ranks/ranks.h). */
typedef struct plan_remote {
    double (*rows_s)(const void *user, int32_t n_rows); /* seconds; NULL: there are none */
    const void *user;                                   /* borrowed */
} plan_remote;

typedef struct plan_inputs {
    plan_model model[PLAN_MODELS];
    plan_drafting draft;
    int32_t n_units; /* sets of threads, or devices, that compute; each holds pieces of a ring */
    int32_t n_attending; /* units that compute attention; above 1 it is divided */
    int32_t n_devices;
    int32_t n_sessions;           /* each with its own caches and state; one workspace serves all */
    uint64_t session_state_bytes; /* bytes of a session, with its drafter, without its caches */
    int32_t n_context, n_threads;
    int32_t spare_rows;        /* rows of caches, besides a pass's rows */
    int32_t prompt_chunk;      /* rows of a prompt pass; 0: for the plan to choose */
    int32_t deferred_rows;     /* most of a session and of a pass; 0: no pass is stopped */
    int32_t tap_rows;          /* most rows of a target's pass that are tapped (pass.h) */
    int32_t tapped_layers;     /* layers whose rows in a target's pass the drafter sees */
    double exit_layers;        /* mean layers of a pass, if passes may be stopped; 0: all */
    const float *exit_shares;  /* [n_layers + 1]: of passes that end after so many layers; borrowed;
                                 NULL: all of them after exit_layers */
    const drey_routes *routes; /* routes of the target; borrowed; NULL: not known */
    int32_t least_logit_rows;  /* least rows of logits, whatever the policy needs */
    kv_format kv, kv_plain;    /* the caches' format; the format without that option */
    bool set_share;            /* for measurements: pin this share of every matrix, whatever the */
    double share;              /* budget allows (0 .. 1) */
    plan_process process;
    plan_facts facts;
    plan_remote remote;
} plan_inputs;

typedef struct plan_result {
    drey_plan report;
    int32_t chunk;                /* rows of a prompt pass */
    int32_t max_rows;             /* rows of any pass */
    int32_t logit_rows;           /* rows whose logits are kept at once */
    int32_t tree_nodes;           /* most drafted nodes */
    int32_t max_pending, n_slots; /* rows of a session's cache */
    int32_t window; /* positions of the target's caches in memory; 0: all. n_slots has more */
    int32_t draft_pending, draft_slots; /* and of its draft's, which has the rows of a whole tree */
    size_t work_bytes;                  /* bytes of the workspaces */
    size_t session_bytes;               /* bytes of a session's arena */
    size_t ring_bytes[PLAN_MODELS];
    int32_t expert_slots[PLAN_MODELS]; /* slots of all layers together */
    residency *residency[PLAN_MODELS]; /* [n_matrices] each, the caller's memory */
} plan_result;

/* Fills the result, whose stays point to the caller's memory. Everything that does not depend on
 * the budget is added up first. The rest is used to pin the target: its head, then small matrices
 * (each would cost one read request), then an equal share of every other one, so that in each
 * product pinned rows are computed while streamed ones arrive. If all matrices that passes use are
 * pinned, embeddings whose rows would be looked up are next, the draft's first.
 *
 * If passes end early, the first layers get a larger share and the last ones none,
 * provided that this makes the mean pass shorter (plan_expected_pass_s).
 *
 * If the target drafts for itself, the first planes of all matrices that its passes multiply stay
 * in memory, and so do matrices that are not split. The rest is used for one more bit of the
 * weights that have the fewest, an equal share of each of their matrices, and so on: that is worth
 * most to the draft. (A 1.5B model in Q4_K_M agreed with itself at 75 % of positions with 2 bits of
 * Q4_K and 4 of Q6_K, at 86 % with 3 and 4, at no more than 75 % with 2 and 6.)
 *
 * Of a mixture of experts everything else stays in memory, and the rest is used for slots, the same
 * number in every layer.
 *
 * Where keys and values may be in a file, weights come first: a byte of them saves a read in every
 * pass, one of keys and values only after a text that long. So their window is the least one until
 * all weights are in memory, and gets what is left; or what the inputs say.
 *
 * DREY_ERR_MEMORY: the budget is too small; the message and report.smallest_budget_bytes give the
 * smallest one that works. It depends on the machine (threads, and the CPU tier's scratch for each
 * of them) and on the memory of the process when the inputs are gathered, which differs by some
 * pages between runs; so half a MiB is added and the sum rounded up to a MiB. */
drey_status plan_make(const plan_inputs *in, uint64_t budget_bytes, plan_result *result,
                      drey_error *err);

/* The memory of one of a model's caches, besides its slots. */
cache_spec plan_cache_spec(const plan_inputs *in, const plan_result *r, int model);

/* Bytes of the target's weights that have to be in memory whatever the budget is. */
uint64_t plan_staying_bytes(const plan_inputs *in);

/* The file of caches with the result's window, as far as the plan knows it. */
kv_file_options plan_kv_file(const plan_inputs *in, const plan_result *r);

/* The limits of a model's passes. The draft's are small, as its prompts lose little in short
 * chunks. They have their own workspace, so that they can run while the target's wait. */
workspace_limits plan_workspace(const plan_inputs *in, const plan_result *r, int model);

/* Bytes that a step of the draft reads: of a view, what stays of the target. */
uint64_t plan_step_bytes(const plan_inputs *in, const plan_result *r);
/* Seconds of a pass through `layers` layers and the head, at these speeds: the disk is at most the
 * ring ahead of the threads. layers need not be whole. (plan_layers.c) */
double plan_pass_s(const plan_inputs *in, const plan_result *r, double layers, double disk_per_s,
                   double memory_per_s);
/* The mean over passes that end where the inputs say. */
double plan_mean_pass_s(const plan_inputs *in, const plan_result *r, double disk_per_s,
                        double memory_per_s);
/* The same over a full tree, on a usual machine and disk. */
double plan_expected_pass_s(const plan_inputs *in, const plan_result *r);
/* Number of first layers of which at least half stays in memory. */
int64_t plan_leading_layers(const plan_inputs *in, const plan_result *r);

/* Expected hits in a mixture: the share of a row's experts that is expected in slots, by its routes
 * where they are known, and its experts over those that a row uses. (plan_experts.c) */
double plan_expert_hits(const plan_inputs *in, int32_t n_slots);
double plan_expert_ratio(const plan_inputs *in);
/* Bytes of a mixture's passes and steps: bytes of a pass over one row. */
typedef struct mixture_bytes {
    uint64_t read;   /* bytes that are read, */
    uint64_t token;  /* bytes of the row's experts, */
    uint64_t pinned; /* and of all else */
} mixture_bytes;
void plan_cost_of_mixture(const plan_inputs *in, const mixture_bytes *bytes, uint64_t step_bytes,
                          turn_cost *cost);
/* Assumes costs of passes and steps on a usual machine and disk, before any was measured. */
void plan_cost(const plan_inputs *in, const plan_result *r, turn_cost *cost);
/* The highest expected tokens per second of any tree of the plan's drafter, for usual texts.
 * turn_s: seconds of a turn over n_nodes drafted in n_steps. */
typedef double expect_turn_fn(const void *user, int32_t n_nodes, int32_t n_steps);
double expect_best(const plan_inputs *in, expect_turn_fn *turn_s, const void *user);
/* The same on a usual machine and disk, before anything is measured. */
double plan_expect(const plan_inputs *in, const plan_result *r);
/* The factor of what further rows add to a pass: rows add computing, which all threads share, while
 * one or two threads fill the memory bus. Three and more threads are as usual: 1. */
double plan_row_price(int32_t n_threads);

/* Seconds of a pass over n rows, at the speeds of plan_predict; 0: not known. (plan_predict.c) */
double plan_rows_s(const plan_inputs *in, const plan_result *r, int32_t n_rows);
/* Fills the plan's predictions. */
void plan_predict(const plan_inputs *in, const drey_speeds *speeds, plan_result *result);
