/* The words of a command line, split by getopt_long: see options.h. */
#include "cli/args/options.h"

#include "cli/args/help.h"
#include "cli/args/other_names.h"
#include "cli/terminal/hints.h"
#include "common/error.h"

#include <getopt.h>
#include <string.h>

enum { LONG = 256 }; /* getopt's value for cli_options[i] by its name is LONG + i */

/* getopt's two tables. "-": words that are no options are given in their order, not moved after
 * them; ":": what is missing is reported differently from what is unknown; nothing is printed. */
typedef struct tables {
    struct option names[CLI_MAX_OPTIONS + 1];
    char letters[2 + 2 * CLI_MAX_OPTIONS + 1];
} tables;

static void make_tables(tables *t, cli_command command)
{
    char *letter = t->letters;
    *t = (tables){0};
    *letter++ = '-';
    *letter++ = ':';
    for (size_t i = 0; i < cli_n_options; i++) {
        const cli_option *o = &cli_options[i];
        bool has_value = option_takes_value(o, command);
        t->names[i] = (struct option){o->name,
                                      o->value == CLI_HELP ? optional_argument
                                      : has_value          ? required_argument
                                                           : no_argument,
                                      NULL, LONG + (int)i};
        if (o->letter)
            *letter++ = o->letter;
        if (o->letter && has_value)
            *letter++ = ':';
    }
}

/* The option as it was written, without its value: "--temp" or "-t". */
typedef struct spelling {
    char text[48];
} spelling;

/* Returns the option that getopt found in word, `code` or after '?' and ':' optopt; NULL: an
 * unknown option. */
static const cli_option *found(int code, const char *word, spelling *spelled)
{
    if (strncmp(word, "--", 2) == 0) {
        int n = (int)strcspn(word + 2, "=");
        snprintf(spelled->text, sizeof spelled->text, "--%.*s", n, word + 2);
        const cli_option *option = code >= LONG ? &cli_options[code - LONG] : NULL;
        /* getopt takes abbreviations. */
        return option && strlen(option->name) == (size_t)n ? option : NULL;
    }
    snprintf(spelled->text, sizeof spelled->text, "-%c", code);
    return option_find_letter(code);
}

static bool takes(const cli_settings *s, const char *option)
{
    return option_find(option)->commands & s->command;
}

/* A word that is no option: what the command is about; else, once, the model. */
static drey_status take_operand(cli_settings *s, const char *word, drey_error *err)
{
    const char **const place[] = {&s->operand, &s->output, &s->quantize.type};
    if (s->command & CLI_RM && s->prepare.n_names == CLI_MAX_NAMES)
        FAIL(err, DREY_ERR_USAGE, "name at most %d models at a time", CLI_MAX_NAMES);
    if (s->command & CLI_RM) {
        s->prepare.names[s->prepare.n_names++] = word;
        s->operand = s->prepare.names[0];
        return DREY_OK;
    }
    const bool names_model = !(s->command & CLI_OPERAND) && takes(s, "model");
    const size_t n = s->command & CLI_QUANTIZE                 ? 3
                     : s->command & CLI_CONVERT                ? 2
                     : s->command & CLI_OPERAND || names_model ? 1
                                                               : 0;
    size_t i = 0;
    while (i < n && *place[i])
        i++;
    if (i == n && s->operand && s->command == CLI_RUN)
        FAIL(err, DREY_ERR_USAGE,
             "unexpected argument \"%.80s\"; a prompt is given with -p: drey run -m %s -p %s", word,
             QUOTED(s->operand), QUOTED(word));
    if (i == n)
        FAIL(err, DREY_ERR_USAGE, "unexpected argument \"%.80s\"", word);
    *place[i] = word;
    return DREY_OK;
}

/* Takes the operand as the model if -m is missing. */
static drey_status take_model(cli_settings *s, drey_error *err)
{
    const char *word = s->operand;
    if (!word || s->command & CLI_OPERAND)
        return DREY_OK;
    s->operand = NULL;
    if (s->common.model || s->serve.models)
        FAIL(err, DREY_ERR_USAGE, "unexpected argument \"%.80s\"%s", word,
             s->command == CLI_RUN ? ": a prompt is given with -p, the model once" : "");
    s->common.model = word;
    s->given[option_find("model") - cli_options] = true;
    return DREY_OK;
}

