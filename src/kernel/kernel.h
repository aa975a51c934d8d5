/* Kernels: everything that touches many numbers at once, in one table chosen at run time.
 *
 * The numeric contract. A row's result has the same bits on every tier, for any number of rows that
 * are computed with it, for any thread count, and on any architecture. So each operation below
 * states its order of arithmetic once, `_ref` implements it in plain C, and the SIMD tiers may only
 * use vector lanes where the stated order has independent sums. -ffp-contract=off; a fused
 * multiply-add appears exactly where a comment says fma. No tier flushes denormals.
 *
 * Weights are packed in groups of GROUP_ROWS rows, so that a vector lane is a weight row; a dot
 * product's float additions then run in the order of k in every lane. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf/types.h"

enum {
    GROUP_ROWS = 32,   /* rows of a packed group; a tensor's last one is padded with zero rows */
    TOKEN_TILE = 8,    /* activation rows are quantised and consumed in tiles of at most 8 */
    ATTEND_BLOCK = 64, /* keys are folded in blocks of 64 positions counted from position 0 */
    SUM_LANES = 16,    /* partial sums of norms and q.k products */
    KV_GROUP = 16,     /* slots of the KV cache that are together */
    /* version of packed groups; goes up when a file of them would be read wrongly. */
    KERNEL_LAYOUT_VERSION = 1
};

/* The 16 levels of IQ4_NL and IQ4_XS. */
extern const int8_t iq4_levels[16];

/* Activations that a weight type uses.
 *
 *  ACT_F32     float, as they are: F32, F16, BF16 weights, and every type on the "float" tier.
 *  ACT_Q8_32   int8 in blocks of 32:
 *                d = amax / 127
 *                q = rint(x / d), computed as x * (127 / amax)
 *  ACT_Q8_256  int8 in blocks of 256:
 *                d = max(amax / 127, max over the eight 32-blocks of sum|x| / 2167)
 *                q = rint(x * (1 / d))
 *              The second term keeps the dot product of any 32-block with 4-bit weights inside
 *              int16, so that one widening multiply serves two sub-blocks. sum|x| is added in
 *              order of index.
 *
 * A block of zeros (or whose d is zero, or too small for a finite inverse) has d = 0 and q = 0. NaN
 * is passed over by the maxima; q stays in -127..127 whatever x is. */
typedef enum act_kind { ACT_F32, ACT_Q8_32, ACT_Q8_256, ACT_KINDS } act_kind;

/* Tile of a type's dot: sums[m][32] += n_blocks packed blocks x the same blocks of a tile of m
 * activation rows, block after block. */
typedef void (*tile_kernel)(float *sums, const uint8_t *weights, const uint8_t *acts,
                            int32_t n_blocks, int32_t m);

/* Decodes blocks of one packed group, at most 256 of k, for a tile kernel that takes them so. */
typedef void (*decode_kernel)(void *decoded, const uint8_t *weights, int32_t n_blocks);

typedef void dot_fn(float *y, int64_t ldy, const void *groups, int32_t n_groups, const void *acts,
                    int32_t n, int64_t k, void *scratch);

/* One tensor type on one tier.
 *
 * dot, which matmul_dot calls: y[t * ldy + g * GROUP_ROWS + r] = <row r of group g, activation row
 * t> for t < n, g < n_groups, all 32 rows of every group written (y is padded accordingly).
 *
 * Order of arithmetic, per row and token: blocks of k ascending, acc = +0 at the start.
 *
 *  ACT_F32     for each k:            acc = fma(w, x, acc)
 *              w is converted to float exactly (on the float tier: the type's formula as unpack_row
 *              writes it, a product and a sum, each rounded).
 *  ACT_Q8_32   i = sum of w_q * x_q over the block
 *                                     acc = fma(d_w * d_x, (float)i, acc)
 *              with a minimum (Q4_1, Q5_1), then
 *                                     acc = fma(m_w * d_x, (float)sum(x_q), acc)
 *              NVFP4: the same for each 16 weights, which have their own scale
 *  ACT_Q8_256  i = sum over the super-block of sub-scale * w_q * x_q
 *                                     acc = fma(d_w * d_x, (float)i, acc)
 *              with minima (Q2_K, Q4_K, Q5_K), then j = sum over sub-blocks of sub-min * sum(x_q)
 *                                     acc = fma(-(dmin_w * d_x), (float)j, acc)
 *
 * i and j are exact integers: offsets (Q4_0's 8, Q6_K's 32, ...) may be applied through sums of
 * x_q. (float)i rounds to nearest even. Scales d_w are f16 in the file and converted exactly, or
 * exponents (MXFP4) or floats of 8 bits (NVFP4), half of whose scale counts, as w_q is doubled.
 * IQ2 types count an eighth of d, with odd sub-scales; IQ3_XXS a quarter; IQ1 types an eighth, as
 * w_q is eight times the book's number, plus or minus one. */
