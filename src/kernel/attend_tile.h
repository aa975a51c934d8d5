/* The block kernel of attention on any vector unit: attend_kernel (attend.h) written once on v16.
 * Included by attend_*.c, one a tier, after the tier's v16_*.h and what else it must have:
 *
 *   TILE                    pairs of a tile, at most
 *   key_span, value_span    v16s of keys (of values) that meet each number of a tile of n pairs
 *   MOST_SPAN, SUMS         the largest span, and n x span, of all
 *   SUMS_WITH_VALUES        whether registers are left for l_b next to a tile of values
 *   ROW_TILE, ROW_SPAN      pairs and keys of a tile of products with keys in rows, at most
 *
 * A tile holds n x span sums in registers. Scores: 16 x span keys, four partial sums of sum16's
 * sixteen at a time; what is finished waits in memory for its partner in the tree. Values: 16 x
 * span dimensions over all positions of the block, then folded. Scores with keys in rows:
 * attend_row_tile.h. */
#pragma once

#include "kernel/attend.h"
#include "kernel/v16.h"

/* Pairs are cut into equal tiles. */
static int32_t tile_size(int32_t n, int32_t done)
{
    int32_t rest = n - done, tiles = (rest + TILE - 1) / TILE;
    return (rest + tiles - 1) / tiles;
}

/* A tile's q is stored as its scores read it: lane order, the pairs' numbers side by side. Sixteen
 * dimensions at a time are turned; what a whole vector holds beyond the tile's pairs is written
 * over by the next one. */
static void pack_queries(float *packed, const float *const *q, int32_t n, int32_t k_dim,
                         float *turned)
{
    const int32_t whole = k_dim / SUM_LANES * SUM_LANES;
    for (int32_t first = 0, m; first < n; first += m) {
        m = tile_size(n, first);
        for (int32_t i = 0; i < k_dim; i += SUM_LANES) {
            v16 x[SUM_LANES];
            for (int32_t r = 0; r < SUM_LANES; r++)
                x[r] = r >= m      ? v16_zero()
                       : i < whole ? v16_load(q[first + r] + i)
                                   : v16_load_first(q[first + r] + i, k_dim - i);
            v16_turn(turned + i * SUM_LANES, SUM_LANES, x);
        }
        for (int32_t lane = 0; lane < SUM_LANES; lane++)
            for (int32_t i = attend_lane_order[lane]; i < k_dim; i += SUM_LANES, packed += m)
                v16_store(packed, v16_load(turned + i * SUM_LANES));
    }
}

/* Addresses of data that the kernel will need later. */
typedef struct ahead {
    const uint8_t *at;
    size_t step;
} ahead;

static ahead ahead_of(const uint8_t *at, size_t n_bytes, int32_t n_steps, const void *instead)
{
    return at ? (ahead){at, (n_bytes + (size_t)n_steps - 1) / (size_t)n_steps}
              : (ahead){instead, 0};
}

INLINE void ask(ahead *a)
{
    __builtin_prefetch(a->at);
    a->at += a->step;
}

INLINE v16 numbers(const uint8_t *at, kv_format format)
{
    if (format == KV_F16)
        return v16_f16((const uint16_t *)(const void *)at);
    if (format == KV_Q8_0)
        return v16_q8((const int8_t *)at);
    return v16_load((const float *)(const void *)at);
}

#include "kernel/attend_row_tile.h"

/* sums += the products of one partial sum of n pairs and `span` groups of keys (constants). d: the
 * keys' scales, [span][k_dim / 32][16]. */
