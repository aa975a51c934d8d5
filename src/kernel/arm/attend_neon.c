/* Attention of one row, NEON (the order of arithmetic is kernel_table.attend's).
 *
 * Heads that share a key head go together in groups of up to 8 (in the softmax's fold a lane is a
 * head). Scores: tiles of 2 keys x up to 2 heads, four registers each of the contract's 16 partial
 * sums. Values: tiles of up to 2 heads x 8 registers of 4 numbers. */
#include "kernel/arm/arm.h"

#include "kernel/arm/math_neon.h"
#include "kernel/attend_rows.h"
#include "kernel/unroll.h"

enum { GROUP_HEADS = 8, TILE_HEADS = 2, TILE_KEYS = 2 };

typedef struct head_group {
    float *out;     /* [n][head_dim] */
    const float *q; /* [n][head_dim] */
    float *p;       /* [n][ATTEND_BLOCK]: scores, then weights */
    int32_t n, head_dim;
    float scale;
    float max[GROUP_HEADS], sum[GROUP_HEADS]; /* m and l */
} head_group;

/* acc[h * TILE_KEYS + j] += q of head h * key j over n (16, or fewer at the end) numbers. */
INLINE void qk_step(v16 *acc, const float *q, const uint16_t *keys, const int64_t *row,
                    int32_t n_heads, int32_t head_dim, int32_t n)
{
    v16 k[TILE_KEYS];
    UNROLL
    for (int j = 0; j < TILE_KEYS; j++)
        k[j] = n == 16 ? load_f16_16(keys + row[j]) : load_f16_first(keys + row[j], n);
    UNROLL
    for (int32_t h = 0; h < n_heads; h++) {
        const float *head = q + (int64_t)h * head_dim;
        v16 v = n == 16 ? load_16(head) : load_first(head, n);
        UNROLL
        for (int j = 0; j < TILE_KEYS; j++) {
            v16 *a = &acc[h * TILE_KEYS + j];
            UNROLL
            for (int i = 0; i < 4; i++)
                a->v[i] = vfmaq_f32(a->v[i], v.v[i], k[j].v[i]);
        }
    }
}

/* The tree's last two levels for four keys, each register a key's last four sums. */
INLINE float32x4_t tree_lower(const float32x4_t key[4])
{
    float64x2_t d[4];
    UNROLL
    for (int j = 0; j < 4; j++)
        d[j] = vreinterpretq_f64_f32(key[j]);
    float32x4_t x = vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(d[0], d[1])),
                              vreinterpretq_f32_f64(vzip2q_f64(d[0], d[1])));
    float32x4_t y = vaddq_f32(vreinterpretq_f32_f64(vzip1q_f64(d[2], d[3])),
                              vreinterpretq_f32_f64(vzip2q_f64(d[2], d[3])));
    return vpaddq_f32(x, y);
}

/* Scores of n_heads (a constant) heads from h0 on and four keys. */
INLINE void qk_4(const head_group *g, int32_t h0, int32_t n_heads, const uint16_t *keys,
                 const int64_t *row, float *p)
{
    const float *q = g->q + (int64_t)h0 * g->head_dim;
    float32x4_t key[TILE_HEADS][4];
    UNROLL
    for (int32_t t = 0; t < 4; t += TILE_KEYS) {
        v16 acc[TILE_HEADS * TILE_KEYS];
        UNROLL
        for (int32_t a = 0; a < n_heads * TILE_KEYS; a++)
            acc[a] = zero_16();
        int32_t i = 0;
        for (; i + 16 <= g->head_dim; i += 16)
            qk_step(acc, q + i, keys + i, row + t, n_heads, g->head_dim, 16);
        if (i < g->head_dim)
            qk_step(acc, q + i, keys + i, row + t, n_heads, g->head_dim, g->head_dim - i);
        UNROLL
        for (int32_t h = 0; h < n_heads; h++) {
            UNROLL
            for (int j = 0; j < TILE_KEYS; j++)
                key[h][t + j] = sum16_upper(&acc[h * TILE_KEYS + j]);
        }
    }
    UNROLL
    for (int32_t h = 0; h < n_heads; h++)
        vst1q_f32(p + (int64_t)(h0 + h) * ATTEND_BLOCK, vmulq_n_f32(tree_lower(key[h]), g->scale));
}

static void scores_neon(const head_group *g, const uint16_t *keys, const int64_t *row,
                        int32_t count)
{
    for (int32_t j = 0; j < count; j += 4) {
        int32_t h = 0;
        for (; h + 2 <= g->n; h += 2)
            qk_4(g, h, 2, keys, row + j, g->p + j);
        if (h < g->n)
            qk_4(g, h, 1, keys, row + j, g->p + j);
    }
}

/* Folds the block's maxima and sums into the group's: factors c for what is there, c_block for this
 * block. */
static void fold_neon(head_group *g, const float *block_max, const float *block_sum, float *c,
                      float *c_block)
{
    for (int32_t h = 0; h < GROUP_HEADS; h += 4) {
        float32x4_t old = vld1q_f32(g->max + h), new = vld1q_f32(block_max + h);
        float32x4_t max = vmaxq_f32(old, new);
        float32x4_t c_old = exp_neon(vsubq_f32(old, max)), c_new = exp_neon(vsubq_f32(new, max));
        float32x4_t l = vmulq_f32(vld1q_f32(block_sum + h), c_new);
        vst1q_f32(g->max + h, max);
        vst1q_f32(g->sum + h, vfmaq_f32(l, vld1q_f32(g->sum + h), c_old));
        vst1q_f32(c + h, c_old);
        vst1q_f32(c_block + h, c_new);
    }
}

