/* drey train: side files that a model's own text teaches. */
#include "cli/commands/cmd_train.h"

#include "cli/commands/commands.h"
#include "cli/files/json_file.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdlib.h>
#include <string.h>

static drey_status read_prompts(training *t, drey_error *err)
{
    TRY(t->settings->prompts
            ? prompts_read(&t->list, t->settings->prompts, t->settings->common.memory_bytes, err)
            : prompts_usual(&t->list, err));
    TRY(prompts_tokenize(&t->list, t->models.target, err));
    t->prompts = calloc((size_t)t->list.n, sizeof *t->prompts);
    if (!t->prompts)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the prompts");
    for (int i = 0; i < t->list.n; i++)
        t->prompts[i] =
            (drey_train_prompt){.ids = t->list.prompts[i].ids, .n_ids = t->list.prompts[i].n_ids};
    return DREY_OK;
}

drey_status training_open(training *t, const cli_settings *settings, const char *suffix,
                          drey_error *err)
{
    *t = (training){.settings = settings, .progress.quiet = settings->quiet};
    size_t n = strlen(settings->common.model) + strlen(suffix) + 1;
    t->output = settings->output ? strdup(settings->output) : malloc(n);
    if (!t->output)
        FAIL(err, DREY_ERR_MEMORY, "out of memory for the name of a file");
    if (!settings->output)
        snprintf(t->output, n, "%s%s", settings->common.model, suffix);
    TRY(json_check_path(settings->json, err));
    TRY(models_open(&t->models, settings, err));
    if (settings->command == CLI_TRAIN_MEDUSA && !settings->prompts)
        return DREY_OK; /* the model asks itself */
    return read_prompts(t, err);
}

void training_close(training *t)
{
    free(t->prompts);
    free(t->output);
    prompts_free(&t->list);
    models_close(&t->models);
}

void training_progress(void *user, drey_progress what, uint64_t done, uint64_t total)
{
    progress_report(&((training *)user)->progress, what, done, total);
}

bool training_go_on(void *user)
{
    (void)user;
    return signals_exit_code() == 0;
}

int train_main(const cli_settings *settings)
{
    return settings->command == CLI_TRAIN_MEDUSA ? train_medusa(settings) : train_exit(settings);
}