INLINE void lane_products(v16 *sums, const float **q, const uint8_t **keys, int32_t steps,
                          const float *d, int32_t n_d, int32_t n, int32_t span, kv_format format,
                          ahead *next)
{
    const uint8_t *key[MOST_SPAN];
    const float *qi = *q;
    ahead lines = *next; /* in registers */
    UNROLL
    for (int32_t c = 0; c < span; c++)
        key[c] = keys[c];
    ROLLED
    for (int32_t s = 0; s < steps; s++) {
        v16 k[MOST_SPAN];
        UNROLL
        for (int32_t c = 0; c < span; c++) {
            k[c] = numbers(key[c], format);
            if (format == KV_Q8_0)
                k[c] = v16_mul(v16_load(d + (c * n_d + s / 2) * KV_GROUP), k[c]);
            key[c] += KV_GROUP * (format == KV_F32 ? 4 : format == KV_F16 ? 2 : 1);
        }
        ask(&lines);
        UNROLL
        for (int32_t r = 0; r < n; r++) {
            v16 b = v16_set1(qi[r]);
            UNROLL
            for (int32_t c = 0; c < span; c++)
                sums[r * span + c] = v16_fma(b, k[c], sums[r * span + c]);
        }
        qi += n;
    }
    UNROLL
    for (int32_t c = 0; c < span; c++)
        keys[c] = key[c];
    *q = qi;
    *next = lines;
}

/* The lanes of a tile of scores that are still to come. */
typedef struct lanes {
    const float *q;
    const uint8_t *keys[MOST_SPAN];
    const float *d; /* scales, of all lanes */
    int32_t k_dim;
    ahead next;
} lanes;

/* One lane's sums of n pairs and `span` groups (constants). */
INLINE void one_lane(v16 *sums, lanes *x, int32_t lane, int32_t n, int32_t span, kv_format format)
{
    UNROLL
    for (int32_t i = 0; i < n * span; i++)
        sums[i] = v16_zero();
    lane_products(sums, &x->q, x->keys, attend_lane_steps(attend_lane_order[lane], x->k_dim), x->d,
                  x->k_dim / KV_Q8_BLOCK, n, span, format, &x->next);
}

/* Adds sums of two and of four lanes, as the tree does; in registers as far as they go. */
INLINE void two_lanes(v16 *sums, lanes *x, int32_t lane, int32_t n, int32_t span, kv_format format)
{
    v16 other[SUMS];
    one_lane(sums, x, lane, n, span, format);
    one_lane(other, x, lane + 1, n, span, format);
    UNROLL
    for (int32_t i = 0; i < n * span; i++)
        sums[i] = v16_add(sums[i], other[i]);
}

INLINE void four_lanes(v16 *sums, lanes *x, int32_t lane, int32_t n, int32_t span, kv_format format)
{
    v16 other[SUMS];
    two_lanes(sums, x, lane, n, span, format);
    two_lanes(other, x, lane + 2, n, span, format);
    UNROLL
    for (int32_t i = 0; i < n * span; i++)
        sums[i] = v16_add(sums[i], other[i]);
}

/* p[r][0 .. 16 span) = scale * q.k of n pairs (a constant) and `span` groups. */
INLINE void scores_groups(float *p, lanes *x, float scale, int32_t n, int32_t span,
                          kv_format format)
{
    v16 tree[3][SUMS];
    for (int32_t lane = 0; lane < SUM_LANES; lane += 4) {
        v16 sums[SUMS];
        four_lanes(sums, x, lane, n, span, format);
        int32_t level = 0;
        for (int32_t done = lane / 4; done & 1; done >>= 1, level++) {
            UNROLL
            for (int32_t i = 0; i < n * span; i++)
                sums[i] = v16_add(tree[level][i], sums[i]);
        }
        UNROLL
        for (int32_t i = 0; i < n * span; i++)
            tree[level][i] = sums[i];
    }
    UNROLL
    for (int32_t i = 0; i < n * span; i++)
        v16_store(p + i / span * ATTEND_BLOCK + i % span * 16,
                  v16_mul(v16_set1(scale), tree[2][i]));
}

INLINE void scores_tile(const attend_pairs *g, const attend_block *b, int32_t first, int32_t n,
                        kv_format format, const float *d, ahead *next)
{
    const int32_t span = key_span(n);
    lanes x = {.k_dim = g->k_dim, .next = *next};
    for (int32_t j = 0; j < b->dense; j += 16 * span) {
        UNROLL
        for (int32_t c = 0; c < span; c++)
            x.keys[c] = b->keys[j + 16 * c < b->dense ? j / 16 + c : j / 16];
        x.q = g->q + (int64_t)first * g->k_dim;
        x.d = d + (int64_t)(j / 16) * (g->k_dim / KV_Q8_BLOCK) * KV_GROUP;
        scores_groups(g->p + (int64_t)first * ATTEND_BLOCK + j, &x, g->scale, n, span, format);
    }
    *next = x.next;
}

