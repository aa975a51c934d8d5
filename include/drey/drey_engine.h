/* Engines: the weights of a model and its drafter under one memory budget; and weights packed
 * beforehand. */
#ifndef DREY_DREY_ENGINE_H
#define DREY_DREY_ENGINE_H

#include "drey/choices.h"
#include "drey/drey_model.h"
#include "drey/drey_plan.h"
#include "drey/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Engine: weights under one memory budget ---- */

/* Weights are prefetched sparsely, every line into the first cache, or into the second. Tiles have
 * 16 rows of weights, 32, or as many sums as registers hold. Names: "sparse", "lines", ... */
typedef enum drey_fetch { DREY_FETCH_SPARSE, DREY_FETCH_NEAR, DREY_FETCH_FAR } drey_fetch;
typedef enum drey_tile { DREY_TILE_HALVES, DREY_TILE_LINES, DREY_TILE_CHAINS } drey_tile;
DREY_API const char *drey_fetch_name(drey_fetch fetch);
DREY_API const char *drey_tile_name(drey_tile tile);
DREY_API bool drey_fetch_parse(const char *name, drey_fetch *fetch);
DREY_API bool drey_tile_parse(const char *name, drey_tile *tile);
/* Choices between ways of computing that differ only in speed; no text depends on them. */
typedef struct drey_tuning {
    bool early_amx;       /* AMX for products of 9 rows and more, not of 25 and more */
    drey_fetch fetch;     /* way in which products of few rows prefetch weights */
    drey_tile tile;       /* way in which products of many rows are divided */
    uint64_t reserved[3]; /* zero */
} drey_tuning;
/* The defaults of this processor's family; drey_tune (drey/tune.h) measures. */
DREY_API void drey_tuning_init(drey_tuning *tuning);
/* The processor that a measured tuning belongs to: its maker's numbers, such as
 * "AuthenticAMD-26-2-1" (family, model, stepping), or else its name. */
DREY_API void drey_cpu_id(char *out, size_t capacity);
/* Computed beginnings of texts are kept in blocks of 64 tokens and restored when another text
 * begins with the same tokens, to the last one that is the same. They are restored bit by bit, so
 * that the text is the same. They are kept in memory, which is part of the plan, and in a folder,
 * which survives a restart and may have more than memory. */
typedef struct drey_prefix_options {
    uint64_t memory_bytes; /* 0: none are kept; else room for at least one block */
    const char *folder;    /* NULL: memory only. Created if it does not exist; used by one engine at
                              a time. Prefixes of other models in it are ignored */
    uint64_t disk_bytes;   /* most bytes of the folder, at least one block; the least recently used
                              are removed */
    uint64_t reserved[4];  /* zero */
} drey_prefix_options;

/* The processes that compute one model together: see below. */
typedef struct drey_ranks drey_ranks;

