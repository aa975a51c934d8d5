/* A text on standard output as it is written: flushed as it comes, provisional after it where that
 * can be shown. A failed or blocked write ends the text. */
#pragma once

#include "cli/terminal/live_text.h"
#include "cli/terminal/progress.h"
#include "common/error.h"

typedef struct text_writer {
    progress *progress; /* borrowed: cleared before something is written */
    live_text live;     /* view of the text, on a terminal that can show text that changes */
    bool is_live, shows_drafts;
    bool is_terminal; /* standard output: nothing in the text may steer it */
    bool begun;       /* there was text */
    char last_shown;  /* for terminal_write_clean */
    /* error of standard output: 0, an errno, or EINTR: it blocked, and a signal came */
    int error;
    char last_byte; /* last byte of the text; 0: none yet */
    bool keeps;     /* `kept` is wanted */
    char *kept;     /* [n_kept]: the text, NUL after it */
    size_t n_kept, capacity;
} text_writer;

/* Look of a text on a terminal that can show it. */
typedef struct text_look {
    bool drafts;  /* show provisional text as well */
    bool wraps;   /* words begin a row where they have no room, */
    bool styled;  /* and Markdown has colours */
    bool resumes; /* the text before continues: it is in the block of code that it was in */
} text_look;

/* Puts the functions of a text that begins in the first column into options; t stays where it is
 * until text_writer_free. */
void text_writer_begin(text_writer *t, progress *bar, drey_generate_options *options,
                       text_look look);
/* Ids, a line each, instead of text. */
void text_writer_begin_ids(text_writer *t, progress *bar, drey_generate_options *options);
/* After the text: nothing provisional is left on the screen. */
void text_writer_end(text_writer *t);
void text_writer_free(text_writer *t);

/* Writes to standard output at once, not by stdio, whose writes no signal ends. 0, an errno, or
 * EINTR: it would block, and a signal has come. */
int text_writer_write(const char *bytes, size_t n);
/* DREY_ERR_IO with the sentence for an errno; without one where nobody reads the pipe any more. */
drey_status text_writer_refuse(int error, drey_error *err);
