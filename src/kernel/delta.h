/* Operations of layers with a state that runs through the text (state/recurrent.h): the gated delta
 * net, and what is around it.
 *
 * A head has a state S [k_dim][v_dim]. A row with key k, query q, value v, log decay g and weight
 * beta does S *= exp(g); d = beta (v - S'k); S += k d'; and puts out S'q. Here S is that at the
 * beginning of a block of at most DELTA_BLOCK rows, and the rows since then are d, k and L, the sum
 * of their log decays since the beginning:
 *
 *   u  = exp(L) S'k + sum over rows t before it: exp(L - L_t) (k . k_t) d_t
 *   w  = exp(L) S'q + the same with (q . k_t)
 *   d  = beta (v - u)              out = w + (q . k) d
 *   S' = exp(L) S + sum over all t: exp(L - L_t) k_t d_t'       at the end of the block
 *
 * So a row's bits depend on the rows of its path, and not on those that are computed with it. L and
 * the differences are doubles, and are rounded to float before exp: with strong decays L in float
 * would cost a factor of 30 in accuracy (2e-6 where outputs are 0.02). Differences are at most 0,
 * so that nothing overflows.
 *
 * A state space (Mamba 2) is the same without the look at what is there: d = dt x, and a row puts
 * out w + (q . k) d + skip x.
 *
 * All of it is in the order of arithmetic that is stated here, with the same bits on every tier
 * (kernel.h). */
#pragma once

#include "kernel/kernel.h"

enum { DELTA_BLOCK = KV_GROUP, DELTA_MOST_DIM = 256, DELTA_MOST_TAPS = 8 };

/* A causal convolution of one row: tap i reads the row that is n_taps - 1 - i rows before it. */
typedef struct conv_taps {
    const float *const *x; /* [n_taps][n]: the row's own is the last */
    const float *w;        /* [n_taps][ld] */
    int64_t ld;
    const float *bias; /* [n]; NULL: 0 */
    int32_t n_taps;
    bool silu;
} conv_taps;

/* One row of one head; of a state space u and kk are NULL, v is x and beta dt. */
typedef struct delta_row {
    const float *u, *w;    /* [v_dim]: S'k, S'q */
    const float *v;        /* [v_dim] */
    const float *exponent; /* [n + 1]: L - L_t of the n rows before it, then L; at most 0 */
    const float *kk, *qk;  /* [n], [n + 1]: products of k and of q with k_t, and q . k at the end */
    const float *const *past; /* [n]: d_t */
    float beta;
    float skip; /* factor of v in `out`, of a state space */
    int32_t n;  /* less than DELTA_BLOCK */
    int32_t v_dim;
    float *d, *out; /* [v_dim]; out may be u or w */
} delta_row;

/* The rows of a block of one head. */
typedef struct delta_records {
    const float *const *k, *const *d; /* [n][k_dim], [n][v_dim] */
    const float *exponent;            /* [n + 1]: as above, of the last row */
    int32_t n;                        /* at most DELTA_BLOCK */
    int32_t k_dim, v_dim;
} delta_records;

struct delta_kernel {
    /* y[c] = bias[c], then fma(w[i][c], x[i][c], y[c]) for i = 0 .. n_taps - 1; with silu then y /
     * (1 + exp(-y)). y may be the row's own x. */
    void (*conv)(float *y, const conv_taps *taps, int64_t n);
    /* y[i] = x[i] * (factor / sqrt(sum(x^2) + eps)), the sum as in rmsnorm. y may be x. */
    void (*unit)(float *y, const float *x, int64_t n, float eps, float factor);
    /* rmsnorm's y[i], times z[i] / (1 + exp(-z[i])). y may be x. */
    void (*gated_norm)(float *y, const float *x, const float *w, const float *z, int64_t n,
                       float eps);
    /* y[r][j] = fma(x[r][i], s[i][j], y[r][j]) for i ascending, from 0: n rows x [k_dim], ldx
     * apart, times one state s [k_dim][v_dim]. */
    void (*rows)(float *y, int64_t ldy, const float *x, int64_t ldx, int32_t n, const float *s,
                 int32_t k_dim, int32_t v_dim);
    /* y[t] = x . k[t]: fma in 16 lanes i = l, l + 16, ..., and sum16. */
    void (*dots)(float *y, const float *x, const float *const *k, int32_t n, int32_t k_dim);
    /* e = exp(exponent). u[j] = e[n] * u[j], then fma(e[t] * kk[t], d_t[j], u[j]) for t ascending;
     * w the same with qk. d[j] = beta * (v[j] - u[j]); out[j] = fma(qk[n], d[j], w[j]). */
    void (*join)(const delta_row *row);
    /* d[j] = beta * v[j]; out[j] = e[n] * w[j], then fma(e[t] * qk[t], d_t[j], out[j]) for t
     * ascending, fma(qk[n], d[j], out[j]) and fma(skip, v[j], out[j]). */
    void (*scan)(const delta_row *row);
    /* to[i][j] = e[n] * s[i][j], then fma(e[t] * k_t[i], d_t[j], to[i][j]) for t ascending. to may
     * be s. */
    void (*end)(float *to, const float *s, const delta_records *block);
};

/* The inventory: what is tested (tests/kernel/test_kernel_delta.c) and timed
 * (bench/kernel_speed.c). */
#define KERNEL_DELTA(X)                                                                            \
    X(conv)                                                                                        \
    X(unit)                                                                                        \
    X(gated_norm)                                                                                  \
    X(rows)                                                                                        \
    X(dots)                                                                                        \
    X(join)                                                                                        \
    X(scan)                                                                                        \
    X(end)

extern const delta_kernel delta_ref;
#if defined(__x86_64__)
extern const delta_kernel delta_avx2, delta_avx512;
#elif defined(__aarch64__)
extern const delta_kernel delta_neon;
#endif