/* Scores to weights: p = exp(s - m_b); m_b to c. After the block's count is what row_scores
 * put there. */
static void weights_of(const attend_pairs *g, int32_t count)
{
    const int32_t n = (count + 15) / 16;
    for (int32_t r = 0; r < g->n; r++) {
        float *p = g->p + (int64_t)r * ATTEND_BLOCK;
        v16 top = v16_set1(-INFINITY);
        for (int32_t j = 0; j < n; j++)
            top = v16_max(v16_load(p + 16 * j), top);
        float max = v16_max_of(top);
        for (int32_t j = 0; j < n; j++)
            v16_store(p + 16 * j, v16_exp(v16_sub(v16_load(p + 16 * j), v16_set1(max))));
        g->c[r] = max;
    }
}

/* m after a block whose maxima are at m_b; c and c_block into g->c. */
static void fold_maxima(const attend_pairs *g, const float *m_b)
{
    for (int32_t r = 0; r < g->n; r += 16) {
        v16 m = v16_load(g->m + r), new = v16_load(m_b + r);
        v16 max = v16_max(new, m);
        v16_store(g->m + r, max);
        v16_store(g->c + r, v16_exp(v16_sub(m, max)));
        v16_store(g->c + ATTEND_PAIRS + r, v16_exp(v16_sub(new, max)));
    }
}

/* l after a block whose sums are at l_b. */
static void fold_sums(const attend_pairs *g, const float *l_b)
{
    for (int32_t r = 0; r < g->n; r += 16) {
        v16 c = v16_load(g->c + r), c_block = v16_load(g->c + ATTEND_PAIRS + r);
        v16 l = v16_mul(v16_load(l_b + r), c_block);
        v16_store(g->l + r, v16_fma(v16_load(g->l + r), c, l));
    }
}

/* The first n (under 16) numbers, zeros after. */
INLINE v16 numbers_first(const uint8_t *at, kv_format format, int32_t n)
{
    return format == KV_F16 ? v16_f16_first((const uint16_t *)(const void *)at, n)
                            : v16_load_first((const float *)(const void *)at, n);
}

/* a_b of n pairs and `span` v16s (constants) from dimension i on, folded into a. last: how many
 * numbers the last v16 has; under 16 only with a span of 1. sum (a constant): l_b on the way, whose
 * chains of additions then run during the products. */
INLINE void values_tile(const attend_pairs *g, const attend_block *b, int32_t first, int32_t n,
                        int32_t i, int32_t span, int32_t last, kv_format format, const float *d,
                        bool fold, bool sum, ahead *next)
{
    const int32_t count = b->count;
    const size_t at = (size_t)i * kv_number_bytes(format);
    const int32_t n_d = g->v_dim / KV_Q8_BLOCK;
    const float *p = g->p + (int64_t)first * ATTEND_BLOCK;
    ahead lines = *next; /* in registers */
    v16 sums[SUMS];
    float l[TILE] = {0};
    UNROLL
    for (int32_t k = 0; k < n * span; k++)
        sums[k] = v16_zero();
    ROLLED
    for (int32_t j = 0; j < count; j++) {
        const uint8_t *value = b->value[j] + at;
        v16 v[MOST_SPAN];
        UNROLL
        for (int32_t c = 0; c < span; c++) {
            v[c] = last == 16 ? numbers(value + (size_t)c * 16 * kv_number_bytes(format), format)
                              : numbers_first(value, format, last);
            if (format == KV_Q8_0)
                v[c] = v16_mul(v16_set1(d[j * n_d + (i + 16 * c) / KV_Q8_BLOCK]), v[c]);
        }
        ask(&lines);
        UNROLL
        for (int32_t r = 0; r < n; r++) {
            v16 weight = v16_set1(p[r * ATTEND_BLOCK + j]);
            UNROLL
            for (int32_t c = 0; c < span; c++)
                sums[r * span + c] = v16_fma(weight, v[c], sums[r * span + c]);
            if (sum)
                l[r] += p[r * ATTEND_BLOCK + j];
        }
    }
    *next = lines;
    UNROLL
    for (int32_t r = 0; r < n; r++) {
        if (sum)
            g->c[2 * ATTEND_PAIRS + first + r] = l[r];
        float *a = g->a[first + r] + i;
        v16 c_old = v16_set1(g->c[first + r]), c_new = v16_set1(g->c[ATTEND_PAIRS + first + r]);
        UNROLL
        for (int32_t c = 0; c < span; c++) {
            v16 a_b = sums[r * span + c];
            if (fold)
                a_b = v16_fma(load_some(a + 16 * c, last), c_old, v16_mul(a_b, c_new));
            store_some(a + 16 * c, a_b, last);
        }
    }
}

