/* Buffers of a pass. Two passes that are under way at the same time need one each. */
#pragma once

#include "base/arena.h"
#include "kernel/kernel.h"

typedef struct attend_split attend_split;
typedef struct expert_product expert_product;
typedef struct expert_run expert_run;
typedef struct model_shape model_shape;

typedef struct pass_row {
    int32_t token;
    int32_t parent; /* pending index of the row before it, earlier in this pass or from one before;
                       -1: the last committed position */
} pass_row;

/* What a workspace has room for. */
typedef struct workspace_limits {
    int32_t max_rows, max_logit_rows; /* of a pass */
    int32_t max_deferred;             /* rows that it may carry as well (deferred.h) */
    int32_t max_tap_rows;             /* rows of all taps of a pass (pass.h) */
    int32_t max_groups;               /* caches that a pass may be about */
    int32_t max_pending, n_slots;     /* of each cache */
    int32_t n_threads;
    int32_t n_attending; /* units that have a part in attention: above 1 it is divided */
    int32_t n_devices;   /* whether or not they have */
    int32_t n_logits;    /* numbers of a row of logits; 0: V */
    bool away;           /* caches may have a file: attention is left and continued */
} workspace_limits;

/* B: max_rows + max_deferred. Rows of numbers are padded (row_stride). */
typedef struct workspace {
    workspace_limits limits;
    float *x, *y;           /* [B][D]: the residual stream, and what is added to it */
    float *q, *k, *v, *att; /* [B][H*S], [B][K*S] twice, [B][H*S] */
    float *gate, *up;       /* [B][F], B being n_used at least; without gates gate holds Up's
                               product */
    float *rope;            /* [B][n_ropes][n_rot]: cosine and sine of each pair */
    float *logits;          /* [max_logit_rows + max_deferred][n_logits] */
    struct {
        float *rows; /* [max_tap_rows][D]; NULL: there are none */
        float *wide; /* [B][2 D or tapped_numbers]: of a layer after a target the target's states,
                        then [e; x]; NULL: rows are tokens */
    } taps;
    pass_row *rows;       /* [B]: for a chain of tokens, and for callers without a better place */
    int32_t *group;       /* [B]: a row's */
    int32_t *pending;     /* [B]: a row's pending index in its group's cache; of a deferred row
                               its index among those */
    int32_t *slot;        /* [B]: where its keys and values go */
    int32_t *position;    /* [B] */
    int32_t *path;        /* [B][max_pending]: slots of a row's pending ancestors and itself */
    int32_t *n_path;      /* [B] */
    int32_t *n_prefix;    /* [B]: positions that are in the slots of their numbers */
    attend_layer *attend; /* [max_groups + max_deferred]: runs of rows of one cache */
    struct {
        /* Of models with an encoder: */
        attend_more *more; /* [max_groups + max_deferred]: biases, and a second cache */
        int32_t *nothing;  /* [B] of 0: positions of rows that have none */
        int32_t *seen;     /* [B]: positions that all rows of a run see */
        /* Of all: */
        void **scratch;  /* [n_threads + n_devices] */
        float *partials; /* [n_partials]: of heads that several threads share */
        size_t n_partials;
        float *kept;         /* [B][2 H]: of attention that is left and continued; NULL: none is */
        attend_split *split; /* NULL: one unit */
    } attention;
    /* Of a mixture; V is B n_used, a row for each expert that a row takes, sorted by expert: */
    struct {
        float *logits;           /* [B][n_experts], and then the weights of all */
        int32_t *chosen;         /* [B][n_used] */
        float *weight;           /* [B][n_used] */
        int32_t *place;          /* [B][n_used]: which of V it is */
        float *shared;           /* [B][D]: of the shared expert, */
        float *shared_weight;    /* [B]: and what it counts */
        float *rows;             /* [V][D]: normed rows, and then what their experts make of them */
        expert_run *run;         /* [n_experts] */
        int32_t n_runs, n_run;   /* of the layer; of them those that are in waves so far */
        int32_t *at;             /* [n_experts]: of a run of a batch, in gate and up */
        void **acts;             /* [n_experts][ACT_KINDS] of a batch: in `acts` */
        expert_product *product; /* [2 n_experts] */
        float *worth;            /* [n_experts]: of guesses about the next layer */
    } mixture;
    void *acts[ACT_KINDS];
    struct {
        int32_t *row; /* [B]: the row that has the i-th logits */
        void **look;  /* [n_threads]: the quantised form of one row of D */
    } head;
} workspace;

size_t workspace_bytes(const model_shape *s, const workspace_limits *limits);
/* Takes everything from `a`, whose owner checks it. */
void workspace_init(workspace *ws, const model_shape *s, const workspace_limits *limits, arena *a);

/* Rows of gate and up, and of activations. */
int32_t workspace_batch(const model_shape *s, const workspace_limits *limits);
/* Numbers of a row of `wide`. */
int64_t workspace_wide(const model_shape *s);
/* Numbers from one row to the next of an array of rows of n. */
int64_t row_stride(int64_t n);
