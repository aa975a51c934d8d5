/* drey/bench.h: what a machine, a disk, the kernels and a model do, beside the limits that were
 * measured in the same run. What `drey bench` prints is from here.
 *
 * For programs that measure; running a model needs drey/drey.h alone. Reports have no room to grow:
 * their structures may change with every minor version.
 */
#ifndef DREY_BENCH_H
#define DREY_BENCH_H

#include "drey/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the machine does at most, measured beside whatever is judged by it: all threads, medians. */
typedef struct drey_limits {
    double memory_bytes_per_s; /* reading a block far larger than the caches, the fastest way */
    double int8_ops_per_s;     /* the tier's own byte products on registers; a multiply-add is 2 */
    double float_ops_per_s;    /* of its float multiply-adds */
    double barrier_s;          /* a job of nothing on all threads */
} drey_limits;

typedef struct drey_tier_report {
    const char *name;
    double int8_ops_per_s, float_ops_per_s;
} drey_tier_report;

#define DREY_BENCH_MAX_TIERS 8

typedef struct drey_machine_report {
    char cpu[96];
    int32_t n_cores, n_threads;
    const char *cpu_tier;
    uint64_t memory_total_bytes, memory_available_bytes;
    drey_limits limits;
    double kernel_ops_per_s; /* what its matrix kernel of Q4_K makes of the peak, in the caches */
    int32_t n_tiers;         /* the tiers that run here, the best first */
    drey_tier_report tiers[DREY_BENCH_MAX_TIERS];
} drey_machine_report;
/* About two seconds. n_threads 0: the cores; cpu_tier NULL: the best. */
DREY_API drey_status drey_bench_machine(int32_t n_threads, const char *cpu_tier,
                                        drey_machine_report *report, drey_error *err);

typedef enum drey_kernel_figure {
    DREY_KERNEL_PACK = 0,     /* a type's blocks brought into the layout that its products want */
    DREY_KERNEL_QUANTISE = 1, /* activations for them */
    DREY_KERNEL_DOT = 2,      /* products */
    DREY_KERNEL_ROW = 3,      /* an operation on rows of activations: norms, RoPE, attention, ... */
    DREY_KERNEL_PLANES = 4    /* products of blocks whose high and low bits lie apart, and, in turns
                                 with them, of ordinary ones: two reports for each number of rows */
} drey_kernel_figure;
/* "pack", "quantise", "dot", "row", "planes"; NULL: there is no such figure. */
DREY_API const char *drey_kernel_figure_name(drey_kernel_figure what);

/* One figure about one kernel. */
typedef struct drey_kernel_report {
    const char *kernel; /* a tensor type, or a row operation */
    drey_kernel_figure what;
    const char *shape; /* of a row operation: what it ran on; planes: "unsplit", then "joined";
                           else "" */
    int32_t rows;      /* dot, planes, attention: rows of a pass; else 1 */
    double seconds; /* dot, planes: of a pass over all weights in memory, scaled to 1 GiB of them;
                           row: of a call; else 0 */
    double
        bytes_per_s; /* dot, planes, pack: of weights; quantise, row: of what is read and written */
    double ops_per_s; /* dot, planes: a multiply-add is two; else 0 */
    double bandwidth_share,
        peak_share; /* dot, planes: of limits, int8 or float as the kernel's products
                                           are; else 0 */
} drey_kernel_report;
typedef void drey_kernel_fn(void *user, const drey_kernel_report *report);
/* Times the kernels of a tier, weights streaming from memory, activations and row operations in the
 * caches: all types and operations (about half a minute), or the one named by `kernel` ("q4_k",
 * "rope"). limits is filled before the first visit. */
DREY_API drey_status drey_bench_kernels(int32_t n_threads, const char *cpu_tier, const char *kernel,
                                        drey_limits *limits, drey_kernel_fn *visit, void *user,
                                        drey_error *err);

/* One question that tuning asks: what a kernel makes of its weights without and with a choice. */
typedef struct drey_tune_report {
    const char *choice; /* "near fetch" or "whole lines": the members of drey_tuning */
    const char *kernel; /* a tensor type */
    int32_t rows;
    double without_bytes_per_s, with_bytes_per_s;
} drey_tune_report;
typedef void drey_tune_fn(void *user, const drey_tune_report *report);
/* Measures the choices of drey_tuning on a tier in turns, weights streaming from memory: a few
 * seconds. Where the two ways differ by less than 2 %, and on tiers that have one way alone, the
 * family's stays. visit may be NULL. */
DREY_API drey_status drey_tune(int32_t n_threads, const char *cpu_tier, drey_tuning *best,
                               drey_tune_fn *visit, void *user, drey_error *err);

