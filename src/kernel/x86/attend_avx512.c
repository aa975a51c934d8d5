/* Attention of one row, AVX-512 (the order of arithmetic is kernel_table.attend's).
 *
 * Heads that share a key head go together in groups of up to 16: in the softmax a lane is a head.
 * Scores: tiles of 4 keys x up to 4 heads, one register each of the contract's 16 partial sums; the
 * fixed tree then folds four registers at a time, so that one pass of adds serves four keys.
 * Values: tiles of up to 4 heads x 4 registers of 16 numbers stay in registers over the block's
 * keys and are folded into the output at its end. */
#include "kernel/x86/attend.h"

#include "kernel/attend_rows.h"
#include "kernel/unroll.h"
#include "kernel/x86/math_avx512.h"

enum {
    GROUP_HEADS = 16, /* heads that go through a block together */
    TILE_HEADS = 4,
    TILE_KEYS = 4
};

typedef struct head_group {
    float *out;     /* [n][head_dim] */
    const float *q; /* [n][head_dim] */
    float *p;       /* [n][ATTEND_BLOCK]: scores, then weights */
    int32_t n, head_dim;
    float scale;
    __m512 max, sum; /* m and l, lane h is head h */
} head_group;

/* acc[h * TILE_KEYS + j] += q of head h * key j over 16 numbers; lanes out of m count as zeros. */
INLINE void qk_step(__m512 *acc, const float *q, const uint16_t *keys, const int64_t *row,
                    int32_t n_heads, int32_t head_dim, __mmask16 m)
{
    __m512 k[TILE_KEYS];
    UNROLL
    for (int j = 0; j < TILE_KEYS; j++)
        k[j] = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, keys + row[j]));
    UNROLL
    for (int32_t h = 0; h < n_heads; h++) {
        __m512 v = _mm512_maskz_loadu_ps(m, q + (int64_t)h * head_dim);
        UNROLL
        for (int j = 0; j < TILE_KEYS; j++)
            acc[h * TILE_KEYS + j] = _mm512_fmadd_ps(v, k[j], acc[h * TILE_KEYS + j]);
    }
}

/* The tree's first two levels for four keys: 128-bit lane j holds key j's last four sums. */
INLINE __m512 tree_upper(const __m512 a[TILE_KEYS])
{
    __m512 x = _mm512_add_ps(_mm512_shuffle_f32x4(a[0], a[1], 0x44),
                             _mm512_shuffle_f32x4(a[0], a[1], 0xee));
    __m512 y = _mm512_add_ps(_mm512_shuffle_f32x4(a[2], a[3], 0x44),
                             _mm512_shuffle_f32x4(a[2], a[3], 0xee));
    return _mm512_add_ps(_mm512_shuffle_f32x4(x, y, 0x88), _mm512_shuffle_f32x4(x, y, 0xdd));
}

/* The tree's last two levels for 16 keys, tile g's lane j being key 4 g + j. */
INLINE __m512 tree_lower(const __m512 tile[4])
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    __m512d t[4];
    UNROLL
    for (int g = 0; g < 4; g++)
        t[g] = _mm512_castps_pd(tile[g]);
    __m512 x = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(t[0], t[1])),
                             _mm512_castpd_ps(_mm512_unpackhi_pd(t[0], t[1])));
    __m512 y = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(t[2], t[3])),
                             _mm512_castpd_ps(_mm512_unpackhi_pd(t[2], t[3])));
    __m512 keys = _mm512_add_ps(_mm512_shuffle_ps(x, y, 0x88), _mm512_shuffle_ps(x, y, 0xdd));
    return _mm512_permutexvar_ps(order, keys);
}

