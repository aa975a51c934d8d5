/* Attention and its cache: every tier has the bits of the contract in kernel.h, written out once
 * more here on plain arrays, whatever rows and heads are computed together, however the work is cut
 * and wherever positions are; and the contract itself is compared with softmax in double. */
#include <float.h>
#include <math.h>

#include "base/fmath.h"
#include "kernel/attend.h"
#include "kernel/kernel_test.h"

/* ---- The formats, by their definitions ---- */

/* x as the cache has it after it was stored. */
static void rounded(float *y, const float *x, int32_t n, kv_format format)
{
    for (int32_t i = 0; i < n && format != KV_Q8_0; i++)
        y[i] = format == KV_F16 ? f16_to_f32(f32_to_f16(x[i])) : x[i];
    for (int32_t b = 0; b < n && format == KV_Q8_0; b += 32) {
        float amax = 0;
        for (int32_t i = b; i < b + 32; i++)
            amax = fabsf(x[i]) > amax ? fabsf(x[i]) : amax;
        float d = amax / 127.0f, inverse = 127.0f / amax;
        if (d == 0 || !(inverse <= FLT_MAX))
            d = inverse = 0;
        float kept = f16_to_f32(f32_to_f16(d < 65504.0f ? d : 65504.0f));
        for (int32_t i = b; i < b + 32; i++) {
            float q = x[i] * inverse;
            q = q > -127.0f ? q : -127.0f;
            y[i] = kept * rintf(q < 127.0f ? q : 127.0f);
        }
    }
}

/* ---- A problem: rows that see positions 0 .. n_seen[r] - 1 of the same timeline ---- */

enum { MAX_ROWS = 70, MAX_HEADS = 130 };

typedef struct problem {
    kv_format format;
    int32_t n_rows, n_q, k_dim, v_dim, n_positions, n_slots, window;
    bool latent;
    float scale, cap;
    bool has_sinks;
    float sinks[MAX_HEADS];
    int64_t q_ld, out_ld;
    float *keys, *values; /* [n_slots][k_dim], [n_slots][v_dim], as the cache rounds them */
    float *want;          /* [n_rows][n_q * v_dim] */
    int32_t n_seen[MAX_ROWS], n_prefix[MAX_ROWS], n_path[MAX_ROWS], *path;
    guarded q, out, cache_keys, cache_values, scratch;
} problem;

static int32_t slot_at(const problem *p, int32_t row, int32_t position)
{
    int32_t on_path = position - p->n_prefix[row];
    return on_path < 0 ? position : p->path[(int64_t)row * p->n_positions + on_path];
}

static float *key_at(const problem *p, int32_t row, int32_t position)
{
    return p->keys + (int64_t)slot_at(p, row, position) * p->k_dim;
}

static float *value_at(const problem *p, int32_t row, int32_t position)
{
    return p->values + (int64_t)slot_at(p, row, position) * p->v_dim;
}

/* One row and head, exactly as kernel.h says. */
static void expected(const problem *p, int32_t row, int32_t head, float *a)
{
    const float *q = (const float *)p->q.data + row * p->q_ld + (int64_t)head * p->k_dim;
    float m = 0, l = 0, *a_b = must_alloc((size_t)p->v_dim * sizeof *a_b);
    int32_t first = p->window > 0 && p->n_seen[row] > p->window ? p->n_seen[row] - p->window : 0;
    while (p->window < 0 && p->n_seen[row] > first - p->window)
        first -= p->window; /* a chunk later */
    int32_t begin = first / 64 * 64;
    for (int32_t start = begin; start < p->n_seen[row]; start += 64) {
        int32_t count = p->n_seen[row] - start < 64 ? p->n_seen[row] - start : 64;
        float s[64], m_b = -INFINITY, l_b = 0;
        for (int32_t j = 0; j < count; j++) {
            const float *key = key_at(p, row, start + j);
            float lane[SUM_LANES] = {0};
            for (int32_t i = 0; i < p->k_dim; i++)
                lane[i % 16] = fmaf(q[i], key[i], lane[i % 16]);
            s[j] = p->scale * sum16(lane);
            if (p->cap > 0)
                s[j] = p->cap - 2 * p->cap / (1 + exp_f32(s[j] * (2 / p->cap)));
            s[j] = start + j < first ? -INFINITY : s[j];
            m_b = s[j] > m_b ? s[j] : m_b;
        }
        memset(a_b, 0, (size_t)p->v_dim * sizeof *a_b);
        for (int32_t j = 0; j < count; j++) {
            const float *value = value_at(p, row, start + j);
            float w = exp_f32(s[j] - m_b);
            l_b += w;
            for (int32_t i = 0; i < p->v_dim; i++)
                a_b[i] = fmaf(w, value[i], a_b[i]);
        }
        float max = start == begin || m_b > m ? m_b : m;
        float c = start == begin ? 0 : exp_f32(m - max), c_b = exp_f32(m_b - max);
        for (int32_t i = 0; i < p->v_dim; i++)
            a[i] = start == begin ? a_b[i] : fmaf(a[i], c, a_b[i] * c_b);
        l = start == begin ? l_b : fmaf(l, c, l_b * c_b);
        m = max;
    }
    if (p->has_sinks) {
        float sink = p->sinks[head], max = sink > m ? sink : m;
        float c = exp_f32(m - max), c_b = exp_f32(sink - max);
        for (int32_t i = 0; i < p->v_dim; i++)
            a[i] = fmaf(a[i], c, 0 * c_b);
        l = fmaf(l, c, c_b);
    }
    for (int32_t i = 0; i < p->v_dim; i++)
        a[i] *= 1.0f / l;
    free(a_b);
}

/* A timeline of n_positions, whose last ones are the rows': a chain's rows see one position more
 * each; with n_prefix from 0 on all see the prefix and a random path. With `reach` a tree instead:
 * row r lies `stride` slots after the one before it, and sees the path to a row before it that is
 * drawn among the last `reach` of them. */
