/* Blocking of a matrix product for the caches (see dot.h). */
#include "kernel/dot.h"

#include <assert.h>

#include "kernel/planes.h"

enum {
    MAX_ROWS = DOT_SUM_BYTES / (GROUP_ROWS * 4), /* rows whose sums of one group fit scratch */
    STEP_K = 256,              /* k that a tile kernel does while other tiles wait */
    ACT_SPAN_BYTES = 384 << 10 /* activations that should stay in the L2 cache */
};

/* One call's shapes, for the inner functions. */
typedef struct dot_job {
    tile_kernel kernel;
    int32_t block_k, weight_block_bytes, act_block_bytes;
    int32_t n_blocks;     /* blocks of k */
    size_t act_row_bytes; /* bytes of all of k */
    size_t group_bytes;
    const uint8_t *groups, *acts;
    int32_t n;
    act_tiling tiling;
    float *y;
    int64_t ldy;
    /* Kernels for groups in planes, one at a time: */
    const kernel_table *kernels;
    const plane_layout *layout;
    const plane_blocks *planes; /* NULL: groups is set */
    uint8_t *joined;            /* [STEP_K / block_k] blocks */
    /* Decoder for a tile kernel that takes decoded steps: */
    decode_kernel decode; /* NULL: it takes packed blocks */
    void *decoded;        /* [DOT_DECODED_BYTES] */
} dot_job;

/* sums[n][32] of rows first .. last - 1 from or to y. */
static void sums_load(float *sums, const dot_job *p, int32_t group, int32_t first, int32_t last)
{
    for (int32_t t = first; t < last; t++)
        memcpy(sums + (t - first) * GROUP_ROWS, p->y + t * p->ldy + (int64_t)group * GROUP_ROWS,
               GROUP_ROWS * sizeof(float));
}

static void sums_store(const float *sums, const dot_job *p, int32_t group, int32_t first,
                       int32_t last)
{
    for (int32_t t = first; t < last; t++)
        memcpy(p->y + t * p->ldy + (int64_t)group * GROUP_ROWS, sums + (t - first) * GROUP_ROWS,
               GROUP_ROWS * sizeof(float));
}

/* Blocks of a group in planes, joined: they stay in the L1 cache while tiles pass. */
static const uint8_t *join(const dot_job *p, int32_t b, int32_t n_blocks)
{
    plane_blocks at = *p->planes;
    for (int i = 0; i < N_PLANES; i++)
        if (at.plane[i])
            at.plane[i] += (size_t)b * plane_block_bytes(p->layout, i);
    p->kernels->plane_join(p->joined, p->layout, &at, n_blocks);
    return p->joined;
}

_Static_assert(DOT_SUM_BYTES + DOT_JOIN_BYTES + DOT_DECODED_BYTES <= 65536,
               "dot_scratch_bytes holds them");

enum { FETCH_STEPS = 2 };

/* Lines of packed weights into the second cache. */
static void lines_fetch(const uint8_t *lines, int32_t n)
{
    for (int32_t i = 0; i < n; i++)
        __builtin_prefetch(lines + i * 64, 0, 2);
}

/* One group, blocks [b, b + n_blocks), all tiles of rows first .. last - 1. Decoding comes in
 * bursts, so the lines of the step after the next are fetched a few before each tile. */
static void tiles_dot(float *sums, const dot_job *p, int32_t group, int32_t b, int32_t n_blocks,
                      int32_t first, int32_t last)
{
    const uint8_t *weights = p->planes ? join(p, b, n_blocks)
                                       : p->groups + (size_t)group * p->group_bytes +
                                             (size_t)b * (size_t)p->weight_block_bytes;
    const uint8_t *next = weights;
    int32_t n_lines = 0;
    if (p->decode) {
        int32_t step_lines = n_blocks * p->weight_block_bytes / 64;
        p->decode(p->decoded, weights, n_blocks);
        if (!p->planes) {
            int32_t n_tiles = (last - first + TOKEN_TILE - 1) / TOKEN_TILE;
            next = weights + (size_t)step_lines * FETCH_STEPS * 64;
            n_lines = (step_lines + n_tiles - 1) / n_tiles;
        }
        weights = p->decoded;
    }
    for (int32_t t = first, m; t < last; t += m, next += n_lines * 64) {
        m = t < p->tiling.covered ? p->tiling.long_rows : p->tiling.short_rows;
        const uint8_t *acts = p->acts + (size_t)t * p->act_row_bytes +
                              (size_t)b * (size_t)p->act_block_bytes * (size_t)m;
        lines_fetch(next, n_lines);
        p->kernel(sums + (t - first) * GROUP_ROWS, weights, acts, n_blocks, m);
    }
}

