/* Steps and judgement: see medusa_trainer.h. */
#include "train/medusa_trainer.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/fmath.h"
#include "common/num.h"
#include "train/self_texts.h"

enum { RISE = 50, JUDGED_ROWS = 1024 };

/* ---- Memory ---- */

static int32_t most_candidates(const medusa_training *t)
{
    if (t->n_drawn >= t->n_ids)
        return t->n_ids;
    int64_t most = (int64_t)t->n_batch * t->n_heads + t->n_drawn;
    return (int32_t)min_i64(max_i64(most, JUDGED_ROWS), t->n_ids);
}

static int64_t n_units(const medusa_training *t)
{
    return (int64_t)t->n_heads * t->n_embd;
}

/* Returns the inputs of a block: the hidden state, then the token. */
static int64_t n_inputs(const medusa_training *t)
{
    return 2 * (int64_t)t->n_embd;
}

static int64_t n_parameters(const medusa_training *t)
{
    return n_units(t) * (n_inputs(t) + 1);
}

/* The largest sizes of products. */
static void gemm_limits(const medusa_training *t, int64_t *m, int64_t *n, int64_t *k)
{
    int64_t rows = (int64_t)t->n_batch * t->n_heads;
    int32_t candidates = most_candidates(t);
    *m = max_i64(rows, n_units(t));
    *n = max_i64(max_i64(candidates, n_units(t)), n_inputs(t));
    *k = max_i64(max_i64(n_inputs(t), candidates), t->n_batch);
}

#define FLOATS(n) arena_size((size_t)(n) * sizeof(float))
#define INTS(n)   arena_size((size_t)(n) * sizeof(int32_t))
#define LONGS(n)  arena_size((size_t)(n) * sizeof(int64_t))

size_t medusa_trainer_bytes(const medusa_training *t)
{
    int64_t m, n, k, rows = (int64_t)t->n_batch * t->n_heads, d = t->n_embd;
    int32_t candidates = most_candidates(t);
    gemm_limits(t, &m, &n, &k);
    return 2 * FLOATS(n_parameters(t)) + adam_bytes(n_parameters(t)) + gemm_bytes(m, n, k) +
           LONGS(t->texts->n) + FLOATS(t->n_ids) + LONGS(t->n_batch) + INTS(candidates) +
           INTS(t->n_ids) + INTS(rows) + FLOATS(rows * n_inputs(t)) + 4 * FLOATS(rows * d) +
           FLOATS(candidates * d) + 2 * FLOATS(rows * candidates) + LONGS(rows);
}

static void take_memory(medusa_trainer *m, arena *a)
{
    const medusa_training *t = &m->about;
    int64_t gm, gn, gk, rows = (int64_t)t->n_batch * t->n_heads, d = t->n_embd;
    adam_options options;
    adam_options_init(&options);
    m->n_parameters = n_parameters(t);
    m->max_candidates = most_candidates(t);
    m->parameters = arena_take(a, (size_t)m->n_parameters * sizeof(float));
    m->gradient = arena_take(a, (size_t)m->n_parameters * sizeof(float));
    adam_init(&m->adam, m->n_parameters, &options, a);
    gemm_limits(t, &gm, &gn, &gk);
    gemm_init(&m->gemm, gm, gn, gk, t->pool, a);
    m->taught.position = arena_take(a, (size_t)t->texts->n * sizeof(int64_t));
    m->log_chance = arena_take(a, (size_t)t->n_ids * sizeof(float));
    m->batch = arena_take(a, (size_t)t->n_batch * sizeof(int64_t));
    m->candidate = arena_take(a, (size_t)m->max_candidates * sizeof(int32_t));
    m->place = arena_take(a, (size_t)t->n_ids * sizeof(int32_t));
    m->label = arena_take(a, (size_t)rows * sizeof(int32_t));
    m->input = arena_take(a, (size_t)(rows * n_inputs(t)) * sizeof(float));
    m->g = arena_take(a, (size_t)(rows * d) * sizeof(float));
    m->x = arena_take(a, (size_t)(rows * d) * sizeof(float));
    m->dx = arena_take(a, (size_t)(rows * d) * sizeof(float));
    m->v = arena_take(a, (size_t)(m->max_candidates * d) * sizeof(float));
    m->z = arena_take(a, (size_t)(rows * m->max_candidates) * sizeof(float));
    m->said = arena_take(a, (size_t)(rows * d) * sizeof(float));
    m->q = arena_take(a, (size_t)(rows * m->max_candidates) * sizeof(float));
    m->row_loss = arena_take(a, (size_t)rows * sizeof(double));
}

