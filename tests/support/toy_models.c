/* Toys for groups of tests: see toy_models.h. */
#include "support/toy_models.h"

drey_model *target, *draft, *other;

void toys_open_pair(const toy_options *toy)
{
    toy_options small = *toy;
    small.n_layers = 2;
    temp_dir();
    target = toy_open("target.gguf", toy);
    draft = toy_open("draft.gguf", &small);
}

int toys_open(void **state)
{
    toy_options toy = toy_default();
    toys_open_pair(&toy);
    return 0;
}

drey_engine_options toys_options(drey_drafter which, int32_t n_context, int32_t n_threads)
{
    drey_engine_options o = plain_options(target, n_context, n_threads);
    o.drafter = which;
    o.draft = which == DREY_DRAFTER_MODEL ? draft : NULL;
    return o;
}

int toys_close(void **state)
{
    drey_model_close(&target);
    drey_model_close(&draft);
    drey_model_close(&other);
    temp_dir_remove();
    return 0;
}
