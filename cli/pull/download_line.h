/* Progress of a download: one line that moves, with rate and time left. */
#pragma once

#include "cli/terminal/progress.h"

typedef struct download_line {
    double begun_s, drawn_s, counted_s; /* monotonic clock; 0: not begun */
    uint64_t counted;                   /* bytes that were there at counted_s */
    double rate;                        /* bytes per second of the last seconds; 0: not known */
} download_line;

/* Shows it on a terminal, else a line now and then as progress_report does. */
void download_line_show(download_line *d, progress *bar, uint64_t done, uint64_t total);
/* Takes the bytes that are there at a time into the rate. */
void download_line_count(download_line *d, double now_s, uint64_t done);
/* "2.10G of 4.68G, 23.4M/s, about 2 min left"; without what is not known. Returns out. */
const char *download_line_text(const download_line *d, uint64_t done, uint64_t total, char out[96]);
