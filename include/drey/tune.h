/* drey/tune.h: measuring a machine and a pair of models. The results are tunings, profiles and
 * shares of units, which drey_engine_options takes. Only speed depends on them, never a text. */
#ifndef DREY_TUNE_H
#define DREY_TUNE_H

#include "drey/drey.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- This machine ---- */

/* The limits of the machine, measured next to what is judged by them: all threads, medians. */
typedef struct drey_limits {
    double memory_bytes_per_s; /* reading a block far larger than the caches, the fastest way */
    double int8_ops_per_s;     /* the tier's byte products on registers; a multiply-add is 2 */
    double float_ops_per_s;    /* speed of its float multiply-adds */
    double barrier_s;          /* an empty job on all threads */
} drey_limits;

typedef struct drey_disk_report {
    double bytes_per_s; /* reading the file's tensors in order as a pass does */
    uint64_t read_bytes;
    double cpu_s; /* processor time that reading took, kernel included, on all threads */
    bool direct, uring, registered; /* ways of reading that the system allowed */
} drey_disk_report;

/* One measurement of tuning: the bytes of weights per second of a kernel, for each way. */
enum { DREY_TUNE_WAYS = 3 };
typedef struct drey_tune_report {
    const char *choice; /* "fetch", "tile" or "AMX": the members of drey_tuning */
    const char *kernel; /* a tensor type */
    int32_t rows, n_ways;
    const char *way[DREY_TUNE_WAYS]; /* "sparse", "near", "far"; ... */
    double bytes_per_s[DREY_TUNE_WAYS];
} drey_tune_report;
typedef void drey_tune_fn(void *user, const drey_tune_report *report);
/* Measures the choices of drey_tuning on a tier, in alternation, with weights that stream from
 * memory: a few seconds. The family's choice stays unless another way is faster by 2 %, and faster
 * in three rounds of four: so it stays on a machine that is busy with other programs, and on tiers
 * that have one way only. visit may be NULL. */
DREY_API drey_status drey_tune(int32_t n_threads, const char *cpu_tier, drey_tuning *best,
                               drey_tune_fn *visit, void *user, drey_error *err);

/* ---- A pair of models on this machine ---- */

typedef struct drey_pair_report {
    /* profile with trees that are NULL: to use the trees below, set it */
    drey_profile profile;
    double seconds;                   /* duration of the measurement */
    int64_t n_tokens;                 /* tokens written to count guesses */
    int64_t n_places;                 /* positions among them where the draft had guessed */
    drey_static_trees trees;          /* none without a drafter */
    uint64_t streamed_bytes_per_pass; /* above 0: pass_s is computing only, and the disk decides */
    int32_t n_threads;
} drey_pair_report;

typedef struct drey_tune_prompt {
    const int32_t *ids; /* [n] */
    size_t n;
} drey_tune_prompt;

typedef struct drey_tune_options {
    const drey_tune_prompt *prompts; /* [n_prompts]: calibration; at least one with a drafter */
    int32_t n_prompts, n_predict;    /* tokens of each text; 0: 96 */
    void (*stage)(void *user, const char *what); /* reports what is measured next; may be NULL */
    void *user;
} drey_tune_options;

/* Measures what a session with these options would have to learn: passes of 1 to 64 rows, steps of
 * the draft, and how often its guesses are right by confidence, depth and rank. It takes about two
 * minutes, less for small models; passes are measured once more where other programs were at work,
 * and the faster times taken. options: as for drey_engine_open; the policy is ignored. Their
 * progress is reported for each stage (DREY_PROGRESS_MEASURE). */
DREY_API drey_status drey_tune_pair(const drey_engine_options *options,
                                    const drey_tune_options *tune, drey_pair_report *report,
                                    drey_error *err);

/* ---- Routes of a mixture of experts ---- */

/* Writes texts of up to 64 tokens after the prompts, without a draft, and counts the experts of the
 * tokens that are written: of 512, or of as many as a minute gives (64 rank budgets well enough).
 * options: as for drey_engine_open; drafter, policy and profile are ignored. DREY_ERR_USAGE: the
 * target is no mixture of experts, or there is no prompt. */