/* ---- Beginning ---- */

static bool all_there(const medusa_training *t)
{
    return t->n_drawn >= t->n_ids;
}

/* The probability that a token is among a step's candidates, as a label or as a drawn one. */
static drey_status count_tokens(medusa_trainer *m, drey_error *err)
{
    const medusa_training *t = &m->about;
    const self_texts *x = t->texts;
    int64_t *count = calloc((size_t)t->n_ids, sizeof *count), total = 0;
    if (!count)
        FAIL(err, DREY_ERR_MEMORY, "no memory to count tokens");
    for (int64_t i = 0; i < x->n; i++) {
        bool known = !x->held[i] && x->token[i] < t->n_ids;
        total += known;
        if (known)
            count[x->token[i]]++;
    }
    double draws = (double)t->n_batch * t->n_heads + t->n_drawn / 2;
    for (int32_t i = 0; i < t->n_ids; i++) {
        double share = total > 0 ? (double)count[i] / (double)total : 0;
        double absent = pow(1 - min_f64(share, 1 - 1e-12), draws) *
                        pow(1 - 1.0 / t->n_ids, t->n_drawn - t->n_drawn / 2);
        m->log_chance[i] = all_there(t) ? 0 : (float)log(1 - absent);
        m->place[i] = -1;
    }
    free(count);
    return DREY_OK;
}

drey_status medusa_trainer_init(medusa_trainer *m, const medusa_training *t, arena *a,
                                drey_error *err)
{
    *m = (medusa_trainer){.about = *t};
    take_memory(m, a);
    TRY(arena_check(a, err));
    memset(m->parameters, 0, (size_t)m->n_parameters * sizeof *m->parameters);
    for (int64_t i = 0; i < t->texts->n; i++)
        if (!t->texts->held[i] && t->texts->left[i] > 0)
            m->taught.position[m->taught.n++] = i;
    if (m->taught.n == 0)
        FAIL(err, DREY_ERR_USAGE, "there is no text to train with; write more of it");
    return count_tokens(m, err);
}

/* ---- Rows on all threads ---- */

typedef struct row_job {
    medusa_trainer *m;
    void (*fn)(medusa_trainer *m, int64_t row);
    int64_t n, claim;
    _Atomic int64_t next;
} row_job;

static void work_rows(void *arg, int32_t thread, int32_t n_threads)
{
    row_job *j = arg;
    int64_t from;
    (void)thread;
    (void)n_threads;
    while ((from = atomic_fetch_add(&j->next, j->claim)) < j->n)
        for (int64_t row = from; row < min_i64(from + j->claim, j->n); row++)
            j->fn(j->m, row);
}

static void each_row(medusa_trainer *m, int64_t n, void (*fn)(medusa_trainer *m, int64_t row))
{
    row_job j = {.m = m, .fn = fn, .n = n, .claim = 4};
    pool_run(m->about.pool, work_rows, &j);
}

