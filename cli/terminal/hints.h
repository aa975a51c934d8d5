/* The library's hints, in the words of the command line. */
#pragma once

#include "cli/args/options.h"

enum { HINT_BYTES = 96 };

/* " (--output, --force)", with a blank in front: the options of this command that the hint is
 * about, and what other commands do for it. "" for none. Returns out. */
const char *hint_words(drey_hint hint, cli_command command, char out[HINT_BYTES]);
