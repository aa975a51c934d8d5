/* Predictors of early exits with seeded random weights. */
#include "support/predictors.h"

#include <stdlib.h>

#include "support/rng.h"

static void fill(float *numbers, int64_t n, rng *r)
{
    for (int64_t i = 0; i < n; i++)
        numbers[i] = (float)(rng_unit(r) * 2 - 1);
}

void make_predictors(exit_predictors *p, int32_t n_layers, int32_t first, int32_t n_features,
                     int32_t n_hidden, uint64_t seed)
{
    float *numbers[4];
    rng r = rng_from(seed);
    int32_t n = n_layers - first;
    *p = (exit_predictors){.n_layers = n_layers,
                           .first = first,
                           .n_features = n_features,
                           .n_hidden = n_hidden,
                           .threshold = 0.75f,
                           .drafter = "Toy",
                           .drafter_file = "toy.gguf",
                           .drafter_identity = seed};
    if (exit_take(p, numbers, NULL) != DREY_OK)
        abort();
    fill(numbers[0], (int64_t)n * n_features * n_hidden, &r);
    fill(numbers[1], (int64_t)n * n_hidden, &r);
    fill(numbers[2], (int64_t)n * n_hidden, &r);
    fill(numbers[3], n, &r);
    exit_point(p, numbers);
    for (int32_t layer = first; layer <= n_layers; layer++)
        p->expected[layer] = 1 / (float)(n + 1);
    p->offline[n_layers - 1] = true;
}
