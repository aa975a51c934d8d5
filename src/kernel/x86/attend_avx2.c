/* Attention of one row, AVX2 (the order of arithmetic is kernel_table.attend's).
 *
 * As attend_avx512.c with half the register: the contract's 16 partial sums are two registers,
 * heads go together in groups of up to 8 (in the softmax a lane is a head), scores in tiles of 2
 * keys x up to 2 heads, values in tiles of up to 2 heads x 4 registers. */
#include "kernel/x86/attend.h"

#include "kernel/attend_rows.h"
#include "kernel/unroll.h"
#include "kernel/x86/math_avx2.h"

enum { GROUP_HEADS = 8, TILE_HEADS = 2, TILE_KEYS = 2 };

typedef struct head_group {
    float *out;     /* [n][head_dim] */
    const float *q; /* [n][head_dim] */
    float *p;       /* [n][ATTEND_BLOCK]: scores, then weights */
    int32_t n, head_dim;
    float scale;
    __m256 max, sum; /* m and l, lane h is head h */
} head_group;

typedef struct v16 {
    __m256 low, high; /* lanes 0-7, 8-15 */
} v16;

/* acc[h * TILE_KEYS + j] += q of head h * key j over n (16, or fewer at the end) numbers. */
INLINE void qk_step(v16 *acc, const float *q, const uint16_t *keys, const int64_t *row,
                    int32_t n_heads, int32_t head_dim, int32_t n)
{
    v16 k[TILE_KEYS];
    UNROLL
    for (int j = 0; j < TILE_KEYS; j++) {
        const uint16_t *key = keys + row[j];
        k[j].low = n == 16 ? load_f16_avx2(key) : load_f16_first(key, n);
        k[j].high = n == 16 ? load_f16_avx2(key + 8) : load_f16_first(key + 8, n - 8);
    }
    UNROLL
    for (int32_t h = 0; h < n_heads; h++) {
        const float *head = q + (int64_t)h * head_dim;
        v16 v;
        if (n == 16) {
            v.low = _mm256_loadu_ps(head);
            v.high = _mm256_loadu_ps(head + 8);
        } else {
            v.low = _mm256_maskload_ps(head, first_lanes(n));
            v.high = _mm256_maskload_ps(head + 8, first_lanes(n - 8));
        }
        UNROLL
        for (int j = 0; j < TILE_KEYS; j++) {
            v16 *a = &acc[h * TILE_KEYS + j];
            a->low = _mm256_fmadd_ps(v.low, k[j].low, a->low);
            a->high = _mm256_fmadd_ps(v.high, k[j].high, a->high);
        }
    }
}

/* The tree's first two levels for two keys: 128-bit lane j holds key j's last four sums. */
INLINE __m256 tree_upper(const v16 a[TILE_KEYS])
{
    __m256 x = _mm256_add_ps(a[0].low, a[0].high), y = _mm256_add_ps(a[1].low, a[1].high);
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
}

/* The tree's last two levels for 8 keys, tile g's lane j being key 2 g + j. */
INLINE __m256 tree_lower(const __m256 tile[4])
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256 x = _mm256_add_ps(_mm256_shuffle_ps(tile[0], tile[1], 0x44),
                             _mm256_shuffle_ps(tile[0], tile[1], 0xee));
    __m256 y = _mm256_add_ps(_mm256_shuffle_ps(tile[2], tile[3], 0x44),
                             _mm256_shuffle_ps(tile[2], tile[3], 0xee));
    __m256 keys = _mm256_add_ps(_mm256_shuffle_ps(x, y, 0x88), _mm256_shuffle_ps(x, y, 0xdd));
    return _mm256_permutevar8x32_ps(keys, order);
}