/* l_b of n pairs (a constant) side by side: each sum is a chain. */
INLINE void sums_of(const attend_pairs *g, int32_t first, int32_t n, int32_t count)
{
    const float *p = g->p + (int64_t)first * ATTEND_BLOCK;
    float sum[TILE] = {0};
    ROLLED
    for (int32_t j = 0; j < count; j++) {
        UNROLL
        for (int32_t r = 0; r < n; r++)
            sum[r] += p[r * ATTEND_BLOCK + j];
    }
    UNROLL
    for (int32_t r = 0; r < n; r++)
        g->c[2 * ATTEND_PAIRS + first + r] = sum[r];
}

INLINE void values_tiles(const attend_pairs *g, const attend_block *b, int32_t first, int32_t n,
                         kv_format format, const float *d, bool fold, ahead *next)
{
    const int32_t span = value_span(n), dim = g->v_dim;
    int32_t i = 0;
    if (SUMS_WITH_VALUES && dim >= 16 * span) {
        values_tile(g, b, first, n, 0, span, 16, format, d, fold, true, next);
        i = 16 * span;
    } else
        sums_of(g, first, n, b->count);
    for (; i + 16 * span <= dim; i += 16 * span)
        values_tile(g, b, first, n, i, span, 16, format, d, fold, false, next);
    for (; span > 1 && i + 16 <= dim; i += 16)
        values_tile(g, b, first, n, i, 1, 16, format, d, fold, false, next);
    if (format != KV_Q8_0 && i < dim)
        values_tile(g, b, first, n, i, 1, dim - i, format, d, fold, false, next);
}

/* A function for each size of a tile and each format, 1 .. 12 and none above TILE: in one function
 * they would all have their sums on the stack at once, where a compiler keeps them apart. */
typedef void scores_fn(const attend_pairs *g, const attend_block *b, int32_t first, const float *d,
                       ahead *next);
typedef void values_fn(const attend_pairs *g, const attend_block *b, int32_t first, const float *d,
                       bool fold, ahead *next);

#define EACH_TILE(X)                                                                               \
    EACH_FORMAT(X, 1)                                                                              \
    EACH_FORMAT(X, 2)                                                                              \
    EACH_FORMAT(X, 3)                                                                              \
    EACH_FORMAT(X, 4)                                                                              \
    EACH_FORMAT(X, 5)                                                                              \
    EACH_FORMAT(X, 6)                                                                              \
    EACH_FORMAT(X, 7)                                                                              \
    EACH_FORMAT(X, 8)                                                                              \
    EACH_FORMAT(X, 9)                                                                              \
    EACH_FORMAT(X, 10)                                                                             \
    EACH_FORMAT(X, 11)                                                                             \
    EACH_FORMAT(X, 12)
#define EACH_FORMAT(X, N) X(N, KV_F16) X(N, KV_Q8_0) X(N, KV_F32)

