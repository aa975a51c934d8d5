/* Drafters: whatever can guess which tokens come next. Nodes of a tree are expanded as a policy
 * wants it (policy.h); the drafter does not know the policy, the policy not the drafter. */
#ifndef DREY_DRAFT_DRAFTER_H
#define DREY_DRAFT_DRAFTER_H

#include "tree/tree.h"
#include "sample/sampler.h"

typedef struct drafter drafter;

/* Most nodes of a step: a model's pass has the logits of all of them. */
enum { DRAFT_MAX_BATCH = TREE_MAX_STEP };

typedef enum draft_reading {
    DRAFT_CHUNK_READ,
    DRAFT_CHUNK_LEFT,   /* the time is over */
    DRAFT_CHUNK_STARVED /* the draft's own weights are being loaded, and have not arrived */
} draft_reading;

typedef struct draft_step { /* of one drafter in one tree: nodes[0..n) */
    drafter *drafter;
    token_tree *tree;
    const int32_t *nodes;
    int32_t n;
} draft_step;

typedef struct drafter_class {
    /* The timeline has been set to tokens[0..n): the last one is the next root and not computed
     * yet. Called before and after the prompt is read, and again whenever the timeline changed
     * other than by reroot; the tree is reset to the root then. What was read of the same
     * beginning stays. */
    drey_status (*begin)(drafter *d, const int32_t *tokens, int32_t n, drey_error *err);
    /* Whether something of what stands before the root is still to be read, which an expansion of
     * the root would do first. NULL: never. */
    bool (*unread)(const drafter *d);
    /* Reads the next chunk of it, or goes on with one that was left, until until_ns (clock_ns; 0:
     * to the chunk's end). A chunk under way counts as a step under way. An error ends it. */
    drey_status (*read)(drafter *d, int64_t until_ns, draft_reading *state, drey_error *err);
    /* A step: the most likely continuations of nodes[0..n) go to the nodes, which are marked
     * expanded. n: 1 .. DRAFT_MAX_BATCH. None of them has been expanded before, all their parents
     * have. On an error none is expanded. */
    drey_status (*expand)(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n,
                          drey_error *err);
    /* A step of several drafters of this class at once, nodes of all of them together at most
     * DRAFT_MAX_BATCH; each as by expand. NULL: there is nothing to share. An error leaves those
     * that it has not reached as they were. */
    drey_status (*expand_all)(const draft_step *steps, int32_t n, drey_error *err);
    /* Whether it has guesses for the node, as the tree is now. NULL: for every node. */
    bool (*can_guess)(const drafter *d, const token_tree *tree, int32_t node);
    /* Expands the node if its guesses are known without a step. NULL: never. */
    bool (*expand_free)(drafter *d, token_tree *tree, int32_t node);
    /* The same step in parts, for drafters whose steps take time: all three, or all NULL. One step
     * of a drafter is under way at most, and none when begin, expand or reroot are called; the tree
     * may grow meanwhile. nodes are copied. */
    drey_status (*start)(drafter *d, const token_tree *tree, const int32_t *nodes, int32_t n,
                         drey_error *err);
    /* Goes on until until_ns (clock_ns; 0: to the end), a product's claim late at most. *done: the
     * nodes are expanded and the step is over. An error ends it, too. */
    drey_status (*advance)(drafter *d, token_tree *tree, int64_t until_ns, bool *done,
                           drey_error *err);
    /* Forgets the step under way, if there is one. */
    void (*give_up)(drafter *d);
    /* The target computed the row of the submitted node `node`: token[0..n) are its likeliest
     * tokens after that node, the best first. Called before reroot, where wants_target_top. */
    void (*take_target_top)(drafter *d, const token_tree *tree, int32_t node, const int32_t *tokens,
                            int32_t n);
    /* The target computed the token at `position`, which stays: hidden[D], the caller's, is its
     * hidden state there, after the final norm. Called before begin or reroot, which make the next
     * token the root. NULL: it is not used. */
    void (*take_hidden)(drafter *d, int32_t position, const float *hidden);
    /* The target accepted the nodes path[0..n_path) (from below the root downwards), and its own
     * token `next` is the new root. The tree is still as it was; moved is tree_moves' answer. What
     * was computed for nodes that stay is not computed again. */
    void (*reroot)(drafter *d, const token_tree *tree, const int32_t *path, int32_t n_path,
                   int32_t next, const int32_t *moved);
    /* Whether what it holds fits the timeline of n tokens, in assertions. NULL: there is nothing to
     * check. */
    bool (*is_valid)(const drafter *d, const int32_t *tokens, int32_t n);
} drafter_class;

extern const drafter_class drafter_model_class, drafter_lookup_class, drafter_medusa_class;

struct drafter { /* first member of every drafter */
    const drafter_class *class;
    int64_t n_steps;       /* ever begun; counted by whoever begins them */
    bool wants_target_top; /* take_target_top is called */
    int64_t n_unguessable; /* tokens of the target so far that it could not have guessed */
};

/* start of any drafter. *done: it was at once. */
drey_status drafter_start(drafter *d, token_tree *tree, const int32_t *nodes, int32_t n, bool *done,
                          drey_error *err);

#endif