/* Scores of n_heads (a constant) heads from h0 on and up to 8 keys, n_keys of them of use. */
INLINE void qk_8(const head_group *g, int32_t h0, int32_t n_heads, const uint16_t *keys,
                 const int64_t *row, int32_t n_keys, float *p)
{
    const float *q = g->q + (int64_t)h0 * g->head_dim;
    __m256 tile[TILE_HEADS][4];
    for (int32_t t = 0; t < 4; t++) {
        v16 acc[TILE_HEADS * TILE_KEYS];
        UNROLL
        for (int32_t i = 0; i < n_heads * TILE_KEYS; i++)
            acc[i].low = acc[i].high = _mm256_setzero_ps();
        if (t * TILE_KEYS < n_keys) {
            int32_t i = 0;
            for (; i + 16 <= g->head_dim; i += 16)
                qk_step(acc, q + i, keys + i, row + t * TILE_KEYS, n_heads, g->head_dim, 16);
            if (i < g->head_dim)
                qk_step(acc, q + i, keys + i, row + t * TILE_KEYS, n_heads, g->head_dim,
                        g->head_dim - i);
        }
        UNROLL
        for (int32_t h = 0; h < n_heads; h++)
            tile[h][t] = tree_upper(acc + h * TILE_KEYS);
    }
    UNROLL
    for (int32_t h = 0; h < n_heads; h++)
        _mm256_storeu_ps(p + (int64_t)(h0 + h) * ATTEND_BLOCK,
                         _mm256_mul_ps(_mm256_set1_ps(g->scale), tree_lower(tile[h])));
}

static void scores_avx2(const head_group *g, const uint16_t *keys, const int64_t *row,
                        int32_t count)
{
    for (int32_t j = 0; j < count; j += 8) {
        int32_t h = 0;
        for (; h + 2 <= g->n; h += 2)
            qk_8(g, h, 2, keys, row + j, count - j, g->p + j);
        if (h < g->n)
            qk_8(g, h, 1, keys, row + j, count - j, g->p + j);
    }
}

/* Scores to weights, and the sums and factors of the fold: c for what is there, c_block for this
 * block. */
static void softmax_avx2(head_group *g, int32_t count, bool first, float c[GROUP_HEADS],
                         float c_block[GROUP_HEADS])
{
    float block_max[GROUP_HEADS] = {0}, block_sum[GROUP_HEADS] = {0};
    for (int32_t h = 0; h < g->n; h++) {
        float *p = g->p + (int64_t)h * ATTEND_BLOCK;
        float top = -INFINITY, sum = 0;
        for (int32_t j = 0; j < count; j++)
            top = p[j] > top ? p[j] : top;
        for (int32_t j = 0; j < count; j += 8)
            _mm256_storeu_ps(p + j,
                             exp_avx2(_mm256_sub_ps(_mm256_loadu_ps(p + j), _mm256_set1_ps(top))));
        for (int32_t j = 0; j < count; j++)
            sum += p[j];
        block_max[h] = top;
        block_sum[h] = sum;
    }
    __m256 m = _mm256_loadu_ps(block_max), l = _mm256_loadu_ps(block_sum);
    if (first) {
        g->max = m;
        g->sum = l;
        return;
    }
    __m256 both = _mm256_max_ps(g->max, m);
    __m256 old = exp_avx2(_mm256_sub_ps(g->max, both));
    __m256 new = exp_avx2(_mm256_sub_ps(m, both));
    g->max = both;
    g->sum = _mm256_fmadd_ps(g->sum, old, _mm256_mul_ps(l, new));
    _mm256_storeu_ps(c, old);
    _mm256_storeu_ps(c_block, new);
}

/* One block's a_b for n_heads heads from h0 on and n_chunks registers from number i on (both counts
 * constants), folded into out. n: how many numbers the (only) register has, 8 but at the end. */