typedef struct shape {
    int32_t n_rows, n_q, dim, n_positions, n_prefix, reach, stride;
    int32_t v_dim; /* 0: dim */
    bool latent;
} shape;
#define CHAIN(n_rows, n_q, dim, n_positions)                                                       \
    {                                                                                              \
        n_rows, n_q, dim, n_positions, -1, 0, 0, 0, false                                          \
    }
#define PATHS(n_rows, n_q, dim, n_positions, n_prefix)                                             \
    {                                                                                              \
        n_rows, n_q, dim, n_positions, n_prefix, 0, 0, 0, false                                    \
    }
#define TREE(n_rows, n_q, dim, n_prefix, reach, stride)                                            \
    {                                                                                              \
        n_rows, n_q, dim, n_prefix + n_rows, n_prefix, reach, stride, 0, false                     \
    }

static void place(problem *p, const shape *s)
{
    for (int32_t r = 0; r < p->n_rows; r++) {
        int32_t *path = p->path + (int64_t)r * p->n_positions;
        p->n_seen[r] = p->n_positions - p->n_rows + 1 + r;
        p->n_prefix[r] = s->n_prefix < 0 ? p->n_seen[r] : s->n_prefix;
        p->n_path[r] = p->n_seen[r] - p->n_prefix[r];
        assert_true(p->n_path[r] >= 0);
        if (r > 0 || s->n_prefix < 0)
            memcpy(path, p->path, (size_t)p->n_positions * sizeof *path);
        for (int32_t j = 0; r == 0 && j < p->n_slots - p->n_prefix[r]; j++) { /* a shuffle */
            int32_t k = (int32_t)(random_bits() % (uint32_t)(j + 1));
            if (j < p->n_positions)
                path[j] = path[k];
            if (k < p->n_positions)
                path[k] = p->n_prefix[0] + j;
        }
    }
}

static void place_tree(problem *p, const shape *s)
{
    for (int32_t r = 0; r < s->n_rows; r++) {
        int32_t least = r < s->reach ? 0 : r - s->reach;
        int32_t parent = r ? least + (int32_t)(random_bits() % (uint32_t)(r - least)) : -1;
        int32_t *path = p->path + (int64_t)r * p->n_positions;
        p->n_prefix[r] = s->n_prefix;
        p->n_path[r] = r ? p->n_path[parent] + 1 : 1;
        if (r)
            memcpy(path, p->path + (int64_t)parent * p->n_positions,
                   (size_t)p->n_path[parent] * sizeof *path);
        path[p->n_path[r] - 1] = s->n_prefix + r * s->stride;
        p->n_seen[r] = s->n_prefix + p->n_path[r];
    }
}

static void expect(problem *p)
{
    for (int32_t r = 0; r < p->n_rows; r++)
        for (int32_t h = 0; h < p->n_q; h++)
            expected(p, r, h, p->want + (int64_t)(r * p->n_q + h) * p->v_dim);
}

/* Gives every head a sink, below and above what scores are. */
static void add_sinks(problem *p)
{
    assert_true(p->n_q <= MAX_HEADS);
    p->has_sinks = true;
    for (int32_t i = 0; i < p->n_q; i++)
        p->sinks[i] = i % 5 == 4 ? uniform(-60, 60) : uniform(-4, 8);
    expect(p);
}

static void fill_slot(problem *p, int32_t slot, float *k, float *v)
{
    const kernel_table *ref = kernel_select("ref");
    for (int32_t j = 0; j < p->k_dim; j++)
        k[j] = uniform(-2, 2);
    kv_store_key(ref, p->format, p->cache_keys.data, slot, k, p->k_dim, p->scratch.data);
    rounded(k, k, p->k_dim, p->format);
    if (p->latent) {
        memcpy(v, k, (size_t)p->v_dim * sizeof *v);
        return;
    }
    for (int32_t j = 0; j < p->v_dim; j++)
        v[j] = random_bits() % 64 ? uniform(-3, 3) : 1e-6f;
    kv_store_value(ref, p->format, p->cache_values.data, slot, v, p->v_dim, p->scratch.data);
    rounded(v, v, p->v_dim, p->format);
}

/* The numbers of a problem whose rows have their places. The cache begins as NaN everywhere, so
 * that a slot that nobody sees would show. */
static void fill(problem *p, float spread)
{
    memset(p->cache_keys.data, 0x7e, p->cache_keys.size_bytes);
    memset(p->cache_values.data, 0x7e, p->cache_values.size_bytes);
    for (size_t i = 0; i < p->q.size_bytes / sizeof(float); i++)
        ((float *)p->q.data)[i] = uniform(-spread, spread);
    bool *stored = must_alloc((size_t)p->n_slots);
    for (int32_t r = 0; r < p->n_rows; r++)
        for (int32_t i = 0; i < p->n_seen[r]; i++) {
            int32_t slot = slot_at(p, r, i);
            if (!stored[slot])
                fill_slot(p, slot, key_at(p, r, i), value_at(p, r, i));
            stored[slot] = true;
        }
    free(stored);
    expect(p);
}

static problem problem_make(const shape *s, kv_format format, float spread)
{
    assert_true(s->n_rows <= MAX_ROWS);
    problem p = {.format = format, .n_rows = s->n_rows, .n_q = s->n_q, .k_dim = s->dim};
    p.v_dim = s->v_dim ? s->v_dim : s->dim;
    p.latent = s->latent;
    p.n_positions = s->n_positions;
    p.n_slots = s->reach ? s->n_prefix + s->n_rows * s->stride : s->n_positions + 13;
    p.scale = 1.0f / sqrtf((float)s->dim);
    p.q_ld = s->n_q * p.k_dim + 5;
    p.out_ld = s->n_q * p.v_dim + (p.v_dim == p.k_dim ? 5 : 2);
    p.keys = must_alloc((size_t)(p.n_slots * p.k_dim) * sizeof(float));
    p.values = must_alloc((size_t)(p.n_slots * p.v_dim) * sizeof(float));
    p.want = must_alloc((size_t)(s->n_rows * s->n_q * p.v_dim) * sizeof(float));
    p.path = must_alloc((size_t)(s->n_rows * s->n_positions) * sizeof(int32_t));
    const size_t before = (size_t)s->n_rows - 1, n_q = (size_t)s->n_q;
    p.q = guard_alloc((before * (size_t)p.q_ld + n_q * (size_t)p.k_dim) * sizeof(float));
    p.out = guard_alloc((before * (size_t)p.out_ld + n_q * (size_t)p.v_dim) * sizeof(float));
    p.scratch = guard_alloc(attend_scratch_bytes(p.k_dim, p.v_dim, p.latent));
    p.cache_keys = guard_alloc(kv_head_bytes(format, p.n_slots, p.k_dim));
    p.cache_values = guard_alloc(kv_head_bytes(format, p.n_slots, p.v_dim));
    (s->reach ? place_tree : place)(&p, s);
    fill(&p, spread);
    return p;
}

