/* Operations of running states on any vector unit, in the order of arithmetic that delta.h states.
 * Included by delta_*.c, one a tier, after the tier's v16_*.h and DELTA_SUMS: how many v16s its
 * registers hold as sums, a multiple of TILE_ROWS.
 *
 * A tile is up to TILE_ROWS rows times as many v16s of columns as that allows: each number of a row
 * is broadcast once, and each column of a state is read once for all rows of the tile. */
#pragma once

#include <math.h>

#include "kernel/delta.h"
#include "kernel/v16.h"

enum { TILE_ROWS = 4, MOST_COLUMNS = 8 };

INLINE v16 conv_16(const conv_taps *taps, int64_t i, int32_t m)
{
    v16 sum = taps->bias ? load_some(taps->bias + i, m) : v16_zero();
    for (int32_t t = 0; t < taps->n_taps; t++)
        sum = v16_fma(load_some(taps->w + t * taps->ld + i, m), load_some(taps->x[t] + i, m), sum);
    return taps->silu ? gated(sum, sum) : sum;
}

static void conv_v16(float *y, const conv_taps *taps, int64_t n)
{
    EACH_16(n, store_some(y + i, conv_16(taps, i, m), m));
}

static void unit_v16(float *y, const float *x, int64_t n, float eps, float factor)
{
    v16 sum = v16_zero();
    EACH_16(n, sum = v16_fma(load_some(x + i, m), load_some(x + i, m), sum));
    const v16 scale = v16_set1(factor / sqrtf(v16_sum(sum) + eps));
    EACH_16(n, store_some(y + i, v16_mul(load_some(x + i, m), scale), m));
}

static void gated_norm_v16(float *y, const float *x, const float *w, const float *z, int64_t n,
                           float eps)
{
    v16 sum = v16_zero();
    EACH_16(n, sum = v16_fma(load_some(x + i, m), load_some(x + i, m), sum));
    const v16 scale = v16_set1(1.0f / sqrtf(v16_sum(sum) / (float)n + eps));
    EACH_16(n, v16 v = v16_mul(v16_mul(load_some(x + i, m), scale), load_some(w + i, m));
            const v16 g = load_some(z + i, m); store_some(y + i, v16_mul(v, gated(g, g)), m));
}

/* The tile's statement for n rows and all columns, as many at a time as there are sums for: column
 * j of them is the first of n_columns, the last one with `last` numbers. */
#define EACH_STRIP(n, n_numbers, tile)                                                             \
    do {                                                                                           \
        int32_t j = 0;                                                                             \
        for (; j + 16 * COLUMNS(n) <= (n_numbers); j += 16 * COLUMNS(n))                           \
            tile(COLUMNS(n), 16);                                                                  \
        for (; j + 16 <= (n_numbers); j += 16)                                                     \
            tile(1, 16);                                                                           \
        if (j < (n_numbers))                                                                       \
            tile(1, (n_numbers)-j);                                                                \
    } while (0)
#define COLUMNS(n) (DELTA_SUMS / (n) < MOST_COLUMNS ? DELTA_SUMS / (n) : MOST_COLUMNS)

/* The number of lanes of column c. */
#define LANES(c) ((c) == n_columns - 1 ? last : 16)

/* ---- Rows against a state ---- */

typedef struct state_rows {
    float *y;
    const float *x, *s;
    int64_t ldy, ldx;
    int32_t k_dim, v_dim;
} state_rows;

INLINE void rows_tile(const state_rows *a, int32_t j, const int32_t n, const int32_t n_columns,
                      int32_t last)
{
    v16 sum[DELTA_SUMS];
    UNROLL
    for (int32_t c = 0; c < n * n_columns; c++)
        sum[c] = v16_zero();
    ROLLED
    for (int64_t i = 0; i < a->k_dim; i++) {
        v16 column[MOST_COLUMNS];
        UNROLL
        for (int32_t c = 0; c < n_columns; c++)
            column[c] = load_some(a->s + i * a->v_dim + j + 16 * c, LANES(c));
        UNROLL
        for (int32_t r = 0; r < n; r++) {
            const v16 x = v16_set1(a->x[r * a->ldx + i]);
            UNROLL
            for (int32_t c = 0; c < n_columns; c++)
                sum[r * n_columns + c] = v16_fma(x, column[c], sum[r * n_columns + c]);
        }
    }
    UNROLL
    for (int32_t r = 0; r < n; r++) {
        UNROLL
        for (int32_t c = 0; c < n_columns; c++)
            store_some(a->y + r * a->ldy + j + 16 * c, sum[r * n_columns + c], LANES(c));
    }
}

