/* Training of a predictor: an MLP of one hidden layer by binary cross-entropy, with Adam.
 *
 *   z = b2 + sum_j w2[j] relu(b1[j] + sum_k w1[k][j] x[k])     loss = log(1 + exp(z)) - label z
 *
 * Parameters lie behind each other: w1 [K][H], b1 [H], w2 [H], b2, as in exit_mlp. */
#ifndef DREY_TRAIN_MLP_H
#define DREY_TRAIN_MLP_H

#include "train/adam.h"

typedef struct mlp_samples {
    int32_t n, n_features; /* n, K */
    const float *x;        /* [n][K] */
    const uint8_t *label;  /* [n]: 0 or 1 */
} mlp_samples;

typedef struct mlp_training {
    int32_t n_hidden; /* H */
    int32_t n_epochs, n_batch;
    float rate;  /* falls to 0 along half a cosine */
    float decay; /* see adam_options */
    uint64_t seed;
} mlp_training;

static inline int64_t mlp_n_parameters(int32_t n_features, int32_t n_hidden)
{
    return (int64_t)n_features * n_hidden + 2 * (int64_t)n_hidden + 1;
}

/* Of an arena, for mlp_train. */
size_t mlp_train_bytes(const mlp_samples *s, const mlp_training *t);
/* Trains from the seed alone: the same samples give the same bits. Features are brought to mean 0
 * and deviation 1 meanwhile, which the parameters undo in the end: they take features as they are.
 * parameters: [mlp_n_parameters], written. Takes memory from `a` and gives it back; n >= 1. */
void mlp_train(const mlp_samples *s, const mlp_training *t, float *parameters, arena *a);

/* The mean loss over samples, in natural units. */
double mlp_loss(const mlp_samples *s, const float *parameters, int32_t n_hidden);
/* Adds one sample's gradient to gradient [mlp_n_parameters] and returns its z; unit:
 * [H], overwritten. */
float mlp_add_gradient(const float *parameters, const float *x, int32_t n_features,
                       int32_t n_hidden, uint8_t label, float *gradient, float *unit);

#endif
