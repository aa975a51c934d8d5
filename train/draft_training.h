/* Common part of the trainers of drafters: the target writes texts, the tokens that are guessed are
 * chosen from them, then steps are taken, with a checkpoint every minute, and the file is written.
 * A kind says what is trained.
 *
 *     OUTPUT.texts -> slice of tokens, rows of the head -> steps <-> OUTPUT.checkpoint -> OUTPUT */
#pragma once

#include "drey/train.h"
#include "kernel/kernel.h"
#include "base/arena.h"
#include "os/pool.h"
#include "train/adam.h"
#include "train/self_texts.h"
#include "train/token_slice.h"

enum { DRAFT_MOST_JUDGED = 8192 }; /* positions that the file's accuracies are of */

typedef struct draft_training draft_training;

/* State of one kind's trainer, borrowed: what steps change and a checkpoint keeps. */
typedef struct trained_state {
    float *parameters; /* [n_parameters] */
    int64_t n_parameters;
    adam *adam;
    int64_t *step, n_steps;
    const double *loss; /* loss of the last step, per position */
    int64_t n_taught;   /* positions to train with */
} trained_state;

typedef struct draft_training_kind {
    const char *ending; /* ending of the name of the file next to the model */
    const char *what;   /* is trained, in messages: "training 4 heads" */
    /* part that is missing in a file of this name that may not be replaced */
    const char *lacks;
    char magic[8];         /* magic of checkpoints; not a string */
    float rate;            /* usual learning rate */
    int32_t steps_between; /* looks at the clock */
    bool (*may_replace)(const char *path);
    /* After the options, before texts are written: what the kind itself needs. */
    drey_status (*resolve_options)(draft_training *t, drey_error *err);
    /* Bytes of the arena, besides texts and rows of the head: with n positions and so many rows. */
    size_t (*bytes)(const draft_training *t, int64_t n, int32_t n_rows);
    /* Bytes of memory while the file is written. */
    uint64_t (*file_bytes)(const draft_training *t);
    /* Takes that from t->memory, with t->data and t->head_rows at hand, and sets t->state. */
    drey_status (*open)(draft_training *t, drey_error *err);
    void (*begin)(draft_training *t); /* sets the parameters to what they are at first */
    void (*step)(draft_training *t);
    drey_status (*write)(draft_training *t, drey_error *err); /* judges, and writes t->output */
} draft_training_kind;

struct draft_training { /* first member of a kind's own struct */
    const draft_training_kind *kind;
    const drey_train_draft_options *o;
    drey_train_draft_report *report;
    const drey_model *target;
    char *output, *texts, *checkpoint; /* paths; separately allocated */
    uint64_t identity, budget_bytes;
    int32_t n_ids, n_epochs, shape; /* shape: of what is trained, as checkpoint_about has it */
    int64_t n_positions;
    float rate;
    arena slice_memory, memory;
    token_slice slice;
    uint16_t *head_rows; /* [slice.n_rows][D] */
    self_texts data;
    trained_state state;
    const kernel_table *kernels;
    pool *pool;
};

/* t: zero but for `kind` and what is the kind's own. The errors of drey_train_medusa. */
drey_status draft_training_run(draft_training *t, const drey_train_draft_options *options,
                               drey_train_draft_report *report, drey_error *err);
/* Half-precision rows of the target's width. */
size_t draft_training_row_bytes(const draft_training *t, int32_t n_rows);
