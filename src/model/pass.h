/* The forward pass: rows in, logits out; a value that can be left and continued.
 *
 * A row is a token with a parent: prompt chunks are chains, single tokens a chain of one, drafted
 * trees have branches. All three are the same call, and a row's bits depend only on its path (the
 * numeric contract of kernel/kernel.h): not on the rows computed with it, and not on when they were
 * computed. Rows stay pending in their cache until cache_commit says which of them count.
 *
 * A pass never waits for the disk unless it is asked to. Callers with nothing else to do call
 * pass_run; others drive it:
 *
 *     pass_begin(&p, r, groups, n, err)
 *     for (state = PASS_CONTINUES; state != PASS_DONE;) {
 *         pass_step(&p, until, &state, err)        a layer, or a slice of time
 *         if (state == PASS_STARVED)
 *             ... something else for pass_room_ns(&p), or pass_wait(&p)
 *     }
 *     pass_end(&p, err)
 *
 *              begin            step             step, last          end
 *     (none) --------> UNDER WAY ---> UNDER WAY ------------> DONE -------> (none): rows pending
 *                          |    |                              |
 *                          |    +--- stop, at a layer ---------+----------> (none): rows pending,
 *                          |                                   |            without logits
 *                          +--- leave, or a step that fails ---+----------> (none): as before it
 *
 * A pass can be inspected between two layers: the logits that the head would give for the residual
 * stream as it is (pass_look_ids, pass_look_head). A caller that knows enough then stops the pass.
 * Nothing more is read or computed, and its rows that count are deferred: later passes continue
 * with them from that layer (deferred.h). SpecEE (arXiv 2504.08850) leaves those keys and values
 * out; here they are exact. */
#pragma once

#include "drey/drey_model.h"
#include "kernel/kernel.h"

typedef struct deferred_rows deferred_rows;
typedef struct kv_file kv_file;
typedef struct model_layout model_layout;
typedef struct model_pass model_pass;
typedef struct pass_row pass_row;
typedef struct pool pool;
typedef struct program_step program_step;
typedef struct text_cache text_cache;
typedef struct trace trace;
typedef struct weight weight;
typedef struct weights weights;
typedef struct workspace workspace;

/* Rows of a group that need logits. */
typedef enum pass_head { HEAD_NONE, HEAD_LAST, HEAD_ALL } pass_head;

/* The residual stream of chosen rows after a layer, as the next layer reads it. */
typedef struct pass_tap {
    int32_t layer;       /* so many layers are complete: 0 .. n_layers */
    const int32_t *rows; /* [n], of the group: borrowed until the pass is over. NULL: the first n */
    int32_t n;
    /* Set when the layer is complete: [n][pass_rows_stride], in the workspace until its next
     * pass. Of a pass that was stopped before that layer: after the layer where it stopped. NULL:
     * the group was dropped. */
    const float *out;
} pass_tap;

/* Rows of one cache. Several caches may share a pass: each weight is read once for all of them. */
typedef struct pass_group {
    text_cache *cache;    /* borrowed until the pass is over, as the rows are */
    const pass_row *rows; /* [n] */
    int32_t n;            /* at least 1, or deferred rows; the caller has asked cache_has_room */
    pass_head head;
    bool whole; /* a prompt's rows: cache_pass_begins */
    /* deferred rows of this cache, carried on; NULL: it has none, and the pass cannot be stopped */
    deferred_rows *deferred;
    pass_tap *taps; /* [n_taps]; borrowed as the rows are */
    int32_t n_taps; /* most often 0 */
    /* Input of a layer after a target, one of them, borrowed as the rows are; of other models
     * none. */
    const float *tapped; /* [n][row_stride(tapped_numbers)]: what the target's taps gave before the
                            row's token */
    const float *states; /* [n][pass_rows_stride]: a tap of this model's own pass, instead; of
                            layers without an embedding (model_layout.inner) its rows */
    /* Set by pass_begin. */
    int32_t first_row;     /* its rows are those of the pass from here on, the deferred ones after
                              all groups' */
    int32_t first_pending; /* row i gets pending index first_pending + i */
    int32_t n_logits;      /* number of its rows that need logits */
    int32_t n_deferred;    /* rows that are carried on; all of them get logits */
    int32_t n_waiting;     /* number of leading rows whose layer has not come yet */
    /* Set by pass_end: [n_logits][pass_logits_stride], and [n_deferred] in the order of positions;
     * in the workspace until its next pass; NULL where there are none. */
    float *logits, *deferred_logits;
    /* Its rows after the final norm: [n_logits] and [n_deferred][pass_hidden_stride]. */
    const float *hidden, *deferred_hidden;
} pass_group;

/* For measurements: sees the experts that a row of a pass takes in the pass's present layer,
 * ascending, n_used of them, all different. It may put others in their place and return true: each
 * then counts the same. */
typedef struct pass_route {
    bool (*see)(void *user, const model_pass *p, int32_t row, int32_t *expert);
    void *user;
    /* Guesses the choice of the layer after that, the likeliest first: at most ROUTER_MOST experts
     * of all rows. Returns how many. NULL: its router says. */
    int32_t (*guess)(void *user, const model_pass *p, int32_t *expert);
} pass_route;

