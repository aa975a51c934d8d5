/* The parts of drey bench. Each writes its table to out and its numbers to root. */
#ifndef DREY_CLI_CMD_BENCH_H
#define DREY_CLI_CMD_BENCH_H

#include "cli/args/options.h"
#include "drey/bench.h"

#include <cjson/cJSON.h>
#include <stdio.h>

drey_status bench_kernels(const cli_settings *s, FILE *out, cJSON *root, drey_error *err);
drey_status bench_exit(const cli_settings *s, FILE *out, cJSON *root, drey_error *err);
drey_status bench_edge(const cli_settings *s, FILE *out, cJSON *root, drey_error *err);
drey_status bench_sessions(const cli_settings *s, FILE *out, cJSON *root, drey_error *err);
drey_status bench_units(const cli_settings *s, FILE *out, cJSON *root, drey_error *err);
drey_status bench_model(const cli_settings *s, FILE *out, cJSON *root, drey_error *err);

/* "0,4096": up to DREY_BENCH_MAX_CONTEXTS lengths, ascending. */
drey_status bench_read_contexts(const char *text, drey_model_bench *bench, drey_error *err);

/* Draws the passes of a report against their limit: an SVG file that stands alone. */
drey_status svg_write(const char *path, const char *model, const drey_model_report *report,
                      drey_error *err);

#endif
