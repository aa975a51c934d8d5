/* Packing, tiles and threads: see gemm.h.
 *
 * A is packed in panels of TILE_ROWS rows, B in panels of TILE_COLUMNS columns. The numbers of one
 * l are adjacent in each panel, so that the innermost loop reads both in order. A tile of C stays
 * in registers over DEPTH steps of l; for these, A's panel is in the first cache and B's in the
 * second. */
#include "train/gemm.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#include "common/num.h"

enum {
    TILE_ROWS = 6,
    TILE_COLUMNS = 32,
    DEPTH = 384,
    CLAIM_PANELS = 1 /* panels of B that a thread takes at once */
};

/* ---- A tile ---- */

/* c[TILE_ROWS][ldc] += a[depth][TILE_ROWS] b[depth][TILE_COLUMNS]: in vectors of the width that the
 * function it is inlined into is compiled for. */
#define TILE(name, attributes, lanes)                                                              \
    typedef float name##_vector __attribute__((vector_size(4 * (lanes)), aligned(4), may_alias));  \
    attributes static void name(float *c, int64_t ldc, const float *a, const float *b,             \
                                int32_t depth)                                                     \
    {                                                                                              \
        enum { BLOCK = 2 * (lanes) };                                                              \
        for (int32_t j = 0; j < TILE_COLUMNS; j += BLOCK) {                                        \
            name##_vector sum[TILE_ROWS][2];                                                       \
            for (int i = 0; i < TILE_ROWS; i++)                                                    \
                for (int v = 0; v < 2; v++)                                                        \
                    sum[i][v] = *(const name##_vector *)(c + i * ldc + j + v * (lanes));           \
            for (int32_t l = 0; l < depth; l++) {                                                  \
                const float *x = a + (int64_t)l * TILE_ROWS;                                       \
                const float *y = b + (int64_t)l * TILE_COLUMNS + j;                                \
                name##_vector low = *(const name##_vector *)y;                                     \
                name##_vector high = *(const name##_vector *)(y + (lanes));                        \
                _Pragma("GCC unroll 6") for (int i = 0; i < TILE_ROWS; i++)                        \
                {                                                                                  \
                    sum[i][0] += x[i] * low;                                                       \
                    sum[i][1] += x[i] * high;                                                      \
                }                                                                                  \
            }                                                                                      \
            for (int i = 0; i < TILE_ROWS; i++)                                                    \
                for (int v = 0; v < 2; v++)                                                        \
                    *(name##_vector *)(c + i * ldc + j + v * (lanes)) = sum[i][v];                 \
        }                                                                                          \
    }

typedef void tile_fn(float *c, int64_t ldc, const float *a, const float *b, int32_t depth);

TILE(tile_any, , 4)
#if defined(__x86_64__)
#include "os/cpu.h"
TILE(tile_avx2, __attribute__((target("avx2,fma"))), 8)
TILE(tile_avx512, __attribute__((target("avx512f,fma"))), 16)

static tile_fn *best_tile(void)
{
    cpu_features have = cpu_detect();
    return have.avx512 ? tile_avx512 : have.avx2 ? tile_avx2 : tile_any;
}
#else
static tile_fn *best_tile(void)
{
    return tile_any;
}
#endif

/* ---- Packing ---- */

static int64_t padded(int64_t n, int64_t panel)
{
    return ceil_div_i64(n, panel) * panel;
}

size_t gemm_bytes(int64_t max_m, int64_t max_n, int64_t max_k)
{
    return arena_size((size_t)(padded(max_m, TILE_ROWS) * max_k) * sizeof(float)) +
           arena_size((size_t)(padded(max_n, TILE_COLUMNS) * max_k) * sizeof(float));
}

void gemm_init(gemm *g, int64_t max_m, int64_t max_n, int64_t max_k, pool *p, arena *a)
{
    *g = (gemm){.pool = p,
                .max_a = padded(max_m, TILE_ROWS) * max_k,
                .max_b = padded(max_n, TILE_COLUMNS) * max_k};
    g->a = arena_take(a, (size_t)g->max_a * sizeof *g->a);
    g->b = arena_take(a, (size_t)g->max_b * sizeof *g->b);
}

/* Panel `panel` of a matrix whose lines (rows of A, columns of B) are `line` apart: [k][width],
 * zeros where there are no more lines. */
static void pack_panel(float *out, const float *x, int64_t line, int64_t along, int32_t width,
                       int64_t n_lines, int64_t k)
{
    int64_t n = min_i64(n_lines, width);
    if (n < width)
        memset(out, 0, (size_t)(k * width) * sizeof *out);
    if (line == 1)
        for (int64_t l = 0; l < k; l++)
            memcpy(out + l * width, x + l * along, (size_t)n * sizeof *out);
    else
        for (int64_t i = 0; i < n; i++)
            for (int64_t l = 0; l < k; l++)
                out[l * width + i] = x[i * line + l * along];
}

/* ---- On every thread ---- */

typedef struct gemm_job {
    gemm *g;
    tile_fn *tile;
    float *c;
    int64_t ldc, m, n, k;
    gemm_matrix a, b;
    bool add;
    _Atomic int64_t next;
} gemm_job;

static void pack_both(void *arg, int32_t thread, int32_t n_threads)
{
    gemm_job *j = arg;
    int64_t n_a = ceil_div_i64(j->m, TILE_ROWS), n_b = ceil_div_i64(j->n, TILE_COLUMNS), i;
    (void)thread;
    (void)n_threads;
    while ((i = atomic_fetch_add(&j->next, 1)) < n_a + n_b) {
        int64_t at = i < n_a ? i * TILE_ROWS : (i - n_a) * TILE_COLUMNS;
        if (i < n_a)
            pack_panel(j->g->a + at * j->k, j->a.numbers + at * j->a.row, j->a.row, j->a.column,
                       TILE_ROWS, j->m - at, j->k);
        else
            pack_panel(j->g->b + at * j->k, j->b.numbers + at * j->b.column, j->b.column, j->b.row,
                       TILE_COLUMNS, j->n - at, j->k);
    }
}

/* A tile across C's edge is computed in a separate buffer. */
static void one_tile(const gemm_job *j, int64_t row, int64_t column, int64_t from, int32_t depth)
{
    const float *a = j->g->a + row * j->k + from * TILE_ROWS;
    const float *b = j->g->b + column * j->k + from * TILE_COLUMNS;
    float *c = j->c + row * j->ldc + column, edge[TILE_ROWS * TILE_COLUMNS];
    int64_t rows = min_i64(TILE_ROWS, j->m - row), columns = min_i64(TILE_COLUMNS, j->n - column);
    if (rows == TILE_ROWS && columns == TILE_COLUMNS) {
        j->tile(c, j->ldc, a, b, depth);
        return;
    }
    memset(edge, 0, sizeof edge);
    j->tile(edge, TILE_COLUMNS, a, b, depth);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t l = 0; l < columns; l++)
            c[i * j->ldc + l] += edge[i * TILE_COLUMNS + l];
}

static void multiply(void *arg, int32_t thread, int32_t n_threads)
{
    gemm_job *j = arg;
    int64_t n_panels = ceil_div_i64(j->n, TILE_COLUMNS), panel;
    (void)thread;
    (void)n_threads;
    while ((panel = atomic_fetch_add(&j->next, CLAIM_PANELS)) < n_panels) {
        int64_t column = panel * TILE_COLUMNS, width = min_i64(TILE_COLUMNS, j->n - column);
        for (int64_t row = 0; row < j->m && !j->add; row++)
            memset(j->c + row * j->ldc + column, 0, (size_t)width * sizeof *j->c);
        for (int64_t from = 0; from < j->k; from += DEPTH)
            for (int64_t row = 0; row < j->m; row += TILE_ROWS)
                one_tile(j, row, column, from, (int32_t)min_i64(DEPTH, j->k - from));
    }
}

void gemm_run(gemm *g, float *c, int64_t ldc, gemm_matrix a, gemm_matrix b, int64_t m, int64_t n,
              int64_t k, bool add)
{
    assert(padded(m, TILE_ROWS) * k <= g->max_a && padded(n, TILE_COLUMNS) * k <= g->max_b);
    gemm_job j = {.g = g,
                  .tile = best_tile(),
                  .c = c,
                  .ldc = ldc,
                  .m = m,
                  .n = n,
                  .k = k,
                  .a = a,
                  .b = b,
                  .add = add};
    pool_run(g->pool, pack_both, &j);
    atomic_store(&j.next, 0);
    pool_run(g->pool, multiply, &j);
}
