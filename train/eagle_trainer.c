/* Steps and judgement: see eagle_trainer.h. */
#include "train/eagle_trainer.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"

enum { Q, K, V, O, GATE, UP, DOWN, RISE = 50 };

/* ---- Sizes ---- */

static int64_t n_q(const eagle_training *t)
{
    return (int64_t)t->n_heads * t->head_dim;
}

static int64_t n_kv(const eagle_training *t)
{
    return (int64_t)t->n_heads_kv * t->head_dim;
}

static int64_t n_rows(const eagle_training *t)
{
    return (int64_t)t->n_windows * t->n_window;
}

/* Returns how many rows a row attends to. */
static int64_t n_seen(const eagle_training *t)
{
    return t->n_window + t->n_passes;
}

void eagle_matrices(const eagle_training *t, eagle_matrix out[EAGLE_MATRICES])
{
    int64_t d = t->n_embd, f = t->n_ff, at = 0;
    const int64_t size[EAGLE_MATRICES][2] = {
        {n_q(t), 2 * d}, {n_kv(t), 2 * d}, {n_kv(t), 2 * d}, {d, n_q(t)}, {f, d}, {f, d}, {d, f}};
    for (int i = 0; i < EAGLE_MATRICES; i++) {
        out[i] = (eagle_matrix){at, size[i][0], size[i][1]};
        at += size[i][0] * size[i][1];
    }
}

static int64_t n_parameters(const eagle_training *t)
{
    eagle_matrix all[EAGLE_MATRICES];
    eagle_matrices(t, all);
    return all[DOWN].at + all[DOWN].rows * all[DOWN].k;
}

static int64_t widest(const eagle_training *t)
{
    return max_i64(max_i64(t->n_ff, n_q(t)), 2 * t->n_embd);
}

#define FLOATS(n) arena_size((size_t)(n) * sizeof(float))

/* Walks over the arrays of a pass: sums their sizes when p is NULL, else takes them from `a`. */
static size_t walk_pass(const eagle_training *t, eagle_rows *p, arena *a)
{
    const int64_t r = n_rows(t), d = t->n_embd, f = t->n_ff;
    eagle_rows dummy, *to = p ? p : &dummy;
    const struct {
        float **array;
        int64_t n;
    } list[] = {{&to->y, 2 * d},
                {&to->q, n_q(t)},
                {&to->att, n_q(t)},
                {&to->k, n_kv(t)},
                {&to->v, n_kv(t)},
                {&to->m, d},
                {&to->nm, d},
                {&to->gate, f},
                {&to->up, f},
                {&to->act, f},
                {&to->s, d},
                {&to->ns, d},
                {&to->p, t->n_heads * n_seen(t)},
                {&to->dq, n_q(t)},
                {&to->dk, n_kv(t)},
                {&to->dv, n_kv(t)},
                {&to->ds, d}};
    size_t total = 0;
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) {
        total += FLOATS(r * list[i].n);
        if (p)
            *list[i].array = arena_take(a, (size_t)(r * list[i].n) * sizeof(float));
    }
    return total;
}

/* Numbers of the largest operands, with room for their tiles. */
static void gemm_limits(const eagle_training *t, int64_t *a, int64_t *b)
{
    enum { TILE = 64 };
    int64_t r = n_rows(t) + TILE, d = t->n_embd + TILE, wide = widest(t) + TILE;
    *a = max_i64(r * max_i64(wide, t->n_ids), wide * r);
    *b = max_i64(max_i64((t->n_ids + TILE) * d, 2 * d * wide), r * wide);
}

size_t eagle_trainer_bytes(const eagle_training *t)
{
    int64_t ga, gb, r = n_rows(t), d = t->n_embd;
    gemm_limits(t, &ga, &gb);
    return 2 * FLOATS(n_parameters(t)) + adam_bytes(n_parameters(t)) + gemm_bytes(ga, gb, 1) +
           arena_size((size_t)t->texts->n * sizeof(int64_t)) +
           arena_size((size_t)t->n_windows * sizeof(int64_t)) +
           (size_t)t->n_passes * walk_pass(t, NULL, NULL) + FLOATS(t->n_ids * d) + FLOATS(r) +
           3 * FLOATS(r * d) + 2 * FLOATS(r * t->n_ids) + FLOATS(r * widest(t)) +
           FLOATS(t->n_window * t->head_dim) + arena_size((size_t)r * sizeof(double));
}

