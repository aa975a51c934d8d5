/* The drey command: picks the subcommand, has its words parsed, and turns the outcome into an exit
 * code: 0, 1 could not do it, 2 wrong usage, 129 hung up, 130 interrupted, 143 terminated.
 * Like all of cli/, it uses nothing of the library but the public header. */
#include "cli/commands/commands.h"
#include "cli/args/completion.h"
#include "cli/args/help.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

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
    {CLI_INSPECT, inspect_main},
    {CLI_TOKENIZE, tokenize_main},
    {CLI_PERPLEXITY, perplexity_main},
    {CLI_VERIFY, verify_main},
    {CLI_REPORT, report_main},
    {CLI_TUNE, tune_main},
    {CLI_TRAIN_EXIT | CLI_TRAIN_MEDUSA | CLI_TRAIN_EAGLE, train_main},
    {CLI_BENCH_MACHINE | CLI_BENCH_DISK | CLI_BENCH_KERNELS | CLI_BENCH_MODEL, bench_main},
};

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0;
}

static void print_help(FILE *out, const cli_usage *usage)
{
    help_text help;
    help_make(&help, usage);
    fputs(help.text, out);
}

static int run_command(const cli_usage *usage, int argc, char **argv)
{
    cli_settings settings;
    drey_error err;
    if (options_parse(&settings, usage->command, argc, argv, &err) != DREY_OK) {
        complain("%s; see drey %s --help", err.message, usage->name);
        return 2;
    }
    if (settings.help) {
        print_help(stdout, usage);
        return 0;
    }
    terminal_begin(usage->command);
    size_t i = 0;
    while (!(mains[i].commands & usage->command))
        i++;
    return mains[i].main(&settings);
}

/* Without a command, or where that has a second word, without that. */
static int run_no_command(const cli_usage *usage, int argc, char **argv)
{
    char kinds[80];
    if (argc > 1 && is_help(argv[1]))
        print_help(stdout, usage);
    else if (usage)
        complain("drey %s what? %s", usage->name, usage_kinds(usage, ", ", kinds));
    else if (argc > 1)
        complain("unknown command \"%s\"; see drey --help", argv[1]);
    else
        print_help(stderr, NULL);
    return argc > 1 && is_help(argv[1]) ? 0 : 2;
}

static int dispatch(int argc, char **argv)
{
    int n_words = 0;
    const cli_usage *usage = argc < 2 ? NULL : usage_find(argc, argv, &n_words);
    if (usage && usage->command)
        return run_command(usage, argc - n_words, argv + n_words);
    if (!usage && argc > 1 &&
        (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "version") == 0 ||
         strcmp(argv[1], "-v") == 0)) {
        printf("drey %s%s\n", drey_version(), DREY_BUILT_FROM);
        return 0;
    }
    if (!usage && argc > 1 && strcmp(argv[1], "--completion") == 0) {
        if (argc == 3 && completion_write(stdout, argv[2]))
            return 0;
        complain("--completion takes bash, zsh or fish");
        return 2;
    }
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
        complain("cannot write to standard output: %s", errno ? strerror(errno) : "write error");
        return code ? code : 1;
    }
    return code;
}
