/* The forward pass: rows in, logits out.
 *
 * A row is a token with a parent: prompt chunks are chains, single tokens a chain of one, drafted
 * trees have branches. All three are the same call, and a row's bits depend only on its path
 * (the numeric contract of kernel/kernel.h). Rows stay pending in the cache until kv_commit says which of them count. */
#ifndef DREY_MODEL_FORWARD_H
#define DREY_MODEL_FORWARD_H

#include "model/kv.h"
#include "model/layout.h"

typedef struct forward_row {
    int32_t token;
    int32_t parent; /* pending index of the row before it, earlier in this call or from one before;
                       -1: the last committed position */
} forward_row;

/* Which rows need logits. */
typedef enum forward_head { HEAD_NONE, HEAD_LAST, HEAD_ALL } forward_head;

/* Buffers of a pass; models that never run at the same time share one. B: max_rows. */
typedef struct workspace {
    int32_t max_rows, max_logit_rows;
    float *x, *y;           /* [B][D]: the residual stream, and what is added to it */
    float *q, *k, *v, *att; /* [B][H*S], [B][K*S] twice, [B][H*S] */
    float *gate, *up;       /* [B][F] */
    float *rope;            /* [B][n_rot]: cosine and sine of each pair */
    float *logits;          /* [max_logit_rows][V] */
    forward_row *rows;      /* [B]: for forward_prompt */
    int32_t *position;      /* [B] */
    int32_t *path;          /* [B][max_pending]: slots of a row's pending ancestors and itself */
    int32_t *n_path;        /* [B] */
    int32_t *n_prefix;      /* [B]: positions that lie in the slots of their numbers */
    void **scratch;         /* [n_threads]: attention */
    float *partials;        /* [n_partials]: of heads that several threads share */
    size_t n_partials;
    void *acts[ACT_KINDS];
} workspace;

size_t workspace_bytes(const model_shape *const shapes[], int32_t n_shapes, int32_t max_rows,
                       int32_t max_logit_rows, int32_t max_pending, int32_t n_slots,
                       int32_t n_threads);
void workspace_init(workspace *ws, const model_shape *const shapes[], int32_t n_shapes,
                    int32_t max_rows, int32_t max_logit_rows, int32_t max_pending, int32_t n_slots,
                    int32_t n_threads, arena *a);

/* Where passes spend their time, added up. */
typedef struct pass_times {
    int64_t matmul_ns, attend_ns; /* in products, in attention, waiting for threads included */
} pass_times;

/* Everything a pass needs, all borrowed. */
typedef struct runner {
    const model_layout *layout;
    weights *weights;
    kv_cache *kv;
    workspace *ws;
    pool *pool;
    const kernel_table *kernels;
    const _Atomic bool *cancel;                       /* looked at before each layer */
    void (*loading)(void *user, uint64_t done_bytes); /* during the first pass; may be NULL */
    void *loading_user;
    pass_times *times; /* NULL: not asked for */
} runner;

/* Computes n rows (1 .. max_rows; the caller has asked kv_has_room) and appends them to the pending
 * ones: row i gets pending index n_pending + i. Logits of the rows that `head` names (at most
 * max_logit_rows) are ws->logits[j * forward_logits_stride(r)], j counting those rows.
 * DREY_ERR_CANCELLED or DREY_ERR_IO leaves no row pending that was not before. */
drey_status forward(runner *r, const forward_row *rows, int32_t n, forward_head head,
                    drey_error *err);
int64_t forward_logits_stride(const runner *r);

/* Computes tokens[0..n) behind the committed part in chunks, and commits them; `last`: which rows
 * of the last chunk need logits. */
drey_status forward_prompt(runner *r, const int32_t *tokens, int32_t n, int32_t chunk,
                           forward_head last, void (*progress)(void *user, int32_t done),
                           void *user, drey_error *err);

#endif