/* All groups for rows first .. last - 1 (at most MAX_ROWS). */
static void rows_dot(const dot_job *p, int32_t n_groups, int32_t first, int32_t last, float *sums)
{
    int32_t rows = last - first;
    int32_t step = p->n_blocks, span = p->n_blocks;
    if (p->planes || p->decode || rows > TOKEN_TILE)
        step = STEP_K / p->block_k;
    if (rows > TOKEN_TILE) {
        int64_t steps = ACT_SPAN_BYTES / ((int64_t)rows * p->act_block_bytes * step);
        if (steps * step < span)
            span = (int32_t)(steps > 0 ? steps : 1) * step;
    }
    for (int32_t b0 = 0; b0 < p->n_blocks; b0 += span) {
        int32_t b1 = p->n_blocks - b0 < span ? p->n_blocks : b0 + span;
        for (int32_t g = 0; g < n_groups; g++) {
            if (b0 == 0)
                memset(sums, 0, (size_t)rows * GROUP_ROWS * sizeof(float));
            else
                sums_load(sums, p, g, first, last);
            for (int32_t b = b0; b < b1; b += step)
                tiles_dot(sums, p, g, b, b1 - b < step ? b1 - b : step, first, last);
            sums_store(sums, p, g, first, last);
        }
    }
}

/* The end of as many whole tiles from row first on as MAX_ROWS holds. */
static int32_t rows_end(const dot_job *p, int32_t first)
{
    int32_t last = first;
    while (last < p->n) {
        int32_t m = last < p->tiling.covered ? p->tiling.long_rows : p->tiling.short_rows;
        if (last + m - first > MAX_ROWS)
            break;
        last += m;
    }
    return last;
}

static dot_job job_of(tensor_type type, act_kind act, decode_kernel decode, tile_kernel kernel,
                      bool even, float *y, int64_t ldy, const void *acts, int32_t n, int64_t k,
                      void *scratch)
{
    const type_layout *layout = layout_find(type);
    dot_job p = {
        .kernel = kernel,
        .block_k = layout->block_k,
        .weight_block_bytes = layout->file_block_bytes * GROUP_ROWS,
        .act_block_bytes = act_block_bytes(act) * (layout->block_k / act_block_k(act)),
        .n_blocks = (int32_t)(k / layout->block_k),
        .act_row_bytes = act_row_bytes(act, k),
        .acts = acts,
        .n = n,
        .tiling = act_tiling_of(n, even),
        .y = y,
        .ldy = ldy,
        .decode = decode,
        .decoded = (uint8_t *)scratch + DOT_SUM_BYTES + DOT_JOIN_BYTES,
    };
    p.group_bytes = (size_t)p.n_blocks * (size_t)p.weight_block_bytes;
    return p;
}

static void job_run(const dot_job *p, int32_t n_groups, void *scratch)
{
    for (int32_t first = 0, last; first < p->n; first = last) {
        last = rows_end(p, first);
        rows_dot(p, n_groups, first, last, scratch);
    }
}

void dot_tiles(tensor_type type, act_kind act, tile_kernel kernel, bool even, float *y, int64_t ldy,
               const void *groups, int32_t n_groups, const void *acts, int32_t n, int64_t k,
               void *scratch)
{
    dot_job p = job_of(type, act, NULL, kernel, even, y, ldy, acts, n, k, scratch);
    p.groups = groups;
    job_run(&p, n_groups, scratch);
}

void dot_decoded(tensor_type type, act_kind act, decode_kernel decode, tile_kernel kernel,
                 bool even, float *y, int64_t ldy, const void *groups, int32_t n_groups,
                 const void *acts, int32_t n, int64_t k, void *scratch)
{
    dot_job p = job_of(type, act, decode, kernel, even, y, ldy, acts, n, k, scratch);
    p.groups = groups;
    job_run(&p, n_groups, scratch);
}

void dot_planes(const kernel_table *kernels, tensor_type type, float *y, int64_t ldy,
                const plane_blocks *blocks, const void *acts, int32_t n, int64_t k, void *scratch,
                void *group)
{
    const matmul_kernel *m = &kernels->matmul[type];
    dot_job p =
        job_of(type, m->act, m->decode, m->tile, m->even_tiles, y, ldy, acts, n, k, scratch);
    p.kernels = kernels;
    p.layout = plane_layout_find(type);
    dot_fn *dot = matmul_dot_of(m, n);
    if (!m->tile || dot != m->dot) {
        kernels->plane_join(group, p.layout, blocks, p.n_blocks);
        dot(y, ldy, group, 1, acts, n, k, scratch);
        return;
    }
    p.planes = blocks;
    p.joined = (uint8_t *)scratch + DOT_SUM_BYTES;
    assert((size_t)(STEP_K / p.block_k * p.weight_block_bytes) <= DOT_JOIN_BYTES);
    job_run(&p, 1, scratch);
}
