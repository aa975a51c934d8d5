/* The side file of predictors, and the memory that they lie in. */
#ifndef DREY_EXIT_EXIT_FILE_H
#define DREY_EXIT_EXIT_FILE_H

#include "exit/exit.h"

/* What the file at `path` holds, if it was made for this target; it is read once, and some MiB of
 * the target. DREY_ERR_IO, DREY_ERR_MEMORY, DREY_ERR_FORMAT (damaged, or another kind of file),
 * DREY_ERR_MISMATCH (of another model or version): one sentence that says what to do. Nothing is
 * held after a failure. */
drey_status exit_open(exit_predictors *p, const char *path, const gguf *target, drey_error *err);
/* Accepts what is all zero. */
void exit_close(exit_predictors *p);
/* Memory that open predictors hold, for the plan. */
size_t exit_memory_bytes(const exit_predictors *p);
/* Were they trained with candidates of the draft that has this model_identity? */
static inline bool exit_fits_draft(const exit_predictors *p, uint64_t identity)
{
    return p->source == EXIT_FROM_DRAFT && p->drafter_identity == identity;
}
/* Writes the side file of a target, whole or not at all. Each layer from p->first on has a
 * predictor, in memory of exit_take. */
drey_status exit_write(const exit_predictors *p, const char *path, const gguf *target,
                       drey_error *err);
/* Fails early where exit_write would fail after a long training: the folder is missing or closed
 * (DREY_ERR_IO), or something that is no such side file has this name (DREY_ERR_USAGE). */
drey_status exit_check_place(const char *path, drey_error *err);
/* MODEL.drey-exit, after the model's first file; the caller frees. NULL when memory is short. */
char *exit_usual_path(const gguf *target);

/* The file's bytes (not kept) instead of the file; target: its model_identity. */
drey_status exit_parse(exit_predictors *p, const uint8_t *bytes, size_t n_bytes, uint64_t target,
                       const char *path, drey_error *err);
/* Writes the side file of a model of this identity and general.name. */
drey_status exit_write_as(const exit_predictors *p, const char *path, uint64_t identity,
                          const char *name, drey_error *err);
/* Memory for predictors whose sizes are set, n = n_layers - first of them: numbers gets w1
 * [n][K][H], b1 [n][H], w2 [n][H] and b2 [n], to be filled. exit_close gives it back. */
drey_status exit_take(exit_predictors *p, float *numbers[4], drey_error *err);
/* Points p->mlp at numbers of exit_take, once they are filled. */
void exit_point(exit_predictors *p, float *const numbers[4]);

#endif
