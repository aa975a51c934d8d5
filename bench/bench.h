/* The speed of a machine, a disk, the kernels and a model, with the limits that were measured in
 * the same run. The command's `bench` prints it. Part of the command, not of the library. */
#pragma once

#include "drey/tune.h"

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
    double kernel_ops_per_s; /* operations of the tier's matrix kernel of Q4_K, in the caches */
    int32_t n_tiers;         /* the tiers that run here, the best first */
    drey_tier_report tiers[DREY_BENCH_MAX_TIERS];
} drey_machine_report;
/* Takes about two seconds. n_threads 0: one per core; cpu_tier NULL: the best. */
drey_status drey_bench_machine(int32_t n_threads, const char *cpu_tier, drey_machine_report *report,
                               drey_error *err);

typedef enum drey_kernel_figure {
    DREY_KERNEL_PACK = 0,     /* a type's blocks, brought into the layout of its products */
    DREY_KERNEL_QUANTISE = 1, /* activations for them */
    DREY_KERNEL_DOT = 2,      /* products */
    DREY_KERNEL_ROW = 3,      /* an operation on rows of activations: norms, RoPE, attention, ... */
    DREY_KERNEL_PLANES = 4,   /* products of blocks whose high and low bits are apart, and, in turns
                                 with them, of ordinary ones: two reports for each number of rows */
    DREY_KERNEL_PART = 5      /* a part of the products by tiles, alone, in the first cache */
} drey_kernel_figure;
/* "pack", "quantise", "dot", "row", "planes", "part"; NULL: there is no such figure. */
const char *drey_kernel_figure_name(drey_kernel_figure what);

/* One figure about one kernel. */
typedef struct drey_kernel_report {
    const char *kernel; /* a tensor type, or a row operation */
    drey_kernel_figure what;
    /* operand of a row operation: what it ran on; planes: "unsplit", then "joined"; part: what
     * it is called; else "" */
    const char *shape;
    int32_t rows;   /* dot, planes, attention: rows of a pass; else 1 */
    double seconds; /* dot, planes: of a pass over all weights in memory, scaled to 1 GiB of them;
                           row: of a call; part: of 32 rows of weights and 16 of activations, 256 k
                           or 128; else 0 */
    /* dot, planes, pack: of weights; quantise, row: of what is read and written. */
    double bytes_per_s;
    double ops_per_s; /* dot, planes: a multiply-add is two; else 0 */
    double bandwidth_share,
        peak_share; /* dot, planes: of limits, int8 or float as the kernel's products
                                           are; else 0 */
} drey_kernel_report;
typedef void drey_kernel_fn(void *user, const drey_kernel_report *report);
/* Times the kernels of a tier, weights streaming from memory, activations and row operations in the
 * caches: all types and operations (about half a minute), or the one named by `kernel` ("q4_k",
 * "rope"). limits is filled before the first visit. */
drey_status drey_bench_kernels(int32_t n_threads, const char *cpu_tier, const char *kernel,
                               drey_limits *limits, drey_kernel_fn *visit, void *user,
                               drey_error *err);

/* For each tensor type and each tier of this build, best first: the tier whose dot product it runs,
 * its own or a lower one's; NULL: the tier does not run on this machine. */
typedef void drey_kernel_list_fn(void *user, const char *type, const char *tier, const char *own);
void drey_kernel_list(drey_kernel_list_fn *visit, void *user);

/* path: a model, or a sidecar. read_bytes: as in drey_engine_options. seconds 0: reads the file
 * once, for at most two seconds; else reads for that long, beginning again at the end. */
drey_status drey_bench_disk(const char *path, drey_io io, uint64_t read_bytes, double seconds,
                            drey_disk_report *report, drey_error *err);

#define DREY_BENCH_MAX_CONTEXTS 8
#define DREY_BENCH_MAX_PASSES   512

typedef struct drey_model_bench {
    int32_t n_prompt, n_decode; /* lengths of the prompt and of the text */
    int32_t n_contexts;
    int32_t contexts[DREY_BENCH_MAX_CONTEXTS]; /* positions before a pass, ascending */
    bool every; /* passes of every width from 1 to 64, not only of powers of two */
} drey_model_bench;
/* 512, 64, and contexts of 0, 4096 and 16384. */
void drey_model_bench_init(drey_model_bench *bench);

/* A pass over a chain of rows with logits for all. */
typedef struct drey_pass_report {
    int32_t context, rows;
    double seconds, ratio;                 /* median; ratio: to one row at this context */
    double limit_seconds;                  /* max(bytes / bandwidth, operations / peak) */
    double bandwidth_share, peak_share;    /* rates of bytes and operations over the limits */
    double matmul_seconds, attend_seconds; /* inside the kernels, of `seconds` */
} drey_pass_report;

typedef struct drey_model_report {
    drey_limits limits; /* the mean of what was measured between the passes */
    double prefill_tokens_per_s;
    int32_t n_sessions;          /* as options.n_sessions */
    double decode_tokens_per_s;  /* speed of all sessions together, */
    double session_tokens_per_s; /* and of one alone, in turns with them */
    double prefill_peak_share;   /* operations of the prompt, relative to the peak */
    double bandwidth_share;      /* bytes that the text's tokens need, relative to the bandwidth */
    uint64_t token_bytes;        /* weights that one token needs, without keys and values */
    uint64_t position_bytes;     /* keys and values of one position of context */
    /* share of a pass of one row: what is neither matrices nor attention */
    double overhead_share;
    uint64_t streamed_bytes_per_pass; /* above 0: the disk is the limit, and shares mean little */
    /* number of the longest contexts that were left out: no room, or not trained */
    int32_t n_left_out;
    int32_t n_passes;
    drey_pass_report passes[DREY_BENCH_MAX_PASSES]; /* context by context */
} drey_model_report;
/* Opens an engine and its sessions; options as for drey_engine_open, without a draft. One of the
 * sessions is measured, and with n_sessions above 1 the speed of all together. Contexts are filled
 * with made-up numbers, which do not change the time of a pass. */
drey_status drey_bench_model(const drey_engine_options *options, const drey_model_bench *bench,
                             drey_model_report *report, drey_error *err);