typedef struct matmul_kernel {
    act_kind act;
    /* Bytes of one packed group for rows of k weights. Never more than 2 % above the same rows in
     * the file (k a multiple of the type's block). A multiple of 32. */
    size_t (*group_bytes)(int64_t k);
    /* Packs n_rows (1..32) raw rows, row_bytes apart, into one group. Missing rows become zeros.
     * Returns whether all scales and minima of blocks are finite; of F32, F16 and BF16, all
     * numbers. */
    bool (*pack)(void *group, const void *rows, int64_t row_bytes, int32_t n_rows, int64_t k);
    /* Dequantises row r (0..31) of a packed group to k floats. */
    void (*unpack_row)(float *out, const void *group, int32_t r, int64_t k);
    /* scratch: 64-byte aligned, dot_scratch_bytes(k) of the calling thread. */
    dot_fn *dot;
    /* Kernel from which dot is made, for blocks that are in pieces (planes.h), and how it tiles
     * activations (act_tiling_of). NULL: it is made of something else. */
    tile_kernel tile;
    bool even_tiles;
    /* Decodes a block once, for all rows. NULL: it takes them as they are packed. */
    decode_kernel decode;
    /* The same for many rows, from so many on. NULL: dot alone. It may do work once a call for all
     * groups, which is little with many_groups; 0: none. */
    dot_fn *dot_many;
    int32_t many_from, many_groups;
} matmul_kernel;

static inline dot_fn *matmul_dot_of(const matmul_kernel *m, int32_t n)
{
    return m->dot_many && n >= m->many_from ? m->dot_many : m->dot;
}

/* Groups that a call for n rows should have, 1 where it does not matter. */
static inline int32_t matmul_groups(const matmul_kernel *m, int32_t n)
{
    return m->dot_many && n >= m->many_from && m->many_groups > 0 ? m->many_groups : 1;
}

static inline void matmul_dot(const matmul_kernel *m, float *y, int64_t ldy, const void *groups,
                              int32_t n_groups, const void *acts, int32_t n, int64_t k,
                              void *scratch)
{
    matmul_dot_of(m, n)(y, ldy, groups, n_groups, acts, n, k, scratch);
}

typedef struct plane_layout plane_layout; /* planes.h */
typedef struct plane_blocks plane_blocks;

/* Numbers of the KV cache.
 *  KV_F16   rounded to nearest even.
 *  KV_Q8_0  as GGUF's type of that name: blocks of 32 along a row (which must be a multiple),
 *           d = amax / 127, q = rint(x / d) computed as x * (127 / amax), in -127..127, d then
 *           rounded to f16 (at most 65504). Zeros, NaN and blocks too small for a finite inverse as
 *           in ACT_Q8_32. A number is (float)d * (float)q, rounded once.
 *  KV_F32   as they are. */
typedef enum kv_format { KV_F16, KV_Q8_0, KV_F32 } kv_format;

typedef struct attend_kernel attend_kernel; /* attend.h */
typedef struct delta_kernel delta_kernel;   /* delta.h */