static void problem_free(problem *p)
{
    free(p->keys), free(p->values), free(p->want), free(p->path);
    guard_free(&p->q), guard_free(&p->out), guard_free(&p->scratch);
    guard_free(&p->cache_keys), guard_free(&p->cache_values);
}

static attention attention_of(problem *p, const kernel_table *t)
{
    memset(p->out.data, 0xff, p->out.size_bytes);
    memset(p->scratch.data, 0xff, p->scratch.size_bytes);
    return (attention){.kernels = t,
                       .format = p->format,
                       .k_dim = p->k_dim,
                       .v_dim = p->v_dim,
                       .n_q = p->n_q,
                       .n_rows = p->n_rows,
                       .scale = p->scale,
                       .cap = p->cap,
                       .window = p->window,
                       .sinks = p->has_sinks ? p->sinks : NULL,
                       .keys = p->cache_keys.data,
                       .values = p->latent ? NULL : p->cache_values.data,
                       .n_prefix = p->n_prefix,
                       .n_path = p->n_path,
                       .path = p->path,
                       .path_ld = p->n_positions,
                       .q = p->q.data,
                       .out = p->out.data,
                       .q_ld = p->q_ld,
                       .out_ld = p->out_ld};
}

/* Pairs first .. last - 1 have the wanted bits. */
static void check(const problem *p, const char *tier, const char *what, int32_t first, int32_t last)
{
    for (int32_t i = first; i < last; i++) {
        const float *got =
            (const float *)p->out.data + i / p->n_q * p->out_ld + (int64_t)(i % p->n_q) * p->v_dim;
        if (memcmp(got, p->want + (int64_t)i * p->v_dim, (size_t)p->v_dim * sizeof *got) != 0)
            fail_msg("%s on %s, format %d: row %d of %d, head %d of %d, %d positions of %d and "
                     "%d%s: wrong",
                     what, tier, (int)p->format, i / p->n_q, p->n_rows, i % p->n_q, p->n_q,
                     p->n_positions, p->k_dim, p->v_dim, p->latent ? ", latent" : "");
    }
    assert_true(guard_intact(&p->scratch) && guard_intact(&p->out));
}

/* Trees: rows that see the last dimensions of a vector only in part, cross from one block to the
 * next, are in more groups than are turned at once, and are so many that they take several calls.
 */
static const shape shapes[] = {
    CHAIN(1, 1, 64, 1),          CHAIN(1, 2, 32, 2),          CHAIN(1, 3, 64, 15),
    CHAIN(1, 4, 64, 16),         CHAIN(1, 5, 128, 17),        CHAIN(1, 6, 128, 63),
    CHAIN(1, 7, 64, 64),         CHAIN(1, 8, 64, 65),         CHAIN(1, 9, 96, 129),
    CHAIN(1, 1, 80, 200),        CHAIN(1, 2, 256, 77),        CHAIN(1, 10, 64, 130),
    CHAIN(1, 11, 32, 100),       CHAIN(1, 12, 64, 140),       CHAIN(1, 13, 32, 70),
    CHAIN(1, 3, 34, 70),         CHAIN(1, 5, 100, 67),        CHAIN(1, 2, 2, 3),
    CHAIN(1, 2, 112, 300),       CHAIN(1, 4, 240, 90),        CHAIN(1, 1, 46, 65),
    CHAIN(1, 40, 48, 64),        CHAIN(1, 130, 32, 150),      CHAIN(2, 6, 128, 130),
    CHAIN(5, 3, 64, 68),         CHAIN(8, 1, 64, 8),          CHAIN(8, 6, 64, 260),
    CHAIN(17, 6, 32, 145),       CHAIN(33, 7, 64, 97),        CHAIN(40, 3, 32, 200),
    CHAIN(3, 2, 34, 131),        PATHS(1, 6, 64, 70, 69),     PATHS(1, 3, 64, 20, 0),
    PATHS(1, 2, 100, 130, 65),   PATHS(4, 6, 64, 150, 130),   PATHS(4, 6, 64, 150, 128),
    PATHS(16, 6, 128, 230, 200), PATHS(9, 2, 32, 200, 60),    PATHS(2, 1, 64, 257, 1),
    PATHS(12, 14, 64, 90, 70),   TREE(1, 6, 128, 70, 1, 1),   TREE(16, 6, 64, 0, 6, 1),
    TREE(16, 6, 128, 64, 16, 1), TREE(33, 6, 64, 61, 5, 1),   TREE(64, 6, 128, 45, 9, 1),
    TREE(64, 1, 64, 120, 12, 1), TREE(20, 7, 96, 59, 2, 5),   TREE(40, 2, 32, 63, 3, 19),
    TREE(17, 16, 32, 191, 8, 1), TREE(12, 3, 34, 50, 4, 2),   TREE(12, 5, 100, 3, 4, 1),
    TREE(70, 4, 64, 1, 1, 3),    TREE(24, 13, 80, 127, 2, 1), TREE(9, 100, 32, 62, 3, 1),
    TREE(33, 2, 64, 190, 5, 1),  TREE(40, 2, 32, 130, 3, 19), TREE(12, 3, 34, 65, 4, 2),
    TREE(24, 3, 80, 127, 2, 1)};