INLINE void values_tile(const head_group *g, int32_t h0, int32_t n_heads, int32_t i,
                        int32_t n_chunks, int32_t n, const uint16_t *values, const int64_t *row,
                        int32_t count, bool first, const float *c, const float *c_block)
{
    __m256 acc[8];
    const float *p = g->p + (int64_t)h0 * ATTEND_BLOCK;
    UNROLL
    for (int32_t k = 0; k < n_heads * n_chunks; k++)
        acc[k] = _mm256_setzero_ps();
    for (int32_t j = 0; j < count; j++) {
        const uint16_t *value = values + row[j] + i;
        __m256 v[8];
        UNROLL
        for (int32_t k = 0; k < n_chunks; k++)
            v[k] = n == 8 ? load_f16_avx2(value + 8 * k) : load_f16_first(value, n);
        UNROLL
        for (int32_t h = 0; h < n_heads; h++) {
            __m256 weight = _mm256_set1_ps(p[h * ATTEND_BLOCK + j]);
            UNROLL
            for (int32_t k = 0; k < n_chunks; k++)
                acc[h * n_chunks + k] = _mm256_fmadd_ps(weight, v[k], acc[h * n_chunks + k]);
        }
    }
    UNROLL
    for (int32_t h = 0; h < n_heads; h++) {
        float *out = g->out + (int64_t)(h0 + h) * g->head_dim + i;
        UNROLL
        for (int32_t k = 0; k < n_chunks; k++) {
            __m256 a = acc[h * n_chunks + k];
            if (!first) {
                __m256 old =
                    n == 8 ? _mm256_loadu_ps(out + 8 * k) : _mm256_maskload_ps(out, first_lanes(n));
                a = _mm256_fmadd_ps(old, _mm256_set1_ps(c[h0 + h]),
                                    _mm256_mul_ps(a, _mm256_set1_ps(c_block[h0 + h])));
            }
            if (n == 8)
                _mm256_storeu_ps(out + 8 * k, a);
            else
                _mm256_maskstore_ps(out, first_lanes(n), a);
        }
    }
}

/* values_tile over the whole width; a tile has at most 8 accumulators. */
INLINE void values_heads(const head_group *g, int32_t h0, int32_t n_heads, const uint16_t *values,
                         const int64_t *row, int32_t count, bool first, const float *c,
                         const float *c_block)
{
    int32_t i = 0, dim = g->head_dim;
    if (n_heads == 1)
        for (; i + 64 <= dim; i += 64)
            values_tile(g, h0, 1, i, 8, 8, values, row, count, first, c, c_block);
    for (; i + 32 <= dim; i += 32)
        values_tile(g, h0, n_heads, i, 4, 8, values, row, count, first, c, c_block);
    for (; i + 8 <= dim; i += 8)
        values_tile(g, h0, n_heads, i, 1, 8, values, row, count, first, c, c_block);
    if (i < dim)
        values_tile(g, h0, n_heads, i, 1, dim - i, values, row, count, first, c, c_block);
}

static void values_avx2(const head_group *g, const uint16_t *values, const int64_t *row,
                        int32_t count, bool first, const float *c, const float *c_block)
{
    int32_t h = 0;
    for (; h + 2 <= g->n; h += 2)
        values_heads(g, h, 2, values, row, count, first, c, c_block);
    if (h < g->n)
        values_heads(g, h, 1, values, row, count, first, c, c_block);
}

static void divide_avx2(const head_group *g)
{
    float inverse[GROUP_HEADS];
    _mm256_storeu_ps(inverse, _mm256_div_ps(_mm256_set1_ps(1.0f), g->sum));
    for (int32_t h = 0; h < g->n; h++) {
        float *out = g->out + (int64_t)h * g->head_dim;
        for (int32_t i = 0; i < g->head_dim; i++)
            out[i] *= inverse[h];
    }
}

void attend_avx2(float *out, const float *q, const void *keys, const void *values, int32_t n_prefix,
                 const int32_t *path, int32_t n_path, int32_t n_q, int32_t head_dim, float scale,
                 float *scratch)
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
            scores_avx2(&g, keys, row, count);
            softmax_avx2(&g, count, start == 0, c, c_block);
            values_avx2(&g, values, row, count, start == 0, c, c_block);
        }
        divide_avx2(&g);
    }
}
