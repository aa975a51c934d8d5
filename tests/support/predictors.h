/* Predictors of early exits with seeded random weights. */
#pragma once

#include "exit/exit_file.h"

/* For a model of n_layers layers, from layer `first` on. exit_close gives them back. Aborts without
 * memory. */
void make_predictors(exit_predictors *p, int32_t n_layers, int32_t first, int32_t n_features,
                     int32_t n_hidden, uint64_t seed);
