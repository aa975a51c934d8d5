/* Texts about commands and options: the tables that the build makes of docs/options, by
 * cmake/options.awk. Help texts, completions and the manual page come from there. */
#pragma once

#include "cli/args/options.h"

typedef struct cli_usage {
    cli_command command;  /* 0: the first word of several commands, as "bench" */
    const char *name;     /* "run", "bench disk" */
    const char *operands; /* "-m MODEL.gguf" */
    const char *summary;  /* for the list of commands, and for shells */
    const char *place;    /* the heading of that list; "": it is not in it */
    const char *about;    /* a few sentences */
    const char *example;  /* whole lines */
    const char *text;     /* the rest, paragraphs with an empty line between them, or "" */
} cli_usage;
extern const cli_usage cli_usages[];
extern const size_t cli_n_usages;

typedef struct option_group {
    const char *name;  /* "memory" */
    const char *title; /* "Memory" */
    const char *text;
} option_group;
extern const option_group option_groups[];
extern const size_t n_option_groups;

/* Meaning of an option to some commands, where that differs. */
typedef struct option_meaning {
    unsigned commands; /* 0: the last one */
    const char *line;
} option_meaning;

typedef struct option_text {
    const char *name, *letter; /* "": none */
    const char *group;
    const char *argument; /* "FILE|none": a word in capitals stands for something, the others for
                             themselves. "": a flag */
    const char *line;     /* at its end in round brackets the default, or what must be known */
    unsigned commands, first;       /* commands that take it; in whose short help it is */
    const option_meaning *meanings; /* NULL: none */
    const char *text; /* paragraphs with an empty line between them. `words` of the command line
                         are between backquotes; four blanks begin an example */
} option_text;
extern const option_text option_texts[];
extern const size_t n_option_texts;

/* Every option of the table has one. */
const option_text *option_text_of(const cli_option *option);
/* The line of help that a command has for the option. */
const char *option_line(const option_text *text, cli_command command);
/* NULL: there is no such group. */
const option_group *option_group_find(const char *name);
