/* The side file of predictors, and the memory for them. */
#pragma once

#include "drey/train.h"
#include "exit/exit.h"

typedef struct exit_predictors exit_predictors;
typedef struct gguf gguf;

/* Opens the file at `path` if it was made for this target. Reads the file once, and a few MiB of
 * the target. DREY_ERR_IO, DREY_ERR_MEMORY, DREY_ERR_FORMAT (damaged, or another kind of file),
 * DREY_ERR_MISMATCH (of another model or version), each with a sentence that says what to do. After
 * a failure there is nothing to close. */
drey_status exit_open(exit_predictors *p, const char *path, const gguf *target, drey_error *err);
/* Accepts a struct that is all zero. */
void exit_close(exit_predictors *p);
/* Memory of open predictors, for the plan. */
size_t exit_memory_bytes(const exit_predictors *p);
/* Returns whether they were trained with candidates of the draft with this model_identity. */
static inline bool exit_fits_draft(const exit_predictors *p, uint64_t identity)
{
    return p->source == DREY_EXIT_FROM_DRAFT && p->drafter_identity == identity;
}
/* Writes the side file of a target, completely or not at all. Each layer from p->first on has a
 * predictor, in memory from exit_take. */
drey_status exit_write(const exit_predictors *p, const char *path, const gguf *target,
                       drey_error *err);
/* Fails early if exit_write would fail after a long training: the folder is missing or not writable
 * (DREY_ERR_IO), or another kind of file has this name (DREY_ERR_USAGE). */
drey_status exit_check_place(const char *path, drey_error *err);
/* After the name of the model's first file. */
#define EXIT_FILE_ENDING ".drey-exit"

/* Reads bytes (not kept) instead of a file; target: its model_identity. */
drey_status exit_parse(exit_predictors *p, const uint8_t *bytes, size_t n_bytes, uint64_t target,
                       const char *path, drey_error *err);
/* Writes the side file of a model of this identity and general.name. */
drey_status exit_write_as(const exit_predictors *p, const char *path, uint64_t identity,
                          const char *name, drey_error *err);
/* Memory for predictors whose sizes are set, n = n_layers - first of them: numbers gets w1
 * [n][K][H], b1 [n][H], w2 [n][H] and b2 [n], for the caller to fill. exit_close frees it. */
drey_status exit_take(exit_predictors *p, float *numbers[4], drey_error *err);
/* Points p->mlp at numbers of exit_take, once they are filled. */
void exit_point(exit_predictors *p, float *const numbers[4]);