static void take_memory(eagle_trainer *m, arena *a)
{
    const eagle_training *t = &m->about;
    int64_t ga, gb, r = n_rows(t), d = t->n_embd;
    adam_options options;
    adam_options_init(&options);
    m->n_parameters = n_parameters(t);
    m->parameters = arena_take(a, (size_t)m->n_parameters * sizeof(float));
    m->gradient = arena_take(a, (size_t)m->n_parameters * sizeof(float));
    adam_init(&m->adam, m->n_parameters, &options, a);
    gemm_limits(t, &ga, &gb);
    gemm_init(&m->gemm, ga, gb, 1, t->pool, a);
    m->taught.position = arena_take(a, (size_t)t->texts->n * sizeof(int64_t));
    m->batch = arena_take(a, (size_t)t->n_windows * sizeof(int64_t));
    for (int32_t p = 0; p < t->n_passes; p++)
        walk_pass(t, &m->pass[p], a);
    m->head = arena_take(a, (size_t)(t->n_ids * d) * sizeof(float));
    m->label = arena_take(a, (size_t)r * sizeof(int32_t));
    m->angles = arena_take(a, (size_t)(t->n_window * t->head_dim) * sizeof(float));
    m->said = arena_take(a, (size_t)(r * d) * sizeof(float));
    m->wide = arena_take(a, (size_t)(r * d) * sizeof(float));
    m->dd = arena_take(a, (size_t)(r * d) * sizeof(float));
    m->z = arena_take(a, (size_t)(r * t->n_ids) * sizeof(float));
    m->taken = arena_take(a, (size_t)(r * t->n_ids) * sizeof(float));
    m->da = arena_take(a, (size_t)(r * widest(t)) * sizeof(float));
    m->row_loss = arena_take(a, (size_t)r * sizeof(double));
}

/* ---- Beginning ---- */

