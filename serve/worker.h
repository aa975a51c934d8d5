/* The thread that owns the engine: see server.h. */
#ifndef DREY_SERVE_WORKER_H
#define DREY_SERVE_WORKER_H

#include "serve/jobs.h"

typedef struct worker {
    shared *shared;
    drey_engine *engine;
    pthread_t thread;
} worker;

/* Starts the thread: it opens the sessions, reads the weights, and takes jobs until
 * shared->stopping and all are done. What fails at its beginning is shared->failed. False: the
 * system gives no thread. */
bool worker_start(worker *w);
void worker_join(worker *w);

#endif
