/* The drey command: picks the subcommand, has its words parsed, and turns the outcome into an exit
 * code: 0, 1 could not do it, 2 wrong usage, 129 hung up, 130 interrupted, 143 terminated.
 * Like all of cli/, it uses nothing of the library but the public header. */
#include "cli/commands/commands.h"
#include "cli/args/help.h"
#include "cli/terminal/signals.h"
#include "cli/terminal/terminal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name, *kind; /* kind: the second word of bench and train; NULL for the others */
    cli_command command;
    int (*main)(const cli_settings *settings);
} command;

static const command commands[] = {
    {"run", NULL, CLI_RUN, run_main},
    {"chat", NULL, CLI_CHAT, chat_main},
    {"serve", NULL, CLI_SERVE, serve_main},
    {"plan", NULL, CLI_PLAN, plan_main},
    {"prepare", NULL, CLI_PREPARE, prepare_main},
    {"inspect", NULL, CLI_INSPECT, inspect_main},
    {"tokenize", NULL, CLI_TOKENIZE, tokenize_main},
    {"perplexity", NULL, CLI_PERPLEXITY, perplexity_main},
    {"report", NULL, CLI_REPORT, report_main},
    {"tune", NULL, CLI_TUNE, tune_main},
    {"train", "exit", CLI_TRAIN_EXIT, train_main},
    {"train", "medusa", CLI_TRAIN_MEDUSA, train_main},
    {"bench", "machine", CLI_BENCH_MACHINE, bench_main},
    {"bench", "disk", CLI_BENCH_DISK, bench_main},
    {"bench", "kernels", CLI_BENCH_KERNELS, bench_main},
    {"bench", "model", CLI_BENCH_MODEL, bench_main},
};

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* The command that argv names; *n_words is how many words that takes. */
static const command *find_command(int argc, char **argv, int *n_words)
{
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        const command *c = &commands[i];
        *n_words = c->kind ? 2 : 1;
        if (strcmp(argv[1], c->name) == 0 &&
            (!c->kind || (argc > 2 && strcmp(argv[2], c->kind) == 0)))
            return c;
    }
    return NULL;
}

/* "exit, medusa": the second words that a command takes; false if it takes none. */
static bool kinds_of(const char *name, char *kinds, size_t size)
{
    size_t at = 0;
    for (size_t i = 0; i < sizeof commands / sizeof *commands && at < size; i++)
        if (commands[i].kind && strcmp(name, commands[i].name) == 0)
            at += (size_t)snprintf(kinds + at, size - at, at ? ", %s" : "%s", commands[i].kind);
    return at > 0;
}

/* Of a command that takes a second word: what those are; NULL: it takes none. */
static const char *help_of_kinds(const char *name)
{
    return strcmp(name, "bench") == 0 ? help_bench : strcmp(name, "train") == 0 ? help_train : NULL;
}

static int run_command(const command *c, int argc, char **argv)
{
    cli_settings settings;
    drey_error err;
    if (options_parse(&settings, c->command, argc, argv, &err) != DREY_OK) {
        complain("%s; see drey %s --help", err.message, command_name(c->command));
        return 2;
    }
    if (settings.help) {
        fputs(help_text(c->command), stdout);
        return 0;
    }
    return c->main(&settings);
}

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        fputs(help_drey, stderr);
        return 2;
    }
    if (is_help(argv[1])) {
        fputs(help_drey, stdout);
        return 0;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("drey %s\n", drey_version());
        return 0;
    }
    const char *help = argc > 2 && is_help(argv[2]) ? help_of_kinds(argv[1]) : NULL;
    if (help) {
        fputs(help, stdout);
        return 0;
    }
    int n_words;
    const command *c = find_command(argc, argv, &n_words);
    if (c)
        return run_command(c, argc - n_words, argv + n_words);
    char kinds[128];
    if (kinds_of(argv[1], kinds, sizeof kinds))
        complain("drey %s what? %s", argv[1], kinds);
    else
        complain("unknown command \"%s\"; see drey --help", argv[1]);
    return 2;
}

int main(int argc, char **argv)
{
    signals_init();
    int code = dispatch(argc, argv);
    bool failed_before = ferror(stdout) && code != 0; /* run has said so itself */
    errno = 0;
    if ((fflush(stdout) != 0 || ferror(stdout)) && !failed_before) {
        complain("cannot write to standard output: %s", errno ? strerror(errno) : "write error");
        return code ? code : 1;
    }
    return code;
}