/* Scores to weights, and the fold's sums and factors. */
static void softmax_neon(head_group *g, int32_t count, bool first, float c[GROUP_HEADS],
                         float c_block[GROUP_HEADS])
{
    float block_max[GROUP_HEADS] = {0}, block_sum[GROUP_HEADS] = {0};
    for (int32_t h = 0; h < g->n; h++) {
        float *p = g->p + (int64_t)h * ATTEND_BLOCK;
        float top = -INFINITY, sum = 0;
        for (int32_t j = 0; j < count; j++)
            top = p[j] > top ? p[j] : top;
        for (int32_t j = 0; j < count; j += 4)
            vst1q_f32(p + j, exp_neon(vsubq_f32(vld1q_f32(p + j), vdupq_n_f32(top))));
        for (int32_t j = 0; j < count; j++)
            sum += p[j];
        block_max[h] = top;
        block_sum[h] = sum;
    }
    if (first) {
        memcpy(g->max, block_max, sizeof block_max);
        memcpy(g->sum, block_sum, sizeof block_sum);
        return;
    }
    fold_neon(g, block_max, block_sum, c, c_block);
}

/* One block's a_b for n_heads heads from h0 on and n_chunks registers from number i on (both counts
 * constants), folded into out. n: how many numbers the (only) register has, 4 but at the end. */
INLINE void values_tile(const head_group *g, int32_t h0, int32_t n_heads, int32_t i,
                        int32_t n_chunks, int32_t n, const uint16_t *values, const int64_t *row,
                        int32_t count, bool first, const float *c, const float *c_block)
{
    float32x4_t acc[TILE_HEADS * 8];
    const float *p = g->p + (int64_t)h0 * ATTEND_BLOCK;
    UNROLL
    for (int32_t k = 0; k < n_heads * n_chunks; k++)
        acc[k] = vdupq_n_f32(0);
    for (int32_t j = 0; j < count; j++) {
        const uint16_t *value = values + row[j] + i;
        float32x4_t v[8];
        UNROLL
        for (int32_t k = 0; k < n_chunks; k++)
            v[k] = n == 4 ? load_f16x4(value + 4 * k) : load_f16_first(value, n).v[0];
        UNROLL
        for (int32_t h = 0; h < n_heads; h++) {
            float weight = p[h * ATTEND_BLOCK + j];
            UNROLL
            for (int32_t k = 0; k < n_chunks; k++)
                acc[h * n_chunks + k] = vfmaq_n_f32(acc[h * n_chunks + k], v[k], weight);
        }
    }
    UNROLL
    for (int32_t h = 0; h < n_heads; h++) {
        float *out = g->out + (int64_t)(h0 + h) * g->head_dim + i;
        UNROLL
        for (int32_t k = 0; k < n_chunks; k++) {
            float32x4_t a = acc[h * n_chunks + k];
            if (!first) {
                float32x4_t old = n == 4 ? vld1q_f32(out + 4 * k) : load_first(out, n).v[0];
                a = vfmaq_n_f32(vmulq_n_f32(a, c_block[h0 + h]), old, c[h0 + h]);
            }
            if (n == 4) {
                vst1q_f32(out + 4 * k, a);
            } else {
                float last[4];
                vst1q_f32(last, a);
                memcpy(out, last, (size_t)n * sizeof *out);
            }
        }
    }
}

/* values_tile over the whole width. */
INLINE void values_heads(const head_group *g, int32_t h0, int32_t n_heads, const uint16_t *values,
                         const int64_t *row, int32_t count, bool first, const float *c,
                         const float *c_block)
{
    int32_t i = 0, dim = g->head_dim;
    for (; i + 32 <= dim; i += 32)
        values_tile(g, h0, n_heads, i, 8, 4, values, row, count, first, c, c_block);
    for (; i + 4 <= dim; i += 4)
        values_tile(g, h0, n_heads, i, 1, 4, values, row, count, first, c, c_block);
    if (i < dim)
        values_tile(g, h0, n_heads, i, 1, dim - i, values, row, count, first, c, c_block);
}

static void values_neon(const head_group *g, const uint16_t *values, const int64_t *row,
                        int32_t count, bool first, const float *c, const float *c_block)
{
    int32_t h = 0;
    for (; h + 2 <= g->n; h += 2)
        values_heads(g, h, 2, values, row, count, first, c, c_block);
    if (h < g->n)
        values_heads(g, h, 1, values, row, count, first, c, c_block);
}

static void divide_neon(const head_group *g)
{
    for (int32_t h = 0; h < g->n; h++) {
        float *out = g->out + (int64_t)h * g->head_dim, inverse = 1.0f / g->sum[h];
        for (int32_t i = 0; i < g->head_dim; i++)
            out[i] *= inverse;
    }
}

void attend_neon(float *out, const float *q, const void *keys, const void *values, int32_t n_prefix,
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
            scores_neon(&g, keys, row, count);
            softmax_neon(&g, count, start == 0, c, c_block);
            values_neon(&g, values, row, count, start == 0, c, c_block);
        }
        divide_neon(&g);
    }
}
