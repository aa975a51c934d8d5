/* A layer after the target as a drafter (Li et al. 2025, "EAGLE-3: scaling up inference
 * acceleration of large language models via training-time test"). It guesses from states of the
 * target, has its own keys and values, and feeds its own state on where the target's are not known
 * yet. The file is
 * a model of the architecture "eagle3" (docs/reference/eagle3.md), and a step is a pass over it.
 *
 *      t: a token, f: the target's residual stream after the layers that the file names, one below
 *      the other, at the token before t
 *   row of a token that the target has accepted    x = fc f
 *   row of a node below                            x = the state after this layer of its parent
 *   both                                           q, k, v of [norm(e(t)); norm(x)], then a layer
 *   guesses                                        head norm(x), over its own vocabulary
 *
 * An MTP block (mtp_drafter.c) drafts in the same way, of other inputs: a pass makes a row of the
 * token and of the state, the target's or its own, before that token. */
#pragma once

#include "draft/drafter.h"

typedef struct draft_source draft_source;
typedef struct drafter_context drafter_context;
typedef struct runner runner;

/* Most rows of accepted tokens that wait to be computed, and rows of a prompt's pass. */
enum { EAGLE_ROWS = 64 };

/* A key of files that drey trained: the target's model_identity. */
#define EAGLE_TARGET_KEY "drey.target"

typedef struct eagle_drafter {
    drafter base;
    runner *run;
    sampler *sampler;
    const int32_t *ids; /* [n_ids] of its head, borrowed; NULL: the first n_ids */
    int32_t n_ids;
    int32_t *timeline; /* [capacity] tokens; the last one is the root */
    int32_t n_timeline;
    int32_t chunk;    /* rows of a pass */
    int32_t first;    /* position of the token in the cache's slot 0 */
    float *tapped;    /* [EAGLE_ROWS][row_stride(tapped_numbers)]: of the tokens after those in the
                      cache, */
    int32_t n_tapped; /* so many of them. Once the root is expanded, of the root */
    float *states;    /* [TREE_MAX_NODES][row_stride(D)] of pending rows */
    float *asked;     /* [DRAFT_MAX_BATCH][row_stride(D)] */
    int32_t row_of[TREE_MAX_NODES]; /* node -> pending row of the cache, -1: none */
} eagle_drafter;

/* drafter_kind's, for any layer after the target: src->in.side_shape is one, and src->out.own its
 * ids. */
size_t eagle_session_bytes(const draft_source *src);
drafter *eagle_make(draft_source *src, const drafter_context *context, void *memory);