typedef struct drey_engine_options {
    const drey_model *target; /* borrowed until the engine is closed */
    const drey_model *draft;  /* borrowed for the same time; NULL unless drafter is
                                 DREY_DRAFTER_MODEL or DREY_DRAFTER_EAGLE, or DREY_DRAFTER_MTP with
                                 its own file */
    drey_drafter drafter;     /* MODEL with a file of an EAGLE layer is EAGLE, with one of an MTP
                                 block MTP */
    drey_policy policy;
    uint64_t memory_bytes; /* limit for everything the process uses; or DREY_MEMORY_* */
    int32_t n_context;     /* positions of prompt and text together */
    int32_t n_threads;     /* 0: one per core that this process may use */
    int32_t n_sessions;    /* most sessions open at the same time; 0: 1 */
    int32_t draft_tokens;  /* length of a drafted chain; 0: the policy's standard */
    int32_t tree_nodes;    /* most nodes of a tree; 0: the policy's standard */
    int32_t prompt_chunk;  /* rows of a prompt pass; 0: the plan chooses */
    const char *cpu_tier;  /* NULL: the best this CPU has; see drey_cpu_tiers */
    drey_io io;
    drey_kv kv; /* format of the target's cache and of the draft's */
    /* Keys and values of the target that memory has no room for go to a file without a name in this
     * folder, which is not to be one in memory (tmpfs). The texts are the same. Copied. NULL: all
     * are in memory. */
    const char *kv_folder;
    /* bytes of all sessions' caches of the target, at most; 0: what weights leave of the budget */
    uint64_t kv_memory_bytes;
    uint64_t read_bytes; /* approximate size of a streamed read; 0: 1 MiB */
    drey_progress_fn *progress;
    void *progress_user;
    /* The target's sidecar (see drey_prepare), which must be valid. NULL: the one next to the
     * target, if there is one and it is valid. Copied. */
    const char *sidecar;
    bool no_sidecar;           /* use none */
    const drey_tuning *tuning; /* copied; NULL: the defaults of the processor's family */
    int32_t trace_spans;       /* latest spans and nodes to keep, see drey_session_trace; 0: none */
    /* The file of heads of DREY_DRAFTER_MEDUSA; NULL: MODEL.drey-medusa next to the target. Read
     * when the engine or planner opens. DREY_ERR_MISMATCH: heads of another model, or of another
     * width. */
    const char *heads;
    const drey_profile *profile; /* copied; NULL: nothing is known */
    /* Texts repeat what is before them: forms, edits, quotations. A draft model is then helped by
     * lookup's guesses under `optimal`, without exits. */
    bool repeats;
    drey_exit exit;
    float exit_threshold; /* within (0, 1]; the head is computed for scores above it; 0: the file's
                             threshold */
    /* The predictors, which must fit. NULL: MODEL.drey-exit next to the target. Read when the
     * engine or planner opens, unless exits are off. */
    const char *exit_file;
    uint64_t held_bytes; /* memory that the caller itself uses or will use, part of memory_bytes */
    const char *units;   /* copied; NULL: "cpu", one thread per core */
    const drey_unit_shares *unit_shares; /* copied; used if `units` names no shares. NULL: equal
                                            shares for each thread and device */
    const drey_prefix_options *prefixes; /* borrowed for the call; NULL: no prefixes are kept */
    const drey_routes *routes;           /* routes of the target, copied; NULL: not known */
    /* Rank 0's, borrowed until the engine is closed: this engine computes the first of the target's
     * layers and the other ranks the others. NULL: it computes all. */
    drey_ranks *ranks;
    /* Numbers of the target's layers that each rank computes, with ranks; copied. The sum is all
     * layers. Rank 0 may have none: it has the embedding, the head and the draft then. NULL: by the
     * memory and the disk that each rank has. */
    const int32_t *rank_layers; /* [n_rank_layers], one for each rank */
    uint64_t n_rank_layers;
    const drey_research *research; /* copied; NULL: as is usual */
    uint64_t reserved[8];          /* zero */
} drey_engine_options;
DREY_API void drey_engine_options_init(drey_engine_options *options);
/* Opens the file of a draft, and sets drafter, draft and heads of the options by what it has: a
 * model, the layer after a target (EAGLE, MTP), or heads. *draft: the model, which the caller
 * closes after the engine; NULL: the file has heads, and `path` is borrowed until the engine is
 * open. */
DREY_API drey_status drey_draft_open(drey_model **draft, drey_engine_options *options,
                                     const char *path, drey_error *err);

/* A planner reads headers, tensors' shapes and the sidecar's table once, when it opens. After that
 * it computes the plan of any budget without opening a file, except to measure. It takes a few
 * KiB. */
typedef struct drey_planner drey_planner;

/* options: as for drey_engine_open; the models are borrowed until the planner is closed. */
DREY_API drey_status drey_planner_open(drey_planner **out, const drey_engine_options *options,
                                       drey_error *err);
/* Accepts NULL; nulls the pointer. */
DREY_API void drey_planner_close(drey_planner **planner);

/* The plan of a budget. memory_bytes: a budget, DREY_MEMORY_UNLIMITED, or 0 for that of the options
 * (DREY_MEMORY_AUTO is resolved when the planner opens). speeds: from drey_planner_measure or the
 * caller; NULL: nothing is predicted. DREY_ERR_MEMORY: the budget is too small; the message and
 * plan->smallest_budget_bytes give the smallest. */
DREY_API drey_status drey_planner_make(drey_planner *planner, uint64_t memory_bytes,
                                       const drey_speeds *speeds, drey_plan *plan, drey_error *err);

/* Measures the speeds that are 0, in less than a second and within the budget. The disk is measured
 * by reading the target for 0.4 s, unless nothing is streamed. */
DREY_API drey_status drey_planner_measure(drey_planner *planner, uint64_t memory_bytes,
                                          drey_speeds *speeds, drey_error *err);

/* Calls `visit` for each tensor of the target, in the order in which a pass uses them. */
typedef enum drey_residency {
    DREY_PINNED,
    DREY_STREAMED,
    DREY_LOOKED_UP, /* rows are read one by one as tokens ask for them */
    DREY_IN_SLOTS   /* experts, of which those that were used last are in memory */
} drey_residency;
typedef void drey_plan_visit_fn(void *user, const char *tensor, uint64_t bytes,
                                drey_residency where);
