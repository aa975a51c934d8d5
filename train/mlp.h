/* Training of predictors: MLPs of one hidden layer by binary cross-entropy, with Adam.
 *
 *   z = b2 + sum_j w2[j] relu(b1[g][j] + sum_k w1[k][j] x[k])     loss = log(1 + exp(z)) - label z
 *
 * Samples have groups g, such as the layers of a model, which are trained together: they have
 * everything in common except b1, and features are scaled to mean 0 and deviation 1 in each group.
 * So a layer also learns from the others what is rare in its own samples. In the end each group
 * gets its own MLP, which takes features as they are.
 *
 * During training the parameters are stored one after another: w1 [K][H], b1 [G][H], w2 [H], b2. */
#pragma once

#include "train/adam.h"

typedef struct mlp_samples {
    int32_t n, n_features, n_groups; /* n, K, G */
    const float *x;                  /* [n][K] */
    const uint8_t *label;            /* [n]: 0 or 1 */
    const uint8_t *group;            /* [n] */
} mlp_samples;

typedef struct mlp_training {
    int32_t n_hidden; /* H */
    int32_t n_epochs, n_batch;
    float rate;  /* falls to 0 along half a cosine */
    float decay; /* see adam_options */
    uint64_t seed;
    /* The part of 1 that is done; false: stop; may be NULL. */
    bool (*progress)(void *user, double part);
    void *user;
} mlp_training;

/* The groups' MLPs: w1 [G][K][H], b1 [G][H], w2 [G][H], b2 [G]. */
typedef struct mlp_numbers {
    float *w1, *b1, *w2, *b2;
} mlp_numbers;

static inline int64_t mlp_n_parameters(int32_t n_features, int32_t n_groups, int32_t n_hidden)
{
    return ((int64_t)n_features + n_groups + 1) * n_hidden + 1;
}

/* Bytes of an arena, for mlp_train. */
size_t mlp_train_bytes(const mlp_samples *s, const mlp_training *t);
/* Trains from the seed: the same samples give the same bits. Takes memory from `a` and gives it
 * back. n >= 1. False: the callback stopped it. */
bool mlp_train(const mlp_samples *s, const mlp_training *t, const mlp_numbers *out, arena *a);

/* The mean loss over samples as they are, in natural units. */
double mlp_loss(const mlp_samples *s, const float *parameters, int32_t n_hidden);
/* Adds sample i's gradient to gradient [mlp_n_parameters] and returns its z; unit: [H],
 * overwritten. */
float mlp_add_gradient(const mlp_samples *s, int32_t i, const float *parameters, int32_t n_hidden,
                       float *gradient, float *unit);
