/* Lines of drey serve on standard error: when it is ready, a line for each request, when it stops.
 * Its functions may be called by several threads. */
#pragma once

#include "cli/terminal/progress.h"
#include "serve/net/events.h"

typedef struct serve_lines {
    bool quiet;
    bool verbose;       /* also questions that programs repeat, as GET /health */
    int32_t grace_s;    /* for texts that are being written when the server stops */
    progress *progress; /* a bar that a line replaces; NULL: none */
} serve_lines;

/* A line for an event; of SERVE_READY there is none. */
void serve_lines_report(serve_lines *l, const serve_event *event);
/* "ready: page ..., API ..., WHAT". */
void serve_lines_ready(serve_lines *l, const char *address, bool page, const char *what);
void serve_lines_stopped(serve_lines *l);
/* Loading, as progress_report shows it. */
void serve_lines_load(serve_lines *l, drey_progress what, uint64_t done, uint64_t total);
/* Warns that anybody may ask, where address can be reached from elsewhere and there is no key. */
void serve_lines_warn(const char *address, const char *keys);
