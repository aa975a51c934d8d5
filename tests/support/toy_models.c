/* Toys for groups of tests: see toy_models.h. */
#include "support/toy_models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support/temp_dir.h"

drey_model *target, *draft, *other;

void must(drey_status status, const drey_error *err)
{
    if (status != DREY_OK)
        fail_msg("%s", err->message);
}

drey_model *toy_open(const char *name, const toy_options *toy)
{
    drey_model *m = NULL;
    drey_error err = {0};
    toy_write(temp_path(name), toy);
    must(drey_model_open(&m, temp_path(name), &err), &err);
    return m;
}

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
    (void)state;
    toy_options toy;
    toy_options_init(&toy);
    toys_open_pair(&toy);
    return 0;
}

int toys_close(void **state)
{
    (void)state;
    drey_model_close(&target);
    drey_model_close(&draft);
    drey_model_close(&other);
    temp_dir_remove();
    return 0;
}
