/* The parts of drey tune. */
#pragma once

#include "cli/args/options.h"
#include "drey/tune.h"

#include <stdio.h>

/* Measures the models that settings name, or with --show reads what was measured. */
drey_status tune_models(const cli_settings *settings, drey_error *err);

/* "kept FILE, measured 3 days ago" for each file of the target, or (NULL) of the machine. */
drey_status tune_show_files(FILE *out, const drey_model *target, drey_error *err);
/* Removes them. */
drey_status tune_forget(const drey_model *target, drey_error *err);
/* Warns where the machine is too busy to be measured. */
void tune_warn_of_load(void);
/* Prints what drafting gains, in one sentence. */
void tune_verdict(FILE *out, const drey_pair_report *report);

/* The reports as tables; units' in Markdown. */
void routes_table(FILE *out, const drey_routes *routes);
void tune_table(FILE *out, const drey_pair_report *report);
void units_table(FILE *out, const drey_units_report *products,
                 const drey_boundaries_report *attention);