/* For each tensor type and each tier of this build, best first: whose dot product it runs, the
 * tier's own or a lower one's; NULL where the tier does not run on this machine. */
typedef void drey_kernel_list_fn(void *user, const char *type, const char *tier, const char *own);
DREY_API void drey_kernel_list(drey_kernel_list_fn *visit, void *user);

typedef struct drey_disk_report {
    double bytes_per_s; /* reading the file's tensors in order as a pass does */
    uint64_t read_bytes;
    double cpu_s; /* processor time that reading took, kernel included, on all threads */
    bool direct, uring, registered; /* what the system allowed */
} drey_disk_report;
/* path: a model, or a sidecar. read_bytes: as in drey_engine_options. seconds: 0: once through the
 * file, two seconds at most; else as long, from the beginning again at the end. */
DREY_API drey_status drey_bench_disk(const char *path, drey_io io, uint64_t read_bytes,
                                     double seconds, drey_disk_report *report, drey_error *err);

#define DREY_BENCH_MAX_CONTEXTS 8
#define DREY_BENCH_MAX_PASSES   512

typedef struct drey_model_bench {
    int32_t n_prompt, n_decode; /* lengths of the prompt and of the text */
    int32_t n_contexts;
    int32_t contexts[DREY_BENCH_MAX_CONTEXTS]; /* positions before a pass, ascending */
    bool every; /* passes of every width from 1 to 64, not of powers of two alone */
} drey_model_bench;
/* 512, 64, and contexts of 0, 4096 and 16384. */
DREY_API void drey_model_bench_init(drey_model_bench *bench);

/* A pass over a chain of rows with logits for all of them. */
typedef struct drey_pass_report {
    int32_t context, rows;
    double seconds, ratio;                 /* median; against one row at this context */
    double limit_seconds;                  /* max(bytes / bandwidth, operations / peak) */
    double bandwidth_share, peak_share;    /* bytes and operations a second against the limits */
    double matmul_seconds, attend_seconds; /* inside the kernels, of `seconds` */
} drey_pass_report;

typedef struct drey_model_report {
    drey_limits limits; /* the mean of what was measured between the passes */
    double prefill_tokens_per_s;
    int32_t n_sessions;          /* as options.n_sessions */
    double decode_tokens_per_s;  /* of all sessions together, */
    double session_tokens_per_s; /* and of one alone, in turns with them */
    double prefill_peak_share;   /* operations of the prompt against the peak */
    double bandwidth_share;      /* bytes that the text's tokens need against the bandwidth */
    uint64_t token_bytes;        /* weights that one token needs, without keys and values */
    uint64_t position_bytes;     /* keys and values of one position of context */
    double overhead_share;       /* of a pass of one row: what is neither matrices nor attention */
    uint64_t streamed_bytes_per_pass; /* above 0: the disk decides, and shares mean little */
    int32_t n_left_out;               /* of the contexts, the longest: no room, or not trained */
    int32_t n_passes;
    drey_pass_report passes[DREY_BENCH_MAX_PASSES]; /* context by context */
} drey_model_report;
/* Opens an engine and its sessions; options as for drey_engine_open, without a draft. One of the
 * sessions is measured, and with n_sessions above 1 how fast all write together. What fills a
 * context is made up: the time of a pass does not depend on the numbers. */
DREY_API drey_status drey_bench_model(const drey_engine_options *options,
                                      const drey_model_bench *bench, drey_model_report *report,
                                      drey_error *err);

/* ---- A pair of models on this machine ---- */

typedef struct drey_pair_report {
    drey_profile profile; /* whose trees are NULL: who wants them used sets them to those below */
    double seconds;       /* that measuring took */
    int64_t n_tokens;     /* written to count what came */
    int64_t n_places;     /* of them, where the draft had guessed */
    drey_static_trees trees;          /* none without a drafter */
    uint64_t streamed_bytes_per_pass; /* above 0: pass_s is computing alone, and the disk decides */
    int32_t n_threads;
} drey_pair_report;

typedef struct drey_tune_prompt {
    const int32_t *ids; /* [n] */
    size_t n;
} drey_tune_prompt;

typedef struct drey_tune_options {
    const drey_tune_prompt *prompts; /* [n_prompts]: calibration; at least one with a drafter */
    int32_t n_prompts, n_predict;    /* tokens of each text; 0: 96 */
    void (*stage)(void *user, const char *what); /* what is measured next; may be NULL */
    void *user;
} drey_tune_options;

/* Measures what a session with these options would have to learn: passes of 1 to 64 rows, steps of
 * the draft, how often its guesses are right by confidence, depth and rank; about two minutes, less
 * for small models. options: as for drey_engine_open, but for the policy, which is its own. */
