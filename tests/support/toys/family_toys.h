/* Toys of families of models that differ from llama's layers in forms (arch.h) and sizes alone: a
 * row each. Their goldens are made by scripts/make-family-goldens.py. */
#pragma once

#include "support/toy.h"

typedef struct family_row {
    const char *name, *architecture;
    uint32_t form; /* TOY_... */
    const toy_key *keys;
    uint64_t seed;
    uint32_t type;
    int32_t n_layers, n_heads_kv, head_dim, n_rot; /* 0: as toy_default has it */
    bool tied;
    toy_experts experts;
    toy_delta delta;
} family_row;

/* Toys with delta nets come last, of which the last are mixtures. */
enum { FIRST_DELTA_TOY = 12, FIRST_DELTA_MIXTURE = 14, N_FAMILY_TOYS = 17 };
/* Fills the options of toy i and returns its name. */
const char *family_toy(int i, toy_options *options);
