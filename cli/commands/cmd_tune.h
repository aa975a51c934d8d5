/* The parts of drey tune. */
#ifndef DREY_CLI_CMD_TUNE_H
#define DREY_CLI_CMD_TUNE_H

#include "cli/args/options.h"
#include "drey/bench.h"

#include <stdio.h>

/* Simulates the machine that settings->simulate names. */
drey_status tune_simulate(const cli_settings *settings, drey_error *err);

/* Measures the models that settings name, or with --show reads what was measured. */
drey_status tune_models(const cli_settings *settings, drey_error *err);

/* The report as a table, and as a picture that stands alone; names of models for its title. */
void tune_table(FILE *out, const drey_pair_report *report);
drey_status tune_svg(const char *path, const char *target, const char *draft,
                     const drey_pair_report *report, drey_error *err);

#endif
