/* What an engine, a plan and a command ask about a drafter: one row of the table in drafter.c.
 * Nobody outside src/draft asks which drafter it is.
 *
 *   engine opens    kind->open     opens the drafter's own files, states what memory it needs
 *   plan is made    draft_source   resident_bytes, work_bytes, most_steps, what is known of guesses
 *   weights open    kind->load     reads what stays in memory
 *   session opens   kind->make     a drafter in the session's memory, of session_bytes
 *   engine closes   kind->close
 *
 * A drafter whose steps are passes over a model has a side (draft_side): the engine opens it, and
 * make gets a runner on it. */
#ifndef DREY_DRAFT_DRAFTER_KIND_H
#define DREY_DRAFT_DRAFTER_KIND_H

#include "base/arena.h"
#include "draft/drafter.h"
#include "drey/tune.h"
#include "model/pass.h"

/* The model that a drafter's steps are passes over. */
typedef enum draft_side {
    DRAFT_SIDE_NONE,  /* they are no passes */
    DRAFT_SIDE_MODEL, /* options.draft, whose weights all stay in memory */
    DRAFT_SIDE_VIEW   /* the target, with the bits of its weights that are in memory */
} draft_side;

/* Tokens that a pass writes with trees of so many nodes, and the steps that such a tree takes. */
typedef struct tree_yield {
    int32_t n_nodes;
    double tokens;
    int32_t steps; /* over up to 8 nodes each */
} tree_yield;

enum { DRAFT_YIELDS = 6 };

/* A drafter's part of an engine, shared by all its sessions. */
typedef struct draft_source {
    /* Set by the engine before open. Borrowed. */
    const struct drafter_kind *kind; /* NULL: nobody drafts, and none of the others is set */
    const gguf *target;
    const model_layout *layout; /* the target's */
    const char *path;           /* of the drafter's file; NULL: the usual one, after the target's */
    const char
        *sidecar_refused; /* why the target's sidecar is not in use; "": for no such reason */
    const kernel_table *kernels;
    int32_t n_ids;    /* tokens that the target and the side's model both have */
    int32_t capacity; /* tokens of a timeline, the root included */
    /* Set by the engine before load. Borrowed. */
    weights *weights; /* the target's */
    pool *pool;
    /* Set by open. */
    void *own;               /* freed by close */
    uint64_t resident_bytes; /* of weights that stay in memory, the side's not counted */
    uint64_t work_bytes;     /* for its steps */
    uint64_t file_bytes;     /* that open took from the heap */
    int32_t most_steps;      /* of any tree; 0: no such bound */
    bool has_trees;          /* the file says how often guesses of a rank are right: */
    drey_static_trees trees;
    float right[TREE_MAX_GUESSES]; /* of the root's guesses, on usual texts */
    arena memory;                  /* freed by the engine, after close */
} draft_source;

/* Where a drafter is made. Borrowed, as long as the session is open. */
typedef struct draft_seat {
    sampler *sampler;
    runner *run;   /* on the side; NULL where there is none */
    int32_t chunk; /* rows of a prompt pass of the side */
} draft_seat;

typedef struct drafter_kind {
    const char *name; /* as the command takes it */
    const char *with; /* what it drafts with, in a list: "its heads" */
    draft_side side;
    const char *file_ending;   /* of its file, after the target's name; NULL: it has none */
    bool looks_up;             /* guesses from the text, at no cost */
    bool blends;               /* "optimal" puts lookup next to it unless told otherwise */
    const char *exit_conflict; /* why passes that end early do not go with it; NULL: they do */
    /* What was measured of trees that follow confidence, by rising nodes. NULL: nothing. */
    const tree_yield *usual; /* [DRAFT_YIELDS] */
    /* The target's layout is bound, its sidecar attached. Fails where the drafter cannot be had.
     * NULL: there is nothing to open. */
    drey_status (*open)(draft_source *src, drey_error *err);
    /* The target's weights are open; resident_bytes and work_bytes of src->memory are there to be
     * taken. NULL: there is nothing to read. */
    drey_status (*load)(draft_source *src, drey_error *err);
    /* After open, whether it failed or not. NULL: there is nothing to close. */
    void (*close)(draft_source *src);
    /* Memory of a session. */
    size_t (*session_bytes)(const draft_source *src);
    /* In so many bytes of memory, zeroed and aligned for anything. */
    drafter *(*make)(draft_source *src, const draft_seat *seat, void *memory);
} drafter_kind;

/* NULL for DREY_DRAFTER_NONE, and for what is no drafter. */
const drafter_kind *drafter_kind_of(drey_drafter which);
extern const drafter_kind drafter_model, drafter_lookup, drafter_self, drafter_medusa;

#endif
