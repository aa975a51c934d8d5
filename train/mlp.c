/* Training of predictors: see mlp.h. */
#include "train/mlp.h"

#include <math.h>
#include <string.h>

#include "base/fmath.h"
#include "common/hash.h"
#include "exit/exit.h"

/* The parts of the parameters, those of one group. */
typedef struct parts {
    float *w1, *b1, *w2, *b2;
} parts;

static parts parts_of(float *parameters, const mlp_samples *s, int32_t group, int32_t n_hidden)
{
    float *b1 = parameters + (int64_t)s->n_features * n_hidden;
    float *w2 = b1 + (int64_t)s->n_groups * n_hidden;
    return (parts){
        .w1 = parameters, .b1 = b1 + (int64_t)group * n_hidden, .w2 = w2, .b2 = w2 + n_hidden};
}

static exit_mlp mlp_of(const float *parameters, const mlp_samples *s, int32_t group,
                       int32_t n_hidden)
{
    const float *b1 = parameters + (int64_t)s->n_features * n_hidden;
    const float *w2 = b1 + (int64_t)s->n_groups * n_hidden;
    return (exit_mlp){
        .w1 = parameters, .b1 = b1 + (int64_t)group * n_hidden, .w2 = w2, .b2 = w2[n_hidden]};
}

float mlp_add_gradient(const mlp_samples *s, int32_t i, const float *parameters, int32_t n_hidden,
                       float *gradient, float *unit)
{
    const float *x = s->x + (int64_t)i * s->n_features;
    exit_mlp m = mlp_of(parameters, s, s->group[i], n_hidden);
    parts g = parts_of(gradient, s, s->group[i], n_hidden);
    float z = exit_mlp_forward(&m, s->n_features, n_hidden, x, unit);
    float dz = 1 / (1 + exp_f32(-z)) - (float)s->label[i];
    *g.b2 += dz;
    for (int32_t j = 0; j < n_hidden; j++) {
        g.w2[j] += dz * unit[j];
        unit[j] = unit[j] > 0 ? dz * m.w2[j] : 0; /* from here on the gradient of its sum */
        g.b1[j] += unit[j];
    }
    for (int32_t k = 0; k < s->n_features; k++)
        for (int32_t j = 0; j < n_hidden; j++)
            g.w1[(int64_t)k * n_hidden + j] += x[k] * unit[j];
    return z;
}

double mlp_loss(const mlp_samples *s, const float *parameters, int32_t n_hidden)
{
    float unit[EXIT_HIDDEN];
    double sum = 0;
    for (int32_t i = 0; i < s->n; i++) {
        exit_mlp m = mlp_of(parameters, s, s->group[i], n_hidden);
        double z = (double)exit_mlp_forward(&m, s->n_features, n_hidden,
                                            s->x + (int64_t)i * s->n_features, unit);
        double most = z > 0 ? z : 0; /* log(1 + exp(z)) without overflow */
        sum += most + log_f64(1 + exp_f64(-fabs(z))) - (s->label[i] ? z : 0);
    }
    return sum / s->n;
}

/* ---- Standard features ---- */

typedef struct standard { /* mean and scale of a group: x' = (x - mean) * scale */
    float mean[EXIT_FEATURES], scale[EXIT_FEATURES];
} standard;

static standard standard_of(const mlp_samples *s, int32_t group)
{
    standard d;
    for (int32_t k = 0; k < s->n_features; k++) {
        double sum = 0, squares = 0, n = 0;
        for (int32_t i = 0; i < s->n; i++) {
            bool counts = s->group[i] == group;
            sum += counts ? (double)s->x[(int64_t)i * s->n_features + k] : 0;
            n += counts;
        }
        double mean = n > 0 ? sum / n : 0;
        for (int32_t i = 0; i < s->n; i++) {
            double off = (double)s->x[(int64_t)i * s->n_features + k] - mean;
            squares += s->group[i] == group ? off * off : 0;
        }
        double deviation = n > 0 ? sqrt(squares / n) : 0;
        d.mean[k] = (float)mean;
        d.scale[k] = deviation > 1e-6 ? (float)(1 / deviation) : 0; /* always the same: not used */
    }
    return d;
}

/* Memory that mlp_train takes of its arena. */
typedef struct trainer {
    const mlp_samples *s; /* as they are */
    mlp_samples standard; /* the same with standard features: x is our copy, [n][K] */
    standard *of_group;   /* [G] */
    float *x, *parameters, *gradient, *unit;
    int32_t *order; /* [n] */
    adam adam;
} trainer;

static void take_standard(trainer *r)
{
    const mlp_samples *s = r->s;
    for (int32_t group = 0; group < s->n_groups; group++)
        r->of_group[group] = standard_of(s, group);
    for (int32_t i = 0; i < s->n; i++)
        for (int32_t k = 0; k < s->n_features; k++) {
            int64_t at = (int64_t)i * s->n_features + k;
            const standard *d = &r->of_group[s->group[i]];
            r->x[at] = (s->x[at] - d->mean[k]) * d->scale[k];
        }
    r->standard = *s;
    r->standard.x = r->x;
}

