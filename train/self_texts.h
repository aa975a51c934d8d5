/* Texts that a model writes, with its hidden states: its heads are trained with them.
 *
 * Without prompts, the model also writes the user's turn, sampled after the empty chat format, and
 * then answers it. With prompts, it answers them in their order and then again from the first one,
 * with other seeds. A pass writes several texts. The answer is kept: a run of positions, one for
 * each token that the model chose: its hidden state after the final norm, and the token.
 *
 *     <|im_start|>user\n  How do I?  <|im_end|>\n<|im_start|>assistant\n  You can ... <|im_end|>
 *     prefix              seed 1     suffix                                run of seed 1
 *
 * They are written to a file, so that writing can be interrupted, and then read to memory:
 *
 *      head | run | run | ...      run: seed, n, token[n], hidden[n][D] in half precision
 *
 * Runs are in the order in which their texts ended. Seeds are assigned from 0 on, and texts are
 * read in the order of seeds. An incomplete run, which an interruption leaves, is removed by the
 * next writer, which begins with the seeds that the file lacks. So training does not depend on
 * interruptions. */
#pragma once

#include "drey/drey_engine.h"

typedef struct arena arena;
typedef struct drey_train_prompt drey_train_prompt;
typedef struct token_slice token_slice;

typedef struct self_texts_job {
    const drey_engine_options *engine; /* target, threads, memory, tier; the others are set here */
    const char *path;                  /* path of the file */
    int64_t n_positions;               /* at least as many */
    uint64_t seed;
    /* temperature of answers; 0: greedy, if a prompt is answered for the first time */
    float temperature;
    const drey_train_prompt *prompts; /* [n_prompts], borrowed; none: the model writes them */
    int32_t n_prompts;
    drey_progress_fn *progress;
    bool (*go_on)(void *user); /* either may be NULL */
    void *user;
} self_texts_job;

/* Continues the file, or begins it. Opens an engine and closes it again. *n_kept: positions that
 * the file had before. DREY_ERR_CANCELLED: go_on returned false; the file keeps what was written.
 * DREY_ERR_MISMATCH: the file is another model's, or answers other prompts. */
drey_status self_texts_write(const self_texts_job *job, int64_t *n_kept, drey_error *err);

typedef struct self_texts {
    int32_t n_embd;
    int64_t n;        /* positions */
    uint16_t *hidden; /* [n][D] */
    int32_t *token;   /* [n]: the model's token there, by its place in the slice */
    uint8_t *left;    /* [n]: positions after it in its run, at most 255 */
    bool *held;       /* [n]: held out of training */
} self_texts;

/* Counts the tokens of the first `most` positions, in the order of seeds, into s, from which a
 * slice is then chosen; *n: the number of these positions. DREY_ERR_FORMAT: there are tokens that
 * the model does not have. */
drey_status self_texts_count(const char *path, int64_t most, token_slice *s, int64_t *n,
                             drey_error *err);
/* Reads those n positions to memory from `a`, whose owner checks it. Every 16th text is held out,
 * or every text of each 16th prompt; if that is none or all of them, the last sixteenth of the
 * positions is. */
size_t self_texts_bytes(int64_t n, int32_t n_embd);
drey_status self_texts_read(self_texts *t, const char *path, int64_t n, int32_t n_embd,
                            const token_slice *s, arena *a, drey_error *err);
