/* Models that are served by processes of their own: each has its part of the budget, which the
 * system gives back whole when it ends, and a fault in one leaves the others alone.
 *
 *                      child_measure
 *    CHILD_NONE ----------------------> CHILD_MEASURING
 *      ^  ^  ^                                 |
 *      |  |  +--- its needs, or why not -------+
 *      |  |
 *      |  |  child_start                    it listens                    child_stop
 *      |  +---------------> CHILD_STARTING -----------> CHILD_READY --------------------+
 *      |                          |                          |                          |
 *      +----- it has ended -------+--------------------------+---- CHILD_STOPPING <-----+
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "drey/drey_error.h"
#include "serve/net/events.h"

/* What a model needs of a budget, as its process finds out. */
typedef struct child_needs {
    uint64_t budget_bytes; /* of the options: "auto" has become a number; DREY_MEMORY_UNLIMITED */
    uint64_t floor_bytes, want_bytes;
} child_needs;

typedef enum child_state {
    CHILD_NONE,
    CHILD_MEASURING,
    CHILD_STARTING,
    CHILD_READY,
    CHILD_STOPPING
} child_state;

enum { CHILD_WHY_BYTES = 600 };

typedef struct child {
    const char *name; /* for clients; borrowed */
    const char *path; /* of the model; borrowed */
    child_state state;
    pid_t pid;
    int pipe;  /* what the process reports; -1: closed */
    int epoll; /* waits for the pipe; set by the caller when there is one, borrowed */
    /* Hears what the process says of itself. */
    void (*tell)(void *user, struct child *c, const serve_event *event);
    void *user;
    bool stopped; /* it was asked to end */
    struct {
        double stop_s;   /* when it was asked */
        double frozen_s; /* since when it has been seen stopped by a signal; 0: it runs */
        double broken_s; /* when it last closed a connection without an answer; 0: never */
        bool killed;     /* because it did not end, or did nothing */
        bool by_signal;  /* its last process ended so while it was loaded */
    } life;
    char socket[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
    bool measured;
    child_needs needs;
    uint64_t given_bytes;      /* while its process lives; 0: nothing */
    int32_t n_users;           /* requests that it answers */
    int64_t used;              /* when the last of them came */
    char why[CHILD_WHY_BYTES]; /* it could not be loaded, or ended; "": it did not fail */
    drey_status error;         /* that its process gave; DREY_OK: none, it just ended */
    int32_t n_failures;        /* to be measured or loaded, so far */
    int32_t n_checks;          /* of its file, that `why` is of */
} child;

/* What runs in a model's process. */
typedef struct child_work {
    drey_status (*measure)(void *user, const char *path, const char *socket, child_needs *needs,
                           drey_error *err);
    /* Serves at its socket until it is stopped; `report` hears when it listens (child_listens),
     * and its events (child_tell). Returns the exit code. *err: why it could not be opened. */
    int (*serve)(void *user, const child *m, uint64_t memory_bytes, int report, drey_error *err);
    void *user;
} child_work;

/* Of a model's process: it listens; and an event of it, which is lost if the front is slow. */
void child_listens(int report);
void child_tell(int report, const serve_event *event);

/* Each begins a process; false, with c->why: the system gives none. */
bool child_measure(child *c, const child_work *work);
bool child_start(child *c, const child_work *work, uint64_t memory_bytes);
/* Its pipe has something: the state may change, and events are passed on. */
void child_hear(child *c);
/* Asks it to end. */
void child_stop(child *c);
/* Ends it at once. */
void child_kill(child *c);
/* Returns whether a signal has stopped its process: it does nothing until another one comes. */
bool child_is_frozen(const child *c);
/* Whether its process has ended by now; what it was is forgotten then, but for its needs. */
bool child_ended(child *c);
