/* drey/tune.h: what is measured of a machine and of a pair of models, and what is known before they
 * write. Measuring makes tunings, profiles and shares of units; drey_engine_options takes them.
 * Speed alone depends on them, never a text.
 */
#ifndef DREY_TUNE_H
#define DREY_TUNE_H

#include "drey/drey.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Profiles of a pair of models ---- */

/* Trees of one shape for every turn, the best of each width: found by drey_tune_pair, used by
 * DREY_POLICY_STATIC. */
enum {
    DREY_STATIC_DEPTHS = 8,
    DREY_STATIC_RANKS = 8,
    DREY_STATIC_ROWS = 64,
    DREY_STATIC_TREES = 7
};
typedef struct drey_static_tree {
    int32_t width; /* rows of the pass: 1, 2, 4 .. 64 */
    int32_t n;     /* nodes, the root's among them; below the width where no more were ever right */
    double expected_tokens; /* of a pass, by the product of shares */
    /* By what came on texts that such a tree was not made with: the mean over trees of one half of
     * the texts, on the other half each; of all where there is one text. */
    double measured_tokens;
    bool refined; /* leaves were exchanged for what came more often: that was better there */
    double pass_s, draft_s; /* of a turn: the target's pass, the draft's steps */
    double tokens_per_s;    /* measured_tokens over both */
    /* [n]: as an index of a node, -1 of the root, levels before deeper ones; among the guesses,
     * from 0. */
    int8_t parent[DREY_STATIC_ROWS], rank[DREY_STATIC_ROWS];
} drey_static_tree;
typedef struct drey_static_trees {
    /* [d][r]: guesses of rank r + 1 at depth d + 1 that were right where those above them were */
    double share[DREY_STATIC_DEPTHS][DREY_STATIC_RANKS];
    int32_t n_trees; /* 0: shares alone are known, or nothing */
    int32_t best;    /* of the trees: most tokens a second */
    drey_static_tree tree[DREY_STATIC_TREES];
    uint64_t reserved[4]; /* zero */
} drey_static_trees;

/* What drafting with a pair of models costs and is worth on this machine, measured beforehand by
 * drey_tune_pair: sessions begin with it rather than with what is usual, and learn
 * on. Speed alone depends on it, never a text. 0 where something is not known. */
enum {
    DREY_PROFILE_ROWS = 64,
    DREY_PROFILE_NODES = 8,
    DREY_PROFILE_RANKS = 3,
    DREY_PROFILE_BINS = 16
};
struct drey_profile {
    double pass_s[DREY_PROFILE_ROWS];  /* [n - 1]: computing of the target's pass over n rows */
    double step_s[DREY_PROFILE_NODES]; /* [n - 1]: of the draft's step over n nodes */
    /* Guesses, and those that were right, of rank 1, 2 and all others, by the draft's confidence:
     * bins of equal width in its log-odds, from -6 to 8. */
    float guessed[DREY_PROFILE_RANKS][DREY_PROFILE_BINS];
    float right[DREY_PROFILE_RANKS][DREY_PROFILE_BINS];
    const drey_static_trees *trees; /* copied with the profile; NULL: none are known */
    uint64_t reserved[15];          /* zero */
};
/* Nothing is known. */
DREY_API void drey_profile_init(drey_profile *profile);
/* Times are times, no more guesses were right than were made, and trees are trees: engines take no
 * other profile. */
DREY_API bool drey_profile_is_sound(const drey_profile *profile);

/* ---- This machine ---- */

/* What the machine does at most, measured beside whatever is judged by it: all threads, medians. */
typedef struct drey_limits {
    double memory_bytes_per_s; /* reading a block far larger than the caches, the fastest way */
    double int8_ops_per_s;     /* the tier's own byte products on registers; a multiply-add is 2 */
    double float_ops_per_s;    /* of its float multiply-adds */
    double barrier_s;          /* a job of nothing on all threads */
} drey_limits;

typedef struct drey_disk_report {
    double bytes_per_s; /* reading the file's tensors in order as a pass does */
    uint64_t read_bytes;
    double cpu_s; /* processor time that reading took, kernel included, on all threads */
    bool direct, uring, registered; /* what the system allowed */
} drey_disk_report;

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
