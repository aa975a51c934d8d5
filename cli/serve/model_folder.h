/* The models of drey serve --models FOLDER (model_files.h), and whether each can be run. */
#pragma once

#include <time.h>

#include "drey/drey_plan.h"
#include "serve/router/model_router.h"

typedef struct model_folder {
    router_model models[ROUTER_MAX_MODELS]; /* [n], by name; then those that came later */
    struct {
        char why[PROCESS_WHY_BYTES]; /* error of models[i] */
        struct timespec changed;     /* its file, when it was looked at */
        int64_t n_bytes;
    } checks[ROUTER_MAX_MODELS];
    int32_t n;
    const char *path; /* borrowed */
    char sockets[64]; /* a folder for them, the user's own; "": not made */
} model_folder;

/* DREY_ERR_IO: the folder cannot be read; DREY_ERR_USAGE: it has no models, or too many. */
drey_status model_folder_open(model_folder *f, const char *path, drey_error *err);
/* Adds the files that have come since, as far as there is room, and looks at those that have
 * changed. Others keep their places. */
void model_folder_look(model_folder *f);
/* Finds the models that a text means, with the names of the command (model_store_find), with
 * ollama's ":latest" after it or without; as router_options.mean has it. */
int32_t model_folder_mean(const model_folder *f, const char *text, int32_t *found, int32_t room,
                          int32_t *near);
/* Removes the folder of sockets. */
void model_folder_close(model_folder *f);

/* Returns the memory that a plan without a limit takes in all. */
uint64_t model_bytes(const drey_plan *plan);
