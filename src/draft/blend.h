/* A drafter combined with lookup: the guesses of a small model, of the target's own planes or of
 * its heads, and those from the text itself, which cost almost nothing. See blend.c. */
#pragma once

#include "draft/drafter.h"
#include "tree/calibration.h"
#include "tree/tree.h"

typedef struct lookup_drafter lookup_drafter;

enum { BLEND_CLASSES = 4 }; /* by how sure a source is */

/* A guess of one source or of both. inner, text: each source's value of it, 0: not its guess. */
typedef struct blend_guess {
    int32_t token;
    float inner, text;
    float value;        /* the combined value */
    uint8_t rank, kind; /* rank among the inner drafter's guesses; of lookup's */
    float said;         /* by the inner drafter */
} blend_guess;

typedef struct blend_guesses { /* guesses of a node, best first */
    blend_guess guess[2 * TREE_MAX_GUESSES];
    int32_t n;
} blend_guesses;

/* The inner drafter's part of the right guesses so far, by how sure each source was of its best
 * guess: the number of positions, and the sum of its parts. */
typedef struct blend_trust {
    float places[BLEND_CLASSES][BLEND_CLASSES], inner[BLEND_CLASSES][BLEND_CLASSES];
} blend_trust;

typedef struct blend_drafter {
    drafter base;
    drafter_class class; /* steps in parts or of several trees, if the inner one has them */
    drafter_listener listener;
    bool aside;     /* guesses are the inner one's alone: lookup only follows, for peek */
    drafter *inner; /* borrowed, as the sampler is */
    lookup_drafter *lookup;
    const sampler *sampler;
    /* worth of the inner drafter's guesses: in greedy texts, in sampled ones */
    calibration worth[2];
    blend_trust trust;
    blend_guesses of[TREE_MAX_NODES]; /* guesses of expanded nodes */
    /* The nodes of the current step, and those of them that the inner drafter computes. */
    int32_t nodes[DRAFT_MAX_BATCH], n_nodes;
    int32_t computed[DRAFT_MAX_BATCH], n_computed;
} blend_drafter;

/* Sets the combined values of guesses with `inner` and `text`, whose sums are at most 1 per source,
 * and sorts by them. */
void blend_weigh(const blend_trust *t, blend_guesses *g);
/* The text continued with `token`. */
void blend_learn(blend_trust *t, const blend_guesses *g, int32_t token);

size_t blend_bytes(int32_t capacity);
/* memory: blend_bytes(capacity) bytes, zeroed, aligned for any type; capacity: as lookup's. known:
 * the inner drafter's profile, or NULL; right[CALIBRATION_RANKS]: as in calibration_expect, or
 * NULL. aside: see above; neither is used then. */
drafter *blend_init(void *memory, int32_t capacity, drafter *inner, const sampler *s,
                    const drey_profile *known, const float *right, bool aside);