/* splitmix64 of a number's purpose: a step's draws do not depend on those before it. */
static uint64_t draw(uint64_t seed, uint64_t step, uint64_t number)
{
    uint64_t z = seed + step * UINT64_C(0x9E3779B97F4A7C15) + number * UINT64_C(0xD1B54A32D192ED03);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Returns a number of mean 0 and deviation 1, from a sum of four even ones. */
static float around_zero(uint64_t seed, uint64_t number)
{
    uint64_t r = draw(seed, 1, number);
    double sum = 0;
    for (int i = 0; i < 4; i++, r >>= 16)
        sum += (double)(r & 0xffff) / 65536 - 0.5;
    return (float)(sum * sqrt(3));
}

void eagle_trainer_begin(eagle_trainer *m)
{
    eagle_matrix all[EAGLE_MATRICES];
    eagle_matrices(&m->about, all);
    for (int i = 0; i < EAGLE_MATRICES; i++) {
        float gain = i == O || i == DOWN ? 0 : 1 / sqrtf((float)all[i].k);
        for (int64_t j = all[i].at; j < all[i].at + all[i].rows * all[i].k; j++)
            m->parameters[j] = gain * around_zero(m->about.seed, (uint64_t)j);
    }
}

static void fill_angles(eagle_trainer *m)
{
    const int32_t size = m->about.head_dim;
    for (int32_t at = 0; at < m->about.n_window; at++)
        for (int32_t i = 0; i < size; i += 2) {
            double angle = at * pow((double)m->about.rope_base, -i / (double)size);
            m->angles[at * size + i] = (float)cos_f64(angle);
            m->angles[at * size + i + 1] = (float)sin_f64(angle);
        }
}

drey_status eagle_trainer_init(eagle_trainer *m, const eagle_training *t, arena *a, drey_error *err)
{
    assert(t->n_passes >= 1 && t->n_passes <= EAGLE_MAX_PASSES);
    *m = (eagle_trainer){.about = *t};
    take_memory(m, a);
    TRY(arena_check(a, err));
    eagle_trainer_begin(m);
    fill_angles(m);
    for (int64_t i = 0; i < t->n_ids; i++)
        t->kernels->from_f16(m->head + i * t->n_embd, t->head_rows + i * t->n_embd, t->n_embd);
    for (int64_t i = 0; i < t->texts->n; i++)
        if (!t->texts->held[i] && t->texts->left[i] > 0)
            m->taught.position[m->taught.n++] = i;
    if (m->taught.n == 0)
        FAIL(err, DREY_ERR_USAGE, "there is no text to train with; write more of it");
    return DREY_OK;
}

/* ---- Rows on all threads ---- */

typedef void eagle_row_fn(eagle_trainer *m, int32_t pass, int64_t row);

typedef struct row_job {
    eagle_trainer *m;
    eagle_row_fn *fn;
    int32_t pass;
    int64_t n;
    _Atomic int64_t next;
} row_job;

static void work_rows(void *arg, int32_t thread, int32_t n_threads)
{
    row_job *j = arg;
    int64_t row;
    (void)thread;
    (void)n_threads;
    while ((row = atomic_fetch_add(&j->next, 1)) < j->n)
        j->fn(j->m, j->pass, row);
}

static void each(eagle_trainer *m, int64_t n, eagle_row_fn *fn, int32_t pass)
{
    row_job j = {.m = m, .fn = fn, .pass = pass, .n = n};
    pool_run(m->about.pool, work_rows, &j);
}

static void each_row(eagle_trainer *m, eagle_row_fn *fn, int32_t pass)
{
    each(m, n_rows(&m->about), fn, pass);
}

/* y = x W^T, of a matrix of the layer. */
static void multiply(eagle_trainer *m, int which, const float *x, float *y)
{
    eagle_matrix all[EAGLE_MATRICES];
    eagle_matrices(&m->about, all);
    const eagle_matrix *w = &all[which];
    gemm_run(&m->gemm, y, w->rows, (gemm_matrix){x, w->k, 1},
             (gemm_matrix){m->parameters + w->at, 1, w->k}, n_rows(&m->about), w->rows, w->k,
             false);
}

/* The derivative by the matrix, from those by its product dy, is added; dx = dy W, or is added to;
 * NULL: it is not needed. */
static void derive_product(eagle_trainer *m, int which, const float *x, const float *dy, float *dx,
                           bool add)
{
    eagle_matrix all[EAGLE_MATRICES];
    eagle_matrices(&m->about, all);
    const eagle_matrix *w = &all[which];
    const int64_t r = n_rows(&m->about);
    gemm_run(&m->gemm, m->gradient + w->at, w->k, (gemm_matrix){dy, 1, w->rows},
             (gemm_matrix){x, w->k, 1}, w->rows, w->k, r, true);
    if (dx)
        gemm_run(&m->gemm, dx, w->k, (gemm_matrix){dy, w->rows, 1},
                 (gemm_matrix){m->parameters + w->at, w->k, 1}, r, w->k, w->rows, add);
}

/* ---- Norms ---- */

static float scale_of(const eagle_training *t, const float *x)
{
    double sum = 0;
    for (int64_t i = 0; i < t->n_embd; i++)
        sum += (double)x[i] * (double)x[i];
    return (float)(1 / sqrt(sum / t->n_embd + (double)t->norm_eps));
}

static void norm(const eagle_training *t, float *y, const float *x)
{
    float scale = scale_of(t, x);
    for (int64_t i = 0; i < t->n_embd; i++)
        y[i] = scale * x[i];
}

/* dx += of y = n(x) by dy. */
static void derive_norm(const eagle_training *t, float *dx, const float *x, const float *y,
                        const float *dy)
{
    float scale = scale_of(t, x);
    double dot = 0;
    for (int64_t i = 0; i < t->n_embd; i++)
        dot += (double)dy[i] * (double)y[i];
    float mean = (float)(dot / t->n_embd);
    for (int64_t i = 0; i < t->n_embd; i++)
        dx[i] += scale * (dy[i] - mean * y[i]);
}

/* ---- What rows begin with ---- */

/* The position of a row in the texts; -1: it is after its run's end. */
static int64_t position_of(const eagle_trainer *m, int64_t row)
{
    int64_t at = m->batch[row / m->about.n_window], i = row % m->about.n_window;
    return i <= m->about.texts->left[at] ? at + i : -1;
}

/* n(h / w) of a position: the residual stream's direction. */
static void load_state(const eagle_trainer *m, int64_t position, float *out)
{
    const eagle_training *t = &m->about;
    const float *w = t->final_norm;
    t->kernels->from_f16(out, t->texts->hidden + position * t->n_embd, t->n_embd);
    for (int64_t i = 0; i < t->n_embd; i++)
        out[i] = fabsf(w[i]) > 1e-6f ? out[i] / w[i] : 0;
    norm(t, out, out);
}

static void load_row(eagle_trainer *m, int32_t pass, int64_t row)
{
    const eagle_training *t = &m->about;
    int64_t d = t->n_embd, at = position_of(m, row);
    float *y = m->pass[0].y + row * 2 * d, *said = m->said + row * d;
    bool goes_on = at >= 0 && t->texts->left[at] > 0;
    (void)pass;
    memset(y, 0, (size_t)(2 * d) * sizeof *y);
    memset(said, 0, (size_t)d * sizeof *said);
    m->label[row] = -1;
    if (at < 0)
        return;
    t->kernels->from_f16(y, t->embeddings + t->texts->token[at] * d, d);
    norm(t, y, y);
    load_state(m, at, y + d);
    if (!goes_on)
        return;
    load_state(m, at + 1, said);
    if (t->texts->token[at + 1] < t->n_ids)
        m->label[row] = t->texts->token[at + 1];
}

/* Fills a row of a pass after the first: the token, and what the pass before said of the row
 * before. */
static void feed_row(eagle_trainer *m, int32_t pass, int64_t row)
{
    int64_t d = m->about.n_embd;
    float *y = m->pass[pass].y + row * 2 * d;
    memcpy(y, m->pass[0].y + row * 2 * d, (size_t)d * sizeof *y);
    if (m->keeps_fed)
        return;
    if (row % m->about.n_window > 0)
        memcpy(y + d, m->pass[pass - 1].ns + (row - 1) * d, (size_t)d * sizeof *y);
    else
        memset(y + d, 0, (size_t)d * sizeof *y);
}

/* Rows of later passes that have no row before them count nowhere. */
static bool counts(const eagle_trainer *m, int32_t pass, int64_t row)
{
    return row % m->about.n_window >= pass && m->label[row] >= 0;
}

/* ---- Attention ---- */

/* turn: 1, or -1: back. */
static void rotate(const eagle_trainer *m, float *x, int32_t n_heads, int64_t position, float turn)
{
    const int64_t size = m->about.head_dim;
    const float *angle = m->angles + position * size;
    for (int32_t h = 0; h < n_heads; h++, x += size)
        for (int64_t i = 0; i < size; i += 2) {
            float c = angle[i], s = turn * angle[i + 1], a = x[i], b = x[i + 1];
            x[i] = a * c - b * s;
            x[i + 1] = a * s + b * c;
        }
}

static void rotate_row(eagle_trainer *m, int32_t pass, int64_t row)
{
    const eagle_training *t = &m->about;
    rotate(m, m->pass[pass].q + row * n_q(t), t->n_heads, row % t->n_window, 1);
    rotate(m, m->pass[pass].k + row * n_kv(t), t->n_heads_kv, row % t->n_window, 1);
}

static void rotate_back(eagle_trainer *m, int32_t pass, int64_t row)
{
    const eagle_training *t = &m->about;
    rotate(m, m->pass[pass].dq + row * n_q(t), t->n_heads, row % t->n_window, -1);
    rotate(m, m->pass[pass].dk + row * n_kv(t), t->n_heads_kv, row % t->n_window, -1);
}

/* The pass whose row j is seen by row i of `pass`. */
static int32_t pass_seen(int32_t pass, int64_t i, int64_t j)
{
    return (int32_t)max_i64(pass - (i - j), 0);
}

/* A window's head, all of its rows. */
static void attend_head(eagle_trainer *m, int32_t pass, int64_t which)
{
    const eagle_training *t = &m->about;
    int64_t head = which % t->n_heads, first = which / t->n_heads * t->n_window, size = t->head_dim;
    int64_t of_kv = head * t->n_heads_kv / t->n_heads * size;
    eagle_rows *r = &m->pass[pass];
    float scale = 1 / sqrtf((float)size);
    for (int64_t i = 0; i < t->n_window; i++) {
        const float *q = r->q + (first + i) * n_q(t) + head * size;
        float *p = r->p + ((first + i) * t->n_heads + head) * n_seen(t), top = -INFINITY;
        float *out = r->att + (first + i) * n_q(t) + head * size;
        double sum = 0;
        for (int64_t j = 0; j <= i; j++) {
            const float *k = m->pass[pass_seen(pass, i, j)].k + (first + j) * n_kv(t) + of_kv;
            float dot = 0;
            for (int64_t c = 0; c < size; c++)
                dot += q[c] * k[c];
            p[j] = dot * scale;
            top = max_f32(top, p[j]);
        }
        for (int64_t j = 0; j <= i; j++) {
            p[j] = exp_f32(p[j] - top);
            sum += (double)p[j];
        }
        memset(out, 0, (size_t)size * sizeof *out);
        for (int64_t j = 0; j <= i; j++) {
            const float *v = m->pass[pass_seen(pass, i, j)].v + (first + j) * n_kv(t) + of_kv;
            p[j] = (float)((double)p[j] / sum);
            for (int64_t c = 0; c < size; c++)
                out[c] += p[j] * v[c];
        }
    }
}

/* datt is in m->da. A window's head of keys, with all heads that share it. */
static void derive_head(eagle_trainer *m, int32_t pass, int64_t which)
{
    const eagle_training *t = &m->about;
    int64_t of = which % t->n_heads_kv, first = which / t->n_heads_kv * t->n_window;
    int64_t size = t->head_dim, shared = t->n_heads / t->n_heads_kv;
    eagle_rows *r = &m->pass[pass];
    float scale = 1 / sqrtf((float)size);
    for (int64_t head = of * shared; head < (of + 1) * shared; head++)
        for (int64_t i = 0; i < t->n_window; i++) {
            int64_t at = (first + i) * n_q(t) + head * size;
            const float *p = r->p + ((first + i) * t->n_heads + head) * n_seen(t);
            const float *q = r->q + at, *dout = m->da + at, *out = r->att + at;
            float *dq = r->dq + at, mean = 0;
            for (int64_t c = 0; c < size; c++)
                mean += dout[c] * out[c];
            for (int64_t j = 0; j <= i; j++) {
                eagle_rows *seen = &m->pass[pass_seen(pass, i, j)];
                int64_t kv = (first + j) * n_kv(t) + of * size;
                float dp = 0;
                for (int64_t c = 0; c < size; c++) {
                    dp += dout[c] * seen->v[kv + c];
                    seen->dv[kv + c] += p[j] * dout[c];
                }
                float dscore = p[j] * (dp - mean) * scale;
                for (int64_t c = 0; c < size; c++) {
                    dq[c] += dscore * seen->k[kv + c];
                    seen->dk[kv + c] += dscore * q[c];
                }
            }
        }
}

/* ---- Forward ---- */

static float logistic(float x)
{
    return 1 / (1 + exp_f32(-x));
}

/* m had O's product. */
static void add_attention(eagle_trainer *m, int32_t pass, int64_t row)
{
    int64_t d = m->about.n_embd;
    eagle_rows *r = &m->pass[pass];
    const float *x = r->y + row * 2 * d + d;
    for (int64_t i = 0; i < d; i++)
        r->m[row * d + i] += x[i];
    norm(&m->about, r->nm + row * d, r->m + row * d);
}

static void activate(eagle_trainer *m, int32_t pass, int64_t row)
{
    int64_t f = m->about.n_ff;
    eagle_rows *r = &m->pass[pass];
    for (int64_t i = row * f; i < (row + 1) * f; i++)
        r->act[i] = r->gate[i] * logistic(r->gate[i]) * r->up[i];
}

/* s had Down's product. */
static void end_row(eagle_trainer *m, int32_t pass, int64_t row)
{
    int64_t d = m->about.n_embd;
    eagle_rows *r = &m->pass[pass];
    for (int64_t i = row * d; i < (row + 1) * d; i++)
        r->s[i] += r->m[i];
    norm(&m->about, r->ns + row * d, r->s + row * d);
}

static void forward(eagle_trainer *m, int32_t pass)
{
    const eagle_training *t = &m->about;
    eagle_rows *r = &m->pass[pass];
    each_row(m, pass ? feed_row : load_row, pass);
    multiply(m, Q, r->y, r->q);
    multiply(m, K, r->y, r->k);
    multiply(m, V, r->y, r->v);
    each_row(m, rotate_row, pass);
    each(m, (int64_t)t->n_windows * t->n_heads, attend_head, pass);
    multiply(m, O, r->att, r->m);
    each_row(m, add_attention, pass);
    multiply(m, GATE, r->nm, r->gate);
    multiply(m, UP, r->nm, r->up);
    each_row(m, activate, pass);
    multiply(m, DOWN, r->act, r->s);
    each_row(m, end_row, pass);
}

/* w times the pass's directions, or (pass < 0) the target's. */
static void weigh_row(eagle_trainer *m, int32_t pass, int64_t row)
{
    int64_t d = m->about.n_embd;
    const float *from = pass < 0 ? m->said : m->pass[pass].ns, *w = m->about.final_norm;
    for (int64_t i = 0; i < d; i++)
        m->wide[row * d + i] = w[i] * from[row * d + i];
}

static void say(eagle_trainer *m, int32_t pass, float *z)
{
    const eagle_training *t = &m->about;
    each_row(m, weigh_row, pass);
    gemm_run(&m->gemm, z, t->n_ids, (gemm_matrix){m->wide, t->n_embd, 1},
             (gemm_matrix){m->head, 1, t->n_embd}, n_rows(t), t->n_ids, t->n_embd, false);
}

/* ---- The loss ---- */

/* Logits become probabilities; returns the logarithm of their divisor. */
static double normalise(float *z, int64_t n)
{
    float top = -INFINITY;
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        top = max_f32(top, z[i]);
    for (int64_t i = 0; i < n; i++) {
        z[i] = exp_f32(z[i] - top);
        sum += (double)z[i];
    }
    for (int64_t i = 0; i < n; i++)
        z[i] = (float)((double)z[i] / sum);
    return log(sum) + (double)top;
}

static void normalise_taken(eagle_trainer *m, int32_t pass, int64_t row)
{
    (void)pass;
    normalise(m->taken + row * m->about.n_ids, m->about.n_ids);
}

static double worth_of(const eagle_trainer *m, int32_t pass)
{
    return pow(0.8, pass) / (double)n_rows(&m->about);
}

/* z becomes the loss's derivative by it. */
static void compare(eagle_trainer *m, int32_t pass, int64_t row)
{
    const int64_t n = m->about.n_ids;
    float *z = m->z + row * n, *q = m->taken + row * n, soft = m->about.soft;
    double worth = worth_of(m, pass), loss = 0;
    int32_t label = m->label[row];
    m->row_loss[row] = 0;
    if (!counts(m, pass, row)) {
        memset(z, 0, (size_t)n * sizeof *z);
        return;
    }
    double of_label = (double)z[label];
    for (int64_t i = 0; i < n; i++)
        loss -= (double)soft * (double)q[i] * (double)z[i];
    loss += normalise(z, n) - (double)(1 - soft) * of_label;
    for (int64_t i = 0; i < n; i++)
        z[i] = (float)worth * (z[i] - soft * q[i]);
    z[label] -= (float)worth * (1 - soft);
    m->row_loss[row] = worth * loss;
}

/* dd has the derivative by w n(s): ds becomes that by s, with the pull. */
static void derive_end(eagle_trainer *m, int32_t pass, int64_t row)
{
    const eagle_training *t = &m->about;
    const int64_t d = t->n_embd;
    eagle_rows *r = &m->pass[pass];
    const float *ns = r->ns + row * d, *said = m->said + row * d;
    float *dn = m->dd + row * d, *ds = r->ds + row * d;
    double worth = worth_of(m, pass) * (double)t->pull / (double)d, distance = 0;
    for (int64_t i = 0; i < d; i++)
        dn[i] *= t->final_norm[i];
    if (counts(m, pass, row))
        for (int64_t i = 0; i < d; i++) {
            float z = ns[i] - said[i], size = fabsf(z);
            distance += (double)(size < 1 ? 0.5f * z * z : size - 0.5f);
            dn[i] += (float)worth * min_f32(max_f32(z, -1), 1);
        }
    m->row_loss[row] += worth * distance;
    memset(ds, 0, (size_t)d * sizeof *ds);
    derive_norm(t, ds, r->s + row * d, ns, dn);
}

/* ---- Backward ---- */

/* da has the derivative by act: gate and up become theirs. */
static void derive_activation(eagle_trainer *m, int32_t pass, int64_t row)
{
    const int64_t f = m->about.n_ff;
    eagle_rows *r = &m->pass[pass];
    for (int64_t i = row * f; i < (row + 1) * f; i++) {
        float g = r->gate[i], share = logistic(g), u = r->up[i], d = m->da[i];
        r->gate[i] = d * u * share * (1 + g * (1 - share));
        r->up[i] = d * g * share;
    }
}

/* dd has the derivative by n(m): ds becomes that by m. */
static void derive_middle(eagle_trainer *m, int32_t pass, int64_t row)
{
    const int64_t d = m->about.n_embd;
    eagle_rows *r = &m->pass[pass];
    derive_norm(&m->about, r->ds + row * d, r->m + row * d, r->nm + row * d, m->dd + row * d);
}

/* After all later passes, which have added to dk and dv. */
static void backward(eagle_trainer *m, int32_t pass)
{
    const eagle_training *t = &m->about;
    eagle_rows *r = &m->pass[pass];
    say(m, pass, m->z);
    each_row(m, compare, pass);
    gemm_run(&m->gemm, m->dd, t->n_embd, (gemm_matrix){m->z, t->n_ids, 1},
             (gemm_matrix){m->head, t->n_embd, 1}, n_rows(t), t->n_embd, t->n_ids, false);
    each_row(m, derive_end, pass);
    for (int64_t i = 0; i < n_rows(t); i++)
        m->loss += m->row_loss[i];
    derive_product(m, DOWN, r->act, r->ds, m->da, false);
    each_row(m, derive_activation, pass);
    derive_product(m, GATE, r->nm, r->gate, m->dd, false);
    derive_product(m, UP, r->nm, r->up, m->dd, true);
    each_row(m, derive_middle, pass);
    derive_product(m, O, r->att, r->ds, m->da, false);
    each(m, (int64_t)t->n_windows * t->n_heads_kv, derive_head, pass);
    each_row(m, rotate_back, pass);
    derive_product(m, Q, r->y, r->dq, NULL, false);
    derive_product(m, K, r->y, r->dk, NULL, false);
    derive_product(m, V, r->y, r->dv, NULL, false);
}

void eagle_trainer_gradient(eagle_trainer *m)
{
    const eagle_training *t = &m->about;
    memset(m->gradient, 0, (size_t)m->n_parameters * sizeof *m->gradient);
    m->loss = 0;
    for (int32_t p = 0; p < t->n_passes; p++) {
        forward(m, p);
        memset(m->pass[p].dq, 0, (size_t)(n_rows(t) * n_q(t)) * sizeof(float));
        memset(m->pass[p].dk, 0, (size_t)(n_rows(t) * n_kv(t)) * sizeof(float));
        memset(m->pass[p].dv, 0, (size_t)(n_rows(t) * n_kv(t)) * sizeof(float));
    }
    say(m, -1, m->taken);
    each_row(m, normalise_taken, 0);
    for (int32_t p = t->n_passes - 1; p >= 0; p--)
        backward(m, p);
}

static void learn(eagle_trainer *m, int32_t pass, int64_t row)
{
    int64_t n = m->about.n_embd, end = (row + 1) * n;
    (void)pass;
    adam_apply(&m->adam, m->parameters, m->gradient, row * n, min_i64(end, m->n_parameters));
}

void eagle_trainer_step(eagle_trainer *m)
{
    const eagle_training *t = &m->about;
    const double pi = 3.14159265358979323846;
    double done = (double)m->step / (double)t->n_steps;
    double rise = min_f64((double)(m->step + 1) / RISE, 1);
    for (int32_t i = 0; i < t->n_windows; i++)
        m->batch[i] = m->taught.position[draw(t->seed, (uint64_t)m->step + 2, (uint64_t)i) %
                                         (uint64_t)m->taught.n];
    eagle_trainer_gradient(m);
    m->adam.options.rate = (float)((double)t->rate * rise * 0.5 * (1 + cos_f64(pi * done)));
    adam_begin(&m->adam);
    each(m, ceil_div_i64(m->n_parameters, t->n_embd), learn, 0);
    m->step++;
}

/* ---- Judgement ---- */

/* Counts ranks in the first n_windows. */
static void count_ranks(const eagle_trainer *m, int32_t pass, int32_t n_windows,
                        int64_t hits[EAGLE_RANKS], int64_t *seen)
{
    const int64_t n = m->about.n_ids;
    for (int64_t row = 0; row < (int64_t)n_windows * m->about.n_window; row++) {
        int64_t at = position_of(m, row);
        const float *z = m->z + row * n;
        int32_t rank = 0;
        if (row % m->about.n_window < pass || at < 0 || m->about.texts->left[at] == 0)
            continue;
        ++*seen;
        for (int64_t i = 0; m->label[row] >= 0 && i < n; i++)
            rank += z[i] > z[m->label[row]];
        if (m->label[row] >= 0 && rank < EAGLE_RANKS)
            hits[rank]++;
    }
}

void eagle_trainer_judge(eagle_trainer *m, bool held, int64_t n_most, float accuracy[][EAGLE_RANKS],
                         int64_t seen[])
{
    const eagle_training *t = &m->about;
    const self_texts *x = t->texts;
    int64_t hits[EAGLE_MAX_PASSES][EAGLE_RANKS] = {{0}};
    int32_t n = 0;
    memset(seen, 0, (size_t)t->n_passes * sizeof *seen);
    for (int64_t i = 0; i < x->n && seen[0] < n_most;) {
        bool taken = x->held[i] == held && x->left[i] > 0;
        if (taken)
            m->batch[n++] = i;
        i += taken ? min_i64(x->left[i] + 1, t->n_window) : 1;
        if (n == 0 || (n < t->n_windows && i < x->n))
            continue;
        for (int32_t j = n; j < t->n_windows; j++)
            m->batch[j] = m->batch[n - 1]; /* the last one again, at the very end */
        for (int32_t p = 0; p < t->n_passes; p++) {
            forward(m, p);
            say(m, p, m->z);
            count_ranks(m, p, n, hits[p], &seen[p]);
        }
        n = 0;
    }
    for (int32_t p = 0; p < t->n_passes; p++)
        for (int32_t r = 0; r < EAGLE_RANKS; r++)
            accuracy[p][r] = seen[p] ? (float)((double)hits[p][r] / (double)seen[p]) : 0;
}
