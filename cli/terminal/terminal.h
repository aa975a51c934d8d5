/* Messages of the command about itself, on standard error: messages, and whether there is a person
 * at a terminal to colour them for. */
#pragma once

#include "cli/args/options.h"
#include "common/error.h"

#include <stdio.h>

/* Writes "drey: warning: MESSAGE" and a newline: the command continues in spite of it. Control
 * characters, which a file's name or keys may hold, are shown as "?", so that no file can steer
 * the terminal. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Writes "drey: error: MESSAGE": something could not be done. */
void complain_wrong(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Passes what the three would write to `hears`, without the words before it, from now on. For a
 * process that another one speaks for. NULL: as usual. */
void terminal_complain_to(void (*hears)(void *user, const char *message), void *user);
/* Writes "hint: MESSAGE": what a person can do next; for their eyes alone, never without need. */
void suggest(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* An error of the library's: its message, and the command's own switch for the hint. */
void complain_error(const drey_error *err);
/* The command that runs: messages name its options, and the model and the draft that it is about,
 * as they were typed (borrowed; NULL: none is named). */
void terminal_begin(cli_command command, const char *model, const char *draft);
/* Returns that model as a shell takes it, for command lines in messages; "MODEL" where none was
 * named. */
const char *terminal_model(void);
/* The same of the draft; "" where none was named. */
const char *terminal_draft(void);
/* Returns a hint in the running command's words (hints.h); good until the next call. */
const char *terminal_hint(drey_hint hint);
/* Standard output is a pipe that nobody reads any more, as after "| head". */
bool terminal_pipe_is_broken(void);

/* Writes text with control characters replaced as above. */
void print_clean(FILE *out, const char *text);

typedef void terminal_sink(void *user, const char *bytes, size_t n);
/* Passes text[0..n) of a model on, with "?" in the place of what would steer a terminal; line ends
 * and tabs stay. *last: the byte before it, 0 at first. */
void terminal_write_clean(const char *text, size_t n, char *last, terminal_sink *to, void *user);

/* Returns how many processes mpirun has started; 1 without it. Their standard output may be a
 * terminal that is nobody's, whose text mpirun passes on. */
long terminal_ranks(void);
/* Standard error is a terminal. */
bool terminal_attended(void);

/* Standard output and standard error are one terminal, file or pipe. */
bool terminal_shared(void);

/* Standard output is a terminal on which text can be dim and taken back again. */
bool terminal_shows_drafts(void);
/* Returns the size of that terminal; unchanged where nobody knows. */
void terminal_size(int32_t *columns, int32_t *rows);

/* Hides what is typed while a text is written: the terminal keeps it for the next question.
 * terminal_show_typing undoes that, and may be called by a signal's handler. */
void terminal_hide_typing(void);
void terminal_show_typing(void);

typedef enum terminal_style {
    STYLE_PLAIN,
    STYLE_STRONG,
    STYLE_GOOD,
    STYLE_WARN,
    STYLE_ERROR
} terminal_style;
/* The sequence that begins a style, or "" where standard error is no terminal, or one that is dumb,
 * or NO_COLOR is set. */
const char *terminal_style_text(terminal_style style);
/* The same for standard output. */
const char *terminal_output_style(terminal_style style);

/* The user's locale says that text is UTF-8. */
bool terminal_utf8(void);

/* Complains of an error, unless it is DREY_ERR_CANCELLED. Returns the exit code for a status: 0, 1,
 * 2 for wrong usage, or that of the signal that cancelled. */
int exit_with(drey_status status, const drey_error *err);
