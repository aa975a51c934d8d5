/* A drafter with lookup beside it: what a small model, the target's own planes or its heads guess,
 * and what the text itself says, which costs next to nothing: see blend.c. */
#ifndef DREY_DRAFT_BLEND_H
#define DREY_DRAFT_BLEND_H

#include "tree/calibration.h"
#include "draft/lookup_drafter.h"

enum { BLEND_CLASSES = 4 }; /* of how sure a source is */

/* A guess of either source, or of both. What each gives it, 0: it did not guess it. */
typedef struct blend_guess {
    int32_t token;
    float inner, text;
    float value;        /* of both together */
    uint8_t rank, kind; /* of the inner drafter's guesses; of lookup's */
    float said;         /* by the inner drafter */
} blend_guess;

typedef struct blend_guesses { /* of a node, best first */
    blend_guess guess[2 * TREE_MAX_GUESSES];
    int32_t n;
} blend_guesses;

/* What the inner drafter has brought so far of what both did, by how sure each was of its best
 * guess: places, and its parts of them. */
typedef struct blend_trust {
    float places[BLEND_CLASSES][BLEND_CLASSES], inner[BLEND_CLASSES][BLEND_CLASSES];
} blend_trust;

typedef struct blend_drafter {
    drafter base;
    drafter_class class; /* in parts, and of several at once, where the inner one's is */
    drafter *inner;      /* borrowed, as the sampler is */
    lookup_drafter *lookup;
    const sampler *sampler;
    calibration worth[2]; /* of the inner one's guesses: in greedy texts, in sampled ones */
    blend_trust trust;
    blend_guesses of[TREE_MAX_NODES]; /* nodes that are expanded */
    /* The step under way, and those of its nodes that the inner one computes. */
    int32_t nodes[DRAFT_MAX_BATCH], n_nodes;
    int32_t computed[DRAFT_MAX_BATCH], n_computed;
} blend_drafter;

/* Of guesses with `inner` and `text`, each source's at most 1 in all: what they are worth together,
 * sorted by that. */
void blend_weigh(const blend_trust *t, blend_guesses *g);
/* `token` came. */
void blend_learn(blend_trust *t, const blend_guesses *g, int32_t token);

size_t blend_bytes(int32_t capacity);
/* Lies in memory of so many bytes, zeroed and aligned for anything; capacity as lookup's. known: of
 * the inner drafter's guesses; right[CALIBRATION_RANKS]: calibration_expect's; NULL: nothing. */
drafter *blend_init(void *memory, int32_t capacity, drafter *inner, const sampler *s,
                    const drey_profile *known, const float *right);

#endif
