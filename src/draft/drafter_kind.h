/* Facts about a drafter that an engine, a plan and a command need: one row of the table in
 * drafter.c. No code of engine, plan and session asks which drafter it is.
 *
 *   engine opens    kind->open     opens the drafter's own files, states what memory it needs
 *   plan is made    source_out     resident_bytes, work_bytes, most_steps, what is known of guesses
 *   weights open    kind->load     reads what stays in memory
 *   session opens   kind->make     a drafter in the session's memory, of session_bytes
 *   engine closes   kind->close
 *
 * A drafter whose steps are passes over a model has a side (draft_side): the engine opens it, and
 * make gets a runner on it. */
#pragma once

#include "base/arena.h"
#include "draft/drafter.h"
#include "drey/choices.h"
#include "drey/profile.h"
#include "tree/tree.h"

typedef struct drafter drafter;
typedef struct gguf gguf;
typedef struct kernel_table kernel_table;
typedef struct model_layout model_layout;
typedef struct model_shape model_shape;
typedef struct pool pool;
typedef struct runner runner;
typedef struct tap_shape tap_shape;
typedef struct weights weights;

/* The model that a drafter's steps are passes over. */
typedef enum draft_side {
    DRAFT_SIDE_NONE,  /* steps are not passes */
    DRAFT_SIDE_MODEL, /* options.draft; all of its weights stay in memory */
    DRAFT_SIDE_BLOCK, /* the same, or a block of the target's file as a model */
    DRAFT_SIDE_VIEW   /* the target, with those bits of its weights that are in memory */
} draft_side;

/* Tokens per pass with trees of n_nodes nodes, and the steps that such a tree takes. */
typedef struct tree_yield {
    int32_t n_nodes;
    double tokens;
    int32_t steps; /* over up to 8 nodes each */
} tree_yield;

enum { DRAFT_YIELDS = 6 };

/* Inputs that the engine gives a drafter, borrowed. */
typedef struct source_in {
    const gguf *target;
    const model_layout *layout; /* the target's */
    const gguf *side;           /* the side's model, where it has its own */
    const model_shape *side_shape;
    /* path of the drafter's file; NULL: the usual one, named after the target's */
    const char *path;
    /* reason why the target's sidecar is not in use; "": not refused */
    const char *sidecar_refused;
    const kernel_table *kernels;
    int32_t n_ids;     /* tokens that the target and the side's model both have */
    int32_t capacity;  /* tokens of a timeline, the root included */
    int32_t looked_up; /* the same, and those of an encoder's input */
    bool for_exits;    /* only roots are expanded, while all of the target's head is in memory, to
                         name candidates of early exits */
    weights *weights;  /* the target's; this and the next one before load */
    pool *pool;
} source_in;

/* Facts that a drafter's open reports of itself. */
typedef struct source_out {
    void *own;               /* freed by close */
    uint64_t resident_bytes; /* bytes of weights that stay in memory, without the side's */
    uint64_t work_bytes;     /* for its steps */
    uint64_t file_bytes;     /* taken from the heap by open */
    int32_t most_steps;      /* the most steps of any tree; 0: no bound */
    const tap_shape *taps;   /* the target's states that it sees; NULL: none */
    bool has_trees;          /* the file has measured ones: */
    drey_static_trees trees;
    bool has_right; /* it is known how often guesses of a rank are right, whatever it is sure of: */
    float right[TREE_MAX_GUESSES]; /* shares of the root's guesses that are right, on usual texts */
} source_out;

/* A drafter's part of an engine, shared by all its sessions. */
typedef struct draft_source {
    const struct drafter_kind *kind; /* NULL: no drafter, and nothing else is set */
    source_in in;
    source_out out;
    arena memory; /* freed by the engine, after close */
} draft_source;

/* The parts of a session that a drafter uses. Borrowed while the session is open. */
typedef struct drafter_context {
    sampler *sampler;
    runner *run;   /* on the side; NULL where there is none */
    int32_t chunk; /* rows of a prompt pass of the side */
} drafter_context;

typedef struct drafter_kind {
    const char *name; /* as the command takes it */
    const char *with; /* its source of guesses, for messages: "its heads" */
    draft_side side;
    /* ending of its file's name, after the target's name; NULL: no file */
    const char *file_ending;
    bool looks_up;                /* guesses from the text, at no cost */
    bool blends;                  /* "optimal" adds lookup to it unless options say otherwise */
    drey_exit_source exit_source; /* source of candidates for predictors of early exits */
    /* reason why early exits cannot be used with it; NULL: they can */
    const char *exit_conflict;
    /* Measurements of trees that follow confidence, by rising n_nodes. NULL: none. */
    const tree_yield *usual; /* [DRAFT_YIELDS] */
    /* Called after the target's layout is bound and its sidecar attached. Fails if the drafter
     * cannot be used. NULL: there is nothing to open. */
    drey_status (*open)(draft_source *src, drey_error *err);
    /* Called after the target's weights are open; may take resident_bytes and work_bytes of
     * src->memory. NULL: there is nothing to read. */
    drey_status (*load)(draft_source *src, drey_error *err);
    /* Called after open, even if it failed. NULL: there is nothing to close. */
    void (*close)(draft_source *src);
    /* Bytes per session. */
    size_t (*session_bytes)(const draft_source *src);
    /* memory: session_bytes, zeroed, aligned for any type. */
    drafter *(*make)(draft_source *src, const drafter_context *context, void *memory);
} drafter_kind;

/* NULL for DREY_DRAFTER_NONE and for values that are not drafters. */
const drafter_kind *drafter_kind_of(drey_drafter which);
/* The drafter whose side a model of this shape can be. */
drey_drafter drafter_for(const model_shape *draft);
extern const drafter_kind drafter_model, drafter_lookup, drafter_self, drafter_medusa,
    drafter_eagle, drafter_mtp;
