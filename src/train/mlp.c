/* Training of a predictor: see mlp.h. */
#include "train/mlp.h"

#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "base/hash.h"
#include "exit/exit.h"

/* Where the parts of the parameters lie. */
typedef struct parts {
    float *w1, *b1, *w2, *b2;
} parts;

static parts parts_of(float *parameters, int32_t n_features, int32_t n_hidden)
{
    parts p = {.w1 = parameters};
    p.b1 = p.w1 + (int64_t)n_features * n_hidden;
    p.w2 = p.b1 + n_hidden;
    p.b2 = p.w2 + n_hidden;
    return p;
}

static exit_mlp mlp_of(const float *parameters, int32_t n_features, int32_t n_hidden)
{
    const float *b1 = parameters + (int64_t)n_features * n_hidden, *w2 = b1 + n_hidden;
    return (exit_mlp){.w1 = parameters, .b1 = b1, .w2 = w2, .b2 = w2[n_hidden]};
}

float mlp_add_gradient(const float *parameters, const float *x, int32_t n_features,
                       int32_t n_hidden, uint8_t label, float *gradient, float *unit)
{
    exit_mlp m = mlp_of(parameters, n_features, n_hidden);
    parts g = parts_of(gradient, n_features, n_hidden);
    float z = exit_mlp_forward(&m, n_features, n_hidden, x, unit);
    float dz = 1 / (1 + exp_f32(-z)) - (float)label;
    *g.b2 += dz;
    for (int32_t j = 0; j < n_hidden; j++) {
        g.w2[j] += dz * unit[j];
        unit[j] = unit[j] > 0 ? dz * m.w2[j] : 0; /* from here on the gradient of its sum */
        g.b1[j] += unit[j];
    }
    for (int32_t k = 0; k < n_features; k++)
        for (int32_t j = 0; j < n_hidden; j++)
            g.w1[(int64_t)k * n_hidden + j] += x[k] * unit[j];
    return z;
}

double mlp_loss(const mlp_samples *s, const float *parameters, int32_t n_hidden)
{
    exit_mlp m = mlp_of(parameters, s->n_features, n_hidden);
    float unit[EXIT_HIDDEN];
    double sum = 0;
    for (int32_t i = 0; i < s->n; i++) {
        double z = (double)exit_mlp_forward(&m, s->n_features, n_hidden,
                                            s->x + (int64_t)i * s->n_features, unit);
        double most = z > 0 ? z : 0; /* log(1 + exp(z)) without overflow */
        sum += most + log_f64(1 + exp_f64(-fabs(z))) - (s->label[i] ? z : 0);
    }
    return sum / s->n;
}

/* ---- Standard features ---- */

typedef struct standard { /* x' = (x - mean) * scale */
    float mean[EXIT_FEATURES], scale[EXIT_FEATURES];
} standard;

static standard standard_of(const mlp_samples *s)
{
    standard d;
    for (int32_t k = 0; k < s->n_features; k++) {
        double sum = 0, squares = 0;
        for (int32_t i = 0; i < s->n; i++)
            sum += (double)s->x[(int64_t)i * s->n_features + k];
        double mean = sum / s->n;
        for (int32_t i = 0; i < s->n; i++) {
            double off = (double)s->x[(int64_t)i * s->n_features + k] - mean;
            squares += off * off;
        }
        double deviation = sqrt(squares / s->n);
        d.mean[k] = (float)mean;
        d.scale[k] = deviation > 1e-6 ? (float)(1 / deviation) : 0; /* always the same: not used */
    }
    return d;
}

/* Parameters for standard features become parameters for features as they are. */
static void undo_standard(parts p, const standard *d, int32_t n_features, int32_t n_hidden)
{
    for (int32_t k = 0; k < n_features; k++)
        for (int32_t j = 0; j < n_hidden; j++) {
            float *w = &p.w1[(int64_t)k * n_hidden + j];
            *w *= d->scale[k];
            p.b1[j] -= *w * d->mean[k];
        }
}

/* ---- Training ---- */

/* What mlp_train takes of its arena. */
typedef struct trainer {
    float *x, *gradient, *unit; /* [n][K], [parameters], [H] */
    int32_t *order;             /* [n] */
    adam adam;
} trainer;

size_t mlp_train_bytes(const mlp_samples *s, const mlp_training *t)
{
    int64_t n = mlp_n_parameters(s->n_features, t->n_hidden);
    return arena_size((size_t)s->n * (size_t)s->n_features * sizeof(float)) +
           arena_size((size_t)n * sizeof(float)) + arena_size((size_t)t->n_hidden * sizeof(float)) +
           arena_size((size_t)s->n * sizeof(int32_t)) + adam_bytes(n);
}

