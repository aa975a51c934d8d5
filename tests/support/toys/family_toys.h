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
} family_row;

enum { N_FAMILY_TOYS = 13, FAMILY_WITH_STATES = N_FAMILY_TOYS - 1 };
/* Fills the options of toy i and returns its name. */
const char *family_toy(int i, toy_options *options);