DREY_API drey_status drey_planner_visit(drey_planner *planner, uint64_t memory_bytes,
                                        drey_plan_visit_fn *visit, void *user, drey_error *err);

/* The plan of the options' budget, by a planner that is opened for it and closed again. */
DREY_API drey_status drey_plan_make(const drey_engine_options *options, const drey_speeds *speeds,
                                    drey_plan *plan, drey_error *err);

/* Loads the library's code into memory (every plan counts it) and drops the rest of its file, such
 * as debug symbols, from the page cache. A program that runs in a memory cgroup of the budget's
 * size calls it before it opens a planner or an engine. If drey is linked statically, the file is
 * the program's own. The library itself does not call it. */
DREY_API void drey_settle_memory(void);

typedef struct drey_engine drey_engine;

/* Plans, allocates all memory, and starts the threads. The first pass of a session reads the
 * weights. DREY_ERR_MISMATCH if the draft's tokens differ from the target's (it says which). */
DREY_API drey_status drey_engine_open(drey_engine **out, const drey_engine_options *options,
                                      drey_error *err);
/* Accepts NULL; nulls the pointer. Close its sessions first. */
DREY_API void drey_engine_close(drey_engine **engine);
DREY_API void drey_engine_plan(const drey_engine *engine, drey_plan *plan);

typedef struct drey_unit {
    char name[80];     /* "cpu:0-3", "opencl" */
    char cpu_tier[16]; /* tier of a cluster; "" of a device */
    int32_t n_threads; /* threads of a cluster; 0: a device */
    /* slowness of a cluster: the factor by which it is slowed down on purpose; 1: not */
    double slow;
    double share[DREY_UNIT_WIDTHS]; /* shares of passes of up to 2^w rows; the units' sum is 1 */
    uint64_t n_groups; /* groups of 32 rows that it has computed; 0 if there is only one cluster */
    char failed[500];  /* reason why it is no longer used (others do its part); "": it is used */
    /* Its part of divided attention, whose tasks are a key head and some rows: blocks of 64
     * positions that all rows of a task see, and tasks of which it computed the rest. */
    uint64_t n_dense_blocks, n_tails;
    uint64_t attends;     /* 1: it takes part in attention; 0: see drey_engine_unit_no_attention */
    uint64_t reserved[1]; /* zero */
} drey_unit;
/* The engine's units, counted from 0; false: there is no such unit. Call it between steps of its
 * sessions. */
DREY_API bool drey_engine_unit(const drey_engine *engine, int32_t i, drey_unit *out);
/* Returns why a unit takes no part in attention: it has its own memory, its arithmetic differs,
 * or it has failed. NULL: it takes part, or there is no such unit. Valid until the engine's next
 * step. */
DREY_API const char *drey_engine_unit_no_attention(const drey_engine *engine, int32_t i);

/* ---- Ranks: several machines as one ---- */

/* Joins the other processes that mpirun has started, by libdrey-mpi, which is opened now. Once per
 * process. wait_s: a rank that has to compute and is silent for so many seconds ends the run; 0:
 * 120. DREY_ERR_UNSUPPORTED: this build has no libdrey-mpi; DREY_ERR_IO. */
DREY_API drey_status drey_ranks_open(drey_ranks **out, int32_t wait_s, drey_error *err);
/* Rank 0 ends the others' drey_ranks_serve, and all leave together. If a rank has become silent,
 * the call ends all processes, this one as well, with exit code 1. Accepts a pointer to NULL, and
 * nulls it. */
DREY_API void drey_ranks_close(drey_ranks **ranks);
/* Number of this process, from 0. Rank 0 opens an engine with options.ranks; a session of it writes
 * the text that one machine would write. All others call drey_ranks_serve. */
DREY_API int32_t drey_ranks_rank(const drey_ranks *ranks);
/* Computes layers of options->target for rank 0 until that closes its ranks. Of the options,
 * memory, threads, the way of reading and the sidecar count; what concerns texts is rank 0's. Each
 * rank has its own copy of the model. An error that reaches rank 0 is reported there, and is
 * DREY_OK here. */
DREY_API drey_status drey_ranks_serve(drey_ranks *ranks, const drey_engine_options *options,
                                      drey_error *err);
/* Checks that an engine can be used further: DREY_OK, always without ranks. Else the failure of
 * another rank, with its name: no text of any session can be continued; close the engine and the
 * ranks. Call it between steps. */