#define DEFINE_TILE(N, FORMAT)                                                                     \
    static void scores_##N##_##FORMAT(const attend_pairs *g, const attend_block *b, int32_t first, \
                                      const float *d, ahead *next)                                 \
    {                                                                                              \
        if ((N) <= TILE)                                                                           \
            scores_tile(g, b, first, (N) <= TILE ? (N) : 1, FORMAT, d, next);                      \
    }                                                                                              \
    static void values_##N##_##FORMAT(const attend_pairs *g, const attend_block *b, int32_t first, \
                                      const float *d, bool fold, ahead *next)                      \
    {                                                                                              \
        if ((N) <= TILE)                                                                           \
            values_tiles(g, b, first, (N) <= TILE ? (N) : 1, FORMAT, d, fold, next);               \
    }
EACH_TILE(DEFINE_TILE)

enum { MOST_TILE = 12, KV_FORMATS = 3 };
#define SCORES_ENTRY(N, FORMAT) [N][FORMAT] = scores_##N##_##FORMAT,
#define VALUES_ENTRY(N, FORMAT) [N][FORMAT] = values_##N##_##FORMAT,
static scores_fn *const scores_of[MOST_TILE + 1][KV_FORMATS] = {EACH_TILE(SCORES_ENTRY)};
static values_fn *const values_of[MOST_TILE + 1][KV_FORMATS] = {EACH_TILE(VALUES_ENTRY)};

/* Scales of a block's keys as floats, [group][k_dim / 32][16]. */
static void widen_key_scales(const attend_block *b, int32_t k_dim, float *to)
{
    int32_t n_d = k_dim / KV_Q8_BLOCK;
    for (int32_t j = 0; j < b->dense; j += KV_GROUP) {
        const uint8_t *d = b->keys[j / KV_GROUP] + kv_group_numbers(KV_Q8_0, k_dim);
        for (int32_t i = 0; i < n_d; i++, to += KV_GROUP)
            v16_store(to, v16_f16((const uint16_t *)(const void *)d + i * KV_GROUP));
    }
}

/* Widens the scales of a block's values, [position][v_dim / 32]. */
static void widen_value_scales(const attend_block *b, int32_t v_dim, float *to)
{
    int32_t n_d = v_dim / KV_Q8_BLOCK;
    for (int32_t j = 0; j < b->count; j++) {
        const uint16_t *d = (const uint16_t *)(const void *)b->value_d[j];
        for (int32_t i = 0; i < n_d; i += 15, d += 15) {
            int32_t n = n_d - i < 15 ? n_d - i : 15;
            v16_store_first(to, v16_f16_first(d, n), n);
            to += n;
        }
    }
}

/* A block's keys as floats, for many tiles of pairs. */
static void widen_keys(attend_block *wide, const attend_block *b, int32_t k_dim, const float *d,
                       float *to)
{
    const int32_t n_d = k_dim / KV_Q8_BLOCK;
    *wide = *b;
    wide->format = KV_F32;
    for (int32_t j = 0; j < b->dense; j += KV_GROUP, d += n_d * KV_GROUP) {
        const int8_t *q = (const int8_t *)b->keys[j / KV_GROUP];
        wide->keys[j / KV_GROUP] = (const uint8_t *)to;
        for (int32_t lane = 0; lane < SUM_LANES; lane++)
            for (int32_t s = 0; s < k_dim / SUM_LANES; s++, q += KV_GROUP, to += KV_GROUP)
                v16_store(to, v16_mul(v16_load(d + s / 2 * KV_GROUP), v16_q8(q)));
    }
}

/* Widens its values. */
static void widen_values(attend_block *wide, const attend_block *b, int32_t v_dim, const float *d,
                         float *to)
{
    const int32_t n_d = v_dim / KV_Q8_BLOCK;
    *wide = *b;
    wide->value_format = KV_F32;
    for (int32_t j = 0; j < b->count; j++) {
        const int8_t *q = (const int8_t *)b->value[j];
        wide->value[j] = (const uint8_t *)to;
        for (int32_t i = 0; i < v_dim; i += 16, to += 16)
            v16_store(to, v16_mul(v16_set1(d[j * n_d + i / KV_Q8_BLOCK]), v16_q8(q + i)));
    }
}

