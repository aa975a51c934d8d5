/* The forward pass: rows in, logits out; a value that can be left alone and gone on with.
 *
 * A row is a token with a parent: prompt chunks are chains, single tokens a chain of one, drafted
 * trees have branches. All three are the same call, and a row's bits depend only on its path (the
 * numeric contract of kernel/kernel.h): not on the rows beside it, and not on when they were
 * computed. Rows stay pending in their cache until kv_commit says which of them count.
 *
 * A pass never waits for the disk unless it is told to. Whoever has nothing else to do calls
 * pass_run; who has, drives it:
 *
 *     pass_begin(&p, r, groups, n, err)
 *     for (state = PASS_GOES_ON; state != PASS_DONE;) {
 *         pass_step(&p, until, &state, err)        a layer, or a slice of time
 *         if (state == PASS_STARVED)
 *             ... something else for pass_room_ns(&p), or pass_wait(&p)
 *     }
 *     pass_end(&p, err)
 *
 *              begin            step             step, last          end
 *     (none) --------> UNDER WAY ---> UNDER WAY ------------> DONE -------> (none): rows pending
 *                          |                                   |
 *                          +--- leave, or a step that fails ---+----------> (none): as before it
 */
#ifndef DREY_MODEL_PASS_H
#define DREY_MODEL_PASS_H

#include "base/trace.h"
#include "model/kv.h"
#include "model/layout.h"
#include "model/workspace.h"

/* Which rows of a group need logits. */
typedef enum pass_head { HEAD_NONE, HEAD_LAST, HEAD_ALL } pass_head;

/* Rows of one cache. Several caches may share a pass: each weight is read once for all of them. */
typedef struct pass_group {
    kv_cache *kv;         /* borrowed until the pass is over, as the rows are */
    const pass_row *rows; /* [n] */
    int32_t n;            /* at least 1; the caller has asked kv_has_room */
    pass_head head;
    /* Set by pass_begin. */
    int32_t first_pending; /* row i gets pending index first_pending + i */
    int32_t n_logits;      /* rows that need logits */
    /* Set by pass_end: [n_logits][pass_logits_stride], in the workspace until its next pass; NULL
     * where there are none. */
    float *logits;
} pass_group;

/* Everything that passes of one model need, all borrowed. */
typedef struct runner {
    const model_layout *layout;
    weights *weights;
    workspace *ws;
    pool *pool;
    const kernel_table *kernels;
    kv_cache *kv;                                     /* of those who have one: pass_rows */
    const _Atomic bool *cancel;                       /* looked at after each product */
    void (*loading)(void *user, uint64_t done_bytes); /* during the first pass; may be NULL */
    void *loading_user;
    trace *trace; /* of products and attention, waiting for threads included; may be NULL */
} runner;

typedef enum pass_state {
    PASS_GOES_ON, /* a layer is complete, or the time is over: there is more to do at once */
    PASS_STARVED, /* nothing that is needed next has arrived from the disk */
    PASS_DONE     /* everything is computed: pass_end */
} pass_state;

typedef struct model_pass model_pass;
typedef void pass_rows_fn(model_pass *p, int32_t from, int32_t to, int32_t thread);

/* Its members are the pass's own. */
struct model_pass {
    runner *r;
    pass_group *groups;
    int32_t n_groups, n_rows, n_logits;
    int32_t layer; /* the next to begin, or under way */
    int stage;
    bool in_product;
    /* The step between products that is under way: rows are handed out in tiles. */
    pass_rows_fn *rows_fn;
    _Atomic int32_t next_row;
    _Atomic bool failed;
    drey_error error; /* of the first row that failed */
    /* What the quantising steps read, and in which kinds the next product wants it. */
    const float *source;
    int64_t source_ld, source_k;
    bool kinds[ACT_KINDS];
};

/* Gives rows their places. groups: borrowed; together at most max_rows rows, max_logit_rows of them
 * with logits, max_groups groups. One pass of a runner at a time. DREY_ERR_IO, DREY_ERR_CANCELLED. */
drey_status pass_begin(model_pass *p, runner *r, pass_group *groups, int32_t n_groups,
                       drey_error *err);
/* Computes until a layer is complete, or until until_ns (clock_ns; 0: no such time) has passed, or
 * until what comes next has not arrived. Never waits for the disk. An error ends the pass and
 * leaves no row pending that was not before: DREY_ERR_IO, DREY_ERR_CANCELLED, DREY_ERR_FORMAT. */
drey_status pass_step(model_pass *p, int64_t until_ns, pass_state *state, drey_error *err);
/* True if a step would find something to do. */
bool pass_ready(const model_pass *p);
/* How long the caller may let the pass wait without the disk having to: until the ring of reads is
 * full, as a time. INT64_MAX where nothing is read. */
int64_t pass_room_ns(const model_pass *p);
/* Blocks until pass_ready. */
void pass_wait(model_pass *p);
/* Makes the rows pending and the logits known, after PASS_DONE. DREY_ERR_IO: a file has changed
 * meanwhile, and the pass is over without them. */
drey_status pass_end(model_pass *p, drey_error *err);
/* Gives the pass up, at any point before pass_end: nothing more is read for it. */
void pass_leave(model_pass *p);

/* Layers that are complete. */
static inline int32_t pass_layers_done(const model_pass *p)
{
    return p->layer;
}
/* The residual stream of a row (counted over all groups) behind those layers: [D], until the next
 * step. Of a pass that is not done. */
const float *pass_hidden(const model_pass *p, int32_t row);
/* Behind the final norm, of the row with the i-th logits: [D], from PASS_DONE until the workspace's
 * next pass. */
const float *pass_final_hidden(const model_pass *p, int32_t i);

int64_t pass_logits_stride(const runner *r);

/* All of it, waiting where it has to. */
drey_status pass_run(runner *r, pass_group *groups, int32_t n_groups, drey_error *err);
/* The same for rows [0, n) of the runner's own cache; logits are ws->logits. */
drey_status pass_rows(runner *r, const pass_row *rows, int32_t n, pass_head head, drey_error *err);
/* Computes tokens[0..n) behind the committed part of the runner's cache in chunks, and commits
 * them; `last`: which rows of the last chunk need logits. */
drey_status pass_prompt(runner *r, const int32_t *tokens, int32_t n, int32_t chunk, pass_head last,
                        void (*progress)(void *user, int32_t done), void *user, drey_error *err);

#endif
