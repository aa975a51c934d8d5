/* The models of a group of tests: toys in its temporary folder, open from its setup to its
 * teardown. */
#pragma once

#include "support/scene.h"

extern drey_model *target, *draft, *other; /* NULL: the group has none */

/* Setups: target as the options say, and a draft of two layers, in the temporary folder. */
void toys_open_pair(const toy_options *toy);
int toys_open(void **state); /* with toy_default's */
/* plain_options with the target, and this drafter: the draft, where it is a model. */
drey_engine_options toys_options(drey_drafter which, int32_t n_context, int32_t n_threads);
/* The teardown of both: closes what is open, and removes the folder. */
int toys_close(void **state);
