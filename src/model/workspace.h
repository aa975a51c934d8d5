/* Buffers of a pass. Two passes that are under way at the same time need one each.
 *
 * The workspace itself has what every pass has: rows, their places, activations, logits. Each kind
 * of block (block/block.h) asks for its own buffers, by the shape and the limits, and the workspace
 * is the sum. One block is under way at a time, so that those of unlike blocks lie over each other
 * and hold nothing once the block has ended, unless it asked for one that lasts.
 *
 *   |x|y|logits|rows ...|acts|lasting| attention's q, k, v, out ...         |
 *                                    | feed-forward's gate, up              |
 *                                    | experts' gate, up, rows, choices ... | */
#pragma once

#include "base/arena.h"
#include "kernel/kernel.h"

typedef struct block_class block_class; /* model/block/block.h */
typedef struct model_shape model_shape;

typedef struct pass_row {
    int32_t token;
    int32_t parent; /* pending index of the row before it, earlier in this pass or from one before;
                       -1: the last committed position */
} pass_row;

/* Limits for which a workspace has memory. */
typedef struct workspace_limits {
    int32_t max_rows, max_logit_rows; /* rows of a pass */
    int32_t max_deferred;             /* rows that it may carry as well (deferred.h) */
    int32_t max_tap_rows;             /* rows of all taps of a pass (pass.h) */
    int32_t max_groups;               /* caches that a pass may be about */
    int32_t max_pending, n_slots;     /* rows of each cache */
    int32_t n_threads;
    int32_t n_attending; /* units that have a part in attention: above 1 it is divided */
    int32_t n_devices;   /* devices, whether or not they have */
    int32_t n_logits;    /* numbers of a row of logits; 0: V */
    bool offloads;       /* caches may have a file: attention is left and continued */
} workspace_limits;

/* Numbers of buffers. A block numbers its own from BUFFER_OWN on; those before are all blocks'. */
enum {
    BUFFER_X,    /* [B][W]: the residual stream, W being D or that of its parts (shape_width) */
    BUFFER_Y,    /* [B][D]: what is added to it */
    BUFFER_WIDE, /* [B][2 D or tapped_numbers]: of a layer after a target the target's states, then
                    [e; x]; [B][D]: what a norm makes that two blocks read; the tokens' embeddings,
                    where each layer reads them; [B][n]: what a hyper connection's parts get of a
                    sum; of other models none */
    BUFFER_OWN
};

/* Buffers of what is around the layers (block/ends.c), which all may read: they last. */
enum {
    ENDS_ROWS = BUFFER_OWN, /* int64_t [B][lookup.n]: rows of a table on the disk, */
    ENDS_RAW                /* and what the file has of them, [B][lookup.n][lookup.row_bytes] */
};

/* Kinds of blocks that a model may have, and buffers that each may ask for. */
enum {
    BLOCK_CLASSES = 10,
    BLOCK_BUFFERS = 20,
    WORKSPACE_BUFFERS = BUFFER_OWN + BLOCK_CLASSES * BLOCK_BUFFERS
};

/* The kinds of blocks of a model, each once, after what is around the layers. */
typedef struct block_list {
    const block_class *class[BLOCK_CLASSES];
    int32_t n;
} block_list;

typedef struct workspace_buffer {
    void *at;   /* NULL: nobody asked for it, or for nothing */
    int64_t ld; /* numbers from one row of floats to the next */
    size_t bytes;
    bool lasts;
} workspace_buffer;

/* B: max_rows + max_deferred. Rows of numbers are padded (row_stride). */
typedef struct workspace {
    workspace_limits limits;
    float *x, *y;       /* [B][W], [B][D]: BUFFER_X, and BUFFER_Y with room for [B][W] */
    float *rope;        /* [B][n_angles]: cosine and sine of each pair of each rotation */
    float *logits;      /* [max_logit_rows + max_deferred][n_logits] */
    float *tap_rows;    /* [max_tap_rows][W] */
    pass_row *rows;     /* [B]: for a chain of tokens, and for callers without a better place */
    int32_t *group;     /* [B]: a row's */
    int32_t *pending;   /* [B]: a row's pending index in its group's cache; of a deferred row
                           its index among those */
    int32_t *slot;      /* [B]: where its keys and values go */
    int32_t *position;  /* [B] */
    int32_t *path;      /* [B][max_pending]: slots of a row's pending ancestors and itself */
    int32_t *n_path;    /* [B] */
    int32_t *n_prefix;  /* [B]: positions that are in the slots of their numbers */
    int32_t *looked_up; /* [B]: a row's place among those of a table (pass_lookup.c) */
    int32_t *head_row;  /* [B]: the row that has the i-th logits */
    uint8_t *look;      /* [n_threads][look_bytes]: the quantised form of one row of D */
    void *acts[ACT_KINDS];
    workspace_buffer buffer[WORKSPACE_BUFFERS]; /* buffers of blocks (block.h: block_buffer) */
} workspace;

size_t workspace_bytes(const model_shape *s, const block_list *blocks,
                       const workspace_limits *limits);
/* Takes everything from `a`, whose owner checks it. */
void workspace_init(workspace *ws, const model_shape *s, const block_list *blocks,
                    const workspace_limits *limits, arena *a);

/* Numbers from one row to the next of an array of rows of n. */
int64_t row_stride(int64_t n);
/* Bytes of a row of D numbers in whatever kind the head needs it. */
size_t look_bytes(int32_t n_embd);

/* ---- For blocks ---- */

/* Buffers that a block asks for, and the sizes that they depend on. */
typedef struct buffer_needs {
    const model_shape *shape;
    const workspace_limits *limits;
    int32_t n_rows; /* B */
    /* Private: */
    workspace_buffer *buffer; /* [WORKSPACE_BUFFERS] */
    int32_t first;            /* added to the numbers of the block's own */
    size_t acts[ACT_KINDS];
} buffer_needs;

/* Asks for rows of n floats, padded. */
void need_rows(buffer_needs *n, int32_t buffer, int32_t rows, int64_t numbers);
/* Asks for bytes. */
void need_bytes(buffer_needs *n, int32_t buffer, size_t bytes);
/* The same, which are zero at first and keep what is in them from layer to layer and from pass to
 * pass. */
void need_lasting(buffer_needs *n, int32_t buffer, size_t bytes);
/* Asks for room for what products read: rows of up to k numbers, in up to n_parts pieces that each
 * begin at a multiple of 64 bytes. */
void need_acts(buffer_needs *n, int32_t rows, int64_t k, int32_t n_parts);