static uint64_t random_bits(uint64_t seed, uint64_t purpose, uint64_t i)
{
    uint64_t key[3] = {seed, purpose, i};
    return hash64_of(key, sizeof key);
}

/* Uniform, with a deviation of sqrt(2 / K) for units that are 0 half of the time (He et al.,
 * arXiv 1502.01852), and of sqrt(1 / H) behind them; biases are 0. */
static void begin_parameters(float *parameters, int32_t n_features, int32_t n_hidden, uint64_t seed)
{
    int64_t n = mlp_n_parameters(n_features, n_hidden), n_w1 = (int64_t)n_features * n_hidden;
    float limit1 = sqrtf(6.0f / (float)n_features), limit2 = sqrtf(3.0f / (float)n_hidden);
    for (int64_t i = 0; i < n; i++) {
        float u = (float)(random_bits(seed, 0, (uint64_t)i) >> 40) * 0x1p-23f - 1;
        bool is_w2 = i >= n_w1 + n_hidden && i < n - 1;
        parameters[i] = i < n_w1 ? u * limit1 : is_w2 ? u * limit2 : 0;
    }
}

static void shuffle(int32_t *order, int32_t n, uint64_t seed, int32_t epoch)
{
    for (int32_t i = 0; i < n; i++)
        order[i] = i;
    for (int32_t i = n - 1; i > 0; i--) {
        uint64_t key = (uint64_t)epoch << 32 | (uint32_t)i;
        int32_t other = (int32_t)(random_bits(seed, 1, key) % (uint64_t)(i + 1));
        int32_t kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
}

static void train_batch(trainer *r, const mlp_samples *s, int32_t n_hidden, float *parameters,
                        int32_t from, int32_t to)
{
    int64_t n = mlp_n_parameters(s->n_features, n_hidden);
    memset(r->gradient, 0, (size_t)n * sizeof *r->gradient);
    for (int32_t i = from; i < to; i++) {
        int32_t sample = r->order[i];
        mlp_add_gradient(parameters, r->x + (int64_t)sample * s->n_features, s->n_features,
                         n_hidden, s->label[sample], r->gradient, r->unit);
    }
    for (int64_t i = 0; i < n; i++)
        r->gradient[i] /= (float)(to - from);
    adam_begin(&r->adam);
    adam_apply(&r->adam, parameters, r->gradient, 0, n);
}

static void train_epochs(trainer *r, const mlp_samples *s, const mlp_training *t, float *parameters)
{
    int32_t n_batches = (s->n + t->n_batch - 1) / t->n_batch;
    double n_steps = (double)n_batches * t->n_epochs, done = 0;
    for (int32_t epoch = 0; epoch < t->n_epochs; epoch++) {
        shuffle(r->order, s->n, t->seed, epoch);
        for (int32_t from = 0; from < s->n; from += t->n_batch) {
            int32_t to = from + t->n_batch < s->n ? from + t->n_batch : s->n;
            double turn = cos_f64(3.14159265358979 * done++ / n_steps);
            r->adam.options.rate = t->rate * (float)(0.5 * (1 + turn));
            train_batch(r, s, t->n_hidden, parameters, from, to);
        }
    }
}

void mlp_train(const mlp_samples *s, const mlp_training *t, float *parameters, arena *a)
{
    size_t mark = arena_mark(a);
    int64_t n = mlp_n_parameters(s->n_features, t->n_hidden);
    adam_options options;
    adam_options_init(&options);
    options.decay = t->decay;
    trainer r = {.x = arena_take(a, (size_t)s->n * (size_t)s->n_features * sizeof(float)),
                 .gradient = arena_take(a, (size_t)n * sizeof(float)),
                 .unit = arena_take(a, (size_t)t->n_hidden * sizeof(float)),
                 .order = arena_take(a, (size_t)s->n * sizeof(int32_t))};
    adam_init(&r.adam, n, &options, a);
    standard d = standard_of(s);
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t k = 0; k < s->n_features; k++) {
            int64_t at = (int64_t)i * s->n_features + k;
            r.x[at] = (s->x[at] - d.mean[k]) * d.scale[k];
        }
    begin_parameters(parameters, s->n_features, t->n_hidden, t->seed);
    train_epochs(&r, s, t, parameters);
    undo_standard(parts_of(parameters, s->n_features, t->n_hidden), &d, s->n_features, t->n_hidden);
    arena_rewind(a, mark);
}