DREY_API drey_status drey_tune_routes(const drey_engine_options *options,
                                      const drey_tune_options *tune, drey_routes *routes,
                                      drey_error *err);

/* ---- Units of this machine ---- */

/* Ways of dividing a pass between units. */
typedef enum drey_units_side {
    DREY_UNITS_STATIC = 0, /* as searched while all are at work; no unit takes over work */
    DREY_UNITS_DYNAMIC = 1 /* as searched; units that finish take over work */
} drey_units_side;
enum { DREY_UNITS_SIDES = 2 };
/* "static", "dynamic"; NULL: there is none. */
DREY_API const char *drey_units_side_name(drey_units_side side);

typedef struct drey_units_width {
    int32_t rows;                    /* rows of the pass */
    double alone_s[DREY_MAX_UNITS];  /* with all products on one unit */
    double side_s[DREY_UNITS_SIDES]; /* medians, measured in alternation */
    double share[DREY_MAX_UNITS];    /* shares of both */
    int32_t n_measured;              /* ratios that the search measured */
} drey_units_width;

typedef struct drey_units_report {
    int32_t n_units, n_widths;
    drey_unit units[DREY_MAX_UNITS];
    drey_units_width widths[DREY_UNIT_WIDTHS];
    drey_unit_shares shares; /* shares that the search found, for every width */
    double seconds;          /* duration of the measurement */
} drey_units_report;

typedef struct drey_units_options {
    /* Widths to measure, ascending, up to the first 0; none: 1, 4, 16 and 64. */
    int32_t rows[DREY_UNIT_WIDTHS];
    void (*stage)(void *user, int32_t rows); /* reports what is measured next; may be NULL */
    void *user;
} drey_units_options;

/* Finds how to divide passes between options.units: first from the time of each unit alone, then by
 * measuring with all at work (Ghidorah III-C3), width by width. It takes about half a minute.
 * options: as for drey_engine_open; drafter, policy and unit_shares are ignored. DREY_ERR_USAGE:
 * there is only one cluster. */
DREY_API drey_status drey_tune_units(const drey_engine_options *options,
                                     const drey_units_options *tune, drey_units_report *report,
                                     drey_error *err);

/* Ways of dividing attention between clusters of cores. */
typedef enum drey_boundary_side {
    DREY_BOUNDARY_HEADS = 0,    /* whole heads and rows, first come, first served, as without
                                   clusters */
    DREY_BOUNDARY_AFFINITY = 1, /* the dense part to devices and all clusters but the last, the
                                   tree's part to the last; no unit takes over work */
    DREY_BOUNDARY_STATIC = 2,   /* the same, with the boundary as searched */
    DREY_BOUNDARY_DYNAMIC = 3   /* as searched; units that finish take over work */
} drey_boundary_side;
enum { DREY_BOUNDARY_SIDES = 4 };
/* "whole heads", "dense and sparse", "searched", "searched, dynamic"; NULL: there is none. */
DREY_API const char *drey_boundary_side_name(drey_boundary_side side);

typedef struct drey_boundary_context {
    int32_t n_positions;                /* positions before the tree */
    float boundary;                     /* as searched: drey_unit_shares.boundary */
    double side_s[DREY_BOUNDARY_SIDES]; /* attention of a pass, medians, measured in alternation */
    int32_t n_measured;                 /* boundaries that the search measured */
} drey_boundary_context;

typedef struct drey_boundaries_report {
    int32_t n_contexts;
    drey_boundary_context contexts[DREY_UNIT_CONTEXTS];
    double seconds; /* duration of the measurement */
    uint64_t reserved[4];
} drey_boundaries_report;

typedef struct drey_boundaries_options {
    int32_t rows;           /* rows of the tree; 0: 16 */
    int32_t most_positions; /* contexts are DREY_UNIT_CONTEXT, four times as many, ... up to this;
                               0: 4096 */
    void (*stage)(void *user, int32_t n_positions); /* reports what is measured next; may be NULL */
    void *user;
    uint64_t reserved[4]; /* zero */
} drey_boundaries_options;

/* Finds attention's boundary between units for each length of context by measuring with all at work
 * (Ghidorah III-C3). options: as for drey_engine_open; drafter, policy and context are ignored.
 * unit_shares says how products are divided; its boundaries are ignored. DREY_ERR_USAGE: only one
 * unit computes attention. DREY_ERR_MEMORY: no room for the longest context. */
