/* The subcommands. Each takes parsed settings and returns the process' exit code; what went wrong
 * has been said on standard error by then. */
#pragma once

#include "cli/args/options.h"

int run_main(const cli_settings *settings);
int chat_main(const cli_settings *settings);
int serve_main(const cli_settings *settings);
int plan_main(const cli_settings *settings);
int quantize_main(const cli_settings *settings);
int imatrix_main(const cli_settings *settings);
int pull_main(const cli_settings *settings);
int convert_main(const cli_settings *settings);
int list_main(const cli_settings *settings);
int show_main(const cli_settings *settings);
int rm_main(const cli_settings *settings);
int inspect_main(const cli_settings *settings);
int tokenize_main(const cli_settings *settings);
int perplexity_main(const cli_settings *settings);
int bench_main(const cli_settings *settings);
int prepare_main(const cli_settings *settings);
int verify_main(const cli_settings *settings);
int report_main(const cli_settings *settings);
int tune_main(const cli_settings *settings);
int train_main(const cli_settings *settings);

/* Prints the output of drey plan, for other commands. */
drey_status plan_show(const cli_settings *settings, drey_error *err);