enum { N_SHAPES = COUNT_OF(shapes), N_CHAINS = 40 };

/* An emulated processor takes minutes for all shapes in all formats. */
#ifdef TESTS_EMULATED
enum { IN_ONE_FORMAT = true };
#else
enum { IN_ONE_FORMAT = false };
#endif

enum { ALIKE, NARROW, WIDE, LATENT }; /* widths of values, against keys */

/* The problems of all shapes and formats, one after another: p is the next one. */
typedef struct each {
    bool sparse; /* each shape in one format only */
    bool chains; /* without the trees */
    int values;
    int n;
    problem p;
} each;

/* The shape with values of another width, which is a multiple of 32 where the keys' is. */
static shape unlike(const shape *of, int values)
{
    shape s = *of;
    const bool q8 = s.dim % KV_Q8_BLOCK == 0;
    const int32_t narrow = q8 ? s.dim / 64 * 32 : (s.dim + 4) / 6 * 4 - 2;
    s.latent = values == LATENT;
    s.v_dim = values == WIDE ? s.dim + (q8 ? 32 : 10) : narrow > 0 ? narrow : s.dim;
    return s;
}

static bool next(each *e)
{
    shape s;
    bool q8;
    int i, format;
    if (e->p.keys)
        problem_free(&e->p);
    do {
        if (e->n == 3 * (e->chains ? N_CHAINS : N_SHAPES))
            return false;
        i = e->n / 3;
        format = e->n++ % 3;
        s = e->values ? unlike(&shapes[i], e->values) : shapes[i];
        q8 = s.dim % KV_Q8_BLOCK == 0;
    } while ((IN_ONE_FORMAT && e->values && i % 3 + 1 != (int)e->values) ||
             (format == KV_Q8_0 && !q8) || (e->sparse && format != (q8 ? i % 3 : KV_F16)));
    e->p = problem_make(&s, (kv_format)format, i % 4 == 2 ? 40.0f : 2.0f);
    if ((i + format) % 3 == 0)
        add_sinks(&e->p);
    return true;
}

/* All pairs on every tier. */
static void check_tiers(problem *p, const char *what)
{
    FOR_EACH_TIER(t)
    {
        attention a = attention_of(p, t);
        attend(&a, 0, p->n_rows * p->n_q, p->scratch.data);
        check(p, t->tier, what, 0, p->n_rows * p->n_q);
    }
}

TEST(test_bits)
{
    for (each e = {.sparse = IN_ONE_FORMAT}; next(&e);)
        check_tiers(&e.p, "attention");
}

static void check_windows(problem *p)
{
    static const int32_t windows[] = {1, 3, 40, 63, 64, 65, 130, 1000, -64, -100, -1, -1000};
    for (size_t w = 0; w < sizeof windows / sizeof *windows; w++) {
        p->window = windows[w];
        p->cap = w % 2 ? 3.0f : 0;
        if (w % 3 == 2)
            add_sinks(p);
        p->has_sinks = w % 3 == 2;
        expect(p);
        check_tiers(p, "a window");
        FOR_EACH_TIER(t)
        {
            /* A layer of one head, which may be cut only where the window hides nothing. */
            float partials[4096];
            attend_layer l = {.head = attention_of(p, t),
                              .n_heads = 1,
                              .n_threads = 2,
                              .partials = partials,
                              .n_partials = sizeof partials / sizeof *partials};
            attend_cut(&l);
            attend_work(&l, p->scratch.data);
            check(p, t->tier, "a layer with a window", 0, p->n_rows * p->n_q);
        }
    }
}

/* Rows see only their last positions, and scores may be capped: chains and trees, whose rows begin
 * in different blocks. */
TEST(test_windows)
{
    static const shape own[] = {TREE(33, 6, 64, 61, 5, 1),  TREE(40, 2, 32, 63, 3, 19),
                                TREE(24, 5, 80, 127, 2, 1), TREE(12, 2, 64, 700, 4, 1),
                                CHAIN(1, 1, 64, 300),       CHAIN(1, 4, 80, 129),
                                CHAIN(40, 3, 32, 200),      CHAIN(1, 2, 64, 900)};
    for (int f = KV_F16; f <= KV_F32; f++)
        for (size_t i = 0; i < COUNT_OF(own); i++) {
            if (IN_ONE_FORMAT && (int)(i % 3) != f)
                continue;
            bool q8 = f == KV_Q8_0 && own[i].dim % KV_Q8_BLOCK == 0;
            problem p = problem_make(&own[i], f == KV_Q8_0 && !q8 ? KV_F16 : (kv_format)f, 2);
            check_windows(&p);
            problem_free(&p);
        }
}

/* The slots from `slot` on, alone, between pages that nobody may touch: as a cache has them whose
 * positions are in several places. */
static guarded slots_from(const problem *p, const guarded *of, int32_t dim, int32_t slot,
                          int32_t end)
{
    size_t at = kv_head_bytes(p->format, slot, dim);
    guarded part = guard_alloc(kv_head_bytes(p->format, end, dim) - at);
    memcpy(part.data, (const uint8_t *)of->data + at, part.size_bytes);
    return part;
}

/* One call over positions [base, end), or from base on (end 0). */
static void fold_part(problem *p, const attention *whole, int32_t base, int32_t end)
{
    attention a = *whole;
    int32_t slots_end = end ? end : p->n_slots;
    guarded keys = slots_from(p, &p->cache_keys, p->k_dim, base, slots_end);
    guarded values = slots_from(p, &p->cache_values, p->v_dim, base, slots_end);
    a.keys = keys.data;
    a.values = p->latent ? NULL : values.data;
    a.base = base;
    a.end = end;
    memset(p->scratch.data, 0xff, p->scratch.size_bytes);
    attend_layer l = {.head = a, .n_heads = 1, .n_threads = 2};
    attend_cut(&l);
    attend_work(&l, p->scratch.data);
    guard_free(&keys);
    guard_free(&values);
}

