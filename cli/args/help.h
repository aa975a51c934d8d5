/* The commands by their names, and the help texts made of what docs/options says (option_texts.h).
 * The short ones fit on a screen of 24 lines and 80 columns. */
#pragma once

#include "cli/args/option_texts.h"

#include <stdio.h>

/* The command that argv[1] and perhaps argv[2] name; NULL: none. *n_words: how many of them. */
const cli_usage *usage_find(int argc, char *const *argv, int *n_words);

/* Writes the kinds of a command, for "bench": "machine|disk|kernels|model", with "|" between. ""
 * for a command of one word. Returns out. */
const char *usage_kinds(const cli_usage *usage, const char *between, char out[80]);

/* bold: headings and names of options are, by a terminal's sequences. usage NULL: of drey itself.
 * False: out of memory. */
bool help_short(FILE *out, const cli_usage *usage, bool bold);

/* topic: "all", a group's name, or an option, "--memory" or "-m". usage NULL: of all commands, with
 * all that is said of each option. False: there is no such thing, of this command. */
bool help_topic(FILE *out, const cli_usage *usage, const char *topic, bool bold);

/* The groups of a command's options, "model, memory, text"; usage NULL: all. Returns out. */
const char *help_groups(const cli_usage *usage, char out[200]);

/* Answers "drey help WORD...": argv[1] is the first word. False: there is no such command, group or
 * option, which err says. */
bool help_answer(FILE *out, int argc, char *const *argv, bool bold, drey_error *err);
