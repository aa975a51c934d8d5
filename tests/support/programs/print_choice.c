/* Prints the draft that a program gets that links the library alone: a line as drey plan has it.
 *   print_choice MODEL.gguf CACHE_FOLDER [POLICY] */
#include "drey/tune.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    drey_engine_options options;
    drey_draft_choice choice = {.draft = NULL};
    drey_model *model = NULL;
    drey_error err = {.code = DREY_OK};
    drey_engine_options_init(&options);
    if (argc < 3 || (argc > 3 && !drey_policy_parse(argv[3], &options.policy)))
        return 2;
    drey_status status = drey_model_open(&model, argv[1], &err);
    options.target = model;
    options.memory_bytes = DREY_MEMORY_UNLIMITED;
    options.n_context = 256;
    options.n_threads = 1;
    if (status == DREY_OK)
        status = drey_choose_draft(&options, argv[2], &choice, &err);
    if (choice.why[0])
        printf("draft %s\n", choice.why);
    if (status != DREY_OK)
        fprintf(stderr, "%s\n", err.message);
    drey_draft_choice_close(&choice);
    drey_model_close(&model);
    return status != DREY_OK;
}
