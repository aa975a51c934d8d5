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
 * taken to flow its lines again.
 *
 * Lines are broken by the terminal, at the margin and not at blanks: what is copied from it has no
 * newlines that the text lacks, and it can be flowed again. With `wraps` a word that has no room
 * begins a row instead: the blank before it becomes a newline (blocks of code stay as they are).
 * The last word of the verified text, which may still grow, is then *held*: solid on the screen,
 * but written again where it has to move.
 *
 * With `styled` what is verified has colours where its Markdown has a meaning (text_styles.h). */
#pragma once

#include "cli/terminal/text_styles.h"
#include "drey/drey_session.h"

enum { LIVE_LINE_BYTES = 4096, LIVE_OUT_BYTES = 4096, LIVE_HELD_BYTES = 1024 };

typedef void live_text_write(void *user, const char *bytes, size_t n);

typedef struct live_text {
    live_text_write *write;
    void *user;
    int32_t columns, rows; /* size of the terminal; 0: not known */
    /* [n_line][n_drawn]: what is verified since the last newline, and what is drawn after it, of
     * which n_solid bytes are held and the rest is dim. The cursor is after that. */
    char text[LIVE_LINE_BYTES + LIVE_HELD_BYTES + DREY_MAX_PROVISIONAL];
    uint8_t styles[LIVE_LINE_BYTES + LIVE_HELD_BYTES + DREY_MAX_PROVISIONAL]; /* text_style */
    size_t n_line, n_drawn, n_solid;
    bool wraps, styled;
    text_styles line;           /* at the end of text[n_line] */
    char held[LIVE_HELD_BYTES]; /* [n_held]: as it came, with its blank */
    size_t n_held;
    bool as_it_is;   /* keeps control characters of the text: no person's terminal */
    char last;       /* the last byte of the verified text, for terminal_write_clean */
    bool lost;       /* the cursor's position is not known */
    bool short_line; /* whole rows were left out of text: it is good for this width alone */
    char wanted[DREY_MAX_PROVISIONAL]; /* [n_wanted]: what is provisional */
    size_t n_wanted;
    char out[LIVE_OUT_BYTES]; /* [n_out]: not written yet */
    size_t n_out;
} live_text;

/* For text that begins in the first column. wraps: words begin a row where they have no room. */
void live_text_init(live_text *t, live_text_write *write, void *user, bool wraps);
/* The terminal's size, as it is now. */
void live_text_size(live_text *t, int32_t columns, int32_t rows);
/* Shows an event. Text that is taken back goes with the next event, which often brings something in
 * its place, or with live_text_draw. */
void live_text_event(live_text *t, const drey_event *event);
void live_text_draw(live_text *t);
/* After the text: nothing is provisional or held. */
void live_text_end(live_text *t);
