/* Products of float matrices for training: C = A B or C += A B, on all threads of a pool.
 *
 * No text depends on them, so the order of sums is not specified; on one machine it is always the
 * same, for any number of threads. Matrices are given by their strides, so a transposed one is the
 * same matrix with its strides exchanged. */
#pragma once

#include "base/arena.h"
#include "os/pool.h"

/* Number (i, j) is at numbers[i * row + j * column]. */
typedef struct gemm_matrix {
    const float *numbers;
    int64_t row, column;
} gemm_matrix;

typedef struct gemm {
    pool *pool;           /* borrowed */
    int64_t max_a, max_b; /* numbers of the packed operands */
    float *a, *b;
} gemm;

/* Bytes of an arena, for products with at most max_m rows of A, max_n columns of B and an inner
 * dimension of max_k. */
size_t gemm_bytes(int64_t max_m, int64_t max_n, int64_t max_k);
void gemm_init(gemm *g, int64_t max_m, int64_t max_n, int64_t max_k, pool *p, arena *a);

/* c[i * ldc + j] (+)= sum over l < k of a(i, l) b(l, j), i < m, j < n; add: adds to c. */
void gemm_run(gemm *g, float *c, int64_t ldc, gemm_matrix a, gemm_matrix b, int64_t m, int64_t n,
              int64_t k, bool add);
