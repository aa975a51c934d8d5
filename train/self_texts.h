/* What a model writes by itself, with its hidden states: what its heads are trained with.
 *
 * Where nobody gives prompts the model writes the user's turn, too, sampled behind the bare chat
 * format, and then answers it; else it answers the prompts, in their order and then again from the
 * first one, with other seeds. Several texts are written in a pass. The answer is kept: a run of
 * positions, one for each token that the model said: its hidden state behind the final norm, and
 * the token.
 *
 *     <|im_start|>user\n  How do I?  <|im_end|>\n<|im_start|>assistant\n  You can ... <|im_end|>
 *     prefix              seed 1     suffix                                run of seed 1
 *
 * They go to a file, so that writing can be interrupted, and to memory afterwards:
 *
 *      head | run | run | ...      run: seed, n, token[n], hidden[n][D] in half precision
 *
 * Runs stand in the order in which their texts ended. Seeds are dealt out from 0 on; who reads the
 * texts goes by the order of seeds. A run that is not all there, which an interruption leaves, is
 * cut off by the next writer, which begins with the seeds that the file has not. So what is trained
 * with does not depend on interruptions. */
#ifndef DREY_TRAIN_SELF_TEXTS_H
#define DREY_TRAIN_SELF_TEXTS_H

#include "drey/train.h"
#include "engine/engine.h"
#include "train/token_slice.h"

typedef struct self_texts_job {
    const drey_engine_options
        *engine;         /* target, threads, memory, tier; the rest is this module's */
    const char *path;    /* of the file */
    int64_t n_positions; /* as many at least */
    uint64_t seed;
    float temperature; /* of answers; 0: greedy, where a prompt is answered for the first time */
    const drey_train_prompt *prompts; /* [n_prompts], borrowed; none: the model asks itself */
    int32_t n_prompts;
    drey_progress_fn *progress;
    bool (*go_on)(void *user); /* either may be NULL */
    void *user;
} self_texts_job;

/* Memory that writing takes beside the engine. */
size_t self_texts_room(int32_t n_embd);
/* Goes on with the file, or begins it. Opens an engine and closes it again. *n_kept: positions that
 * the file held before. DREY_ERR_CANCELLED: go_on said so; what was written stays.
 * DREY_ERR_MISMATCH: the file is another model's, or answers other prompts. */
drey_status self_texts_write(const self_texts_job *job, int64_t *n_kept, drey_error *err);

typedef struct self_texts {
    int32_t n_embd;
    int64_t n;        /* positions */
    uint16_t *hidden; /* [n][D] */
    int32_t *token;   /* [n]: what the model said there, by its place in the slice */
    uint8_t *left;    /* [n]: positions behind it in its run, 255 at most */
    bool *held;       /* [n]: not to be trained with */
} self_texts;

/* Counts the tokens of the first `most` positions, in the order of seeds, into s, which is then
 * chosen from; *n: how many there are of these. DREY_ERR_FORMAT: there are tokens that the model
 * has not. */
drey_status self_texts_count(const char *path, int64_t most, token_slice *s, int64_t *n,
                             drey_error *err);
/* Reads those n positions to memory from `a`, whose owner checks it. Every 16th text is held,
 * or every text of each 16th prompt; where that is none of them or all, the last sixteenth of the
 * positions is. */
size_t self_texts_bytes(int64_t n, int32_t n_embd);
drey_status self_texts_read(self_texts *t, const char *path, int64_t n, int32_t n_embd,
                            const token_slice *s, arena *a, drey_error *err);

#endif
