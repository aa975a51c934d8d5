/* Work whose parts are counted, as the ways of drey verify: one moving line on a terminal, with the
 * time that is left; elsewhere a line every few seconds. */
#pragma once

#include "cli/terminal/progress.h"

typedef struct counted_work {
    bool quiet;
    bool moves; /* the line has a spinner: a part may take long, and nothing is measured */
    progress line;
    double begun_s; /* monotonic clock: when it began; 0: not yet */
    double shown_s; /* time of the last line */
} counted_work;

/* Says how far it has come: what, and the part that is done, 0 to 1. */
void counted_work_show(counted_work *w, const char *what, double part);
/* Removes the line, so that something else can be written. */
void counted_work_clear(counted_work *w);
/* The same, and the next line is of other work. */
void counted_work_end(counted_work *w);
