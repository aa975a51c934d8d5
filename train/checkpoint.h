/* The state of a training in a file, so that an interrupted one continues: a head that says which
 * training it belongs to, then the parameters and Adam's moments. */
#pragma once

#include "train/adam.h"

/* Facts that have to be equal for a training to continue. */
typedef struct checkpoint_about {
    char magic[8];
    uint64_t identity, seed, texts; /* texts: a hash of how often they hold each token */
    int64_t n_parameters, n_positions, n_steps;
    int32_t n_ids, shape; /* shape: of what is trained, such as its number of heads */
} checkpoint_about;

drey_status checkpoint_save(const char *path, const checkpoint_about *about, int64_t step,
                            const float *parameters, const adam *o, drey_error *err);
/* False: the file is not there or belongs to another training; parameters and moments may have
 * been overwritten. */
bool checkpoint_restore(const char *path, const checkpoint_about *about, int64_t *step,
                        float *parameters, adam *o);