/* Returns where floats of a q8_0 block of `dim` go after its scales. */
static float *wide_numbers(const attend_pairs *g, int32_t dim)
{
    return g->wide + dim / KV_Q8_BLOCK * ATTEND_BLOCK + 16;
}

static void dense_scores(const attend_pairs *g, const attend_block *b)
{
    attend_block wide;
    if (b->format == KV_Q8_0)
        widen_key_scales(b, g->k_dim, g->wide);
    const int32_t n_first = tile_size(g->n, 0); /* this tile asks for what comes next */
    const int32_t span = key_span(n_first);
    int32_t steps = g->k_dim * ((b->dense + 16 * span - 1) / (16 * span));
    ahead next = ahead_of(b->ahead_values, b->value_bytes, steps, g->p);
    if (b->format == KV_Q8_0 && g->n > TILE) {
        widen_keys(&wide, b, g->k_dim, g->wide, wide_numbers(g, g->k_dim));
        b = &wide;
    }
    for (int32_t t = 0, n; t < g->n; t += n) {
        n = tile_size(g->n, t);
        scores_of[n][b->format](g, b, t, g->wide, &next);
        next = (ahead){(const uint8_t *)g->p, 0};
    }
}

static void rest_of_block(const attend_pairs *g, const attend_block *b, bool first)
{
    attend_block wide;
    weights_of(g, b->count);
    if (!first)
        fold_maxima(g, g->c);
    for (int32_t r = 0; first && r < g->n; r++)
        g->m[r] = g->c[r];
    if (b->value_format == KV_Q8_0)
        widen_value_scales(b, g->v_dim, g->wide);
    const int32_t n_first = tile_size(g->n, 0);
    const int32_t span = value_span(n_first);
    int32_t steps = (g->v_dim + 16 * span - 1) / (16 * span) * b->count;
    ahead next = ahead_of(b->ahead_keys, b->key_bytes, steps, g->p);
    if (b->value_format == KV_Q8_0 && g->n > TILE) {
        widen_values(&wide, b, g->v_dim, g->wide, wide_numbers(g, g->v_dim));
        b = &wide;
    }
    for (int32_t t = 0, n; t < g->n; t += n) {
        n = tile_size(g->n, t);
        values_of[n][b->value_format](g, b, t, g->wide, !first, &next);
        next = (ahead){(const uint8_t *)g->p, 0};
    }
    const float *l_b = g->c + 2 * ATTEND_PAIRS;
    if (!first)
        fold_sums(g, l_b);
    for (int32_t r = 0; first && r < g->n; r++)
        g->l[r] = l_b[r];
}

static void block_fold(const attend_pairs *g, const float *m, const float *l, const float *a)
{
    fold_maxima(g, m);
    fold_sums(g, l);
    for (int32_t r = 0; r < g->n; r++, a += g->v_dim) {
        v16 c = v16_set1(g->c[r]), c_block = v16_set1(g->c[ATTEND_PAIRS + r]);
        for (int32_t i = 0; i < g->v_dim; i += 16) {
            int32_t n = g->v_dim - i < 16 ? g->v_dim - i : 16;
            v16 sum = v16_mul(load_some(a + i, n), c_block);
            store_some(g->a[r] + i, v16_fma(load_some(g->a[r] + i, n), c, sum), n);
        }
    }
}

static void sums_divide(const attend_pairs *g)
{
    for (int32_t r = 0; r < g->n; r++) {
        v16 inverse = v16_set1(1.0f / g->l[r]);
        float *a = g->a[r];
        int32_t i = 0;
        for (; i + 16 <= g->v_dim; i += 16)
            v16_store(a + i, v16_mul(v16_load(a + i), inverse));
        if (i < g->v_dim)
            v16_store_first(a + i, v16_mul(v16_load_first(a + i, g->v_dim - i), inverse),
                            g->v_dim - i);
    }
}

#define ATTEND_KERNEL                                                                              \
    {                                                                                              \
        .pack = pack_queries, .turn = turn_group, .scores = dense_scores,                          \
        .row_scores = row_scores, .rest = rest_of_block, .fold = block_fold, .divide = sums_divide \
    }
