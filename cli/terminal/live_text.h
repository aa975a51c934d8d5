/* Text on a terminal whose end is provisional: dim there, until it is verified or taken back.
 *
 *     The black cat sat on the mat. It       verified: stays as it is
 *               ^^^^^^^^^^^^^^^^^^^^^^       provisional: dim, wraps like any text
 *
 * The screen always looks as if the verified text had been written once, with what is provisional
 * after it; at the end nothing else is left. Only what differs is written, all at once, so nothing
 * flickers. Where a character stands follows from the widths of those before it in its line, which
 * is known again after each newline; where it is not (a control character, a width on which
 * terminals disagree), nothing provisional is shown until then. A terminal whose width changes is
 * taken to flow its lines again. Lines are broken by the terminal, at the margin and not at blanks:
 * what is copied from it has no newlines that the text lacks, and it can be flowed again. */
#pragma once

#include "drey/drey.h"

#include <locale.h>

enum { LIVE_LINE_BYTES = 4096, LIVE_OUT_BYTES = 4096 };

typedef void live_text_write(void *user, const char *bytes, size_t n);

typedef struct live_text {
    live_text_write *write;
    void *user;
    locale_t utf8;         /* for the widths; 0: there are none, and nothing provisional is shown */
    int32_t columns, rows; /* of the terminal; 0: not known */
    /* [n_line][n_drawn]: what is verified since the last newline, and what is dim after it. The
     * cursor is after that. */
    char text[LIVE_LINE_BYTES + DREY_MAX_PROVISIONAL];
    size_t n_line, n_drawn;
    bool lost;       /* where the cursor stands is not known */
    bool short_line; /* whole rows were left out of text: it is good for this width alone */
    char wanted[DREY_MAX_PROVISIONAL]; /* [n_wanted]: what is provisional */
    size_t n_wanted;
    char out[LIVE_OUT_BYTES]; /* [n_out]: not written yet */
    size_t n_out;
} live_text;

/* For text that begins in the first column. */
void live_text_init(live_text *t, live_text_write *write, void *user);
void live_text_free(live_text *t);
/* The terminal's size, as it is now. */
void live_text_size(live_text *t, int32_t columns, int32_t rows);
/* What is taken back goes with the next event, which often brings something in its place, or with
 * live_text_draw. */
void live_text_event(live_text *t, const drey_event *event);
void live_text_draw(live_text *t);
