/* Models that are served by one process each, which has its part of the budget, which the
 * system gives back whole when it ends, and a fault in one leaves the others alone.
 *
 *                      process_measure
 *    PROCESS_NONE ----------------------> PROCESS_MEASURING
 *      ^  ^  ^                                 |
 *      |  |  +--- its needs, or why not -------+
 *      |  |
 *      |  |  process_start                    it listens                    process_stop
 *      |  +---------------> PROCESS_STARTING -----------> PROCESS_READY --------------------+
 *      |                          |                          |                          |
 *      +----- it has ended -------+--------------------------+---- PROCESS_STOPPING <-----+
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

#include "drey/drey_error.h"
#include "serve/net/event_loop.h"
#include "serve/net/events.h"

/* Needs of a model, as its process finds out. */
typedef struct process_needs {
    uint64_t budget_bytes; /* options' budget: "auto" has become a number; DREY_MEMORY_UNLIMITED */
    uint64_t floor_bytes, want_bytes;
} process_needs;

typedef enum process_state {
    PROCESS_NONE,
    PROCESS_MEASURING,
    PROCESS_STARTING,
    PROCESS_READY,
    PROCESS_STOPPING
} process_state;

enum { PROCESS_WHY_BYTES = 600 };

typedef struct model_process {
    const char *name; /* for clients; borrowed */
    const char *path; /* file of the model; borrowed */
    process_state state;
    pid_t pid;
    watched pipe;           /* reports of the process */
    const event_loop *loop; /* loop that waits for it; borrowed */
    /* Hears what the process says of itself. */
    void (*on_event)(void *user, struct model_process *c, const serve_event *event);
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
    process_needs needs;
    uint64_t given_bytes;        /* while its process lives; 0: nothing */
    int32_t n_users;             /* requests that it answers */
    int64_t used;                /* when the last of them came */
    char why[PROCESS_WHY_BYTES]; /* it could not be loaded, or ended; "": it did not fail */
    drey_status error;           /* error that its process gave; DREY_OK: none, it just ended */
    int32_t n_failures;          /* to be measured or loaded, so far */
    int32_t n_checks;            /* number of the check of its file that `why` is of */
} model_process;

/* Functions that run in a model's process. */
typedef struct process_work {
    drey_status (*measure)(void *user, const char *path, const char *socket, process_needs *needs,
                           drey_error *err);
    /* Serves at its socket until it is stopped; writes to `report` when it listens
     * (process_listens), and its events (process_report). Returns the exit code. *err: why it
     * could not be opened. */
    int (*serve)(void *user, const model_process *m, uint64_t memory_bytes, int report,
                 drey_error *err);
    void *user;
} process_work;

/* Messages of a model's process: it listens; and an event, which is lost if the router is slow. */
void process_listens(int report);
void process_report(int report, const serve_event *event);

/* Each begins a process; false, with c->why: the system gives none. */
bool process_measure(model_process *c, const process_work *work);
bool process_start(model_process *c, const process_work *work, uint64_t memory_bytes);
/* Its pipe has something: the state may change, and events are passed on. */
void process_read_messages(model_process *c);
/* Asks it to end. */
void process_stop(model_process *c);
/* Ends it at once. */
void process_kill(model_process *c);
/* Returns whether a signal has stopped its process: it does nothing until another one comes. */
bool process_is_frozen(const model_process *c);
/* Returns whether its process has ended by now; all but its needs is forgotten then. */
bool process_ended(model_process *c);
