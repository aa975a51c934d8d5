/* How passes are divided between units, as drey tune -m --units measured it: a file in the user's
 * cache folder for each model, tier and text about units. It belongs to one processor and
 * version. */
#ifndef DREY_CLI_UNITS_FILE_H
#define DREY_CLI_UNITS_FILE_H

#include "cli/options.h"
#include "drey/bench.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* True if there is one for settings->units, not NULL, and this model. A file that is broken, of
 * another machine or version is passed over with one sentence on standard error. */
bool units_load(const drey_model *target, const cli_settings *settings, drey_units_report *out);
drey_status units_save(const drey_model *target, const cli_settings *settings,
                       const drey_units_report *report, drey_error *err);

/* The file's contents; NULL if memory is short. */
cJSON *units_json(const cli_settings *settings, const drey_units_report *report);
/* For people: Markdown. */
void units_table(FILE *out, const drey_units_report *report);

#endif
