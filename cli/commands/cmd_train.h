/* The parts of drey train. */
#pragma once

#include "cli/commands/models.h"
#include "cli/files/prompts.h"
#include "cli/terminal/progress.h"
#include "common/json_writer.h"
#include "drey/train.h"

#include <stdio.h>

/* What every training starts from. */
typedef struct training {
    const cli_settings *settings;
    models models;
    prompt_list list;
    drey_train_prompt *prompts; /* [list.n] */
    progress progress;
    char *output;   /* where the side file goes: named, or next to the model */
    double seconds; /* that the training took */
} training;

/* What a kind of training has of its own. */
typedef struct training_kind {
    const char *suffix;  /* of the side file's usual name */
    size_t report_bytes; /* of the library's report */
    bool keeps;          /* part of what was done when it is interrupted, and its error says so */
    drey_status (*train)(training *t, void *report, drey_error *err);
    void (*show)(const training *t, const void *report, FILE *out);
    void (*put)(const void *report, json_writer *w);
} training_kind;

extern const training_kind train_exit, train_medusa, train_eagle;

/* "texts ... tokens to learn from, ... held out; written in ...". */
void show_texts(FILE *out, int64_t n_positions, int64_t n_held, int64_t n_kept, int64_t n_texts,
                double write_s);
/* "NAME ..." with a share in percent for each of n ranks, and their sum. */
void show_ranks(FILE *out, const char *name, const float *share, int32_t n);
/* {"accuracy_by_rank": [...], "held_out_positions": ...}, of an array. n: at most 8. */
void put_ranks(json_writer *w, const float *share, int32_t n, int64_t n_held);
