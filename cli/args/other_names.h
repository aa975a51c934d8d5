/* Answers to words that drey does not know: what is near, and what drey has in place of an option
 * or command of llama.cpp or ollama. */
#pragma once

#include "cli/args/options.h"

typedef struct other_word {
    char text[64];
} other_word;

/* The command line that an answer corrects: "drey NAME" and argv[1..argc). */
typedef struct other_line {
    cli_command command; /* 0: none, any option may be meant */
    int argc;
    char *const *argv;
} other_line;

/* word is one of another program's options of one dash and several letters, as -ngl, or a long
 * option of drey's with one dash. getopt would take its letters apart. */
bool other_is_option(const char *word);

/* Says what to write in place of the option, with the whole line where it can be corrected. Returns
 * DREY_ERR_USAGE. */
drey_status other_option(const other_line *line, const char *word, drey_error *err);

/* Says that the command does not take the option, and which ones do. Returns DREY_ERR_USAGE. */
drey_status other_commands_option(cli_command command, const cli_option *option, const char *word,
                                  drey_error *err);

/* The nearest of some words, each up to its first blank; NULL ends them. False: none is near. */
bool nearest_word(const char *word, const char *const *words, other_word *near);
/* The command that was meant; false: none is near. */
bool nearest_command(const char *word, other_word *near);
/* Says what to write in place of the command, "drey WORD". */
void other_command(const char *word, drey_error *err);
/* Returns whether one may have been written for the other: a few letters differ, one for a short
 * word. */
bool words_are_near(const char *a, const char *b);
