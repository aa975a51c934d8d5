/* The words of a command line, split by getopt_long: see options.h. */
#include "cli/args/options.h"

#include "cli/terminal/terminal.h"
#include "common/path.h"

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
        t->names[i] = (struct option){o->name, has_value ? required_argument : no_argument, NULL,
                                      LONG + (int)i};
        if (o->letter)
            *letter++ = o->letter;
        if (o->letter && has_value)
            *letter++ = ':';
    }
}

static const cli_option *find_letter(int letter)
{
    for (size_t i = 0; i < cli_n_options; i++)
        if (letter && cli_options[i].letter == letter)
            return &cli_options[i];
    return NULL;
}

/* The option as it was written, without its value: "--temp" or "-t". */
typedef struct spelling {
    char text[48];
} spelling;

/* What getopt found in word, `code` or after '?' and ':' optopt; NULL: an unknown option. */
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
    return find_letter(code);
}

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
    const size_t n = s->command & CLI_QUANTIZE  ? 3
                     : s->command & CLI_CONVERT ? 2
                     : s->command & CLI_OPERAND ? 1
                                                : 0;
    size_t i = 0;
    while (i < n && *place[i])
        i++;
    const cli_option *model = option_find("model");
    if (i == n && path_ends(word, ".gguf") && model->commands & s->command)
        FAIL(err, DREY_ERR_USAGE, "unexpected argument \"%.80s\": a model is named with -m", word);
    if (i == n)
        FAIL(err, DREY_ERR_USAGE, "unexpected argument \"%.80s\"", word);
    *place[i] = word;
    return DREY_OK;
}

/* code: as getopt_long returned it for word; value: its optarg. */
static drey_status take_option(cli_settings *s, int code, const char *word, const char *value,
                               drey_error *err)
{
    spelling as;
    bool odd = code == '?' || code == ':';
    const cli_option *option = found(odd ? optopt : code, word, &as);
    if (!option)
        FAIL(err, DREY_ERR_USAGE, "unknown option %s", as.text);
    if (!(option->commands & s->command))
        FAIL(err, DREY_ERR_USAGE, "drey %s takes no %s", command_name(s->command), as.text);
    if (odd)
        FAIL(err, DREY_ERR_USAGE, "%s %s", as.text,
             option_takes_value(option, s->command) ? "needs a value" : "takes no value");
    bool *given = &s->given[option - cli_options];
    bool pulls_draft = option->value == CLI_DRAFT && s->command == CLI_PULL;
    if (*given && option->value != CLI_STOP && option_takes_value(option, s->command))
        FAIL(err, DREY_ERR_USAGE, "%s is given twice", as.text);
    *given = true;
    s->prepare.draft |= pulls_draft;
    return pulls_draft ? DREY_OK : option_store(s, option, value, err);
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
    tables t;
    make_tables(&t, command);
    drey_status status = DREY_OK;
    optind = 0; /* glibc's way to start again */
    while (status == DREY_OK && !s->help) {
        const char *word = argv[optind ? optind : 1];
        int code = getopt_long(argc, argv, t.letters, t.names, NULL);
        if (code == -1)
            break;
        status = code == 1 ? take_operand(s, optarg, err) : take_option(s, code, word, optarg, err);
    }
    for (; status == DREY_OK && !s->help && optind < argc; optind++) /* after "--" */
        status = take_operand(s, argv[optind], err);
    bool drafts = s->drafting.policy != DREY_POLICY_NONE && s->drafting.policy != DREY_POLICY_STD;
    bool chooses = command & (CLI_RUN | CLI_CHAT | CLI_PLAN | CLI_PULL | CLI_SERVE | CLI_VERIFY) ||
                   (command == CLI_TUNE && s->common.model);
    if (chooses && drafts && (!option_given(s, "draft") || command == CLI_PULL))
        s->drafting.draft_auto = true;
    return status != DREY_OK || s->help ? status : options_check(s, err);
}
