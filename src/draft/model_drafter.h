/* The small model as a drafter: resident, with its own cache (LLMCad 3.2). */
#pragma once

#include "draft/drafter.h"
#include "model/pass.h"

/* Most rows that an expansion of the root computes: the root and the tokens before it that the
 * cache lacks. Pending rows and slots of the draft's cache are for these and the tree's nodes. */
enum { CATCH_UP = 8 };

/* Most rows that a turn reads for a sliced head, besides those of its tokens. */
enum { MOST_LIKELY = 32 };

/* A model can draft for itself, with those bits of its weights that are in memory: run uses views
 * of its weights (weights_view) and of its cache (cache_view_init). Then all committed positions
 * were computed by verification passes: no prompt is read, and the cache has every token before the
 * root.
 *
 * Everything is borrowed until closed: run with its own cache, the session's sampler (the same
 * noise gives good guesses when the text is sampled), timeline[capacity] for up to `capacity`
 * tokens. n_ids: ids that the target has as well. chunk: rows of a prompt pass. */
typedef struct model_drafter {
    drafter base;
    runner *run;
    sampler *sampler;
    int32_t *timeline; /* [capacity] tokens; the last one is the root */
    int32_t n_timeline;
    int32_t n_ids, chunk;
    int32_t row_of[TREE_MAX_NODES]; /* node -> pending row of the draft's cache, -1: none */
    /* The current step. */
    int32_t nodes[DRAFT_MAX_BATCH], n_nodes; /* n_nodes = 0: there is none */
    /* Nodes that a pass computes, in the order of its rows: those of the step, and before them
     * their ancestors that a grammar forced and that have no rows yet. */
    int32_t computed[DRAFT_MAX_BATCH], n_computed;
    int32_t n_chain;  /* rows before those: the tokens before a root that was forced */
    int32_t n_places; /* rows of a sliced head's table, computed by its pass */
    bool in_pass;     /* false: the cache had no room, nothing is computed */
    bool catching_up; /* the pass is over tokens before the root */
    bool reading;     /* it belongs to read, not to a step */
    model_pass pass;
    pass_group group;
    /* Likely tokens of the target that a sliced head lacks: they are added to its table. */
    int32_t likely[MOST_LIKELY], n_likely;
} model_drafter;
