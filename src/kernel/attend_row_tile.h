/* Scores with keys in rows, for what a batch's rows do not all see: included by attend_tile.h. A
 * tile of n pairs and `span` keys holds its sums in registers while it goes along both; a sum's 16
 * lanes are then added by the contract's tree, four sums at a time. */
#pragma once

#include <string.h>

/* A group's numbers of 16 dimensions in order. start: where each partial sum's begin. */
INLINE void load_dimensions(v16 *x, const uint8_t *group, const int32_t *start, int32_t i,
                            int32_t k_dim, kv_format format, const uint8_t *scales)
{
    const size_t row = KV_GROUP * kv_number_bytes(format);
    v16 d = v16_zero();
    if (format == KV_Q8_0)
        d = v16_f16((const uint16_t *)(const void *)scales + i / KV_Q8_BLOCK * KV_GROUP);
    ROLLED
    for (int32_t lane = 0; lane < SUM_LANES; lane++) {
        if (i + lane >= k_dim) {
            x[lane] = v16_zero();
            continue;
        }
        x[lane] = numbers(group + (size_t)(start[lane] + i / SUM_LANES) * row, format);
        if (format == KV_Q8_0)
            x[lane] = v16_mul(d, x[lane]);
    }
}

INLINE void turn_of(float *rows, const uint8_t *group, int32_t k_dim, kv_format format)
{
    const int32_t ld = attend_row_floats(k_dim);
    const uint8_t *scales = group + kv_group_numbers(format, k_dim);
    int32_t start[SUM_LANES], at = 0;
    for (int32_t k = 0; k < SUM_LANES; k++) {
        start[attend_lane_order[k]] = at;
        at += attend_lane_steps(attend_lane_order[k], k_dim);
    }
    for (int32_t i = 0; i < k_dim; i += SUM_LANES) {
        v16 x[SUM_LANES];
        load_dimensions(x, group, start, i, k_dim, format, scales);
        v16_turn(rows + i, ld, x);
    }
}

static void turn_group(float *rows, const uint8_t *group, kv_format format, int32_t k_dim)
{
    if (format == KV_F16)
        turn_of(rows, group, k_dim, KV_F16);
    else if (format == KV_Q8_0)
        turn_of(rows, group, k_dim, KV_Q8_0);
    else
        turn_of(rows, group, k_dim, KV_F32);
}

/* p[r][0 .. span) of n pairs (constants). */
INLINE void row_products(float *p, const float *q, const float *const *key, int32_t k_dim,
                         float scale, int32_t n, int32_t span)
{
    enum { MOST = (ROW_TILE * ROW_SPAN + 3) / 4 * 4 };
    v16 sums[MOST];
    UNROLL
    for (int32_t k = 0; k < MOST; k++)
        sums[k] = v16_zero();
    int32_t i = 0;
    ROLLED
    for (; i + SUM_LANES <= k_dim; i += SUM_LANES) {
        v16 k[ROW_SPAN];
        UNROLL
        for (int32_t c = 0; c < span; c++)
            k[c] = v16_load(key[c] + i);
        UNROLL
        for (int32_t r = 0; r < n; r++) {
            v16 x = v16_load(q + r * k_dim + i);
            UNROLL
            for (int32_t c = 0; c < span; c++)
                sums[r * span + c] = v16_fma(x, k[c], sums[r * span + c]);
        }
    }
    if (i < k_dim) {
        UNROLL
        for (int32_t r = 0; r < n; r++) {
            v16 x = v16_load_first(q + r * k_dim + i, k_dim - i);
            UNROLL
            for (int32_t c = 0; c < span; c++)
                sums[r * span + c] = v16_fma(x, v16_load(key[c] + i), sums[r * span + c]);
        }
    }
    float s[MOST];
    UNROLL
    for (int32_t k = 0; k < n * span; k += 4)
        v16_sums4(s + k, sums + k, scale);
    UNROLL
    for (int32_t r = 0; r < n; r++)
        memcpy(p + r * ATTEND_BLOCK, s + r * span, (size_t)span * sizeof *p);
}

typedef void row_fn(float *p, const float *q, const float *const *key, int32_t k_dim, float scale);

#define EACH_ROW_TILE(X)                                                                           \
    EACH_ROW_SPAN(X, 1)                                                                            \
    EACH_ROW_SPAN(X, 2)                                                                            \
    EACH_ROW_SPAN(X, 3)                                                                            \
    EACH_ROW_SPAN(X, 4)                                                                            \
    EACH_ROW_SPAN(X, 5)                                                                            \
    EACH_ROW_SPAN(X, 6)
#define EACH_ROW_SPAN(X, N) X(N, 1) X(N, 2) X(N, 3) X(N, 4)

#define DEFINE_ROW_TILE(N, SPAN)                                                                   \
    static void row_products_##N##_##SPAN(float *p, const float *q, const float *const *key,       \
                                          int32_t k_dim, float scale)                              \
    {                                                                                              \
        if ((N) <= ROW_TILE && (SPAN) <= ROW_SPAN)                                                 \
            row_products(p, q, key, k_dim, scale, (N) <= ROW_TILE ? (N) : 1,                       \
                         (SPAN) <= ROW_SPAN ? (SPAN) : 1);                                         \
    }
EACH_ROW_TILE(DEFINE_ROW_TILE)

#define ROW_ENTRY(N, SPAN) [N][SPAN] = row_products_##N##_##SPAN,
static row_fn *const row_products_of[7][5] = {EACH_ROW_TILE(ROW_ENTRY)};

/* p of the positions whose keys are in rows; -inf after the last, where whole vectors are read. */
static void row_scores(const attend_pairs *g, const attend_block *b)
{
    const int32_t last = b->count / 16 * 16; /* the vector that positions may end in */
    for (int32_t r = 0; r < g->n && last < b->count; r++) {
        float *p = g->p + (int64_t)r * ATTEND_BLOCK;
        if (last >= b->dense)
            v16_store(p + last, v16_set1(-INFINITY));
        for (int32_t j = b->count; last < b->dense && j % 16; j++)
            p[j] = -INFINITY;
    }
    for (int32_t j = b->dense, span; j < b->count; j += span) {
        span = b->count - j < ROW_SPAN ? b->count - j : ROW_SPAN;
        for (int32_t t = 0, n; t < g->n; t += n) {
            int32_t tiles = (g->n - t + ROW_TILE - 1) / ROW_TILE;
            n = (g->n - t + tiles - 1) / tiles;
            row_products_of[n][span](g->p + (int64_t)t * ATTEND_BLOCK + j,
                                     g->q_rows + (int64_t)t * g->k_dim, b->key + j, g->k_dim,
                                     g->scale);
        }
    }
}
