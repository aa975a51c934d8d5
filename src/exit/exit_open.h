/* Finds and opens the predictors of an engine, and says what they mean for its plan. */
#pragma once

#include "drey/choices.h"
#include "exit/exit_file.h"

typedef struct exit_predictors exit_predictors;
typedef struct gguf gguf;

/* A deferred row takes part in every later pass from its layer on: eight with the pass's own row. A
 * path of a tree has several. */
enum { EXIT_MOST_SINGLE = 7, EXIT_MOST_PATH = 15 };

typedef struct exit_user { /* the engine that wants them; borrowed */
    const char *path;      /* path of their file; NULL: the usual one */
    const gguf *target;
    int32_t n_layers;         /* the target's */
    const char *drafter;      /* its name; NULL: there is no drafter */
    drey_exit_source guesses; /* source of the candidates */
    const gguf *draft;        /* NULL: no model drafts */
    const char *draft_name;
} exit_user;

/* DREY_ERR_IO: there are none; DREY_ERR_MISMATCH: they are for another model or another drafter;
 * the errors of exit_open. */
drey_status exit_open_for(exit_predictors *p, const exit_user *user, drey_error *err);

/* Most deferred rows of a session, and of a pass. single: passes verify the root alone. */
int32_t exit_most_deferred(drey_exit mode, bool single);
/* The mean number of layers that a pass goes through, over the texts that the predictors were
 * trained on, with the passes that complete tokens which left; 0: nearly all. Sets p->passes. */
double exit_mean_layers(exit_predictors *p, bool single);
