/* The parts of drey tune. */
#pragma once

#include "cli/args/options.h"
#include "drey/tune.h"

#include <stdio.h>

/* Measures the models that settings name, or with --show reads what was measured. */
drey_status tune_models(const cli_settings *settings, drey_error *err);

/* The reports as tables; units' in Markdown. */
void routes_table(FILE *out, const drey_routes *routes);
void tune_table(FILE *out, const drey_pair_report *report);
void units_table(FILE *out, const drey_units_report *products,
                 const drey_boundaries_report *attention);
