/* The thread that owns the engine: see server.h. */
#pragma once

#include "serve/requests.h"

typedef struct worker {
    shared *shared;
    drey_engine *engine;
    pthread_t thread;
} worker;

/* Starts the thread: it opens the sessions, reads the weights, and takes sequences until
 * shared->stopping and all are done, or the engine can no longer be used (drey_engine_check). What
 * fails at its beginning, and what ended it, is shared->failed. False: the system gives no
 * thread. */
bool worker_start(worker *w);
void worker_join(worker *w);