/* Makes a group's parameters for standard features an MLP for features as they are. */
static void put_group(const trainer *r, int32_t group, int32_t n_hidden, const mlp_numbers *out)
{
    const standard *d = &r->of_group[group];
    exit_mlp m = mlp_of(r->parameters, r->s, group, n_hidden);
    float *w1 = out->w1 + (int64_t)group * r->s->n_features * n_hidden;
    float *b1 = out->b1 + (int64_t)group * n_hidden;
    memcpy(b1, m.b1, (size_t)n_hidden * sizeof *b1);
    for (int32_t k = 0; k < r->s->n_features; k++)
        for (int32_t j = 0; j < n_hidden; j++) {
            float w = m.w1[(int64_t)k * n_hidden + j] * d->scale[k];
            w1[(int64_t)k * n_hidden + j] = w;
            b1[j] -= w * d->mean[k];
        }
    memcpy(out->w2 + (int64_t)group * n_hidden, m.w2, (size_t)n_hidden * sizeof *m.w2);
    out->b2[group] = m.b2;
}

/* ---- Training ---- */

size_t mlp_train_bytes(const mlp_samples *s, const mlp_training *t)
{
    int64_t n = mlp_n_parameters(s->n_features, s->n_groups, t->n_hidden);
    return arena_size((size_t)s->n * (size_t)s->n_features * sizeof(float)) +
           arena_size((size_t)s->n_groups * sizeof(standard)) +
           2 * arena_size((size_t)n * sizeof(float)) +
           arena_size((size_t)t->n_hidden * sizeof(float)) +
           arena_size((size_t)s->n * sizeof(int32_t)) + adam_bytes(n);
}

static trainer take_trainer(const mlp_samples *s, const mlp_training *t, arena *a)
{
    int64_t n = mlp_n_parameters(s->n_features, s->n_groups, t->n_hidden);
    adam_options options;
    adam_options_init(&options);
    options.decay = t->decay;
    trainer r = {.s = s,
                 .of_group = arena_take(a, (size_t)s->n_groups * sizeof(standard)),
                 .x = arena_take(a, (size_t)s->n * (size_t)s->n_features * sizeof(float)),
                 .parameters = arena_take(a, (size_t)n * sizeof(float)),
                 .gradient = arena_take(a, (size_t)n * sizeof(float)),
                 .unit = arena_take(a, (size_t)t->n_hidden * sizeof(float)),
                 .order = arena_take(a, (size_t)s->n * sizeof(int32_t))};
    adam_init(&r.adam, n, &options, a);
    return r;
}

static uint64_t random_bits(uint64_t seed, uint64_t purpose, uint64_t i)
{
    uint64_t key[3] = {seed, purpose, i};
    return hash64_of(key, sizeof key);
}

/* Uniform, with a deviation of sqrt(2 / K) for units that are 0 half of the time (He et al., arXiv
 * 1502.01852), and of sqrt(1 / H) after them; biases are 0. */
static void begin_parameters(trainer *r, int32_t n_hidden, uint64_t seed)
{
    int64_t n_w1 = (int64_t)r->s->n_features * n_hidden;
    int64_t from_w2 = n_w1 + (int64_t)r->s->n_groups * n_hidden;
    float limit1 = sqrtf(6.0f / (float)r->s->n_features), limit2 = sqrtf(3.0f / (float)n_hidden);
    for (int64_t i = 0; i < r->adam.n; i++) {
        float u = (float)(random_bits(seed, 0, (uint64_t)i) >> 40) * 0x1p-23f - 1;
        bool is_w2 = i >= from_w2 && i < r->adam.n - 1;
        r->parameters[i] = i < n_w1 ? u * limit1 : is_w2 ? u * limit2 : 0;
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

static void train_batch(trainer *r, int32_t n_hidden, int32_t from, int32_t to)
{
    int64_t n = r->adam.n;
    memset(r->gradient, 0, (size_t)n * sizeof *r->gradient);
    for (int32_t i = from; i < to; i++)
        mlp_add_gradient(&r->standard, r->order[i], r->parameters, n_hidden, r->gradient, r->unit);
    for (int64_t i = 0; i < n; i++)
        r->gradient[i] /= (float)(to - from);
    adam_begin(&r->adam);
    adam_apply(&r->adam, r->parameters, r->gradient, 0, n);
}

static bool train_epochs(trainer *r, const mlp_training *t)
{
    int32_t n = r->s->n, n_batches = (n + t->n_batch - 1) / t->n_batch;
    double n_steps = (double)n_batches * t->n_epochs, done = 0;
    for (int32_t epoch = 0; epoch < t->n_epochs; epoch++) {
        shuffle(r->order, n, t->seed, epoch);
        for (int32_t from = 0; from < n; from += t->n_batch) {
            double turn = cos_f64(3.14159265358979 * done++ / n_steps);
            r->adam.options.rate = t->rate * (float)(0.5 * (1 + turn));
            train_batch(r, t->n_hidden, from, from + t->n_batch < n ? from + t->n_batch : n);
        }
        if (t->progress && !t->progress(t->user, (epoch + 1.0) / t->n_epochs))
            return false;
    }
    return true;
}

bool mlp_train(const mlp_samples *s, const mlp_training *t, const mlp_numbers *out, arena *a)
{
    size_t mark = arena_mark(a);
    trainer r = take_trainer(s, t, a);
    take_standard(&r);
    begin_parameters(&r, t->n_hidden, t->seed);
    bool whole = train_epochs(&r, t);
    for (int32_t group = 0; group < s->n_groups; group++)
        put_group(&r, group, t->n_hidden, out);
    arena_rewind(a, mark);
    return whole;
}
