/* The features of predictors, and their arithmetic: see exit.h. */
#include "exit/exit.h"

#include <assert.h>

#include "base/fmath.h"
#include "common/hash.h"

void exit_features_begin(exit_features *f, int32_t n, const float *draft_logp)
{
    assert(n >= 1 && n <= EXIT_CANDIDATES);
    *f = (exit_features){.n = n};
    for (int32_t i = 0; i < EXIT_CANDIDATES; i++)
        f->draft_logp[i] = i >= n ? EXIT_LEAST_LOGP : draft_logp ? draft_logp[i] : 0;
    for (int32_t i = 0; i < n; i++)
        if (!(f->draft_logp[i] > EXIT_LEAST_LOGP)) /* NaN as well */
            f->draft_logp[i] = EXIT_LEAST_LOGP;
}

void exit_features_next(exit_features *f, const float *logit)
{
    float top = logit[0], e[EXIT_CANDIDATES], sum = 0;
    for (int32_t i = 1; i < f->n; i++)
        top = logit[i] > top ? logit[i] : top;
    for (int32_t i = 0; i < f->n; i++) {
        e[i] = exp_f32(logit[i] - top);
        sum += e[i];
    }
    for (int32_t i = 0; i < f->n; i++) {
        float probability = e[i] / sum;
        f->logit[i] = logit[i];
        f->change[i] = probability - f->probability[i];
        f->probability[i] = probability;
    }
}

void exit_features_put(const exit_features *f, float *x)
{
    for (int32_t i = 0; i < EXIT_CANDIDATES; i++) {
        x[i] = f->logit[i];
        x[EXIT_CANDIDATES + i] = f->probability[i];
        x[2 * EXIT_CANDIDATES + i] = f->change[i];
        x[3 * EXIT_CANDIDATES + i] = f->draft_logp[i];
    }
}

float exit_mlp_forward(const exit_mlp *m, int32_t n_features, int32_t n_hidden, const float *x,
                       float *unit)
{
    float z = m->b2;
    for (int32_t j = 0; j < n_hidden; j++)
        unit[j] = m->b1[j];
    for (int32_t k = 0; k < n_features; k++)
        for (int32_t j = 0; j < n_hidden; j++)
            unit[j] += m->w1[k * n_hidden + j] * x[k];
    for (int32_t j = 0; j < n_hidden; j++) {
        unit[j] = unit[j] > 0 ? unit[j] : 0;
        z += m->w2[j] * unit[j];
    }
    return z;
}

float exit_mlp_score(const exit_mlp *m, int32_t n_features, int32_t n_hidden, const float *x)
{
    const float most = 0x1.fffffep-1f; /* the last number below 1 */
    float unit[EXIT_HIDDEN];
    assert(n_hidden <= EXIT_HIDDEN);
    float score = 1 / (1 + exp_f32(-exit_mlp_forward(m, n_features, n_hidden, x, unit)));
    return score > most ? most : score;
}

float exit_score_of(const exit_predictors *p, int32_t layer, const float *x)
{
    if (layer < p->first || layer >= p->n_layers || !p->mlp[layer].w1)
        return 0;
    return exit_mlp_score(&p->mlp[layer], p->n_features, p->n_hidden, x);
}

float exit_score(const exit_predictors *p, int32_t layer, const exit_features *f)
{
    float x[EXIT_FEATURES];
    exit_features_put(f, x);
    return exit_score_of(p, layer, x);
}

float exit_random_score(uint64_t seed, int32_t position, int32_t layer)
{
    uint64_t key[2] = {seed, (uint64_t)(uint32_t)position << 32 | (uint32_t)layer};
    return (float)(hash64_of(key, sizeof key) >> 40) * 0x1p-24f;
}

const char *exit_source_name(drey_exit_source source)
{
    static const char *const names[] = {"draft", "text", "target", "heads"};
    return (unsigned)source < sizeof names / sizeof names[0] ? names[source] : NULL;
}
