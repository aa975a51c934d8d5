/* Loading and prompt progress on standard error: a bar that is drawn over itself on a terminal;
 * elsewhere a line when something begins, and every few seconds. */
#pragma once

#include "drey/drey.h"

enum { PROGRESS_KINDS = DREY_PROGRESS_TRAIN + 1 };

typedef struct progress {
    bool quiet;
    const char *label; /* what it is called; NULL: what the library calls it */
    bool shown;        /* a bar is on the terminal's last line, */
    int32_t width;     /* in so many columns */
    double bar_s;      /* monotonic clock: when it was drawn */
    /* Of each drey_progress, since several may take turns: whether there was a report, what had
     * been done by the last one, and the monotonic clock at the last line. */
    bool begun[PROGRESS_KINDS];
    uint64_t done[PROGRESS_KINDS];
    double line_s[PROGRESS_KINDS];
    double first_s[PROGRESS_KINDS]; /* when it began: for the time that is left */
} progress;

/* A drey_progress_fn; user is a progress. */
void progress_report(void *user, drey_progress what, uint64_t done, uint64_t total);
/* Draws a text of one line over the last one, cut where the terminal is too narrow. */
void progress_line(progress *p, const char *text);
/* Removes the bar, so that something else can be written. */
void progress_clear(progress *p);
double progress_clock_s(void);
