/* Attention over the KV cache: the layout of its numbers, and the loops around a block kernel.
 *
 * The order of arithmetic is kernel_table.attend's (kernel.h). What shapes everything here: in a
 * block of 64 positions a vector lane is a key for the scores and a dimension for the values, so
 * that neither needs a sum across lanes. A *pair* is a row and a query head; pairs that see the
 * same block go through it together, in tiles that fill the registers, whatever rows they come
 * from.
 *
 * What the rows of a batch do not all see is sparse: a tree's nodes see their ancestors, and a
 * prompt's rows some positions more each than the first of them. There a lane is a dimension for
 * the scores as well: keys are turned into rows of floats, once for all pairs that meet them, and a
 * row's query heads meet them in a tile of products whose sums stay in registers. Values need no
 * turning: each position's are read where they are and count in all sums of the row's heads.
 *
 * A latent cache has keys alone, whose first v_dim numbers are the values. Then all keys are turned
 * into rows, the dense ones a block at a time, and values are read there.
 *
 * Slots of a head are in groups of KV_GROUP = 16:
 *
 *   keys    f16, float  [k_dim, in lane order][16 slots]
 *           q8_0        [k_dim, in lane order][16 slots] int8 | [k_dim / 32][16 slots] f16 d
 *   values  f16, float  [16 slots][v_dim]
 *           q8_0        [16 slots][v_dim] int8 | [16 slots][v_dim / 32] f16 d
 *
 * Lane order is the order in which sum16 takes the 16 partial sums of a q.k product: dimensions 0,
 * 16, 32, ... (partial sum 0), then 8, 24, ... (partial sum 8), then those of 4, 12, 2, 10, 6, 14,
 * 1, 9, 5, 13, 3, 11, 7, 15. Each partial sum is finished before the next begins, and is added to
 * the one that the tree pairs it with as soon as both are there. */
#pragma once

#include "kernel/kernel.h"

enum {
    KV_Q8_BLOCK = 32, /* numbers of q8_0 with one scale */
    ATTEND_GROUPS = ATTEND_BLOCK / KV_GROUP,
    ATTEND_PAIRS = ATTEND_SPLIT_PAIRS, /* pairs that go through a block together, at most */
    ATTEND_TURNED = 8                  /* groups whose keys are kept as rows */
};

/* Partial sums in the order of the tree: position in the layout -> lane. */
static const uint8_t attend_lane_order[SUM_LANES] = {0, 8, 4, 12, 2, 10, 6, 14,
                                                     1, 9, 5, 13, 3, 11, 7, 15};

/* Number of dimensions in a lane's sum. */
static inline int32_t attend_lane_steps(int32_t lane, int32_t dim)
{
    return (dim - lane + SUM_LANES - 1) / SUM_LANES;
}

static inline size_t kv_number_bytes(kv_format format)
{
    return format == KV_F32 ? 4 : format == KV_F16 ? 2 : 1;
}

/* Floats of a key that was turned into a row: whole vectors. */
static inline int32_t attend_row_floats(int32_t dim)
{
    return (dim + SUM_LANES - 1) / SUM_LANES * SUM_LANES;
}

/* Bytes of the numbers of a group, without q8_0's scales. */
static inline size_t kv_group_numbers(kv_format format, int32_t dim)
{
    return KV_GROUP * (size_t)dim * kv_number_bytes(format);
}

static inline size_t kv_group_bytes(kv_format format, int32_t dim)
{
    size_t scales = format == KV_Q8_0 ? KV_GROUP * (size_t)(dim / KV_Q8_BLOCK) * 2 : 0;
    return kv_group_numbers(format, dim) + scales;
}

/* Offset of a slot's value, and of its scales. */
static inline size_t kv_value_at(kv_format format, int32_t slot, int32_t dim)
{
    return (size_t)(slot / KV_GROUP) * kv_group_bytes(format, dim) +
           (size_t)(slot % KV_GROUP) * (size_t)dim * kv_number_bytes(format);
}
static inline size_t kv_value_d_at(kv_format format, int32_t slot, int32_t dim)
{
    return (size_t)(slot / KV_GROUP) * kv_group_bytes(format, dim) + kv_group_numbers(format, dim) +
           (size_t)(slot % KV_GROUP) * (size_t)(dim / KV_Q8_BLOCK) * 2;
}

