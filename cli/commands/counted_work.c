/* Counted work: see counted_work.h. */
#include "cli/commands/counted_work.h"

#include "cli/terminal/format.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <stdio.h>

static const double line_interval_s = 5, bar_interval_s = 0.1;
/* part and seconds of the work that must be done before it says how long the rest takes. */
static const double least_part = 0.02, least_s = 2;

enum { TIME_LEFT_BYTES = 48 };

/* ", about 4 min left", by the part that took spent_s; "" while that says too little. */
static const char *time_left(char out[static TIME_LEFT_BYTES], double part, double spent_s)
{
    char time[24];
    out[0] = '\0';
    if (part < least_part || part >= 1 || spent_s < least_s)
        return out;
    double s = spent_s * (1 - part) / part;
    if (s < 1)
        return out;
    snprintf(out, TIME_LEFT_BYTES, ", about %s left", format_time(time, s));
    return out;
}

void counted_work_show(counted_work *w, const char *what, double part)
{
    char line[256], left[TIME_LEFT_BYTES];
    double now_s = progress_clock_s();
    bool attended = terminal_attended();
    if (w->begun_s == 0) {
        w->begun_s = now_s;
        w->shown_s = attended ? 0 : now_s;
    }
    if (w->quiet || signals_exit_code() ||
        now_s - w->shown_s < (attended ? bar_interval_s : line_interval_s))
        return;
    w->shown_s = now_s;
    snprintf(line, sizeof line, "%s%s", what, time_left(left, part, now_s - w->begun_s));
    if (attended && w->moves)
        progress_work(&w->line, line);
    else if (attended)
        progress_line(&w->line, line);
    else
        fprintf(stderr, "%s\n", line);
}

void counted_work_clear(counted_work *w)
{
    progress_clear(&w->line);
    if (terminal_attended())
        w->shown_s = 0; /* it comes again at once */
}

void counted_work_end(counted_work *w)
{
    progress_clear(&w->line);
    w->begun_s = w->shown_s = 0;
}
