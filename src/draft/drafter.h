/* Drafters: they guess which tokens come next. A policy (policy.h) decides which nodes of a tree
 * are expanded. Drafter and policy do not know each other. */
#pragma once

#include "tree/tree.h"

typedef struct drafter drafter;

/* Most nodes of a step: a model's pass has the logits of all of them. */
enum { DRAFT_MAX_BATCH = TREE_MAX_STEP };

typedef enum draft_reading {
    DRAFT_CHUNK_READ,
    DRAFT_CHUNK_LEFT,   /* until_ns was reached */
    DRAFT_CHUNK_STARVED /* waits for the draft's own weights */
} draft_reading;

typedef struct draft_step { /* step of one drafter in one tree: nodes[0..n) */
    drafter *drafter;
    token_tree *tree;
    const int32_t *nodes;
    int32_t n;
} draft_step;

/* A step in parts, for drafters whose steps take time. A drafter has at most one unfinished step,
 * and none when begin, expand or reroot is called. The tree may grow between the parts. */
typedef struct drafter_steps {
    /* Begins a step; nodes are copied. */
    drey_status (*start)(drafter *d, const token_tree *tree, const int32_t *nodes, int32_t n,
                         drey_error *err);
    /* Continues until until_ns (clock_ns; 0: to the end), late by at most one claim of a product.
     * *done: the nodes are expanded and the step is over. An error ends the step as well. */
    drey_status (*advance)(drafter *d, token_tree *tree, int64_t until_ns, bool *done,
                           drey_error *err);
    /* Gives up the unfinished step, if there is one. */
    void (*give_up)(drafter *d);
} drafter_steps;

/* Reading the tokens before the root, for drafters that compute them. */
typedef struct drafter_reader {
    /* Returns whether some still have to be read, which an expansion of the root would do first. */
    bool (*unread)(const drafter *d);
    /* Reads the next chunk of them, or continues one that was left, until until_ns (clock_ns; 0: to
     * the chunk's end). An unfinished chunk counts as an unfinished step. An error ends it. */
    drey_status (*read)(drafter *d, int64_t until_ns, draft_reading *state, drey_error *err);
} drafter_reader;

/* Input that a drafter is given besides tokens; each member may be NULL (drafter_listens_to). */
typedef struct drafter_listener {
    /* Takes what the encoder of the target reads, or what a text is expected to repeat, before the
     * timeline that it is for begins: ids[0..n) to copy from; 0: nothing more. */
    void (*take_input)(drafter *d, const int32_t *ids, int32_t n);
    /* Takes the target's most likely tokens after the submitted node `node`, whose row it has
     * computed: tokens[0..n), the best first. Called before reroot, if wants_target_top. */
    void (*take_target_top)(drafter *d, const token_tree *tree, int32_t node, const int32_t *tokens,
                            int32_t n);
    /* Takes the target's hidden state [D] of the token at `position`, which is final, after the
     * final norm; the caller's. Called before begin or reroot, which make the next token the
     * root. */
    void (*take_hidden)(drafter *d, int32_t position, const float *hidden);
    /* Takes the target's residual stream of the token at `position`, which is final, and `next`
     * follows it: taps[i] (of source_out.taps), the caller's. Called for each such position, in
     * rising order, before begin or reroot, which make the last one's `next` the root. */
    void (*take_taps)(drafter *d, int32_t position, int32_t next, const float *const *taps);
} drafter_listener;

typedef struct drafter_class {
    /* Sets the timeline to tokens[0..n). The last one is the next root and not computed yet. Called
     * before and after the prompt is read, and whenever the timeline changed other than by reroot;
     * the tree is reset to the root then. What was read of an equal beginning is kept. */
    drey_status (*begin)(drafter *d, const int32_t *tokens, int32_t n, drey_error *err);
    /* Makes a step: writes the most likely continuations of nodes[0..n) to the nodes and marks them
     * expanded. n: 1 .. DRAFT_MAX_BATCH. None of them has been expanded before, all of their
     * parents have. On an error none is expanded. */
    drey_status (*expand)(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                          drey_error *err);
    /* Follows the text: the target accepted the nodes path[0..n_path) (from below the root
     * downwards), and its own token `next` is the new root. The tree is unchanged so far; moved:
     * from tree_moves. What was computed for nodes that stay is not computed again. */
    void (*reroot)(drafter *d, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next, const int32_t *moved);
    const drafter_steps *steps;       /* NULL: steps take next to no time */
    const drafter_reader *reader;     /* NULL: nothing has to be read */
    const drafter_listener *listener; /* NULL: tokens are enough */
    /* Makes a step of several drafters of this class at once, with at most DRAFT_MAX_BATCH nodes in
     * all; each as by expand. NULL: there is nothing to share. An error leaves the steps that were
     * not reached unchanged. */
    drey_status (*expand_all)(const draft_step *steps, int32_t n, drey_error *err);
    /* Returns whether it has guesses for the node in the current tree. NULL: for every node. */
    bool (*can_guess)(const drafter *d, const token_tree *tree, int32_t node);
    /* Expands the node if its guesses are known without a step. NULL: never. */
    bool (*expand_free)(drafter *d, token_tree *tree, int32_t node);
    /* Writes guesses of a node that are known without a step, the best first, to
     * out[TREE_MAX_GUESSES]; returns how many. Nothing changes: the node is not expanded. NULL:
     * there are none. */
    int32_t (*peek)(const drafter *d, const token_tree *tree, int32_t node, candidate *out);
    /* Returns whether its state fits the timeline of n tokens, for assertions. NULL: there is
     * nothing to check. */
    bool (*is_valid)(const drafter *d, const int32_t *tokens, int32_t n);
    bool skips_forced_root; /* guesses below a root that it never expanded, because a grammar said
                               what follows */
    bool guesses_unread;    /* also guesses while it lags */
} drafter_class;

/* Returns whether a class takes what this member of its listener is for. */
#define drafter_listens_to(class, member) ((class)->listener && (class)->listener->member)

extern const drafter_class drafter_model_class, drafter_lookup_class;

struct drafter { /* first member of every drafter */
    const drafter_class *class;
    int64_t n_steps;       /* ever begun; counted by the code that begins them */
    int32_t n_caught_up;   /* rows of accepted tokens that the latest step computed as well */
    bool wants_target_top; /* take_target_top is called */
    /* Set by the session: decoding has begun although tokens are unread, and a step must not read
     * them. */
    bool lags;
    int64_t n_unguessable; /* target tokens so far that it could not have guessed */
};

/* Starts a step of any drafter. *done: it is already over. */
drey_status drafter_start(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n, bool *done,
                          drey_error *err);