/* For measurements: sees what matrices are multiplied with, before each product. n rows [n][ld] of
 * matrix->form.k numbers, which are borrowed for the call. matrix: the first of those that read
 * them; of an expert the layer's matrix that has all of them. expert: -1 where it is of none. */
typedef struct pass_inputs {
    void (*see)(void *user, const weight *matrix, int32_t expert, const float *rows, int64_t ld,
                int32_t n);
    void *user;
} pass_inputs;

/* Layers after the own ones, which others compute (ranks/ranks.h). */
typedef struct pass_remote {
    void *user;
    /* The rows have come through the own layers: sends them there. They come back if the pass has
     * logits; else it is over, and a failure of those others is one of a later pass. */
    drey_status (*send)(void *user, const model_pass *p, drey_error *err);
    /* Returns whether take would find them back. */
    bool (*ready)(void *user);
    /* Waits until then, or until *cancel. */
    void (*wait)(void *user, const _Atomic bool *cancel);
    /* Takes them if they are back, in their places. DREY_ERR_IO: those others have failed. */
    drey_status (*take)(void *user, const model_pass *p, bool *done, drey_error *err);
} pass_remote;

/* Everything that passes of one model need, all borrowed. */
typedef struct runner {
    const model_layout *layout;
    weights *weights;
    workspace *ws;
    pool *pool;
    const kernel_table *kernels;
    text_cache *cache; /* its cache, if there is one: pass_rows */
    text_cache *cross; /* cache of an encoder: what its output goes to */
    /* weights whose embedding is used where the layout has none; else NULL */
    weights *tokens;
    const _Atomic bool *cancel;                       /* looked at after each product */
    void (*loading)(void *user, uint64_t done_bytes); /* during the first pass; may be NULL */
    void *loading_user;
    trace *trace; /* trace of products and attention, waiting for threads included; may be NULL */
    const pass_route *route;   /* routes that replace the routers' choice; may be NULL */
    const pass_inputs *inputs; /* observer of the products' inputs; may be NULL */
    const pass_remote *remote; /* NULL: all layers are here */
    bool whole_heads;          /* for measurements: attention is not divided between units */
} runner;

/* True if rows of which n_logits need logits are read as a prompt: most of them need none. */
static inline bool pass_is_prompt(int32_t n_rows, int32_t n_logits)
{
    return n_rows > 1 && 2 * n_logits < n_rows;
}

typedef enum pass_state {
    PASS_CONTINUES, /* a layer is complete, or the time is over: there is more to do at once */
    PASS_STARVED,   /* nothing that is needed next has arrived from the disk */
    PASS_DONE       /* everything is computed: pass_end */
} pass_state;

/* State of a pass, seen from outside. */
typedef enum pass_place {
    PASS_IN_STEPS,
    PASS_AT_LAYER, /* between two layers, or between the last one and the head */
    PASS_STOPPED,
    PASS_OVER /* every step is done, or it was left */
} pass_place;

typedef void pass_rows_fn(model_pass *p, int32_t from, int32_t to, int32_t thread);

/* Its members are the pass's own. */
struct model_pass {
    runner *r;
    pass_group *groups;
    int32_t n_groups, n_logits;
    int32_t n_own, n_rows; /* without and with the deferred rows that have joined */
    int32_t layer;         /* the next to begin, or under way */
    int32_t at;            /* the next step of the program */
    pass_place place;
    bool in_product;
    bool is_remote; /* its rows are with others (pass_remote) */
    struct {
        bool goes_on;
        int32_t n;                /* matrices that are in memory */
    } loading;                    /* loading in a mixture's first pass */
    int32_t n_runs;               /* runs of rows that attend together */
    bool attends_cross;           /* to the encoder's output, not to their own cache */
    int32_t n_tap_rows, n_tapped; /* rows of all taps; of them those that are filled */
    /* Work under way between products: rows are handed out in tiles. */
    struct {
        pass_rows_fn *tile;
        const program_step *step; /* [n]: they share a walk over the rows; or a mix */
        int32_t n;
        _Atomic int32_t next_row;
    } walk;
    /* Next chunk to be asked for, of caches with a file (NULL: nothing is away): the next chunk to
     * be asked for. */
    struct {
        kv_file *file;
        int32_t layer, group, chunk; /* chunk -1: the first that the layer sees */
    } offload;
    _Atomic bool failed;
    drey_error error; /* error of the first row that failed */
    /* Input of the quantising steps, and the kinds in which the next product needs it. */
    const float *source;
    int64_t source_ld, source_k;
    struct {
        int32_t n, ld;
    } source_heads; /* program_step.reads */
    bool kinds[ACT_KINDS];
};

/* Gives rows their places. groups: borrowed; together at most max_rows rows, max_logit_rows of them
 * with logits, max_groups groups, max_deferred deferred rows, max_tap_rows rows of taps. A pass
 * without new rows begins at the first deferred row's layer and reads nothing before it. One
 * pass of a runner at a time. Of caches with a file, each gets room for its rows first, and a
 * layer's attention waits for what is away. DREY_ERR_IO, DREY_ERR_CANCELLED. */