/* All rows over the blocks before their prefixes' ends in `n_parts` places, and the rest. */
static void check_places(problem *p, int32_t n_parts)
{
    int32_t n_blocks = p->n_prefix[0];
    for (int32_t r = 1; r < p->n_rows; r++)
        n_blocks = p->n_prefix[r] < n_blocks ? p->n_prefix[r] : n_blocks;
    n_blocks /= ATTEND_BLOCK;
    int32_t own_path[16000], *path = p->path;
    int32_t n_path = p->n_rows * p->n_positions;
    assert_true(n_path <= (int32_t)COUNT_OF(own_path));
    const int32_t base = n_blocks * ATTEND_BLOCK;
    for (int32_t i = 0; i < n_path; i++)
        own_path[i] = path[i] - base;
    guarded kept = guard_alloc(2 * (size_t)(p->n_rows * p->n_q) * sizeof(float));
    FOR_EACH_TIER(t)
    {
        attention a = attention_of(p, t);
        a.kept = kept.data;
        memset(kept.data, 0xff, kept.size_bytes);
        for (int32_t i = 0; i < n_parts; i++) {
            int32_t from = n_blocks * i / n_parts, to = n_blocks * (i + 1) / n_parts;
            if (from < to)
                fold_part(p, &a, from * ATTEND_BLOCK, to * ATTEND_BLOCK);
        }
        a.path = own_path;
        fold_part(p, &a, base, 0);
        check(p, t->tier, "in several places", 0, p->n_rows * p->n_q);
        assert_true(guard_intact(&kept));
    }
    guard_free(&kept);
}

/* Attention that is left and continued has the bits of one call, wherever it is cut: with windows
 * that begin before, in and after a part, softcaps and sinks, in chains and trees. */
TEST(test_places)
{
    static const shape own[] = {
        CHAIN(1, 4, 80, 129),       CHAIN(1, 2, 64, 900),       CHAIN(17, 6, 32, 300),
        CHAIN(40, 3, 32, 200),      PATHS(4, 6, 64, 150, 128),  PATHS(16, 6, 128, 230, 200),
        TREE(12, 2, 64, 700, 4, 1), TREE(24, 5, 80, 127, 2, 1), TREE(9, 100, 32, 194, 3, 1)};
    static const int32_t windows[] = {0, 40, 64, 130, 600, -128, -200};
    for (int f = KV_F16; f <= KV_F32; f++)
        for (size_t i = 0; i < COUNT_OF(own); i++) {
            if (IN_ONE_FORMAT && (int)(i % 3) != f)
                continue;
            bool q8 = f == KV_Q8_0 && own[i].dim % KV_Q8_BLOCK == 0;
            problem p = problem_make(&own[i], f == KV_Q8_0 && !q8 ? KV_F16 : (kv_format)f, 2);
            for (size_t w = 0; w < COUNT_OF(windows); w++) {
                p.window = windows[w];
                p.cap = w % 2 ? 3.0f : 0;
                p.has_sinks = false;
                if (w % 2 == 0)
                    add_sinks(&p);
                else
                    expect(&p);
                check_places(&p, 1);
                check_places(&p, 3);
                check_places(&p, 11);
            }
            problem_free(&p);
        }
}

/* Any run of pairs by itself. */
TEST(test_runs)
{
    for (each e = {.sparse = true}; next(&e);) {
        problem *p = &e.p;
        int32_t n = p->n_rows * p->n_q;
        FOR_EACH_TIER(t)
        {
            attention a = attention_of(p, t);
            for (int32_t first = 0, last; first < n; first = last) {
                last = first + 1 + (int32_t)(random_bits() % (uint32_t)(2 * p->n_q + 3));
                last = last < n ? last : n;
                attend(&a, first, last, p->scratch.data);
                check(p, t->tier, "a run", first, last);
            }
        }
    }
}

/* The blocks of a dense prefix in ranges, the last range first: some on one tier, and the rest,
 * with the tail where it is a separate part, on another. */
static void check_parts(problem *p, const kernel_table *t, const kernel_table *other, int32_t first,
                        int32_t last, bool has_tail)
{
    attention a = attention_of(p, t), b = attention_of(p, other);
    int32_t blocks = attend_dense_blocks(&a, first, last);
    if (blocks < 1)
        return;
    int32_t cut = 1 + (int32_t)(random_bits() % (uint32_t)blocks);
    int32_t middle = cut + (blocks - cut) / 2, kept = blocks - cut;
    kept += has_tail ? attend_tail_blocks(&a, first, last) : 0;
    guarded parts =
        guard_alloc(attend_partials_floats(last - first, p->v_dim, kept) * sizeof(float));
    if (has_tail)
        attend_tail(&b, first, last, cut, parts.data, p->scratch.data);
    if (middle > cut)
        attend_range(&a, first, last, cut, cut, middle, parts.data, p->scratch.data);
    attend_range(&a, first, last, cut, 0, cut, parts.data, p->scratch.data);
    if (blocks > middle)
        attend_range(&b, first, last, cut, middle, blocks, parts.data, p->scratch.data);
    memset(p->scratch.data, 0xff, p->scratch.size_bytes);
    attend_finish(&b, first, last, cut, has_tail, parts.data, p->scratch.data);
    check(p, t->tier, has_tail ? "attention with its tail apart" : "attention in parts", first,
          last);
    assert_true(guard_intact(&parts));
    guard_free(&parts);
}

static void check_all_parts(problem *p)
{
    FOR_EACH_TIER(t)
    {
        const kernel_table *other = kernel_select("ref");
        int32_t n = p->n_rows * p->n_q, most = ATTEND_SPLIT_PAIRS;
        if (strcmp(t->tier, "float") == 0)
            other = t;
        for (int32_t first = 0; first < n; first += most)
            for (int has_tail = 0; has_tail < 2; has_tail++)
                check_parts(p, t, other, first, first + most < n ? first + most : n, has_tail);
    }
}

TEST(test_parts)
{
    for (each e = {.sparse = true}; next(&e);) {
        e.p.cap = e.n % 2 ? 5.0f : 0;
        expect(&e.p);
        check_all_parts(&e.p);
    }
}

