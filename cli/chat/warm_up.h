/* Weights that are loaded while a person types the first message: a pass on another thread.
 *
 *     warm_up_begin -> (the session is the thread's alone) -> warm_up_end or warm_up_cancel
 *
 * Nobody else may use session or engine in between. */
#pragma once

#include "drey/drey_session.h"

#include <pthread.h>
#include <stdatomic.h>

typedef struct warm_up {
    drey_session *session; /* NULL: none is under way */
    const int32_t *ids;    /* [n_ids], borrowed until the end */
    size_t n_ids;
    pthread_t thread;
    atomic_bool stop, done;
} warm_up;

/* ids: a prompt that begins as the first message's will. Where there is no thread for it nothing
 * happens: the first message loads the weights. */
void warm_up_begin(warm_up *w, drey_session *session, const int32_t *ids, size_t n_ids);
/* Returns true until it has ended. */
bool warm_up_runs(warm_up *w);
/* Waits for its end, which a signal brings about at once. Errors are met again by the next text. */
void warm_up_end(warm_up *w);
void warm_up_cancel(warm_up *w);