DREY_API drey_status drey_tune_pair(const drey_engine_options *options,
                                    const drey_tune_options *tune, drey_pair_report *report,
                                    drey_error *err);

/* ---- Units of this machine ---- */

/* Ways of dividing a pass between units. */
typedef enum drey_units_side {
    DREY_UNITS_STATIC = 0, /* as searched while all are at work, and nobody takes over */
    DREY_UNITS_DYNAMIC = 1 /* as searched, and who is done takes over */
} drey_units_side;
enum { DREY_UNITS_SIDES = 2 };
/* "static", "dynamic"; NULL: no such one. */
DREY_API const char *drey_units_side_name(drey_units_side side);

typedef struct drey_units_width {
    int32_t rows;                    /* of the pass */
    double alone_s[DREY_MAX_UNITS];  /* with all products on one unit */
    double side_s[DREY_UNITS_SIDES]; /* medians, measured in turns */
    double share[DREY_MAX_UNITS];    /* of both */
    int32_t n_measured;              /* ratios that the search looked at */
} drey_units_width;

typedef struct drey_units_report {
    int32_t n_units, n_widths;
    drey_unit units[DREY_MAX_UNITS];
    drey_units_width widths[DREY_UNIT_WIDTHS];
    drey_unit_shares shares; /* what the search found, for every width */
    double seconds;          /* that measuring took */
} drey_units_report;

typedef struct drey_units_options {
    /* Widths to measure, ascending, up to the first 0; none: 1, 4, 16 and 64. */
    int32_t rows[DREY_UNIT_WIDTHS];
    void (*stage)(void *user, int32_t rows); /* what is measured next; may be NULL */
    void *user;
} drey_units_options;

/* Finds how to divide passes between options.units: from their times alone, then by measuring with
 * all at work (Ghidorah III-C3), width by width; half a minute or so. options: as for
 * drey_engine_open, but for drafter, policy and unit_shares, which are its own.
 * DREY_ERR_USAGE: there is one cluster alone, nothing to divide. */
DREY_API drey_status drey_tune_units(const drey_engine_options *options,
                                     const drey_units_options *tune, drey_units_report *report,
                                     drey_error *err);

/* Ways of dividing attention between clusters of cores. */
typedef enum drey_boundary_side {
    DREY_BOUNDARY_HEADS = 0,    /* whole heads and rows, whoever comes first, as without clusters */
    DREY_BOUNDARY_AFFINITY = 1, /* what is dense to devices and to those before the last cluster, a
                                   tree's part to the last one, and nobody takes over */
    DREY_BOUNDARY_STATIC = 2,   /* the same with the boundary as searched */
    DREY_BOUNDARY_DYNAMIC = 3   /* as searched, and who is done takes over */
} drey_boundary_side;
enum { DREY_BOUNDARY_SIDES = 4 };
/* "whole heads", "dense and sparse", "searched", "searched, dynamic"; NULL: no such one. */
DREY_API const char *drey_boundary_side_name(drey_boundary_side side);

typedef struct drey_boundary_context {
    int32_t n_positions;                /* behind which a tree is computed */
    float boundary;                     /* as searched: drey_unit_shares.boundary */
    double side_s[DREY_BOUNDARY_SIDES]; /* attention of a pass, medians, measured in turns */
    int32_t n_measured;                 /* boundaries that the search looked at */
} drey_boundary_context;

typedef struct drey_boundaries_report {
    int32_t n_contexts;
    drey_boundary_context contexts[DREY_UNIT_CONTEXTS];
    double seconds; /* that measuring took */
    uint64_t reserved[4];
} drey_boundaries_report;

typedef struct drey_boundaries_options {
    int32_t rows;           /* of the tree; 0: 16 */
    int32_t most_positions; /* contexts are DREY_UNIT_CONTEXT, four times as many, ... up to so
                               many; 0: 4096 */
    void (*stage)(void *user, int32_t n_positions); /* what is measured next; may be NULL */
    void *user;
    uint64_t reserved[4]; /* zero */
} drey_boundaries_options;

/* Finds attention's boundary between units for each length of context by measuring with all at
 * work (Ghidorah III-C3). options: as for drey_engine_open, but for drafter, policy and context,
 * which are its own; unit_shares are how products are divided, whose boundaries are not looked at.
 * DREY_ERR_USAGE: there is one unit alone that attends. DREY_ERR_MEMORY: there is no room for the
 * longest context. */
DREY_API drey_status drey_tune_boundaries(const drey_engine_options *options,
                                          const drey_boundaries_options *tune,
                                          drey_boundaries_report *report, drey_error *err);

#ifdef __cplusplus
}
#endif
#endif