typedef struct kernel_table {
    const char *tier;
    int32_t shape; /* SHAPE_... of os/cpu_tuning.h; 0 on tiers without variants */

    /* matmul[type]; dot is NULL for types that do not run. */
    matmul_kernel matmul[TYPE_LIMIT];

    /* Joins n_blocks blocks from their planes into packed blocks, where planes are missing with the
     * bits that stand for them: planes.h. */
    void (*plane_join)(uint8_t *out, const plane_layout *layout, const plane_blocks *blocks,
                       int32_t n_blocks);

    /* Runs one part of dot_many, to time each alone: runs part `part` of a type's products `rounds`
     * times on operands in the first cache, and returns what it is called; NULL: there is no such
     * part. A round is 16 rows of activations and a group's block of 256, or four of 32. scratch:
     * as dot's. The pointer is NULL on tiers without such parts. */
    const char *(*dot_part)(tensor_type type, int32_t part, int64_t rounds, void *scratch);

    /* Quantises activation rows [n_first, n_last) of n rows x[n][ldx], k each, into acts (layout
     * private to kernel/, the same on every tier for the same shape). n_first is a multiple of
     * TOKEN_TILE, n_last too unless it is n: threads share one buffer by tiles. */
    void (*quantise[ACT_KINDS])(void *acts, const float *x, int64_t ldx, int32_t n_first,
                                int32_t n_last, int32_t n, int64_t k);

    /* y[d] = x[i] * (1 / sqrt(mean(x^2) + eps)) * w[i]. Sum of squares: lane l of 16 takes fma(x,
     * x, sum) over i = l, l + 16, ...; then the tree of sum16 below. mean = sum / d; the scale
     * is 1.0f / sqrtf(mean + eps); products left to right. y may be x. */
    void (*rmsnorm)(float *y, const float *x, const float *w, int64_t d, float eps);

    /* y[i] = (x[i] - m) * (1 / sqrt(v + eps)) * w[i] + b[i]. m and v are means: sums over 16 lanes
     * i = l, l + 16, ..., of x by additions, of (x - m)^2 by fma, each through sum16 and divided by
     * d. Differences, products and the last sum are rounded one by one. y may be x. */
    void (*layernorm)(float *y, const float *x, const float *w, const float *b, int64_t d,
                      float eps);

    /* Rotates n_heads heads of head_dim, head_dim apart, in place, the first 2 * n_pairs numbers of
     * each. cos_sin[n_pairs][2]. neox: pairs (i, i + n_pairs), else (2 i, 2 i + 1). a' = fma(a, c,
     * -(b * s)), b' = fma(a, s, b * c). */
    void (*rope)(float *x, const float *cos_sin, int32_t n_heads, int32_t head_dim, int32_t n_pairs,
                 bool neox);

    /* y = gate / (1 + exp(-gate)) * up, exp by exp_f32's formula. y may be gate. */
    void (*swiglu)(float *y, const float *gate, const float *up, int64_t n);
    /* y = gelu(gate) * up with GELU's tanh form, tanh as a quotient: v = gate * fma(gate * gate,
     * GELU_F32_CUBIC, GELU_F32_LINEAR), y = gate / (1 + exp(-v)) * up. up NULL: without that
     * product. y may be gate. */
    void (*geglu)(float *y, const float *gate, const float *up, int64_t n);
    /* y = gelu(x) with GELU's own form, x (1 + erf(x / sqrt 2)) / 2: a = |x|, t = 1 / fma(a,
     * GELU_F32_T, 1); p = C6, then p = fma(p, t, c) with c = C5 .. C0 (GELU_F32_C0 and on); q = p *
     * t * exp(x * (x * -0.5)), y = max(x, 0) - a * q. y may be x. */
    void (*gelu)(float *y, const float *x, int64_t n);
    /* y = x / (1 + exp(-gate)): x times the sigmoid of gate. y may be x. */
    void (*gate)(float *y, const float *x, const float *gate, int64_t n);
    /* y = cap * tanh(y / cap), computed as cap - (2 cap) / (1 + exp(y * (2 / cap))). */
    void (*softcap)(float *y, int64_t n, float cap);
    void (*add)(float *y, const float *x, int64_t n); /* y += x */

    /* f32 to f16, round to nearest even. */
    void (*to_f16)(uint16_t *y, const float *x, int64_t n);
    /* f16 to f32, exact. */
    void (*from_f16)(float *y, const uint16_t *x, int64_t n);

    /* Format of an "f16" cache on this tier: KV_F16; on the float tier KV_F32. */
    kv_format kv_plain;
    /* Attention, by blocks of positions: functions attend_* below. For one row and one query head,
     * which sees n positions, the last of them its own:
     * s = scale * q.k, q.k by 16 lanes of fma over i = l, l + 16, ... and sum16. Each block of 64
     * positions (counted from 0): m_b = max s, p = exp(s - m_b), l_b = sum of p in order, a_b[i] =
     * fma(p, v[i], a_b[i]) in order. Blocks fold in order: the first is taken as it is; then m' =
     * max(m, m_b), c = exp(m - m'), c_b = exp(m_b - m'), l = fma(l, c, l_b * c_b), a[i] = fma(a[i],
     * c, a_b[i] * c_b). out = a * (1 / l). NaN is passed over by the maxima. With a window the
     * first block is the one where what the row sees begins, and s = -inf in front of that; with a
     * cap s goes through softcap first. Neither the slots where positions are nor the rows and
     * heads that are computed together appear in it.
     *
     * With sinks one more block is folded after all others, of m_b = the query head's sink, l_b = 1
     * and a_b = 0: what is given to it is lost.
     *
     * With a bias (attend_more.bias) s + bias takes the place of s, after softcap and before what a
     * window hides. A second cache (attend_more.fixed) is so many positions, 0 .. fixed.n - 1, in
     * front of a row's own: its blocks, the last one maybe short, fold first, then the row's own
     * blocks as above, none if it has no positions besides those. */
    const attend_kernel *attend;

    /* Operations of layers with a running state. */
    const delta_kernel *delta;

    /* Largest of x[n]; the lowest index among equals. NaN counts as smallest. */
    int64_t (*arg_max)(const float *x, int64_t n);
    /* sum of exp((x[i] - shift) * factor): 16 lanes over i = l, l + 16, ..., then sum16 (missing
     * lanes add 0). */
    float (*sum_exp)(const float *x, int64_t n, float shift, float factor);

    /* Peaks of the machine on this tier, to judge the others by (tune/machine_limits.h).
     *
     * Sum of n words modulo 2^64 (exact). They are read as n_streams (1, 2 or 4) streams side by
     * side, each asked for `ahead` words before it is needed (0: left to the hardware): which of
     * these is fastest differs from one machine to the next. */
    uint64_t (*read)(const uint64_t *p, int64_t n, int32_t n_streams, int32_t ahead);
    /* Run so many rounds of the multiply-adds that products of bytes (of floats) are made of, on
     * registers alone. Return the operations done: two a multiply-add. */
    int64_t (*int8_peak)(int64_t rounds);
    int64_t (*float_peak)(int64_t rounds);
} kernel_table;