DREY_API drey_status drey_tune_boundaries(const drey_engine_options *options,
                                          const drey_boundaries_options *tune,
                                          drey_boundaries_report *report, drey_error *err);

/* ---- Kept in a folder ---- */

/* Measurements in JSON files of a folder that the caller names, and that drey_..._store makes. The
 * command's folder is $XDG_CACHE_HOME/drey or ~/.cache/drey; the library itself looks at no
 * variable. A file belongs to one processor, CPU tier and version of drey:
 *
 *   tuning.json   drey_tune
 *   profiles/     drey_tune_pair: by target, draft, tier, and number of threads or units
 *   routes/       drey_tune_routes: by target, for any draft and machine
 *   units/        drey_tune_units and drey_tune_boundaries: by target, tier and units
 *
 * Loading fails with DREY_ERR_IO where nothing was measured with these options, or folder is NULL;
 * with DREY_ERR_FORMAT where the file is broken, and DREY_ERR_MISMATCH where it is of another
 * processor or version: then it is passed over, and the message is for a person to read. Storing
 * replaces a file whole. DREY_ERR_IO, DREY_ERR_USAGE: there is no folder. */

/* cpu_tier: NULL: the best. */
DREY_API drey_status drey_tuning_load(const char *cpu_tier, const char *folder, drey_tuning *tuning,
                                      drey_error *err);
DREY_API drey_status drey_tuning_store(const char *cpu_tier, const char *folder,
                                       const drey_tuning *tuning, drey_error *err);

/* options: target, drafter with what it needs, cpu_tier, n_threads and units name the file; others
 * are not looked at. report->profile.trees point to report->trees: a report that was loaded stays
 * where it is. */
DREY_API drey_status drey_profile_load(const drey_engine_options *options, const char *folder,
                                       drey_pair_report *report, drey_error *err);
DREY_API drey_status drey_profile_store(const drey_engine_options *options, const char *folder,
                                        const drey_pair_report *report, drey_error *err);

/* Loads the routes of a target. */
DREY_API drey_status drey_routes_load(const drey_model *target, const char *folder,
                                      drey_routes *routes, drey_error *err);
DREY_API drey_status drey_routes_store(const drey_model *target, const char *folder,
                                       const drey_routes *routes, drey_error *err);

/* options: target, cpu_tier and units. products->shares have the boundaries of attention as well;
 * attention has no contexts where it was not measured. */
DREY_API drey_status drey_units_load(const drey_engine_options *options, const char *folder,
                                     drey_units_report *products, drey_boundaries_report *attention,
                                     drey_error *err);
DREY_API drey_status drey_units_store(const drey_engine_options *options, const char *folder,
                                      const drey_units_report *products,
                                      const drey_boundaries_report *attention, drey_error *err);

/* ---- Speeds of this machine, kept as well ---- */

/* Sources of the speeds that a prediction needs. Those that are given count in any case.
 *
 *   speeds/     drey_planner_speeds: of a processor's kernels by tensor type, tier and threads; of
 *               a disk by its file system and the way of reading
 *
 * What was measured is kept for a day, or for ten minutes where the machine was busy. */
typedef enum drey_measure {
    DREY_MEASURE_NOTHING = 0,
    DREY_MEASURE_KEPT = 1, /* speeds that the folder has */
    /* missing speeds are measured and kept, unless the target is so small (64 MiB) that a text
     * begins sooner */
    DREY_MEASURE_MISSING = 2,
    DREY_MEASURE_NOW = 3 /* all is measured again, and kept */
} drey_measure;
/* Fills in the speeds that are 0, in less than a second, as drey_planner_measure does, for the
 * budget of the planner's options. What is not known stays 0: the disk below a file with holes
 * cannot be measured. folder: as above; NULL: nothing is kept. */
DREY_API drey_status drey_planner_speeds(drey_planner *planner, drey_measure measure,
                                         const char *folder, drey_speeds *speeds, drey_error *err);

/* ---- Choosing a draft ---- */

