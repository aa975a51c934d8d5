/* Attention's block kernel in plain C, exactly in the order of arithmetic that kernel.h states. */
#include "kernel/attend.h"

#include <math.h>

#include "base/fmath.h"
#include "kernel/packing.h"

static void pack_ref(float *packed, const float *const *q, int32_t n, int32_t k_dim, float *scratch)
{
    (void)scratch;
    for (int32_t r = 0; r < n; r++, packed += k_dim)
        memcpy(packed, q[r], (size_t)k_dim * sizeof *packed);
}

/* Number i of an array in the cache; d: where its scale is (q8_0). */
static float number(const uint8_t *numbers, int64_t i, kv_format format, const uint8_t *d)
{
    if (format == KV_F16)
        return f16_to_f32(load_u16(numbers + 2 * i));
    if (format == KV_F32)
        return load_f32(numbers + 4 * i);
    return f16_to_f32(load_u16(d)) * (float)((const int8_t *)numbers)[i];
}

/* Lane order of a group of keys: where dimension i is. */
static int32_t place_of(int32_t i, int32_t k_dim)
{
    int32_t place = 0;
    for (int32_t at = 0; attend_lane_order[at] != i % SUM_LANES; at++)
        place += attend_lane_steps(attend_lane_order[at], k_dim);
    return place + i / SUM_LANES;
}

static float score_ref(const float *q, const attend_block *b, int32_t j, int32_t k_dim)
{
    const uint8_t *group = b->keys[j / KV_GROUP];
    const uint8_t *scales = group + kv_group_numbers(b->format, k_dim);
    float lane[SUM_LANES] = {0};
    for (int32_t i = 0; i < k_dim; i++) {
        int64_t at = (int64_t)place_of(i, k_dim) * KV_GROUP + j % KV_GROUP;
        const uint8_t *d = scales + 2 * (i / KV_Q8_BLOCK * KV_GROUP + j % KV_GROUP);
        lane[i % SUM_LANES] = fmaf(q[i], number(group, at, b->format, d), lane[i % SUM_LANES]);
    }
    return sum16(lane);
}

/* Folds m_b, l_b and a_b into those of pair r. */
static void fold_ref(const attend_pairs *g, int32_t r, float m_b, float l_b, const float *a_b,
                     bool first)
{
    float *a = g->a[r];
    if (first) {
        g->m[r] = m_b;
        g->l[r] = l_b;
        memcpy(a, a_b, (size_t)g->v_dim * sizeof *a);
        return;
    }
    float max = m_b > g->m[r] ? m_b : g->m[r];
    float c = exp_f32(g->m[r] - max), c_block = exp_f32(m_b - max);
    g->m[r] = max;
    g->l[r] = fmaf(g->l[r], c, l_b * c_block);
    for (int32_t i = 0; i < g->v_dim; i++)
        a[i] = fmaf(a[i], c, a_b[i] * c_block);
}

static void turn_ref(float *rows, const uint8_t *group, kv_format format, int32_t k_dim)
{
    const uint8_t *scales = group + kv_group_numbers(format, k_dim);
    int64_t row_floats = attend_row_floats(k_dim);
    memset(rows, 0, (size_t)(KV_GROUP * row_floats) * sizeof *rows);
    for (int32_t i = 0; i < k_dim; i++) {
        int64_t at = (int64_t)place_of(i, k_dim) * KV_GROUP;
        const uint8_t *d = scales + 2 * (i / KV_Q8_BLOCK * KV_GROUP);
        for (int32_t j = 0; j < KV_GROUP; j++)
            rows[j * row_floats + i] = number(group, at + j, format, d + 2 * (int64_t)j);
    }
}

static void scores_ref(const attend_pairs *g, const attend_block *b)
{
    for (int32_t r = 0; r < g->n; r++)
        for (int32_t j = 0; j < b->dense; j++)
            g->p[r * ATTEND_BLOCK + j] =
                g->scale * score_ref(g->q + (int64_t)r * g->k_dim, b, j, g->k_dim);
}

static float row_score_ref(const float *q, const float *key, int32_t k_dim)
{
    float lane[SUM_LANES] = {0};
    for (int32_t i = 0; i < k_dim; i++)
        lane[i % SUM_LANES] = fmaf(q[i], key[i], lane[i % SUM_LANES]);
    return sum16(lane);
}

static void row_scores_ref(const attend_pairs *g, const attend_block *b)
{
    for (int32_t r = 0; r < g->n; r++)
        for (int32_t j = b->dense; j < b->count; j++)
            g->p[r * ATTEND_BLOCK + j] =
                g->scale * row_score_ref(g->q_rows + (int64_t)r * g->k_dim, b->key[j], g->k_dim);
}

static void rest_ref(const attend_pairs *g, const attend_block *b, bool first)
{
    float *a_b = g->wide;
    for (int32_t r = 0; r < g->n; r++) {
        float *p = g->p + (int64_t)r * ATTEND_BLOCK, m_b = -INFINITY, l_b = 0;
        for (int32_t j = 0; j < b->count; j++)
            m_b = p[j] > m_b ? p[j] : m_b;
        memset(a_b, 0, (size_t)g->v_dim * sizeof *a_b);
        for (int32_t j = 0; j < b->count; j++) {
            p[j] = exp_f32(p[j] - m_b);
            l_b += p[j];
            for (int32_t i = 0; i < g->v_dim; i++) {
                const uint8_t *d = b->value_d[j]; /* NULL: the format has no scales */
                d = d ? d + 2 * (i / KV_Q8_BLOCK) : NULL;
                a_b[i] = fmaf(p[j], number(b->value[j], i, b->value_format, d), a_b[i]);
            }
        }
        fold_ref(g, r, m_b, l_b, a_b, first);
    }
}

static void fold_all_ref(const attend_pairs *g, const float *m, const float *l, const float *a)
{
    for (int32_t r = 0; r < g->n; r++)
        fold_ref(g, r, m[r], l[r], a + (int64_t)r * g->v_dim, false);
}

static void divide_ref(const attend_pairs *g)
{
    for (int32_t r = 0; r < g->n; r++) {
        float inverse = 1.0f / g->l[r];
        for (int32_t i = 0; i < g->v_dim; i++)
            g->a[r][i] *= inverse;
    }
}

const attend_kernel attend_ref = {.pack = pack_ref,
                                  .turn = turn_ref,
                                  .scores = scores_ref,
                                  .row_scores = row_scores_ref,
                                  .rest = rest_ref,
                                  .fold = fold_all_ref,
                                  .divide = divide_ref};
