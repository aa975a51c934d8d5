/* Work of the worker for a sequence that writes no text: a session goes to a file, comes from
 * one, or forgets what it knows; texts become vectors, one between two steps of those that
 * write. */
#pragma once

#include "serve/requests.h"

static inline bool admin_is(const request *t)
{
    return t->kind >= REQUEST_SAVE;
}

/* Way in which texts become vectors here. */
static inline drey_pooling admin_pooling(const serve_options *o)
{
    return o->pooling == DREY_POOLING_MODEL ? drey_model_pooling(o->model) : o->pooling;
}

/* Does the next part of it with the session that the sequence has, and records what there is to
 * say; *over: that was the last. An error has a sentence for the client. */
drey_status admin_do(shared *s, sequence *j, drey_session *session, bool *over, drey_error *err);

/* The [*n] ids of a text that becomes a vector: those of all texts are the last bytes of the
 * sequence's records, the last text first. */
int32_t *admin_text(const sequence *j, int32_t text, size_t *n);

/* Numbers of records that n_vectors of n_numbers each take, in bytes, with the memory that the last
 * input needs while it is computed. */
size_t admin_vector_bytes(size_t n_vectors, size_t n_numbers);