/* Scores of n_heads (a constant) heads from h0 on and up to 16 keys, n_keys of them of use. */
INLINE void qk_16(const head_group *g, int32_t h0, int32_t n_heads, const uint16_t *keys,
                  const int64_t *row, int32_t n_keys, float *p)
{
    const float *q = g->q + (int64_t)h0 * g->head_dim;
    __m512 tile[TILE_HEADS][4];
    UNROLL
    for (int32_t t = 0; t < 4; t++) {
        __m512 acc[TILE_HEADS * TILE_KEYS];
        UNROLL
        for (int32_t i = 0; i < n_heads * TILE_KEYS; i++)
            acc[i] = _mm512_setzero_ps();
        if (t * TILE_KEYS < n_keys) {
            int32_t i = 0;
            for (; i + 16 <= g->head_dim; i += 16)
                qk_step(acc, q + i, keys + i, row + t * TILE_KEYS, n_heads, g->head_dim, 0xffff);
            if (i < g->head_dim)
                qk_step(acc, q + i, keys + i, row + t * TILE_KEYS, n_heads, g->head_dim,
                        first_lanes(g->head_dim - i));
        }
        UNROLL
        for (int32_t h = 0; h < n_heads; h++)
            tile[h][t] = tree_upper(acc + h * TILE_KEYS);
    }
    UNROLL
    for (int32_t h = 0; h < n_heads; h++)
        _mm512_storeu_ps(p + (int64_t)(h0 + h) * ATTEND_BLOCK,
                         _mm512_mul_ps(_mm512_set1_ps(g->scale), tree_lower(tile[h])));
}

static void scores_avx512(const head_group *g, const uint16_t *keys, const int64_t *row,
                          int32_t count)
{
    for (int32_t j = 0; j < count; j += 16) {
        int32_t h = 0;
        for (; h + 4 <= g->n; h += 4)
            qk_16(g, h, 4, keys, row + j, count - j, g->p + j);
        if (g->n - h == 3)
            qk_16(g, h, 3, keys, row + j, count - j, g->p + j);
        else if (g->n - h == 2)
            qk_16(g, h, 2, keys, row + j, count - j, g->p + j);
        else if (g->n - h == 1)
            qk_16(g, h, 1, keys, row + j, count - j, g->p + j);
    }
}

/* Scores to weights, and the sums and factors of the fold: c for what is there, c_block for this
 * block. */
static void softmax_avx512(head_group *g, int32_t count, bool first, float c[GROUP_HEADS],
                           float c_block[GROUP_HEADS])
{
    const __m512 lowest = _mm512_set1_ps(-INFINITY);
    float block_max[GROUP_HEADS] = {0}, block_sum[GROUP_HEADS] = {0};
    for (int32_t h = 0; h < g->n; h++) {
        float *p = g->p + (int64_t)h * ATTEND_BLOCK;
        __m512 top = lowest;
        for (int32_t j = 0; j < count; j += 16)
            top = _mm512_max_ps(top, _mm512_mask_loadu_ps(lowest, first_lanes(count - j), p + j));
        block_max[h] = _mm512_reduce_max_ps(top);
        for (int32_t j = 0; j < count; j += 16)
            _mm512_storeu_ps(p + j, exp_avx512(_mm512_sub_ps(_mm512_loadu_ps(p + j),
                                                             _mm512_set1_ps(block_max[h]))));
        float sum = 0;
        for (int32_t j = 0; j < count; j++)
            sum += p[j];
        block_sum[h] = sum;
    }
    __m512 m = _mm512_loadu_ps(block_max), l = _mm512_loadu_ps(block_sum);
    if (first) {
        g->max = m;
        g->sum = l;
        return;
    }
    __m512 both = _mm512_max_ps(g->max, m);
    __m512 old = exp_avx512(_mm512_sub_ps(g->max, both));
    __m512 new = exp_avx512(_mm512_sub_ps(m, both));
    g->max = both;
    g->sum = _mm512_fmadd_ps(g->sum, old, _mm512_mul_ps(l, new));
    _mm512_storeu_ps(c, old);
    _mm512_storeu_ps(c_block, new);
}

/* One block's a_b for n_heads heads from h0 on and n_chunks registers from number i on (both counts
 * constants), folded into out. */
