/* Writes the first inputs of fuzz_exit: good files of each kind, of another model, and of numbers
 * out of their bounds. Usage: make_exit_corpus FOLDER */
#include "support/predictors.h"

#include <stdio.h>

static int save(exit_predictors *p, uint64_t identity, const char *folder, const char *name)
{
    char path[4096];
    drey_error err = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    drey_status status = exit_write_as(p, path, identity, "Toy", &err);
    if (status != DREY_OK)
        fprintf(stderr, "%s\n", err.message);
    exit_close(p);
    return status != DREY_OK;
}

int main(int n_args, char **args)
{
    exit_predictors p;
    if (n_args != 2)
        return 2;
    make_predictors(&p, 4, 2, 12, 2, 1);
    int failed = save(&p, 5, args[1], "speculative");
    make_predictors(&p, 3, 1, 16, 1, 2);
    p.source = EXIT_FROM_TARGET;
    p.source_layer = 1;
    failed |= save(&p, 5, args[1], "target");
    make_predictors(&p, 4, 2, 12, 2, 1);
    failed |= save(&p, 6, args[1], "foreign");
    make_predictors(&p, 4, 2, 12, 2, 1);
    p.threshold = 2;
    failed |= save(&p, 5, args[1], "threshold");
    make_predictors(&p, 4, 2, 12, 2, 1);
    p.expected[4] = 0.9f;
    failed |= save(&p, 5, args[1], "shares");
    return failed;
}
