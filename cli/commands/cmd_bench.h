/* The parts of drey bench. Each writes its table to out and its numbers to root. */
#pragma once

#include "cli/args/options.h"
#include "common/json_writer.h"
#include "bench/bench.h"

#include <stdio.h>

drey_status bench_kernels(const cli_settings *s, FILE *out, json_writer *root, drey_error *err);
drey_status bench_model(const cli_settings *s, FILE *out, json_writer *root, drey_error *err);

/* "0,4096": up to DREY_BENCH_MAX_CONTEXTS lengths, ascending. */
drey_status bench_read_contexts(const char *text, drey_model_bench *bench, drey_error *err);
