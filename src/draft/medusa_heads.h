/* Medusa heads (Cai et al. 2024, "Medusa: simple LLM inference acceleration framework with multiple
 * decoding heads"): small blocks after the target that guess the tokens two and more positions
 * ahead. Each also sees the token before the one that it guesses (Ankner et al. 2024, "Hydra:
 * sequentially-dependent draft heads for Medusa decoding").
 *
 *      h: the target's hidden state after its final norm, of the last accepted row
 *      e(t): row t of V over its root mean square
 *   head 0 (the target's own)  logits = V h                              the next token: the root
 *   head k = 1, 2, ...         logits = V (h + scale * silu(W_k [h; e(t)] + b_k))
 *                              what follows t, the token k - 1 after the root
 *
 * V: the target's own head. Heads guess among n_ids of its tokens, the frequent ones, whose rows
 * are gathered into a separate matrix, the slice. A file of heads is GGUF of the architecture
 * "drey-medusa":
 *
 *      drey-medusa.version           u32   3
 *      drey-medusa.target            u64   model_identity of the model that they were trained for
 *      drey-medusa.head_count        u32   1 .. MEDUSA_MAX_HEADS
 *      drey-medusa.embedding_length  u32   D
 *      drey-medusa.tokens            u32[] [n_ids]: that can be guessed, rising
 *      drey-medusa.scale             f32   1; 0.5 where the model was widened
 *      drey-medusa.accuracy          f32[] [head_count][MEDUSA_RANKS]: how often the guess of a
 *                                          rank was right where t was, on held-out text
 *      blocks.K.weight [D][2 D] of any type that has a kernel, K = 0 .. head_count - 1: W_(K + 1)
 *      blocks.bias     F32 [head_count * D]
 *
 * A step over n nodes takes one product per depth among them, and one with V. Products follow the
 * kernels' numeric contract, so all tiers guess the same. */
#pragma once

#include "draft/drafter.h"
#include "drey/profile.h"
#include "tree/tree.h"
#include "weights/weights.h"

typedef struct drey_static_trees drey_static_trees;
typedef struct gguf gguf;
typedef struct model_shape model_shape;
typedef struct pool pool;

enum { MEDUSA_MAX_HEADS = 8, MEDUSA_RANKS = TREE_MAX_GUESSES, MEDUSA_VERSION = 3 };

#define MEDUSA_ARCHITECTURE "drey-medusa"
#define MEDUSA_FILE_ENDING  ".drey-medusa"

/* The contents of a file, checked against the target. */
typedef struct medusa_shape {
    int32_t n_heads, n_embd;
    int32_t n_ids; /* rows of the slice */
    float scale;
    float accuracy[MEDUSA_MAX_HEADS][MEDUSA_RANKS];
} medusa_shape;

typedef struct medusa_heads {
    medusa_shape shape;
    gguf *file;                     /* owned */
    weight block[MEDUSA_MAX_HEADS]; /* [D][2 D] */
    bool for_roots;                 /* only head 1, and no slice: medusa_for_roots */
    weight slice;                   /* [n_ids][D]: rows ids[] of the target's head */
    int32_t *ids;                   /* [n_ids], rising */
    int64_t *rows;                  /* for_roots: the same, as weights_dot_rows wants them */
    float *bias;                    /* [n_heads * D] */
    weights *target;                /* borrowed: products use its threads' scratch */
    const weight *head;             /* borrowed: the target's */
    const kernel_table *kernels;
    pool *pool;
    /* Scratch of one step at a time, for any session. */
    float *scale, *ones; /* [D] */
    float *input;        /* [DRAFT_MAX_BATCH][input_ld] */
    float *gate;         /* [DRAFT_MAX_BATCH][gate_ld] */
    float *x;            /* [DRAFT_MAX_BATCH][x_ld] */
    float *logits;       /* [DRAFT_MAX_BATCH][logits_ld] */
    int64_t input_ld, gate_ld, x_ld, logits_ld;
    void *input_acts, *x_acts;
} medusa_heads;

/* Reads the header and checks it against the target; nothing in it is trusted. DREY_ERR_FORMAT,
 * DREY_ERR_UNSUPPORTED: not a file of heads, or damaged; DREY_ERR_MISMATCH: heads of another model.
 * To be closed in any case. */
drey_status medusa_open(medusa_heads *m, const char *path, const gguf *target,
                        const model_shape *shape, const kernel_table *kernels, drey_error *err);
/* The same for bytes in memory and a model given by its identity, for fuzzing. */
drey_status medusa_parse(medusa_heads *m, const uint8_t *bytes, size_t n_bytes, uint64_t identity,
                         const model_shape *shape, const kernel_table *kernels, drey_error *err);
void medusa_close(medusa_heads *m);

/* After opening: only what follows roots will be guessed, by head 1. The slice is not kept: the
 * target's head, all of which has to be in memory when heads guess, gives its rows. That takes
 * longer, and a few MiB instead of tens. */
void medusa_for_roots(medusa_heads *m);
/* Returns whether they can guess with the part of the target's head that is in memory. After
 * medusa_load. */
bool medusa_has_head(const medusa_heads *m);
/* Bytes of an arena, with the target's head `head`: blocks and slice, and the memory of a step. */
size_t medusa_weight_bytes(const medusa_heads *m, const weight *head);
size_t medusa_work_bytes(const medusa_heads *m, const weight *head);
/* Reads blocks and slice to memory taken from `a`, whose owner checks it. target, head, pool:
 * borrowed, and open; used after the target is loaded. DREY_ERR_IO, DREY_ERR_FORMAT. */
drey_status medusa_load(medusa_heads *m, weights *target, const weight *head, pool *p, arena *a,
                        drey_error *err);
/* The file's shares, without shapes. */
void medusa_trees(drey_static_trees *out, const medusa_shape *heads);
/* Number of ids below n_vocab: those that exist. */
int32_t medusa_ids_below(const medusa_heads *m, int32_t n_vocab);

/* A node whose continuations are guessed. */
typedef struct medusa_node {
    int32_t head; /* its depth, below n_heads: head + 1 guesses */
    int32_t token;
} medusa_node;

/* Computes m->logits [n_ids] for the tokens after each of n (1 to DRAFT_MAX_BATCH) nodes, from
 * hidden[D]. Called between two passes of the target. DREY_ERR_IO: reading a row of its head that
 * is not in memory failed. */
drey_status medusa_compute(medusa_heads *m, const float *hidden, const medusa_node *nodes,
                           int32_t n, drey_error *err);
