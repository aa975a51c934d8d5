/* The parts of drey train. */
#ifndef DREY_CLI_CMD_TRAIN_H
#define DREY_CLI_CMD_TRAIN_H

#include "cli/commands/models.h"
#include "cli/terminal/progress.h"
#include "cli/files/prompts.h"
#include "drey/train.h"

/* What every training starts from. */
typedef struct training {
    const cli_settings *settings;
    models models;
    prompt_list list;
    drey_train_prompt *prompts; /* [list.n] */
    progress progress;
    char *output;   /* where the side file goes: named, or beside the model */
    double seconds; /* that the training took */
} training;

/* Opens the models, reads the prompts (--prompts, or the usual ones; for heads none) and tokenizes
 * them; suffix: of the side file's usual name. training_close takes a half-opened one, too. */
drey_status training_open(training *t, const cli_settings *settings, const char *suffix,
                          drey_error *err);
void training_close(training *t);
/* For the library's options: user is the training. */
void training_progress(void *user, drey_progress what, uint64_t done, uint64_t total);
bool training_go_on(void *user);

int train_exit(const cli_settings *settings);
int train_medusa(const cli_settings *settings);

#endif
