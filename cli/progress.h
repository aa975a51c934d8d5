/* Loading and prompt progress on standard error: a bar that is drawn over itself on a terminal;
 * elsewhere a line when something begins, and every few seconds. */
#ifndef DREY_CLI_PROGRESS_H
#define DREY_CLI_PROGRESS_H

#include "drey/drey.h"

typedef struct progress {
    bool quiet;
    bool shown;             /* a bar stands on the terminal's last line */
    bool begun;             /* `what` is set */
    drey_progress what;     /* what is being reported */
    double begun_s, told_s; /* monotonic clock: first report of `what`, last line or bar */
} progress;

/* A drey_progress_fn; user is a progress. */
void progress_report(void *user, drey_progress what, uint64_t done, uint64_t total);
/* Removes the bar, so that something else can be written. */
void progress_clear(progress *p);
double progress_clock_s(void);

#endif