INLINE void rows_strips(const state_rows *a, const int32_t n)
{
#define TILE(n_columns, last) rows_tile(a, j, n, n_columns, last)
    EACH_STRIP(n, a->v_dim, TILE);
#undef TILE
}

static void rows_v16(float *y, int64_t ldy, const float *x, int64_t ldx, int32_t n, const float *s,
                     int32_t k_dim, int32_t v_dim)
{
    state_rows a = {y, x, s, ldy, ldx, k_dim, v_dim};
    for (int32_t taken; n > 0; n -= taken, a.x += taken * ldx, a.y += taken * ldy) {
        taken = n >= TILE_ROWS ? TILE_ROWS : n >= 2 ? 2 : 1;
        if (taken == TILE_ROWS)
            rows_strips(&a, TILE_ROWS);
        else if (taken == 2)
            rows_strips(&a, 2);
        else
            rows_strips(&a, 1);
    }
}

/* ---- A row and those before it ---- */

/* n sums of x . k[t], of 16 numbers from i on. */
INLINE void add_dots(v16 *sum, const float *x, const float *const *k, const int32_t n, int64_t i,
                     int32_t m)
{
    const v16 a = load_some(x + i, m);
    UNROLL
    for (int32_t t = 0; t < n; t++)
        sum[t] = v16_fma(a, load_some(k[t] + i, m), sum[t]);
}

static void dots_v16(float *y, const float *x, const float *const *k, int32_t n, int32_t k_dim)
{
    int32_t t = 0;
    for (; t + 4 <= n; t += 4) {
        v16 sum[4] = {v16_zero(), v16_zero(), v16_zero(), v16_zero()};
        EACH_16(k_dim, add_dots(sum, x, k + t, 4, i, m));
        v16_sums4(y + t, sum, 1.0f);
    }
    for (; t < n; t++) {
        v16 sum = v16_zero();
        EACH_16(k_dim, add_dots(&sum, x, k + t, 1, i, m));
        y[t] = v16_sum(sum);
    }
}

/* exp of exponent[0..n], n at most DELTA_BLOCK. */
INLINE void decays(float e[DELTA_BLOCK + 1], const float *exponent, int32_t n)
{
    float last[16];
    v16_store_first(e, v16_exp(load_some(exponent, n)), n);
    v16_store(last, v16_exp(v16_set1(exponent[n])));
    e[n] = last[0];
}

/* n_columns v16s of u and w from column j on; a and b: what each d_t counts in them. */
INLINE void join_tile(const delta_row *row, const float *a, const float *b, float e, int32_t j,
                      const int32_t n_columns, int32_t last)
{
    v16 u[MOST_COLUMNS], w[MOST_COLUMNS];
    UNROLL
    for (int32_t c = 0; c < n_columns; c++) {
        u[c] = v16_mul(v16_set1(e), load_some(row->u + j + 16 * c, LANES(c)));
        w[c] = v16_mul(v16_set1(e), load_some(row->w + j + 16 * c, LANES(c)));
    }
    ROLLED
    for (int32_t t = 0; t < row->n; t++) {
        UNROLL
        for (int32_t c = 0; c < n_columns; c++) {
            const v16 d = load_some(row->past[t] + j + 16 * c, LANES(c));
            u[c] = v16_fma(v16_set1(a[t]), d, u[c]);
            w[c] = v16_fma(v16_set1(b[t]), d, w[c]);
        }
    }
    UNROLL
    for (int32_t c = 0; c < n_columns; c++) {
        const v16 v = load_some(row->v + j + 16 * c, LANES(c));
        const v16 d = v16_mul(v16_set1(row->beta), v16_sub(v, u[c]));
        store_some(row->d + j + 16 * c, d, LANES(c));
        store_some(row->out + j + 16 * c, v16_fma(v16_set1(row->qk[row->n]), d, w[c]), LANES(c));
    }
}

static void join_v16(const delta_row *row)
{
    float e[DELTA_BLOCK + 1], a[DELTA_BLOCK], b[DELTA_BLOCK];
    decays(e, row->exponent, row->n);
    for (int32_t t = 0; t < row->n; t++) {
        a[t] = e[t] * row->kk[t];
        b[t] = e[t] * row->qk[t];
    }
#define TILE(n_columns, last) join_tile(row, a, b, e[row->n], j, n_columns, last)
    EACH_STRIP(2, row->v_dim, TILE); /* u and w */
#undef TILE
}