INLINE void values_tile(const head_group *g, int32_t h0, int32_t n_heads, int32_t i,
                        int32_t n_chunks, __mmask16 m, const uint16_t *values, const int64_t *row,
                        int32_t count, bool first, const float *c, const float *c_block)
{
    __m512 acc[TILE_HEADS * 4];
    const float *p = g->p + (int64_t)h0 * ATTEND_BLOCK;
    UNROLL
    for (int32_t k = 0; k < n_heads * n_chunks; k++)
        acc[k] = _mm512_setzero_ps();
    for (int32_t j = 0; j < count; j++) {
        __m512 v[8];
        UNROLL
        for (int32_t k = 0; k < n_chunks; k++)
            v[k] = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, values + row[j] + i + 16 * k));
        UNROLL
        for (int32_t h = 0; h < n_heads; h++) {
            __m512 weight = _mm512_set1_ps(p[h * ATTEND_BLOCK + j]);
            UNROLL
            for (int32_t k = 0; k < n_chunks; k++)
                acc[h * n_chunks + k] = _mm512_fmadd_ps(weight, v[k], acc[h * n_chunks + k]);
        }
    }
    UNROLL
    for (int32_t h = 0; h < n_heads; h++) {
        float *out = g->out + (int64_t)(h0 + h) * g->head_dim + i;
        UNROLL
        for (int32_t k = 0; k < n_chunks; k++) {
            __m512 a = acc[h * n_chunks + k];
            if (!first)
                a = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, out + 16 * k),
                                    _mm512_set1_ps(c[h0 + h]),
                                    _mm512_mul_ps(a, _mm512_set1_ps(c_block[h0 + h])));
            _mm512_mask_storeu_ps(out + 16 * k, m, a);
        }
    }
}

/* values_tile over the whole width; a tile has at most 16 accumulators. */
INLINE void values_heads(const head_group *g, int32_t h0, int32_t n_heads, const uint16_t *values,
                         const int64_t *row, int32_t count, bool first, const float *c,
                         const float *c_block)
{
    int32_t i = 0, dim = g->head_dim;
    if (n_heads <= 2)
        for (; i + 128 <= dim; i += 128)
            values_tile(g, h0, n_heads, i, 8, 0xffff, values, row, count, first, c, c_block);
    for (; i + 64 <= dim; i += 64)
        values_tile(g, h0, n_heads, i, 4, 0xffff, values, row, count, first, c, c_block);
    for (; i + 16 <= dim; i += 16)
        values_tile(g, h0, n_heads, i, 1, 0xffff, values, row, count, first, c, c_block);
    if (i < dim)
        values_tile(g, h0, n_heads, i, 1, first_lanes(dim - i), values, row, count, first, c,
                    c_block);
}

static void values_avx512(const head_group *g, const uint16_t *values, const int64_t *row,
                          int32_t count, bool first, const float *c, const float *c_block)
{
    int32_t h = 0;
    for (; h + 4 <= g->n; h += 4)
        values_heads(g, h, 4, values, row, count, first, c, c_block);
    for (; h + 2 <= g->n; h += 2)
        values_heads(g, h, 2, values, row, count, first, c, c_block);
    if (h < g->n)
        values_heads(g, h, 1, values, row, count, first, c, c_block);
}

static void divide_avx512(const head_group *g)
{
    float inverse[GROUP_HEADS];
    _mm512_storeu_ps(inverse, _mm512_div_ps(_mm512_set1_ps(1.0f), g->sum));
    for (int32_t h = 0; h < g->n; h++) {
        float *out = g->out + (int64_t)h * g->head_dim;
        for (int32_t i = 0; i < g->head_dim; i += 16) {
            __mmask16 m = first_lanes(g->head_dim - i);
            __m512 a = _mm512_maskz_loadu_ps(m, out + i);
            _mm512_mask_storeu_ps(out + i, m, _mm512_mul_ps(a, _mm512_set1_ps(inverse[h])));
        }
    }
}

void attend_avx512(float *out, const float *q, const void *keys, const void *values,
                   int32_t n_prefix, const int32_t *path, int32_t n_path, int32_t n_q,
                   int32_t head_dim, float scale, float *scratch)
{
    int64_t row[ATTEND_BLOCK];
    float c[GROUP_HEADS], c_block[GROUP_HEADS];
    for (int32_t h = 0; h < n_q; h += GROUP_HEADS) {
        head_group g = {.out = out + (int64_t)h * head_dim,
                        .q = q + (int64_t)h * head_dim,
                        .p = scratch,
                        .n = n_q - h < GROUP_HEADS ? n_q - h : GROUP_HEADS,
                        .head_dim = head_dim,
                        .scale = scale};
        for (int32_t start = 0; start < n_prefix + n_path; start += ATTEND_BLOCK) {
            int32_t count = attend_rows(row, start, n_prefix, path, n_path, head_dim);
            scores_avx512(&g, keys, row, count);
            softmax_avx512(&g, count, start == 0, c, c_block);
            values_avx512(&g, values, row, count, start == 0, c, c_block);
        }
        divide_avx512(&g);
    }
}
