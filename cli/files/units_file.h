/* How passes are divided between units, as drey tune -m --units measured it: a file in the user's
 * cache folder for each model, tier and text about units. It belongs to one processor and
 * version. */
#ifndef DREY_CLI_UNITS_FILE_H
#define DREY_CLI_UNITS_FILE_H

#include "cli/args/options.h"
#include "common/json_writer.h"
#include "drey/tune.h"

#include <stdio.h>

typedef struct units_measured {
    drey_units_report products;
    drey_boundaries_report attention; /* without contexts where it was not measured */
} units_measured;

/* Both, one after the other. Attention's boundaries are measured where there are several clusters,
 * and are in products.shares, too; where the context or memory is too small for that, a sentence on
 * standard error says so. options: as for drey_tune_units. */
typedef struct units_steps {
    void (*stage)(void *user, const char *what);
    void *user;
    int32_t most_positions; /* 0: 4096 */
} units_steps;
drey_status units_measure(const drey_model *target, const drey_engine_options *options,
                          const units_steps *steps, units_measured *out, drey_error *err);

/* True if there is one for settings->units, not NULL, and this model. A file that is broken, of
 * another machine or version is passed over with one sentence on standard error. */
bool units_load(const drey_model *target, const cli_settings *settings, units_measured *out);
drey_status units_save(const drey_model *target, const cli_settings *settings,
                       const units_measured *measured, drey_error *err);

/* Writes the file's contents: members of an object. */
void units_put(json_writer *w, const cli_settings *settings, const units_measured *measured);
/* For people: Markdown. */
void units_table(FILE *out, const units_measured *measured);

#endif