/* Checks what a row has become in the cache: a query that is one dimension reads a key's number, a
 * single position's attention is its value. */
static void check_row(const kernel_table *t, kv_format format, const float *x, int32_t dim)
{
    guarded keys = guard_alloc(kv_head_bytes(format, 37, dim));
    guarded values = guard_alloc(kv_head_bytes(format, 37, dim));
    guarded scratch = guard_alloc(attend_scratch_bytes(dim, dim, false));
    memset(keys.data, 0x7e, keys.size_bytes);
    memset(values.data, 0x7e, values.size_bytes);
    float *want = must_alloc((size_t)dim * sizeof *want), *q = must_alloc((size_t)dim * sizeof *q);
    float *out = must_alloc((size_t)dim * sizeof *out);
    rounded(want, x, dim, format);
    kv_store_value(t, format, values.data, 36, x, dim, scratch.data);
    kv_store_value(t, format, values.data, 35, q, dim, scratch.data);
    kv_move_value(format, values.data, 3, 36, dim);
    kv_store_key(t, format, keys.data, 36, x, dim, scratch.data);
    kv_store_key(t, format, keys.data, 35, q, dim, scratch.data);
    kv_move_key(format, keys.data, 3, 36, dim);
    attention a = {.kernels = t,
                   .format = format,
                   .k_dim = dim,
                   .v_dim = dim,
                   .n_q = 1,
                   .n_rows = 1,
                   .scale = 1,
                   .keys = keys.data,
                   .values = values.data,
                   .n_prefix = (int32_t[]){0},
                   .n_path = (int32_t[]){1},
                   .path = (int32_t[]){3},
                   .q = q,
                   .out = out};
    attend(&a, 0, 1, scratch.data);
    for (int32_t i = 0; i < dim; i++)
        if (out[i] != want[i])
            fail_msg("value %a became %a on %s, not %a", (double)x[i], (double)out[i], t->tier,
                     (double)want[i]);
    /* Keys: two positions with values 0 and 1; the output is a weight, which gives the score. */
    for (int32_t i = 0; i < dim; i += 1 + dim / 7) {
        float score = want[i] > 20 ? 20 : want[i] < -20 ? -20 : want[i];
        memset(q, 0, (size_t)dim * sizeof *q);
        q[i] = want[i] != 0 ? score / want[i] : 1;
        float zero[256] = {0}, one[256];
        for (int32_t j = 0; j < dim; j++)
            one[j] = 1;
        kv_store_value(t, format, values.data, 3, one, dim, scratch.data);
        kv_store_value(t, format, values.data, 35, zero, dim, scratch.data);
        a.n_path = (int32_t[]){2};
        a.path = (int32_t[]){3, 35};
        attend(&a, 0, 1, scratch.data);
        double weight = 1 / (1 + exp(-(double)(q[i] * want[i])));
        assert_true(fabs((double)out[0] - weight) < 1e-3 * weight);
    }
    free(want), free(q), free(out);
    guard_free(&keys), guard_free(&values), guard_free(&scratch);
}

TEST(test_rows_of_the_cache)
{
    static const float scales[] = {1, 0, 1e-3f, 1e-38f, 1e-42f, 1e6f, 1e9f};
    for (int f = KV_F16; f <= KV_Q8_0; f++)
        for (size_t s = 0; s < sizeof scales / sizeof *scales; s++)
            for (int32_t dim = 32; dim <= 128; dim += 32) {
                float x[128];
                if (f == KV_F16 && scales[s] > 1e4f)
                    continue; /* infinite */
                for (int32_t i = 0; i < dim; i++)
                    x[i] = uniform(-4, 4) * scales[s];
                x[7] = -0.0f;
                FOR_EACH_TIER(t) check_row(t, (kv_format)f, x, dim);
            }
}

/* NaN and infinities among the numbers of a block: the rest of them stays what it is. */
TEST(test_q8_of_no_numbers)
{
    float x[64];
    for (int i = 0; i < 64; i++)
        x[i] = (float)(i % 32) - 15;
    x[3] = NAN;
    FOR_EACH_TIER(t)
    {
        uint8_t values[68 * KV_GROUP];
        guarded scratch = guard_alloc(attend_scratch_bytes(64, 64, false));
        float out[64], q[64] = {0}, want[64];
        kv_store_value(t, KV_Q8_0, values, 0, x, 64, scratch.data);
        kv_store_key(t, KV_Q8_0, values, 0, x, 64, scratch.data);
        kv_store_value(t, KV_Q8_0, values, 0, x, 64, scratch.data);
        attend(&(attention){.kernels = t,
                            .format = KV_Q8_0,
                            .k_dim = 64,
                            .v_dim = 64,
                            .n_q = 1,
                            .n_rows = 1,
                            .scale = 1,
                            .keys = (uint8_t[68 * KV_GROUP]){0},
                            .values = values,
                            .n_prefix = (int32_t[]){1},
                            .n_path = (int32_t[]){0},
                            .q = q,
                            .out = out},
               0, 1, scratch.data);
        rounded(want, x, 64, KV_Q8_0);
        want[3] = f16_to_f32(f32_to_f16(16.0f / 127.0f)) * -127.0f;
        assert_memory_equal(out, want, sizeof want);
        guard_free(&scratch);
    }
}

/* Softmax attention of one head in double. Returns by element the value and a bound of the float
 * computation's error. With u = 2^-24: a score is off by at most E = u (dim / 16 + 6) scale sum|q
 * k| (chain, tree, scale); a weight exp(s - m) by relative 2 E, u |s - m| from the subtractions
 * (they telescope over the folds), 4 u from exp and 8 u a fold; the sums over at most 64 keys and
 * the folds add 64 u + 2 u a fold. Numerator and denominator carry that once each. */
