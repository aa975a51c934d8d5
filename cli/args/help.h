/* The help texts. Each fits on a screen of 24 lines and 80 columns; a test holds them against the
 * option table. */
#ifndef DREY_CLI_HELP_H
#define DREY_CLI_HELP_H

#include "cli/args/options.h"

extern const char help_drey[], help_bench[], help_train[];

const char *help_text(cli_command command);

#endif
