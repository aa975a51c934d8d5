/* Profiles: what is known of a pair of models before it writes. drey_tune_pair (drey/bench.h) makes
 * them, drey_engine_options.profile takes them. */
#ifndef DREY_PROFILE_H
#define DREY_PROFILE_H

#include "drey/drey.h"

#ifdef __cplusplus
extern "C" {
#endif

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
 * drey_tune_pair (drey/bench.h): sessions begin with it rather than with what is usual, and learn
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

#ifdef __cplusplus
}
#endif

#endif