drey_status pass_begin(model_pass *p, runner *r, pass_group *groups, int32_t n_groups,
                       drey_error *err);
/* Computes until a layer is complete, or until until_ns (clock_ns; 0: no such time) has passed, or
 * until what comes next has not arrived. Never waits for the disk. An error ends the pass and
 * leaves no row pending that was not before: DREY_ERR_IO, DREY_ERR_CANCELLED, DREY_ERR_FORMAT. */
drey_status pass_step(model_pass *p, int64_t until_ns, pass_state *state, drey_error *err);
/* True if a step would find something to do. */
bool pass_ready(const model_pass *p);
/* Returns how long the caller may let the pass wait without the disk having to: until the ring of
 * reads is full, as a time. INT64_MAX where nothing is read. */
int64_t pass_room_ns(const model_pass *p);
/* Blocks until pass_ready. */
void pass_wait(model_pass *p);
/* Makes the rows pending and the logits known, after PASS_DONE. No row is deferred any more.
 * DREY_ERR_IO: a file has changed meanwhile, and the pass is over without them. */
drey_status pass_end(model_pass *p, drey_error *err);
/* Gives the pass up, at any point before pass_end: nothing more is read for it. */
void pass_leave(model_pass *p);

/* Drops that group's rows: they are neither computed nor pending, and it has no logits. At a layer,
 * of a pass that other groups remain in and that has no deferred rows. Its cache and rows are the
 * caller's again. */
void pass_drop(model_pass *p, int32_t group);

/* Layers that are complete. */
static inline int32_t pass_layers_done(const model_pass *p)
{
    return p->layer;
}
/* True between two layers, and between the last one and the head. */
bool pass_at_layer(const model_pass *p);

/* Returns whether pass_stop may be called: at a layer, of a pass that is not the first, and all of
 * its groups have a list of deferred rows. */
bool pass_can_stop(const model_pass *p);
/* Ends the pass at this layer: its rows are pending, there are no logits, and nothing more is read.
 * Deferred rows that had joined have come as far as this layer. DREY_ERR_IO as pass_end. */
drey_status pass_stop(model_pass *p, drey_error *err);
/* After pass_stop and before cache_commit, with the same path and n: those rows of the group, all
 * of this pass, join its deferred rows, which have room for them. Once, until the workspace's next
 * pass.
 */
void pass_defer(const model_pass *p, pass_group *group, const int32_t *path, int32_t n);

/* Delays reads, because little should have been read of what comes after where passes may be
 * stopped. From the next pass on the disk brings layers from `layer` on only when each begins, or
 * is let in by pass_read_on; what comes before is read ahead, the next pass's too. n_layers:
 * nothing is held back. The first pass, which loads, is not. */
void pass_hold_from(runner *r, int32_t layer);
/* Lets the layers before `layer` of this pass be read; n_layers: all of it, and the next pass's up
 * to its hold. */
void pass_read_on(const model_pass *p, int32_t layer);

/* Logits of a few ids after the layers that are complete. */
typedef struct pass_look {
    int32_t row; /* counted over all groups */
    int32_t n_ids;
    const int64_t *ids; /* [n_ids] */
    float *logits;      /* [n_ids], filled */
} pass_look;
/* Returns whether a pass can be looked into: at a layer, and its whole head is in memory. */
bool pass_can_look(const model_pass *p);
/* Each look's logits have the bits that the head would give. Several looks are shared among
 * threads: their cost is linear in their number. n is at most the pass's rows. */
void pass_look_ids(model_pass *p, const pass_look *looks, int32_t n);
/* The whole head for rows[0..n), n at most max_logit_rows + max_deferred: [n][pass_logits_stride],
 * in the workspace until the pass's next step; if it is stopped, until the workspace's
 * next pass. */
float *pass_look_head(model_pass *p, const int32_t *rows, int32_t n);
/* The same rows after the final norm, for as long: [n][pass_hidden_stride]. */
const float *pass_look_hidden(const model_pass *p);

/* Numbers from one row of the residual stream to the next. */
int64_t pass_rows_stride(const runner *r);
int64_t pass_logits_stride(const runner *r);
int64_t pass_hidden_stride(const runner *r);

/* All of it, waiting where it has to. */
drey_status pass_run(runner *r, pass_group *groups, int32_t n_groups, drey_error *err);
/* The same for rows [0, n) of the runner's own cache; logits are ws->logits. */
drey_status pass_rows(runner *r, const pass_row *rows, int32_t n, pass_head head, drey_error *err);
/* After pass_rows without a head: row i after the final norm, [D], in the workspace until it is
 * asked for another one. */
const float *pass_state_of(const runner *r, int32_t i);
/* Computes tokens[0..n) after the committed part of the runner's cache in chunks, and commits
 * them; `last`: which rows of the last chunk need logits. */
drey_status pass_prompt(runner *r, const int32_t *tokens, int32_t n, int32_t chunk, pass_head last,
                        void (*progress)(void *user, int32_t done), void *user, drey_error *err);
