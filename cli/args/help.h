/* The commands, and the help texts made of them and of the option table. Each text fits on a screen
 * of 24 lines and 80 columns. */
#pragma once

#include "cli/args/options.h"

typedef struct cli_usage {
    cli_command command;  /* 0: the first word of several commands, as "bench" */
    const char *name;     /* "run", "bench disk" */
    const char *operands; /* "-m MODEL.gguf" */
    const char *summary;  /* for the list of commands, and for shells */
    const char *about;    /* more lines, or "" */
    const char *example;  /* whole lines */
} cli_usage;

extern const cli_usage cli_usages[];
extern const size_t cli_n_usages;

/* The command that argv[1] and perhaps argv[2] name; NULL: none. *n_words: how many of them. */
const cli_usage *usage_find(int argc, char *const *argv, int *n_words);

/* Of "bench": "machine|disk|kernels|model", with "|" between. "" for a command of one word. Returns
 * out. */
const char *usage_kinds(const cli_usage *usage, const char *between, char out[80]);

typedef struct help_text {
    char text[8192];
    size_t n;
    int32_t n_lines;
} help_text;

/* usage NULL: of drey itself. */
void help_make(help_text *help, const cli_usage *usage);
