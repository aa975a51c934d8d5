/* The parts of drey tune. */
#ifndef DREY_CLI_CMD_TUNE_H
#define DREY_CLI_CMD_TUNE_H

#include "cli/options.h"

/* Simulates the machine that settings->simulate names. */
drey_status tune_simulate(const cli_settings *settings, drey_error *err);

#endif