static void oracle(const problem *p, int32_t row, int32_t head, double *value, double *bound)
{
    const float *q = (const float *)p->q.data + row * p->q_ld + (int64_t)head * p->k_dim;
    int32_t n = p->n_seen[row];
    double *s = must_alloc((size_t)n * sizeof *s), score_error = 0, high = -INFINITY,
           low = INFINITY;
    const double u = 0x1p-24;
    for (int32_t j = 0; j < n; j++) {
        double absolute = 0;
        for (int32_t i = 0; i < p->k_dim; i++) {
            double product = (double)q[i] * (double)key_at(p, row, j)[i];
            s[j] += product * (double)p->scale;
            absolute += fabs(product) * (double)p->scale;
        }
        score_error = fmax(score_error, u * (p->k_dim / 16.0 + 6) * absolute);
        high = fmax(high, s[j]), low = fmin(low, s[j]);
    }
    double sink = p->has_sinks ? (double)p->sinks[head] : -INFINITY;
    high = fmax(high, sink), low = p->has_sinks ? fmin(low, sink) : low;
    double folds = n / 64.0 + 1;
    double relative = 2 * score_error + u * (2 * (high - low) + 70 + 10 * folds);
    for (int32_t i = 0; i < p->v_dim; i++) {
        double sum = 0, absolute = 0, weights = exp(sink - high);
        for (int32_t j = 0; j < n; j++) {
            double w = exp(s[j] - high), v = (double)value_at(p, row, j)[i];
            sum += w * v, absolute += w * fabs(v), weights += w;
        }
        value[i] = sum / weights;
        bound[i] = 2 * relative / (1 - relative) * absolute / weights;
    }
    free(s);
}

/* Every row and head, on the best tier. */
static void check_against_double(problem *p)
{
    double value[288], bound[288];
    attention a = attention_of(p, kernel_select(NULL));
    attend(&a, 0, p->n_rows * p->n_q, p->scratch.data);
    for (int32_t h = 0; h < p->n_rows * p->n_q; h++) {
        oracle(p, h / p->n_q, h % p->n_q, value, bound);
        const float *got =
            (const float *)p->out.data + h / p->n_q * p->out_ld + (int64_t)(h % p->n_q) * p->v_dim;
        for (int32_t d = 0; d < p->v_dim; d++) {
            assert_true(bound[d] < 1e-2); /* values are near 1: a bound that could fail */
            if (!(fabs((double)got[d] - value[d]) <= bound[d]))
                fail_msg("pair %d of %d and %d: %g, not %g +- %g", h, p->k_dim, p->v_dim,
                         (double)got[d], value[d], bound[d]);
        }
    }
}

TEST(test_against_double)
{
    for (int values = ALIKE; values <= LATENT; values++)
        for (int i = values; i < N_CHAINS; i += values ? 4 : 1) {
            const shape s = values ? unlike(&shapes[i], values) : shapes[i];
            problem p = problem_make(&s, KV_F16, i % 3 == 2 ? 20.0f : 2.0f);
            if (i % 2)
                add_sinks(&p);
            check_against_double(&p);
            problem_free(&p);
        }
}

/* Values of another width than keys, and values that are the fronts of keys, have their bits on
 * every tier, in parts, in runs, in several places, and as a layer whose query heads are cut into
 * groups. */
static void check_layer(problem *p, const kernel_table *t)
{
    enum { PARTIALS = 1 << 15 };
    float *partials = must_alloc(PARTIALS * sizeof *partials);
    attend_layer l = {.head = attention_of(p, t),
                      .n_heads = 1,
                      .n_threads = 3,
                      .partials = partials,
                      .n_partials = PARTIALS};
    attend_cut(&l);
    assert_int_equal(l.n_groups * l.group_q, p->n_q);
    attend_work(&l, p->scratch.data);
    check(p, t->tier, "a layer", 0, p->n_rows * p->n_q);
    free(partials);
}

TEST(test_unlike_widths)
{
    for (int values = NARROW; values <= LATENT; values++)
        for (each e = {.sparse = true, .values = values}; next(&e);) {
            check_tiers(&e.p, "attention");
            check_all_parts(&e.p);
            FOR_EACH_TIER(t) check_layer(&e.p, t);
            if (e.n % 4 == 0 && e.p.n_rows * e.p.n_positions <= 16000)
                check_places(&e.p, 2);
        }
}

/* Heads of many groups, whose sinks are their own. */
TEST(test_groups)
{
    static const shape own[] = {CHAIN(1, 128, 32, 700), CHAIN(2, 40, 64, 300),
                                TREE(9, 64, 32, 194, 3, 1)};
    assert_int_equal(attend_groups(128), 8);
    assert_int_equal(attend_groups(40), 4);
    assert_int_equal(attend_groups(16), 1);
    assert_int_equal(attend_groups(17), 1);
    for (size_t i = 0; i < COUNT_OF(own); i++) {
        problem p = problem_make(&own[i], KV_F16, 2);
        add_sinks(&p);
        FOR_EACH_TIER(t) check_layer(&p, t);
        check_places(&p, 2);
        problem_free(&p);
    }
}

/* ---- With a bias, and with a second cache ---- */

/* A bias of nothing changes no bit, though it takes the way of the reference. */
TEST(test_bias_of_nothing)
{
    const float nothing[MAX_ROWS * 2] = {0};
    for (int i = 0; i < N_CHAINS; i += 3) {
        problem p = problem_make(&shapes[i], KV_F16, 2.0f);
        if (i % 2)
            add_sinks(&p);
        if (p.n_q <= MAX_ROWS)
            for (int capped = 0; capped < 2; capped++) {
                p.cap = capped ? 3.0f : 0;
                p.window = capped ? 50 : 0;
                expect(&p);
                FOR_EACH_TIER(t)
                {
                    attention a = attention_of(&p, t);
                    a.more = &(attend_more){.bias = {.of = nothing, .ld = 2, .n_after = 1}};
                    assert_false(attend_can_split(&a));
                    attend(&a, 0, p.n_rows * p.n_q, p.scratch.data);
                    check(&p, t->tier, "a bias of nothing", 0, p.n_rows * p.n_q);
                }
            }
        problem_free(&p);
    }
}

