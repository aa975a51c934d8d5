/* The library's hints, in the words of the command line. */
#pragma once

#include "cli/args/options.h"

enum { HINT_BYTES = 640, HINT_WORD_BYTES = 512 };

/* " (--output, --force)", with a blank in front: the options of this command that the hint is
 * about, and whole command lines of others that help. "" for none. model: the file that they are
 * about; NULL: not known. Returns out. */
const char *hint_words(drey_hint hint, cli_command command, const char *model,
                       char out[HINT_BYTES]);
/* A word as a shell takes it: in quotes where that is needed. "" where it has no room. */
const char *hint_quote(const char *word, char out[HINT_WORD_BYTES]);
/* The same, in memory of the block that it is in. */
#define QUOTED(word) hint_quote((word), (char[HINT_WORD_BYTES]){0})
