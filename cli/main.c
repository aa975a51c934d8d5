/* The drey command: picks the subcommand, has its words parsed, and turns the outcome into an exit
 * code: 0, 1 could not do it, 2 wrong usage, 129 hung up, 130 interrupted, 143 terminated.
 * Like all of cli/, it uses nothing of the library but the public header. */
#include "cli/commands/commands.h"
#include "cli/args/completion.h"
#include "cli/args/help.h"
#include "cli/args/other_names.h"
#include "cli/models/model_path.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    unsigned commands;
    int (*main)(const cli_settings *settings);
} mains[] = {
    {CLI_RUN, run_main},
    {CLI_CHAT, chat_main},
    {CLI_SERVE, serve_main},
    {CLI_PLAN, plan_main},
    {CLI_PREPARE, prepare_main},
    {CLI_PULL, pull_main},
    {CLI_CONVERT, convert_main},
    {CLI_QUANTIZE, quantize_main},
    {CLI_IMATRIX, imatrix_main},
    {CLI_LIST, list_main},
    {CLI_SHOW, show_main},
    {CLI_RM, rm_main},
    {CLI_INSPECT, inspect_main},
    {CLI_TOKENIZE, tokenize_main},
    {CLI_PERPLEXITY, perplexity_main},
    {CLI_VERIFY, verify_main},
    {CLI_REPORT, report_main},
    {CLI_TUNE, tune_main},
    {CLI_TRAIN_EXIT | CLI_TRAIN_MEDUSA | CLI_TRAIN_EAGLE, train_main},
    {CLI_BENCH_MACHINE | CLI_BENCH_DISK | CLI_BENCH_KERNELS | CLI_BENCH_MODEL, bench_main},
};

/* Headings are bold where standard output is a terminal that has them. */
static bool is_bold(void)
{
    return *terminal_output_style(STYLE_STRONG);
}

static int print_help(const cli_usage *usage, const char *topic)
{
    if (topic ? help_topic(stdout, usage, topic, is_bold()) : help_short(stdout, usage, is_bold()))
        return 0;
    char groups[200];
    complain_wrong("drey %s has no options %s; there are those of %s", usage->name, topic,
                   help_groups(usage, groups));
    return 2;
}

/* The message has a line to copy, after which nothing else comes, or a question. */
static bool says_what_to_do(const char *message)
{
    size_t n = strlen(message);
    return strstr(message, ": drey ") || strchr("?", message[n - 1]);
}

static int run_command(const cli_usage *usage, int argc, char **argv)
{
    cli_settings settings;
    drey_error err;
    if (options_parse(&settings, usage->command, argc, argv, &err) != DREY_OK) {
        if (says_what_to_do(err.message))
            complain_wrong("%s", err.message);
        else
            complain_wrong("%s; see drey %s --help", err.message, usage->name);
        return 2;
    }
    if (settings.help)
        return print_help(usage, *settings.help ? settings.help : NULL);
    terminal_begin(usage->command, settings.common.model ? settings.common.model : settings.operand,
                   settings.drafting.draft_path);
    if (model_path_resolve(&settings, &err) != DREY_OK || options_check(&settings, &err) != DREY_OK)
        return exit_with(err.code, &err);
    size_t i = 0;
    while (!(mains[i].commands & usage->command))
        i++;
    return mains[i].main(&settings);
}

static bool is_one(const char *word, const char *a, const char *b, const char *c)
{
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* argv[1] is "help", or what means the same. */
static int answer_help(int argc, char **argv)
{
    drey_error err;
    if (help_answer(stdout, argc, argv, is_bold(), &err))
        return 0;
    complain_wrong("%s", err.message);
    return 2;
}

/* Words that are no command, and commands whose second word is missing. */
static int run_no_command(const cli_usage *usage, int argc, char **argv)
{
    drey_error err;
    if (argc < 2 && !usage) {
        help_short(stderr, NULL, false);
    } else if (argc > 1 && is_one(argv[1], "help", "--help", "-h")) {
        if (usage)
            return print_help(usage, argc > 2 && *argv[2] != '-' ? "all" : NULL);
        return answer_help(argc - 1, argv + 1);
    } else if (usage) {
        char kinds[80];
        complain_wrong("drey %s what? %s", usage->name, usage_kinds(usage, ", ", kinds));
    } else if (is_one(argv[1], "--version", "version", "-V") || strcmp(argv[1], "-v") == 0) {
        printf("drey %s%s\n", drey_version(), DREY_BUILT_FROM);
        return 0;
    } else if (strcmp(argv[1], "--completion") == 0) {
        if (argc == 3 && completion_write(stdout, argv[2]))
            return 0;
        complain_wrong("--completion takes bash, zsh or fish");
    } else if (argv[1][0] == '-') {
        complain_wrong("name a command first, as in drey run %.80s; see drey --help", argv[1]);
    } else {
        other_command(argv[1], &err);
        complain_wrong("%s", err.message);
    }
    return 2;
}

static int dispatch(int argc, char **argv)
{
    int n_words = 0;
    const cli_usage *usage = usage_find(argc, argv, &n_words);
    if (usage && usage->command)
        return run_command(usage, argc - n_words, argv + n_words);
    return run_no_command(usage, argc - n_words, argv + n_words);
}

int main(int argc, char **argv)
{
    signals_init();
    int code = dispatch(argc, argv);
    bool failed_before = ferror(stdout) && code != 0; /* run has said so itself */
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && !failed_before) {
        if (terminal_pipe_is_broken()) { /* ends as other programs do, without a word */
            signal(SIGPIPE, SIG_DFL);
            raise(SIGPIPE);
        }
        complain_wrong("cannot write to standard output: %s",
                       errno ? strerror(errno) : "write error");
        return code ? code : 1;
    }
    return code;
}