/* A second cache of whole blocks is the front of a timeline. */
static int check_second_cache(int values)
{
    int n_cut = 0;
    for (each e = {.chains = true, .sparse = values != ALIKE, .values = values}; next(&e);) {
        problem *p = &e.p;
        int32_t n_prefix[MAX_ROWS], least = p->n_positions;
        for (int32_t r = 0; r < p->n_rows; r++)
            least = p->n_prefix[r] < least ? p->n_prefix[r] : least;
        int32_t cut = least / ATTEND_BLOCK * ATTEND_BLOCK;
        for (int32_t r = 0; r < p->n_rows; r++)
            n_prefix[r] = p->n_prefix[r] - cut;
        for (int32_t j = 0; j < p->n_rows * p->n_positions; j++)
            p->path[j] -= cut;
        n_cut += cut > 0;
        FOR_EACH_TIER(t)
        {
            attention a = attention_of(p, t);
            attend_more more = {.fixed = {.keys = a.keys, .values = a.values, .n = cut}};
            a.more = &more;
            a.keys += kv_head_bytes(p->format, cut, p->k_dim);
            if (a.values)
                a.values += kv_head_bytes(p->format, cut, p->v_dim);
            a.n_prefix = n_prefix;
            attend(&a, 0, p->n_rows * p->n_q, p->scratch.data);
            check(p, t->tier, "a second cache", 0, p->n_rows * p->n_q);
        }
    }
    return n_cut;
}

TEST(test_second_cache)
{
    assert_true(check_second_cache(ALIKE) > 20);
    for (int values = NARROW; values <= LATENT; values++)
        assert_true(check_second_cache(values) > 6);
}

/* sizes of a case that is worked out by hand: queries of zeros, so that scores are the bias alone,
 * and a weight is 1 or nothing. Two key heads of two query heads each; three positions are fixed,
 * two are the rows' own. */
enum { DIM = 32, N_FIXED = 3, N_OWN = 2, N_HEADS = 2 };

static void store_values(uint8_t *keys, uint8_t *values, int32_t n, float first, void *scratch)
{
    const kernel_table *ref = kernel_select("ref");
    for (int32_t slot = 0; slot < n; slot++) {
        float x[DIM];
        for (int i = 0; i < DIM; i++)
            x[i] = first + (float)slot;
        kv_store_key(ref, KV_F32, keys, slot, x, DIM, scratch);
        kv_store_value(ref, KV_F32, values, slot, x, DIM, scratch);
    }
}

TEST(test_bias_by_hand)
{
    size_t head_bytes = kv_head_bytes(KV_F32, N_OWN, DIM);
    uint8_t *own[2], *fixed[2];
    void *scratch = must_alloc(attend_scratch_bytes(DIM, DIM, false));
    for (int i = 0; i < 2; i++) {
        own[i] = must_alloc(N_HEADS * head_bytes);
        fixed[i] = must_alloc(N_HEADS * head_bytes);
    }
    for (int32_t h = 0; h < N_HEADS; h++) {
        float of_head = 100.0f * (float)h;
        store_values(own[0] + (size_t)h * head_bytes, own[1] + (size_t)h * head_bytes, N_OWN,
                     of_head + 11, scratch); /* 11, 12 */
        store_values(fixed[0] + (size_t)h * head_bytes, fixed[1] + (size_t)h * head_bytes, N_FIXED,
                     of_head + 1, scratch); /* 1, 2, 3 */
    }
    /* Distances -1, 0, 1: the first head sees all positions, the second none before its own, the
     * third those after it, the fourth those before it. */
    const float no = -1000, bias[4][3] = {{0, 0, 0}, {0, 0, no}, {0, no, no}, {no, no, 0}};
    const float q[2][4 * DIM] = {{0}};
    const int32_t n_prefix[2] = {1, 2}, n_path[2] = {0, 0}, at[2] = {1, 2}, none[2] = {0, 0};
    float out[2][4 * DIM];
    attend_more more = {.bias = {.of = bias[0], .ld = 3, .n_after = 1, .n_before = 1},
                        .fixed = {fixed[0], fixed[1], head_bytes, head_bytes, N_FIXED, at}};
    attend_layer l = {.head = {.kernels = kernel_select(NULL),
                               .format = KV_F32,
                               .k_dim = DIM,
                               .v_dim = DIM,
                               .n_q = 2,
                               .n_rows = 2,
                               .scale = 1,
                               .keys = own[0],
                               .values = own[1],
                               .n_prefix = n_prefix,
                               .n_path = n_path,
                               .q = q[0],
                               .out = out[0],
                               .q_ld = 4 * DIM,
                               .out_ld = 4 * DIM,
                               .more = &more},
                      .key_bytes = head_bytes,
                      .value_bytes = head_bytes,
                      .n_heads = N_HEADS,
                      .n_threads = 1};
    /* Row 0 is at 1 of the fixed positions, row 1 at 2; the rows also have one and two others. */
    const float want[2][4] = {{(1 + 2 + 3 + 11) / 4.0f, (2 + 3 + 11) / 3.0f, 103, 101},
                              {(1 + 2 + 3 + 11 + 12) / 5.0f, (3 + 12) / 2.0f, 0, 0}};
    attend_cut(&l);
    attend_work(&l, scratch);
    for (int row = 0; row < 2; row++)
        for (int h = 0; h < (row ? 2 : 4); h++)
            assert_true(fabsf(out[row][h * DIM] - want[row][h]) < 1e-4f);
    assert_true(fabsf(out[1][3 * DIM] - (101 + 102 + 111) / 3.0f) < 1e-4f);
    /* Cross attention: all of the second cache, nothing else, and no distances. */
    more.fixed.at = NULL;
    l.head.n_prefix = none;
    attend_cut(&l);
    attend_work(&l, scratch);
    for (int i = 0; i < 8; i++)
        assert_true(fabsf(out[i / 4][i % 4 * DIM] - (i % 4 < 2 ? 2.0f : 102.0f)) < 1e-4f);
    for (int i = 0; i < 2; i++)
        free(own[i]), free(fixed[i]);
    free(scratch);
}