/* Takes the subject of --help: value, or the next word. */
static drey_status take_help(cli_settings *s, const char *value, const char *next, drey_error *err)
{
    char groups[200];
    const cli_usage *usage = cli_usages;
    while (usage->command != s->command)
        usage++;
    s->help = value ? value : next && *next != '-' ? next : "";
    if (!*s->help || strcmp(s->help, "all") == 0 || option_group_find(s->help))
        return DREY_OK;
    FAIL(err, DREY_ERR_USAGE, "--help takes all, or one of %s, not \"%.80s\"",
         help_groups(usage, groups), s->help);
}

/* The words as getopt has them. */
typedef struct words {
    int argc;
    char *const *argv;
} words;

/* code: as getopt_long returned it for word; value: its optarg. */
static drey_status take_option(cli_settings *s, const words *w, int code, const char *word,
                               const char *value, drey_error *err)
{
    spelling as;
    bool odd = code == '?' || code == ':';
    const cli_option *option = found(odd ? optopt : code, word, &as);
    if (!option)
        return other_option(&(other_line){s->command, w->argc, w->argv}, as.text, err);
    if (!(option->commands & s->command))
        return other_commands_option(s->command, option, as.text, err);
    if (odd)
        FAIL(err, DREY_ERR_USAGE, "%s %s", as.text,
             option_takes_value(option, s->command) ? "needs a value" : "takes no value");
    if (option->value == CLI_HELP)
        return take_help(s, value, optind < w->argc ? w->argv[optind] : NULL, err);
    bool *given = &s->given[option - cli_options];
    bool pulls_draft = option->value == CLI_DRAFT && s->command == CLI_PULL;
    if (*given && option->value != CLI_STOP && option_takes_value(option, s->command))
        FAIL(err, DREY_ERR_USAGE, "%s is given twice", as.text);
    *given = true;
    s->prepare.draft |= pulls_draft;
    return pulls_draft ? DREY_OK : option_store(s, option, value, err);
}

static drey_status take_words(cli_settings *s, const words *w, drey_error *err)
{
    tables t;
    make_tables(&t, s->command);
    drey_status status = DREY_OK;
    optind = 0; /* glibc's way to start again */
    while (status == DREY_OK && !s->help) {
        const int at = optind ? optind : 1;
        const char *word = at < w->argc ? w->argv[at] : "";
        if (other_is_option(word))
            return other_option(&(other_line){s->command, w->argc, w->argv}, word, err);
        int code = getopt_long(w->argc, w->argv, t.letters, t.names, NULL);
        if (code == -1)
            break;
        status =
            code == 1 ? take_operand(s, optarg, err) : take_option(s, w, code, word, optarg, err);
    }
    for (; status == DREY_OK && !s->help && optind < w->argc; optind++) /* after "--" */
        status = take_operand(s, w->argv[optind], err);
    return status;
}

drey_status options_parse(cli_settings *s, cli_command command, int argc, char *const *argv,
                          drey_error *err)
{
    *s = (cli_settings){.command = command,
                        .text.n_predict = 512,
                        .scoring.window = 512,
                        .bench.n_prompt = 512,
                        .bench.n_decode = 64,
                        .sampling.top_p = 1};
    drey_penalties_init(&s->penalties);
    drey_status status = take_words(s, &(words){argc, argv}, err);
    if (status == DREY_OK && !s->help)
        status = take_model(s, err);
    bool drafts = s->drafting.policy != DREY_POLICY_NONE && s->drafting.policy != DREY_POLICY_STD;
    bool chooses = command & (CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_PULL | CLI_SERVE | CLI_VERIFY) ||
                   (command == CLI_TUNE && s->common.model);
    if (chooses && drafts && (!option_given(s, "draft") || command == CLI_PULL))
        s->drafting.draft_auto = true;
    return status != DREY_OK || s->help ? status : options_check(s, err);
}