/* The same of a state space; b: what each d_t counts. */
INLINE void scan_tile(const delta_row *row, const float *b, float e, int32_t j,
                      const int32_t n_columns, int32_t last)
{
    v16 w[MOST_COLUMNS];
    UNROLL
    for (int32_t c = 0; c < n_columns; c++)
        w[c] = v16_mul(v16_set1(e), load_some(row->w + j + 16 * c, LANES(c)));
    ROLLED
    for (int32_t t = 0; t < row->n; t++) {
        UNROLL
        for (int32_t c = 0; c < n_columns; c++)
            w[c] = v16_fma(v16_set1(b[t]), load_some(row->past[t] + j + 16 * c, LANES(c)), w[c]);
    }
    UNROLL
    for (int32_t c = 0; c < n_columns; c++) {
        const v16 x = load_some(row->v + j + 16 * c, LANES(c));
        const v16 d = v16_mul(v16_set1(row->beta), x);
        const v16 own = v16_fma(v16_set1(row->qk[row->n]), d, w[c]);
        store_some(row->d + j + 16 * c, d, LANES(c));
        store_some(row->out + j + 16 * c, v16_fma(v16_set1(row->skip), x, own), LANES(c));
    }
}

static void scan_v16(const delta_row *row)
{
    float e[DELTA_BLOCK + 1], b[DELTA_BLOCK];
    decays(e, row->exponent, row->n);
    for (int32_t t = 0; t < row->n; t++)
        b[t] = e[t] * row->qk[t];
#define TILE(n_columns, last) scan_tile(row, b, e[row->n], j, n_columns, last)
    EACH_STRIP(1, row->v_dim, TILE);
#undef TILE
}

/* ---- The end of a block ---- */

typedef struct state_end {
    float *to;
    const float *s;
    const delta_records *block;
    const float *counts; /* [n][TILE_ROWS]: e[t] * k_t[i] */
    float e;
} state_end;

/* n rows of the state from row i on. */
INLINE void end_tile(const state_end *a, int64_t i, int32_t j, const int32_t n,
                     const int32_t n_columns, int32_t last)
{
    const delta_records *b = a->block;
    v16 sum[DELTA_SUMS];
    UNROLL
    for (int32_t r = 0; r < n; r++) {
        UNROLL
        for (int32_t c = 0; c < n_columns; c++) {
            const float *s = a->s + (i + r) * b->v_dim + j + 16 * c;
            sum[r * n_columns + c] = v16_mul(v16_set1(a->e), load_some(s, LANES(c)));
        }
    }
    ROLLED
    for (int32_t t = 0; t < b->n; t++) {
        v16 d[MOST_COLUMNS];
        UNROLL
        for (int32_t c = 0; c < n_columns; c++)
            d[c] = load_some(b->d[t] + j + 16 * c, LANES(c));
        UNROLL
        for (int32_t r = 0; r < n; r++) {
            const v16 k = v16_set1(a->counts[t * TILE_ROWS + r]);
            UNROLL
            for (int32_t c = 0; c < n_columns; c++)
                sum[r * n_columns + c] = v16_fma(k, d[c], sum[r * n_columns + c]);
        }
    }
    UNROLL
    for (int32_t r = 0; r < n; r++) {
        UNROLL
        for (int32_t c = 0; c < n_columns; c++)
            store_some(a->to + (i + r) * b->v_dim + j + 16 * c, sum[r * n_columns + c], LANES(c));
    }
}

INLINE void end_strips(const state_end *a, int64_t i, const int32_t n)
{
#define TILE(n_columns, last) end_tile(a, i, j, n, n_columns, last)
    EACH_STRIP(n, a->block->v_dim, TILE);
#undef TILE
}

static void end_v16(float *to, const float *s, const delta_records *block)
{
    float e[DELTA_BLOCK + 1], counts[DELTA_BLOCK * TILE_ROWS];
    decays(e, block->exponent, block->n);
    const state_end a = {to, s, block, counts, e[block->n]};
    for (int32_t i = 0, n; i < block->k_dim; i += n) {
        n = block->k_dim - i < TILE_ROWS ? 1 : TILE_ROWS;
        for (int32_t t = 0; t < block->n; t++)
            for (int32_t r = 0; r < n; r++)
                counts[t * TILE_ROWS + r] = e[t] * block->k[t][i + r];
        if (n == TILE_ROWS)
            end_strips(&a, i, TILE_ROWS);
        else
            end_strips(&a, i, 1);
    }
}

#define MEMBER(op) .op = op##_v16,
#define DELTA_KERNEL                                                                               \
    {                                                                                              \
        KERNEL_DELTA(MEMBER)                                                                       \
    }
