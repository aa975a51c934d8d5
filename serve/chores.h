/* Work of the worker for a job that writes no text: a session goes to a file, comes from one, or
 * forgets what it knows; texts become vectors, one between two steps of those that write. */
#pragma once

#include "serve/jobs.h"

static inline bool chore_is(const task *t)
{
    return t->kind >= TASK_SAVE;
}

/* How texts become vectors here. */
static inline drey_pooling chore_pooling(const serve_options *o)
{
    return o->pooling == DREY_POOLING_MODEL ? drey_model_pooling(o->model) : o->pooling;
}

/* Does the next part of it with the session that the job has, and records what there is to say;
 * *over: that was the last. An error has a sentence for the client. */
drey_status chore_do(shared *s, job *j, drey_session *session, bool *over, drey_error *err);

/* The [*n] ids of a text that becomes a vector: those of all texts are the last bytes of the job's
 * records, the last text first. */
int32_t *chore_text(const job *j, int32_t text, size_t *n);

/* Numbers of records that n_vectors of n_numbers each take, in bytes, with the memory that the last
 * input needs while it is computed. */
size_t chore_vector_bytes(size_t n_vectors, size_t n_numbers);