/* Reasons why no model of the target's folder drafts, where drey_choose_draft chose. */
typedef enum drey_draft_reason {
    DREY_DRAFT_CHOSEN = 0,       /* one does */
    DREY_DRAFT_NONE_THERE = 1,   /* no model there has at most half of the target's bytes */
    DREY_DRAFT_OTHER_TOKENS = 2, /* models that do have other tokens, or do not fit otherwise */
    DREY_DRAFT_NO_ROOM = 3,      /* one has the target's tokens; the budget has no room for it */
    DREY_DRAFT_NOT_FASTER = 4    /* one has room, and what was chosen is expected to be faster */
} drey_draft_reason;

typedef struct drey_draft_choice {
    /* model in options.draft; owned; NULL: another drafter, or none */
    drey_model *draft;
    double expected_tokens_per_s; /* 0: no plan can be made; drey_engine_open says why */
    char why[512];        /* "lookup: about 12 tokens/s, no draft 9.8"; where speeds are not known
                      "lookup: about 1.2 times as fast as no draft"; may be "" */
    char warning[500];    /* reason why a drafter's file cannot be used; "" */
    uint64_t reason;      /* a drey_draft_reason */
    uint64_t room_bytes;  /* DREY_DRAFT_NO_ROOM: the smallest budget that has room for one of them;
                      0: not known */
    uint64_t reserved[2]; /* zero */
} drey_draft_choice;
/* Sets drafter and draft in options: of a model in the target's folder that has its tokens and
 * fits, of the target's own planes, of the heads next to it, of lookup and of none the one whose
 * plan expects most tokens per second, by what the folder's profiles say, where there are any
 * (folder may be NULL). A policy that needs a draft gets one. heads and profile become NULL:
 * drey_profile_load has the profile of what was chosen. The target is read once, and no weights of
 * it. */
DREY_API drey_status drey_choose_draft(drey_engine_options *options, const char *folder,
                                       drey_draft_choice *choice, drey_error *err);
/* The same by the speeds of this machine, so that what is expected is what a plan at these speeds
 * has. Speeds that are 0 and that the plans need come from where `measure` says, as by
 * drey_planner_speeds, and are left in *speeds. */
DREY_API drey_status drey_choose_draft_at(drey_engine_options *options, drey_speeds *speeds,
                                          drey_measure measure, const char *folder,
                                          drey_draft_choice *choice, drey_error *err);
/* Closes the draft, once no engine borrows it. */
DREY_API void drey_draft_choice_close(drey_draft_choice *choice);

/* ---- What to expect ---- */

/* Outlook for a budget on this machine, for a person who has to decide. */
typedef struct drey_outlook {
    drey_plan plan;            /* plan of the options, at the speeds */
    double tokens_per_s;       /* expected; 0: not known, as some speed is not */
    double alone_tokens_per_s; /* without a draft, with all of the budget; 0: not known */
    /* A larger budget that the machine has now: that holds the whole target, or if there is none
     * that holds half of what a pass (of a mixture: a token's experts) would read. 0: none. */
    uint64_t better_bytes;
    double better_tokens_per_s; /* with it; 0: not known */
    bool better_is_whole;       /* it holds the whole target */
    bool machine_is_cgroup;     /* the next two are those of the process' memory cgroup */
    uint64_t machine_bytes;     /* bytes of memory; 0: not known */
    uint64_t available_bytes;   /* bytes that this process may have now; 0: not known */
    char verdict[600]; /* one line in plain text: the model, what of it stays in memory, what is
                          read for each pass, how fast it writes with the draft and without */
    char warning[300]; /* warning that the budget is more than the machine has; "": it is not */
    uint64_t alone_smallest_bytes; /* the smallest budget without a draft; 0: not known */
    uint64_t reserved[7];          /* zero */
} drey_outlook;
/* Makes it for options as for drey_engine_open, without ranks. speeds, measure and folder as for
 * drey_planner_speeds; a measurement that fails leaves speeds unknown. Errors are those of the
 * plan. */
DREY_API drey_status drey_look_ahead(const drey_engine_options *options, drey_measure measure,
                                     const char *folder, drey_speeds *speeds, drey_outlook *outlook,
                                     drey_error *err);

#ifdef __cplusplus
}
#endif

#endif