/* The inventory of row operations: what is tested (tests/kernel/test_kernel_rows.c) and timed
 * (bench/kernel_speed.c) besides attention. Types are in KERNEL_TYPES (packing.h). */
#define KERNEL_ROWS(X)                                                                             \
    X(rmsnorm)                                                                                     \
    X(layernorm)                                                                                   \
    X(rope)                                                                                        \
    X(swiglu)                                                                                      \
    X(geglu)                                                                                       \
    X(gelu)                                                                                        \
    X(gate)                                                                                        \
    X(softcap)                                                                                     \
    X(add)                                                                                         \
    X(to_f16)                                                                                      \
    X(from_f16)                                                                                    \
    X(arg_max)                                                                                     \
    X(sum_exp)

/* 2 sqrt(2 / pi), and that times 0.044715. */
#define GELU_F32_LINEAR 0x1.988454p+0f
#define GELU_F32_CUBIC  0x1.2444f2p-4f
/* erfc(a / sqrt 2) / 2 as a polynomial of t times t * exp(-a^2 / 2): the minimax fit for 0 <= a <=
 * 13.2, relative error 6e-7. */
#define GELU_F32_T  0x1.0d999ap-2f
#define GELU_F32_C0 0x1.ad8d18p-4f
#define GELU_F32_C1 0x1.b963f4p-4f
#define GELU_F32_C2 0x1.435562p-4f
#define GELU_F32_C3 0x1.381706p-3f
#define GELU_F32_C4 (-0x1.513376p-4f)
#define GELU_F32_C5 0x1.aaea54p-3f
#define GELU_F32_C6 (-0x1.1f15c2p-4f)