DREY_API drey_status drey_engine_check(const drey_engine *engine, drey_error *err);
/* A rank as rank 0 knows it once an engine is open. */
typedef struct drey_rank_info {
    char host[64];
    int32_t first_layer, n_layers;
    uint64_t budget_bytes;
    /* bytes of its layers; rank 0's with the head. A mixture's slots are part of what is pinned. */
    uint64_t pinned_bytes, streamed_bytes_per_pass;
    uint64_t read_bytes;     /* bytes of the model, so far */
    double disk_bytes_per_s; /* speed of its disk; 0: not known */
    uint64_t reserved[3];    /* zero */
} drey_rank_info;
/* Returns false if there is no such rank. */
DREY_API bool drey_ranks_describe(const drey_ranks *ranks, int32_t rank, drey_rank_info *out);

/* Says how fast this rank's disk brings the model: bytes_per_s, or if that is 0, what reading it
 * for 0.4 s shows, unless the rank has memory for all of it. Layers are divided by that where all
 * ranks together have too little memory. Without this call all disks count alike. Before the engine
 * is opened, or drey_ranks_serve; options as for those. */
DREY_API drey_status drey_ranks_disk(drey_ranks *ranks, const drey_engine_options *options,
                                     double bytes_per_s, drey_error *err);

/* A machine that might be a rank. */
typedef struct drey_rank_machine {
    char host[64];
    uint64_t memory_bytes;   /* its budget */
    double disk_bytes_per_s; /* 0: not known */
    uint64_t reserved[4];    /* zero */
} drey_rank_machine;
/* Share of the work that it would have. */
typedef struct drey_rank_plan {
    drey_rank_info rank;
    drey_plan plan; /* plan of its layers */
    uint64_t reserved[4];
} drey_rank_plan;
/* The plan of a run on these n machines, the first of which is rank 0: layers are divided as in
 * such a run. out: [n]. options: as for rank 0's engine, without ranks; memory_bytes does not
 * count. speeds: of each machine except for its disk; NULL: nothing is predicted. The predictions
 * of out[0] are of passes around all ranks, without the network; read_s, compute_s and verify_s
 * are of its own layers. All machines count as having this one's processor and threads.
 * DREY_ERR_USAGE: what is asked for does not work with ranks; DREY_ERR_MEMORY: a machine has too
 * little, and the message says which. */
DREY_API drey_status drey_ranks_plan(const drey_engine_options *options, const drey_speeds *speeds,
                                     const drey_rank_machine *machines, int32_t n,
                                     drey_rank_plan *out, drey_error *err);

/* ---- Sidecars: weights packed beforehand ---- */

typedef struct drey_prepare_options {
    const drey_model *model; /* borrowed for the call */
    const char *output;      /* NULL: MODEL.drey, next to the model's first file */
    bool check;              /* writes nothing: reads all of model and sidecar and compares them */
    bool force; /* writes even if there is a valid sidecar, or another kind of file, already */
    /* Each may be NULL. Called from the calling thread: announce once, before anything is written,
     * with the disk space that is needed and that is free; progress with DREY_PROGRESS_PREPARE or
     * DREY_PROGRESS_CHECK; go_on from time to time: false ends the call with DREY_ERR_CANCELLED. */
    void (*announce)(void *user, const char *path, uint64_t needed_bytes, uint64_t free_bytes);
    drey_progress_fn *progress;
    bool (*go_on)(void *user);
    void *user;
    /* Store high and low bits of the weights separately, so that the high ones can stay in memory
     * and draft (DREY_DRAFTER_SELF). The text is the same. A good sidecar that has them is not
     * written again without them, unless by force. */
    bool planes;
    uint64_t reserved[7]; /* zero */
} drey_prepare_options;
DREY_API void drey_prepare_options_init(drey_prepare_options *options);

typedef struct drey_prepare_report {
    uint64_t sidecar_bytes; /* the sidecar's size; 0: not known */
    bool written;           /* false: there was a valid one already, or it was only checked */
    uint64_t reserved[4];   /* zero */
} drey_prepare_report;

/* Writes the model's sidecar: its matrices in the kernels' own layout, so that streamed weights
 * need no packing. An engine uses it if it is in the model's folder. Texts are the same with and
 * without it. The file appears complete or not at all, and engines refuse it when the model has
 * changed. The report may be NULL. */
DREY_API drey_status drey_prepare(const drey_prepare_options *options, drey_prepare_report *report,
                                  drey_error *err);

/* ---- Processors ---- */

/* Names of the CPU tiers that this build and machine have, the best first, NULL at the end. "ref"
 * is always the last but one, and "float" (activations stay float: slow, for judging accuracy) the
 * last. */
DREY_API const char *const *drey_cpu_tiers(void);
/* The processor's name (on Arm the board's), NUL-terminated; truncated to fit. */
DREY_API void drey_cpu_name(char *out, size_t capacity);

#ifdef __cplusplus
}
#endif
#endif
