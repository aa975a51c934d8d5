/* Measurements of models on a machine (drey/tune.h), for drey_engine_options. */
#ifndef DREY_PROFILE_H
#define DREY_PROFILE_H

#include "drey/drey_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Profiles of a pair of models ---- */

/* Trees that have the same shape in every turn, the best one of each width: found by
 * drey_tune_pair, used by DREY_POLICY_STATIC. */
enum {
    DREY_STATIC_DEPTHS = 8,
    DREY_STATIC_RANKS = 8,
    DREY_STATIC_ROWS = 64,
    DREY_STATIC_TREES = 7
};
typedef struct drey_static_tree {
    int32_t width; /* rows of the pass: 1, 2, 4 .. 64 */
    int32_t n;     /* nodes, with the root; fewer than the width if no others were ever right */
    double expected_tokens; /* per pass, by the product of shares */
    /* Measured on texts that the tree was not made with: trees of one half of the texts, on the
     * other half, and the mean of both; on all if there is one text. */
    double measured_tokens;
    bool refined; /* leaves were replaced by what came more often, which was better there */
    double pass_s, draft_s; /* per turn: the target's pass, the draft's steps */
    double tokens_per_s;    /* measured_tokens over both */
    /* [n]: the parent's index (-1 for the root; higher levels first), and the rank among the
     * guesses, from 0. */
    int8_t parent[DREY_STATIC_ROWS], rank[DREY_STATIC_ROWS];
} drey_static_tree;
typedef struct drey_static_trees {
    /* [d][r]: guesses of rank r + 1 at depth d + 1 that were right where those above them were */
    double share[DREY_STATIC_DEPTHS][DREY_STATIC_RANKS];
    int32_t n_trees; /* 0: only the shares are known, or nothing */
    int32_t best;    /* the tree with the most tokens per second */
    drey_static_tree tree[DREY_STATIC_TREES];
    uint64_t reserved[4]; /* zero */
} drey_static_trees;

/* Costs and gains of drafting with a pair of models on this machine, measured beforehand by
 * drey_tune_pair. Sessions begin with it instead of the usual values, and continue to learn. Only
 * speed depends on it, never a text. 0: not known. */
enum {
    DREY_PROFILE_ROWS = 64,
    DREY_PROFILE_NODES = 8,
    DREY_PROFILE_RANKS = 3,
    DREY_PROFILE_BINS = 16
};
typedef struct drey_profile {
    double pass_s[DREY_PROFILE_ROWS];  /* [n - 1]: computing time of the target's pass over n
                                          rows */
    double step_s[DREY_PROFILE_NODES]; /* [n - 1]: of the draft's step over n nodes */
    /* Guesses of rank 1, 2 and all others, and how many were right, by the draft's confidence: bins
     * of equal width in its log-odds, from -6 to 8. */
    float guessed[DREY_PROFILE_RANKS][DREY_PROFILE_BINS];
    float right[DREY_PROFILE_RANKS][DREY_PROFILE_BINS];
    const drey_static_trees *trees; /* copied with the profile; NULL: not known */
    double spread;         /* ratio of the times of slow and fast rounds that measured passes; above
                      DREY_PROFILE_BUSY other programs were at work */
    uint64_t reserved[14]; /* zero */
} drey_profile;
#define DREY_PROFILE_BUSY 1.3
/* Fills in that nothing is known. */
DREY_API void drey_profile_init(drey_profile *profile);
/* Returns true if times are valid, no more guesses were right than were made, and trees are trees.
 * Engines accept no other profile. */
DREY_API bool drey_profile_is_sound(const drey_profile *profile);

/* ---- Routes of a mixture of experts ---- */

/* Distances after which a layer uses an expert again. A layer keeps the experts that it used last;
 * so a token finds one of its experts in one of s slots if the layer has used fewer than s others
 * since. They are counted over all layers together: to give some layers more slots than others was
 * as often a loss as a gain on texts that it was not chosen by. */
enum { DREY_ROUTE_SLOTS = 1024 };
typedef struct drey_routes {
    int32_t n_experts; /* experts of a layer */
    int64_t n_tokens;  /* tokens whose experts were counted */
    /* [d]: experts of tokens since whose last use the layer had used d others; what was not used
     * before counts as the one that was used longest ago, and [DREY_ROUTE_SLOTS - 1] has all that
     * is further. */
    uint32_t distance[DREY_ROUTE_SLOTS];
    uint64_t reserved[4]; /* zero */
} drey_routes;
/* Share of a token's experts that is in memory with so many slots in each layer. n_slots need not
 * be whole. */
DREY_API double drey_routes_hits(const drey_routes *routes, double n_slots);
/* Returns true if something was counted, of as many experts as there may be. Engines accept no
 * other routes. */
DREY_API bool drey_routes_are_sound(const drey_routes *routes);

#ifdef __cplusplus
}
#endif
#endif