/* splitmix64 of a number's purpose: a step's draws do not depend on those before it. */
static uint64_t draw(uint64_t seed, uint64_t step, uint64_t number)
{
    uint64_t z = seed + step * UINT64_C(0x9E3779B97F4A7C15) + number * UINT64_C(0xD1B54A32D192ED03);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* ---- Forward ---- */

/* e(token): see medusa_heads.h. */
static void load_token(const medusa_training *t, int32_t token, float *out)
{
    int64_t d = t->n_embd;
    double sum = 0;
    memset(out, 0, (size_t)d * sizeof *out);
    if (token >= t->n_rows)
        return;
    t->kernels->from_f16(out, t->head_rows + token * d, d);
    for (int64_t i = 0; i < d; i++)
        sum += (double)out[i] * (double)out[i];
    float scale = (float)(1 / sqrt(sum / (double)d + 1e-6));
    for (int64_t i = 0; i < d; i++)
        out[i] *= scale;
}

/* row: of a position's block. A block whose token is after the run's end has no label either. */
static void load_inputs(medusa_trainer *m, int64_t row)
{
    const medusa_training *t = &m->about;
    const self_texts *x = t->texts;
    int64_t d = t->n_embd, at = m->batch[row / t->n_heads], k = row % t->n_heads;
    float *input = m->input + row * n_inputs(t);
    t->kernels->from_f16(input, x->hidden + at * d, d);
    load_token(t, k <= x->left[at] ? x->token[at + k] : t->n_rows, input + d);
}

static void load_candidate(medusa_trainer *m, int64_t row)
{
    const medusa_training *t = &m->about;
    int64_t d = t->n_embd;
    t->kernels->from_f16(m->v + row * d, t->head_rows + m->candidate[row] * d, d);
}

/* h_k; a row without label needs none. */
static void load_said(medusa_trainer *m, int64_t row)
{
    const medusa_training *t = &m->about;
    int64_t d = t->n_embd, at = m->batch[row / t->n_heads], k = row % t->n_heads;
    float *said = m->said + row * d;
    if (m->label[row] >= 0)
        t->kernels->from_f16(said, t->texts->hidden + (at + k + 1) * d, d);
    else
        memset(said, 0, (size_t)d * sizeof *said);
}

static float logistic(float x)
{
    return 1 / (1 + exp_f32(-x));
}

/* g had W h: adds the bias, computes x. */
static void activate(medusa_trainer *m, int64_t row)
{
    int64_t d = m->about.n_embd, n = n_units(&m->about), n_in = n_inputs(&m->about);
    const float *b = m->parameters + n * n_in, *h = m->input + row * m->about.n_heads * n_in;
    float *g = m->g + row * n, *x = m->x + row * n;
    for (int64_t i = 0; i < n; i++)
        g[i] += b[i];
    for (int64_t i = 0; i < n; i++)
        x[i] = g[i] * logistic(g[i]);
    for (int64_t k = 0; k < n; k += d)
        for (int64_t i = 0; i < d; i++)
            x[k + i] += h[i];
}

static void forward(medusa_trainer *m, int64_t n)
{
    const medusa_training *t = &m->about;
    int64_t d = t->n_embd, n_in = n_inputs(t), units = n_units(t);
    each_row(m, n * t->n_heads, load_inputs);
    for (int64_t k = 0; k < t->n_heads; k++)
        gemm_run(&m->gemm, m->g + k * d, units,
                 (gemm_matrix){m->input + k * n_in, t->n_heads * n_in, 1},
                 (gemm_matrix){m->parameters + k * d * n_in, 1, n_in}, n, d, n_in, false);
    each_row(m, n, activate);
}

/* ---- A step ---- */

static int32_t enter(medusa_trainer *m, int32_t token)
{
    if (m->place[token] < 0) {
        m->candidate[m->n_candidates] = token;
        m->place[token] = m->n_candidates++;
    }
    return m->place[token];
}

/* Labels, and the candidates that are compared with them. */
static void choose_candidates(medusa_trainer *m)
{
    const medusa_training *t = &m->about;
    const self_texts *x = t->texts;
    for (int32_t i = 0; i < m->n_candidates; i++)
        m->place[m->candidate[i]] = -1;
    m->n_candidates = 0;
    for (int32_t i = 0; all_there(t) && i < t->n_ids; i++)
        enter(m, i);
    for (int32_t i = 0; i < t->n_batch; i++)
        for (int32_t k = 0; k < t->n_heads; k++) {
            int64_t at = m->batch[i];
            int32_t token = k + 1 <= x->left[at] ? x->token[at + k + 1] : -1;
            m->label[i * t->n_heads + k] = token >= 0 && token < t->n_ids ? enter(m, token) : -1;
        }
    for (int32_t i = 0; !all_there(t) && i < t->n_drawn; i++) {
        uint64_t r = draw(t->seed, (uint64_t)m->step, (uint64_t)(t->n_batch + i));
        int32_t token = i < t->n_drawn / 2 ? x->token[m->taught.position[r % (uint64_t)m->taught.n]]
                                           : (int32_t)(r % (uint64_t)t->n_ids);
        if (token < t->n_ids)
            enter(m, token);
    }
    assert(m->n_candidates <= m->max_candidates);
}

/* The weight of a head's loss in a step's. */
static double worth_of(const medusa_trainer *m, int64_t row)
{
    return pow(0.8, (double)(row % m->about.n_heads)) / m->about.n_batch;
}

/* Logits become probabilities: those of drawn tokens represent others as well. Returns the
 * logarithm of their divisor. */
static double normalise(const medusa_trainer *m, int32_t label, float *z)
{
    int32_t n = m->n_candidates;
    float top = -INFINITY;
    double sum = 0;
    for (int32_t i = 0; i < n; i++) {
        z[i] -= i == label ? 0 : m->log_chance[m->candidate[i]];
        top = max_f32(top, z[i]);
    }
    for (int32_t i = 0; i < n; i++) {
        z[i] = exp_f32(z[i] - top);
        sum += (double)z[i];
    }
    float scale = (float)(1 / sum);
    for (int32_t i = 0; i < n; i++)
        z[i] *= scale;
    return log(sum) + (double)top;
}

/* z becomes the loss's derivative by it; rows without label: 0. */
static void softmax(medusa_trainer *m, int64_t row)
{
    int32_t n = m->n_candidates, label = m->label[row];
    float *z = m->z + row * n, *q = m->q + row * n, soft = m->about.soft;
    m->row_loss[row] = 0;
    if (label < 0) {
        memset(z, 0, (size_t)n * sizeof *z);
        return;
    }
    double loss = 0, of_label = (double)z[label], worth = worth_of(m, row);
    if (soft > 0) {
        normalise(m, label, q);
        for (int32_t i = 0; i < n; i++) {
            float chance = i == label ? 0 : m->log_chance[m->candidate[i]];
            loss -= (double)(soft * q[i] * (z[i] - chance));
            q[i] *= soft;
        }
    }
    double divisor = normalise(m, label, z);
    loss += divisor - (double)(1 - soft) * of_label;
    for (int32_t i = 0; i < n; i++)
        z[i] = (float)worth * (z[i] - (soft > 0 ? q[i] : 0));
    z[label] -= (float)worth * (1 - soft);
    m->row_loss[row] = worth * loss;
}

/* Adds the distance to h_k to the loss, and to dx. */
static void pull(medusa_trainer *m, int64_t row)
{
    int64_t d = m->about.n_embd;
    const float *x = m->x + row * d, *said = m->said + row * d;
    float *dx = m->dx + row * d;
    double squares = 0, distance = 0, worth = worth_of(m, row) * (double)m->about.pull / (double)d;
    if (m->label[row] < 0)
        return;
    for (int64_t i = 0; i < d; i++)
        squares += (double)said[i] * (double)said[i];
    float scale = (float)(1 / sqrt(squares / (double)d + 1e-6)), slope = (float)worth * scale;
    for (int64_t i = 0; i < d; i++) {
        float z = (x[i] - said[i]) * scale, size = fabsf(z);
        distance += (double)(size < 1 ? 0.5f * z * z : size - 0.5f);
        dx[i] += slope * min_f32(max_f32(z, -1), 1);
    }
    m->row_loss[row] += worth * distance;
}

/* dx becomes the loss's derivative by g. */
static void derive(medusa_trainer *m, int64_t row)
{
    int64_t n = n_units(&m->about);
    const float *g = m->g + row * n;
    float *dx = m->dx + row * n;
    for (int64_t i = 0; i < n; i++) {
        float s = logistic(g[i]);
        dx[i] *= s * (1 + g[i] * (1 - s));
    }
}

static void add_biases(medusa_trainer *m)
{
    int64_t n = n_units(&m->about);
    float *db = m->gradient + n * n_inputs(&m->about);
    memset(db, 0, (size_t)n * sizeof *db);
    for (int32_t row = 0; row < m->about.n_batch; row++)
        for (int64_t i = 0; i < n; i++)
            db[i] += m->dx[row * n + i];
}

void medusa_trainer_gradient(medusa_trainer *m)
{
    const medusa_training *t = &m->about;
    int64_t d = t->n_embd, n_in = n_inputs(t), units = n_units(t);
    int64_t rows = (int64_t)t->n_batch * t->n_heads;
    choose_candidates(m);
    int64_t n = m->n_candidates;
    forward(m, t->n_batch);
    each_row(m, n, load_candidate);
    each_row(m, rows, load_said);
    gemm_run(&m->gemm, m->z, n, (gemm_matrix){m->x, d, 1}, (gemm_matrix){m->v, 1, d}, rows, n, d,
             false);
    if (t->soft > 0)
        gemm_run(&m->gemm, m->q, n, (gemm_matrix){m->said, d, 1}, (gemm_matrix){m->v, 1, d}, rows,
                 n, d, false);
    each_row(m, rows, softmax);
    gemm_run(&m->gemm, m->dx, d, (gemm_matrix){m->z, n, 1}, (gemm_matrix){m->v, d, 1}, rows, d, n,
             false);
    if (t->pull > 0)
        each_row(m, rows, pull);
    each_row(m, t->n_batch, derive);
    for (int64_t k = 0; k < t->n_heads; k++)
        gemm_run(&m->gemm, m->gradient + k * d * n_in, n_in, (gemm_matrix){m->dx + k * d, 1, units},
                 (gemm_matrix){m->input + k * n_in, t->n_heads * n_in, 1}, d, n_in, t->n_batch,
                 false);
    add_biases(m);
    m->loss = 0;
    for (int64_t i = 0; i < rows; i++)
        m->loss += m->row_loss[i];
}

static void learn(medusa_trainer *m, int64_t row)
{
    int64_t d = m->about.n_embd, end = (row + 1) * d;
    adam_apply(&m->adam, m->parameters, m->gradient, row * d, min_i64(end, m->n_parameters));
}

void medusa_trainer_step(medusa_trainer *m)
{
    const medusa_training *t = &m->about;
    const int64_t *position = m->taught.position;
    const uint64_t n = (uint64_t)m->taught.n;
    const double pi = 3.14159265358979323846;
    double done = (double)m->step / (double)t->n_steps;
    double rise = min_f64((double)(m->step + 1) / RISE, 1);
    for (int32_t i = 0; i < t->n_batch; i++)
        m->batch[i] = position[draw(t->seed, (uint64_t)m->step, (uint64_t)i) % n];
    medusa_trainer_gradient(m);
    m->adam.options.rate = (float)((double)t->rate * rise * 0.5 * (1 + cos_f64(pi * done)));
    adam_begin(&m->adam);
    each_row(m, ceil_div_i64(m->n_parameters, t->n_embd), learn);
    m->step++;
}

/* ---- Judgement ---- */

/* For the batch's first n positions: counts in rank[] how many rows of V have a higher logit than
 * the label. m->label has ids here, m->row_loss the labels' logits. */
static void score_labels(medusa_trainer *m, int32_t n)
{
    const medusa_training *t = &m->about;
    int64_t d = t->n_embd;
    for (int64_t row = 0; row < (int64_t)n * t->n_heads; row++) {
        if (m->label[row] < 0)
            continue;
        const float *x = m->x + row * d;
        t->kernels->from_f16(m->v, t->head_rows + m->label[row] * d, d);
        double sum = 0;
        for (int64_t i = 0; i < d; i++)
            sum += (double)x[i] * (double)m->v[i];
        m->row_loss[row] = sum;
    }
}

static void count_better(medusa_trainer *m, int32_t n, int32_t *rank)
{
    const medusa_training *t = &m->about;
    int64_t d = t->n_embd, rows = (int64_t)n * t->n_heads;
    for (int32_t from = 0; from < t->n_ids; from += m->n_candidates) {
        m->n_candidates = min_i32(min_i32(JUDGED_ROWS, m->max_candidates), t->n_ids - from);
        for (int32_t i = 0; i < m->n_candidates; i++)
            m->candidate[i] = from + i;
        each_row(m, m->n_candidates, load_candidate);
        gemm_run(&m->gemm, m->z, m->n_candidates, (gemm_matrix){m->x, d, 1},
                 (gemm_matrix){m->v, 1, d}, rows, m->n_candidates, d, false);
        for (int64_t row = 0; row < rows; row++)
            for (int32_t i = 0; i < m->n_candidates && m->label[row] >= 0; i++)
                rank[row] += from + i != m->label[row] &&
                             (double)m->z[row * m->n_candidates + i] > m->row_loss[row];
    }
    m->n_candidates = 0;
}

static void judge_batch(medusa_trainer *m, int32_t n, int32_t *rank, int64_t hits[][MEDUSA_RANKS],
                        int64_t seen[])
{
    const medusa_training *t = &m->about;
    const self_texts *x = t->texts;
    for (int32_t i = 0; i < n; i++)
        for (int32_t k = 0; k < t->n_heads; k++) {
            int64_t at = m->batch[i];
            bool known = k + 1 <= x->left[at];
            int32_t token = known ? x->token[at + k + 1] : -1;
            m->label[i * t->n_heads + k] = token < t->n_ids ? token : -1;
            seen[k] += known;
        }
    forward(m, n);
    score_labels(m, n);
    memset(rank, 0, (size_t)n * (size_t)t->n_heads * sizeof *rank);
    count_better(m, n, rank);
    for (int32_t row = 0; row < n * t->n_heads; row++)
        if (m->label[row] >= 0 && rank[row] < MEDUSA_RANKS)
            hits[row % t->n_heads][rank[row]]++;
}

void medusa_trainer_judge(medusa_trainer *m, bool held, int64_t n_most,
                          float accuracy[][MEDUSA_RANKS], int64_t seen[])
{
    const medusa_training *t = &m->about;
    const self_texts *x = t->texts;
    int64_t hits[MEDUSA_MAX_HEADS][MEDUSA_RANKS] = {{0}}, n_all = 0, taken = 0, at = 0;
    int32_t *rank = malloc((size_t)t->n_batch * (size_t)t->n_heads * sizeof *rank), n = 0;
    memset(seen, 0, (size_t)t->n_heads * sizeof *seen);
    for (int32_t i = 0; i < m->n_candidates; i++)
        m->place[m->candidate[i]] = -1;
    for (int64_t i = 0; i < x->n; i++)
        n_all += x->held[i] == held && x->left[i] > 0;
    int64_t every = max_i64(n_all / max_i64(n_most, 1), 1);
    for (int64_t i = 0; i < x->n && rank; i++) {
        if (x->held[i] != held || x->left[i] == 0 || at++ % every != 0 || taken++ >= n_most)
            continue;
        m->batch[n++] = i;
        if (n == t->n_batch) {
            judge_batch(m, n, rank, hits, seen);
            n = 0;
        }
    }
    if (n > 0)
        judge_batch(m, n, rank, hits, seen);
    free(rank);
    for (int32_t k = 0; k < t->n_heads; k++)
        for (int32_t r = 0; r < MEDUSA_RANKS; r++)
            accuracy[k][r] = seen[k] ? (float)((double)hits[k][r] / (double)seen[k]) : 0;
}
