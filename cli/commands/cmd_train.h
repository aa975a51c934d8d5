/* The parts of drey train. */
#pragma once

#include "cli/commands/models.h"
#include "cli/files/prompts.h"
#include "cli/terminal/progress.h"
#include "common/json_writer.h"
#include "drey/train.h"

#include <stdio.h>

/* State from which every training starts. */
typedef struct training {
    const cli_settings *settings;
    models models;
    prompt_list list;
    drey_train_prompt *prompts; /* [list.n] */
    progress progress;
    char *output;   /* path of the side file: named, or next to the model */
    double seconds; /* time that the training took */
} training;

/* Differences between the kinds of training. */
typedef struct training_kind {
    const char *suffix;  /* suffix of the side file's usual name */
    size_t report_bytes; /* size of the library's report */
    bool keeps;          /* part of what was done when it is interrupted, and its error says so */
    drey_status (*train)(training *t, void *report, drey_error *err);
    void (*show)(const training *t, const void *report, FILE *out);
    void (*put)(const training *t, const void *report, json_writer *w);
} training_kind;

extern const training_kind train_exit, train_medusa, train_eagle;