/* ---- Block kernels: what a tier implements ---- */

/* Pairs on their way through the blocks. Arrays have room for a multiple of 16. */
typedef struct attend_pairs {
    int32_t n, k_dim, v_dim; /* n: 1 .. ATTEND_PAIRS */
    float scale;
    const float *q;      /* as attend_kernel.pack left them, for scores; */
    const float *q_rows; /* [n][k_dim] as they came, for the rest */
    float **a;           /* [n]: where each pair's sums a [v_dim] are */
    float *m, *l;        /* [n]: maxima and sums so far */
    float *p;            /* [n][ATTEND_BLOCK], scores; the next two are scratch of the kernel */
    float *c;            /* [3][ATTEND_PAIRS] */
    float *wide;         /* ATTEND_WIDE_FLOATS of the wider of the two */
} attend_pairs;

/* Scales of a block's keys and of its values, and both as floats. */
#define ATTEND_WIDE_FLOATS(dim)                                                                    \
    ((size_t)ATTEND_BLOCK * (2 * (size_t)(dim) / KV_Q8_BLOCK + 2 * (size_t)(dim)) + 64)

/* Up to 64 positions, wherever they are. */
typedef struct attend_block {
    kv_format format, value_format; /* formats of keys in groups and of values */
    int32_t dense, count; /* positions: [0, dense) have their keys in groups, [dense, count) in
                           * rows; count: 1 .. ATTEND_BLOCK */
    const uint8_t *keys[ATTEND_GROUPS];       /* groups; those with no position may be anything */
    const float *key[ATTEND_BLOCK];           /* rows, as attend_kernel.turn makes them */
    const uint8_t *value[ATTEND_BLOCK];       /* [count]: a position's numbers */
    const uint8_t *value_d[ATTEND_BLOCK];     /* [count]: and scales (q8_0) */
    const uint8_t *ahead_keys, *ahead_values; /* NULL, or what the kernel should ask for: this
                                               * block's values while it reads keys, the next one's
                                               * keys while it reads values */
    size_t key_bytes, value_bytes;            /* sizes of ahead_keys and ahead_values */
} attend_block;

struct attend_kernel {
    /* Lays q out as the tier needs it: n pairs, q[i] [k_dim], into n * k_dim floats, and up to 15
     * more. scratch: [16][attend_row_floats(k_dim)]. */
    void (*pack)(float *packed, const float *const *q, int32_t n, int32_t k_dim, float *scratch);
    /* A group's keys as rows of floats, [16][attend_row_floats(k_dim)], zeros after k_dim. */
    void (*turn)(float *rows, const uint8_t *group, kv_format format, int32_t k_dim);
    /* p = scale * q.k of all pairs and the dense positions of a block. */
    void (*scores)(const attend_pairs *pairs, const attend_block *block);
    /* Scores of the other rows. Has to come before rest, unless count is ATTEND_BLOCK and dense. */
    void (*row_scores)(const attend_pairs *pairs, const attend_block *block);
    /* Computes m_b, l_b and a_b of the block from these scores, and folds them into m, l and a; the
     * first block's are taken as they are. */
    void (*rest)(const attend_pairs *pairs, const attend_block *block, bool first);
    /* The same fold with results that a call of rest with `first` left elsewhere. */
    void (*fold)(const attend_pairs *pairs, const float *m, const float *l, const float *a);
    /* a *= 1 / l. */
    void (*divide)(const attend_pairs *pairs);
};

/* The end of pairs->n pairs from `first` on: folds their sinks, and divides. Overwrites `wide`. */
void attend_end(const attention *a, int32_t first, const attend_pairs *pairs);

extern const attend_kernel attend_ref;
#if defined(__x86_64__)
extern const attend_kernel attend_avx2, attend_avx512;
#elif defined(__aarch64__)
extern const attend_kernel attend_neon;
#endif