/* The fixed tree over 16 lanes: lanes 8 apart, then 4, 2, 1 (as halving a vector does). */
static inline float sum16(const float lane[SUM_LANES])
{
    float s[8];
    for (int i = 0; i < 8; i++)
        s[i] = lane[i] + lane[i + 8];
    for (int i = 0; i < 4; i++)
        s[i] = s[i] + s[i + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

/* ---- Attention: attend.c ---- */

/* Biases that are added to scores by the distance from a row's position back to a key's: element
 * of[head * ld + n_after + distance] for distances -n_after .. n_before; what is further away has
 * the value at that end. */
typedef struct attend_bias {
    const float *of; /* [query heads of the layer][ld]; NULL: there is no bias */
    int64_t ld;      /* at least n_after + 1 + n_before */
    int32_t n_after, n_before;
} attend_bias;

/* A second cache, of the same format, whose positions all are in the slots of their numbers and are
 * all seen by every row: what an encoder's rows see of each other, and a decoder's rows of an
 * encoder's output. */
typedef struct attend_fixed {
    const uint8_t *keys, *values;  /* keys and values of key head 0: kv_head_bytes each */
    size_t key_bytes, value_bytes; /* from one head's to the next one's */
    int32_t n;                     /* positions; 0: there is no such cache */
    const int32_t *at; /* [n_rows]: where a row is among these positions, for the bias; NULL:
                          they have none */
} attend_fixed;

typedef struct attend_more {
    attend_bias bias;
    attend_fixed fixed;
} attend_more;

/* Attention of the rows of a pass to one key head, for a group of n_q query heads that share it.
 * Pair i is row i / n_q and query head i % n_q. */
typedef struct attention {
    const kernel_table *kernels;
    kv_format format;
    int32_t k_dim, v_dim; /* numbers of a query and of a key; of a value and of a result */
    int32_t n_q, n_rows;
    float scale;
    float cap; /* scores are softcapped; 0: they stay */
    /* A row sees the last so many of its positions; negative: of positions in chunks of so many
     * those of its own chunk; 0: all. */
    int32_t window;
    int32_t group;                /* its number, for `sinks` and what is in `more` */
    const float *sinks;           /* [query heads of the layer]; NULL: there are none */
    const uint8_t *keys, *values; /* the head's slots: kv_head_bytes each. values NULL: a latent
                                     cache, whose values are the first v_dim numbers of its keys */
    /* Row r sees positions 0 .. n_prefix[r] + n_path[r] - 1: position p is in slot p for p <
     * n_prefix[r] and in slot path[r * path_ld + p - n_prefix[r]] after. The paths of a tree's rows
     * are its pairs (node, ancestor), made once per pass for all heads and layers. Positions that
     * all rows of a batch see are computed in dense blocks, the others pair by pair, with 16
     * dimensions of a key and of the queries side by side. */
    const int32_t *n_prefix, *n_path, *path;
    int64_t path_ld;
    const float *q; /* row r's heads: q + r * q_ld, [n_q][k_dim] */
    float *out;     /* out + r * out_ld, [n_q][v_dim] */
    int64_t q_ld, out_ld;
    const attend_more *more; /* borrowed; NULL, most often: neither bias nor second cache */
    /* Range of this call, if positions are in several memories, with one call of attend after the
     * other: this one folds those of [base, end), whole blocks that every n_prefix has; the last
     * one, of end 0, all from base on, and the end. Position p < n_prefix[r] is in slot p - base.
     * Calls may differ in everything but what rows see; the sums between them are in `out`. */
    int32_t base, end; /* 0, most often */
    float *kept;       /* [2][n_rows * n_q]: m and l between calls; a head's of a layer's */
} attention;

/* The first position that a row of n positions sees, its own being the last. */
static inline int32_t attend_first_seen(int32_t window, int32_t n)
{
    if (window < 0)
        return (n - 1) / -window * -window;
    return window > 0 && n > window ? n - window : 0;
}

/* Pairs first .. last - 1, from beginning to end. With a bias or a second cache this is
 * attend_reference on every tier. scratch: attend_scratch_bytes, one per thread,
 * 64-byte aligned. */
void attend(const attention *a, int32_t first, int32_t last, void *scratch);
void attend_reference(const attention *a, int32_t first, int32_t last, void *scratch);
size_t attend_scratch_bytes(int32_t k_dim, int32_t v_dim, bool latent);

/* The same in partials that different threads may compute, where attend_can_split, for at most
 * ATTEND_SPLIT_PAIRS pairs. What is in a dense prefix of all the pairs' rows is n whole blocks,
 * and the rest, a tree's part among it, is the tail:
 *
 *   positions  |block 0|block 1|block 2|block 3|block 4| part of a block, then the tree |
 *              |  first range  |another|    another    |              tail              |
 *
 * Blocks [0, n), at least one, are cut into ranges, each given to attend_range once: the first one
 * folds as it goes, the others leave their blocks' results. So does attend_tail, if it is called.
 * When all have returned, attend_finish folds in order what they left in `partials`, and does
 * without has_tail the tail itself. partials: attend_partials_floats(last - first, v_dim, blocks
 * that are not in the first range, the tail's among them if it is called). */
enum { ATTEND_SPLIT_PAIRS = 96 };
int32_t attend_dense_blocks(const attention *a, int32_t first, int32_t last);
int32_t attend_tail_blocks(const attention *a, int32_t first, int32_t last);
size_t attend_partials_floats(int32_t n_pairs, int32_t v_dim, int32_t n_blocks);
void attend_range(const attention *a, int32_t first, int32_t last, int32_t n_first_range,
                  int32_t from_block, int32_t to_block, float *partials, void *scratch);
void attend_tail(const attention *a, int32_t first, int32_t last, int32_t n_first_range,
                 float *partials, void *scratch);
void attend_finish(const attention *a, int32_t first, int32_t last, int32_t n_first_range,
                   bool has_tail, float *partials, void *scratch);

/* Returns whether it may be computed in partials: no row's window leaves anything out, there is
 * neither a bias nor a second cache, and it is one call. */
bool attend_can_split(const attention *a);

/* The attention of a whole layer, shared among threads: fill in the first part, call attend_cut,
 * then attend_work on every thread. */
typedef struct attend_layer {
    attention head; /* key head 0 and all that share it; the next one's q (out) is n_q heads on */
    size_t key_bytes, value_bytes; /* from one key head's keys (values) to the next one's */
    int32_t n_heads;               /* key heads */
    int32_t n_threads;             /* threads that will come */
    float *partials; /* [n_partials], for heads that several threads share; may be NULL */
    size_t n_partials;
    /* Result of attend_cut: query heads of a key head are in n_groups groups of group_q. Ranges of
     * rows times groups are tasks; those that do not come out even among the threads are cut into
     * ranges of blocks. */
    int32_t n_groups, group_q, task_rows, n_tasks, n_whole, n_cut, n_ranges;
    _Atomic int32_t next, left[64];
} attend_layer;
void attend_cut(attend_layer *l);
void attend_work(attend_layer *l, void *scratch);
/* A thread's next part of it, with any tier's kernels of the same bits. False: there is none. */
bool attend_next(attend_layer *l, const kernel_table *kernels, void *scratch);
/* One of n_tasks after attend_cut: its group, whose pairs are [*first, *last). */
attention attend_task(const attend_layer *l, int32_t task, int32_t *first, int32_t *last);
/* Size of attend_layer.partials: for one row in n_positions. */
size_t attend_partials_wanted(int32_t n_q, int32_t v_dim, int32_t n_positions, int32_t n_threads);
/* Number of groups that the n_q query heads of a key head are cut into. */
int32_t attend_groups(int32_t n_q);

/* Bytes of the keys (or of the values) of one head in n_slots slots; dim: k_dim (or v_dim). */
size_t kv_head_bytes(kv_format format, int32_t n_slots, int32_t dim);
/* Writes a key (a value) x[dim] into a slot of a head. scratch as for attend. */
void kv_store_key(const kernel_table *kernels, kv_format format, uint8_t *keys, int32_t slot,
                  const float *x, int32_t dim, void *scratch);
void kv_store_value(const kernel_table *kernels, kv_format format, uint8_t *values, int32_t slot,
                    const float *x, int32_t dim, void *scratch);
/* Copies a slot, bit by bit. */
void kv_move_key(kv_format format, uint8_t *keys, int32_t to, int32_t from, int32_t dim);
void kv_move_value(kv_format format, uint8_t *values, int32_t to, int32_t from, int32_t dim);

/* Bytes of the quantised form of n rows of k (rounded up to whole tiles). */
size_t act_bytes(act_kind kind, int32_t n, int64_t k);
/* Offset of columns from k on of one tile: n <= TOKEN_TILE rows may be quantised in ranges of
 * columns that begin at multiples of ACT_COLUMNS, as if each were its own matrix. */
enum { ACT_COLUMNS = 256 };
void *act_columns(act_kind kind, void *acts, int32_t n, int64_t k);

/* Bytes of the scratch that the dots of this machine's tiers ask for; a multiple of 64 where k is
 * one of 16. */
size_t dot_scratch_bytes(int64_t k);

/* The table of a tier: "amx", "avx512", "avxvnni", "avx2", "i8mm", "dotprod", "neon", "ref",
 * "float", or NULL for the best. NULL when this build, CPU or operating system lacks it. Tables are
 * constant after the first call. */
const kernel_table *kernel_select(const char *tier);
/* The same in a shape of the caller's choice; kernel_select takes that of the
 * processor's family. */
const kernel_table *kernel_select_shape(const char *tier, int32_t shape);
/* The tiers that run here, best first, NULL at the end; "ref" and "float" close it. */
const char *const *kernel_tiers(void);
/* All tiers that this build knows, and whether this machine runs each, for reports:
 * NULL-terminated. */
const char *const *kernel_all_tiers(void);
/* The tier whose dot product a type uses on the named one: itself, or the one below that it was
 * left from. NULL where the tier does not run here. */
const char *kernel_owner(const char *name, tensor_type type);
