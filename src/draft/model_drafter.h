/* The small model as a drafter: resident, with a cache of its own (LLMCad 3.2). */
#ifndef DREY_DRAFT_MODEL_DRAFTER_H
#define DREY_DRAFT_MODEL_DRAFTER_H

#include "draft/drafter_kind.h"

/* Most rows that an expansion of the root computes: the root and what the cache lacks before it.
 * Pending rows and slots of the draft's cache are the tree's and these. */
enum { CATCH_UP = 8 };

/* Rows that a turn reads for a sliced head at most, beside those of its tokens. */
enum { MOST_LIKELY = 32 };

/* A model can draft for itself, with the bits of its weights that are in memory: run is over views
 * of its weights (weights_view) and of its cache (kv_view_init). Then whatever is committed was
 * computed by those who verify, nothing is read and nothing lags behind.
 *
 * Everything is borrowed until closed: run with its own cache, the session's sampler (the same
 * noise makes it guess well when the text is sampled), timeline[capacity] for up to `capacity`
 * tokens. n_ids: ids that the target knows too. chunk: rows of a prompt pass. */
typedef struct model_drafter {
    drafter base;
    runner *run;
    sampler *sampler;
    int32_t *timeline; /* [capacity] tokens; the last one is the root */
    int32_t n_timeline;
    int32_t n_ids, chunk;
    int32_t row_of[TREE_MAX_NODES]; /* node -> pending row of the draft's cache, -1: none */
    /* The step under way. */
    int32_t nodes[DRAFT_MAX_BATCH], n_nodes; /* n_nodes = 0: there is none */
    int32_t n_places;                        /* of a sliced head's table, that its pass computes */
    bool in_pass;                            /* false: the cache had no room, nothing is computed */
    bool catching_up;                        /* the pass is of tokens before the root */
    bool reading;                            /* it is nobody's step: read's */
    model_pass pass;
    pass_group group;
    /* Likely tokens of the target's that a sliced head lacks: they come into its table. */
    int32_t likely[MOST_LIKELY], n_likely;
} model_drafter;

void model_drafter_init(model_drafter *d, runner *run, sampler *s, int32_t *timeline, int32_t n_ids,
                        int32_t chunk);

#endif
