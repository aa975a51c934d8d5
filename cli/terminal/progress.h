/* Loading and prompt progress on standard error: on a terminal one line that is drawn over itself
 * and always moves, with a bar where there is an amount, and a spinner where there is none;
 * elsewhere a line when something begins, and every few seconds.
 *
 *     loading  ███████████▌░░░░░░░░  57 %  612M of 1.04G, 305M/s, about 2 s left
 *     ⠹ planning, 4 s
 *
 * What is loaded of target and draft is one amount. A thread draws the line again while nothing is
 * reported; it runs from the first line on, and holds no lock while it waits. */
#pragma once

#include "drey/choices.h"

enum { PROGRESS_KINDS = DREY_PROGRESS_TRAIN + 1 };

typedef struct progress {
    bool quiet;
    const char *label;    /* name of the work; NULL: what the library calls it */
    uint64_t draft_bytes; /* bytes that will be loaded besides the target; 0: not known, or none */
    /* The line on the terminal: */
    bool active;         /* it is to be there: */
    const char *waiting; /* with a spinner and this word; NULL: with a bar, of */
    char work[256];      /* name of the waiting, for progress_work */
    drey_progress what;
    bool shown;    /* it is there, */
    int32_t width; /* in so many columns, */
    double bar_s;  /* drawn at this time (monotonic clock) */
    double wait_s; /* when waiting began */
    /* State of each drey_progress, since several may take turns: whether there was a report, the
     * last one and when it came, the first one and when it came, and when the last line was
     * written. */
    bool begun[PROGRESS_KINDS];
    uint64_t done[PROGRESS_KINDS], total[PROGRESS_KINDS], first[PROGRESS_KINDS];
    double done_s[PROGRESS_KINDS], first_s[PROGRESS_KINDS], line_s[PROGRESS_KINDS];
} progress;

/* A drey_progress_fn; user is a progress. */
void progress_report(void *user, drey_progress what, uint64_t done, uint64_t total);
/* Shows on a terminal, after a second, a line that moves until something is reported or the line is
 * removed. word: "planning"; borrowed until then. */
void progress_wait(progress *p, const char *word);
/* Shows on a terminal a text of one line with a spinner, which moves until the next text or the
 * line is removed. */
void progress_work(progress *p, const char *text);
/* Draws a text of one line over the last one, cut where the terminal is too narrow. */
void progress_line(progress *p, const char *text);
/* The same of a bar whose part `part` of 1 is full, between its name and a text. */
void progress_bar(progress *p, const char *name, double part, const char *text);
/* Removes the line, so that something else can be written. */
void progress_clear(progress *p);
/* The same of whatever line is there; it is drawn again if its work continues. */
void progress_hide(void);
/* Removes whatever line is there, for good: its progress may end to exist. */
void progress_end(void);
/* Changes p->quiet while another thread may report. */
void progress_silence(progress *p, bool quiet);
double progress_clock_s(void);
