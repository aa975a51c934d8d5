/* The help texts: see help.h. A short help has the options that people use first, as many as a
 * screen has lines for; the others are found by their groups. */
#include "cli/args/help.h"

#include "cli/args/other_names.h"
#include "common/error.h"

#include <stdlib.h>
#include <string.h>

enum { N_LINES = 24, N_COLUMNS = 80, INDENT = 28 };

typedef struct page {
    FILE *out;
    const char *bold, *plain; /* sequences of a terminal, or "" */
} page;

static page page_on(FILE *out, bool bold)
{
    return (page){out, bold ? "\033[1m" : "", bold ? "\033[0m" : ""};
}

/* ---- Paragraphs ---- */

/* Columns of a word up to the next blank, without the backquotes, which are not shown. */
static int word_columns(const char *word, size_t *n)
{
    int columns = 0;
    for (*n = 0; word[*n] && word[*n] != ' ' && word[*n] != '\n'; ++*n)
        columns += word[*n] != '`';
    return columns;
}

/* A paragraph, from `column` on and indented; where the terminal has it, `words` are bold. */
static const char *wrap(const page *p, const char *text, int indent, int column)
{
    bool begun = false, quoted = false;
    while (*text && *text != '\n') {
        size_t n;
        int columns = word_columns(text, &n);
        if (begun && column + 1 + columns > N_COLUMNS) {
            fprintf(p->out, "\n%*s", indent, "");
            column = indent;
        } else if (begun) {
            putc(' ', p->out);
            column++;
        }
        for (size_t i = 0; i < n; i++)
            if (text[i] == '`')
                fputs((quoted = !quoted) ? p->bold : p->plain, p->out);
            else
                putc(text[i], p->out);
        column += columns;
        begun = true;
        text += n;
        text += *text == ' ';
    }
    putc('\n', p->out);
    return text;
}

/* Paragraphs with an empty line between them. */
static void put_text(const page *p, const char *text, int indent)
{
    for (bool first = true; *text; first = false) {
        if (!first)
            putc('\n', p->out);
        int more = (int)strspn(text, " "); /* an example */
        fprintf(p->out, "%*s", indent + more, "");
        text = wrap(p, text + more, indent + more, indent + more);
        text += strspn(text, "\n");
    }
}

static void put_heading(const page *p, const char *heading)
{
    fprintf(p->out, "%s%s:%s\n", p->bold, heading, p->plain);
}

/* ---- Options ---- */

/* "  -m, --model FILE"; brief: a value of many words by its first one. */
static int option_words(const option_text *t, cli_command command, bool brief, char *out,
                        size_t size)
{
    const cli_option *option = option_find(t->name);
    bool takes = !command || option->value == CLI_HELP || option_takes_value(option, command);
    const char *argument = takes ? t->argument : "", *more = "";
    int n_argument = (int)strlen(argument);
    if (brief && 10 + (int)strlen(t->name) + n_argument > INDENT && strchr(argument, '|')) {
        n_argument = (int)strcspn(argument, "|");
        more = "|...";
    }
    return snprintf(out, size, "  %s%s%s--%s%s%.*s%s", *t->letter ? "-" : "  ", t->letter,
                    *t->letter ? ", " : "  ", t->name, n_argument ? " " : "", n_argument, argument,
                    more);
}

/* The option and its line of help, next to it or below. */
static void put_option(const page *p, const option_text *t, cli_command command, bool brief)
{
    char words[240];
    int n = option_words(t, command, brief, words, sizeof words);
    fprintf(p->out, "%s%s%s", p->bold, words, p->plain);
    if (n >= INDENT)
        fprintf(p->out, "\n%*s", INDENT, "");
    else
        fprintf(p->out, "%*s", INDENT - n, "");
    wrap(p, option_line(t, command), INDENT, INDENT);
}

static bool is_of(const option_text *t, const option_group *group, const cli_usage *usage)
{
    return (!group || strcmp(t->group, group->name) == 0) &&
           (!usage || t->commands & usage->command);
}

static bool group_has_any(const option_group *group, const cli_usage *usage)
{
    for (size_t i = 0; i < n_option_texts; i++)
        if (is_of(&option_texts[i], group, usage))
            return true;
    return false;
}

/* A line for each option of the command: that is in its short help, or each. Returns how many are
 * left out. */
static int put_options(const page *p, const cli_usage *usage, bool all, bool brief, bool spaced)
{
    int n_left = 0;
    for (size_t g = 0; g < n_option_groups; g++) {
        bool begun = false;
        for (size_t i = 0; i < n_option_texts; i++) {
            const option_text *t = &option_texts[i];
            if (!is_of(t, &option_groups[g], usage))
                continue;
            bool is_help = strcmp(t->name, "help") == 0;
            if (brief && (is_help || (!all && !(t->first & usage->command)))) {
                n_left += !is_help;
                continue;
            }
            if (!begun && spaced)
                putc('\n', p->out);
            if (!begun)
                put_heading(p, option_groups[g].title);
            begun = true;
            put_option(p, t, usage->command, brief);
        }
    }
    return n_left;
}

static void put_capital(const page *p, const char *text)
{
    char line[200];
    snprintf(line, sizeof line, "%c%s.", *text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text,
             text + 1);
    wrap(p, line, 6, 6);
}

static void put_commands_of(const page *p, const option_text *t)
{
    char line[400];
    size_t n = (size_t)snprintf(line, sizeof line, "For");
    for (size_t i = 0; i < cli_n_usages; i++)
        if (t->commands & cli_usages[i].command)
            n += (size_t)snprintf(line + n, sizeof line - n, "%s drey %s", n > 3 ? "," : "",
                                  cli_usages[i].name);
    snprintf(line + n, sizeof line - n, ".");
    fprintf(p->out, "%*s", 6, "");
    wrap(p, line, 6, 6);
}

/* All that is said of an option; of those of one command, what it means there. */
static void explain(const page *p, const option_text *t, const cli_usage *usage)
{
    char words[240];
    option_words(t, usage ? usage->command : 0, false, words, sizeof words);
    fprintf(p->out, "%s%s%s\n%*s", p->bold, words, p->plain, 6, "");
    put_capital(p, usage ? option_line(t, usage->command) : t->line);
    if (*t->text) {
        putc('\n', p->out);
        put_text(p, t->text, 6);
    }
    if (usage)
        return;
    putc('\n', p->out);
    for (const option_meaning *m = t->meanings; m && m->commands; m++) {
        char line[300];
        size_t n = 0;
        for (size_t i = 0; i < cli_n_usages; i++)
            if (m->commands & cli_usages[i].command)
                n += (size_t)snprintf(line + n, sizeof line - n, "%s`%s`", n ? ", " : "",
                                      cli_usages[i].name);
        snprintf(line + n, sizeof line - n, ": %s.", m->line);
        fprintf(p->out, "%*s", 6, "");
        wrap(p, line, 8, 6);
    }
    put_commands_of(p, t);
}

static void explain_group(const page *p, const option_group *group, const cli_usage *usage)
{
    put_heading(p, group->title);
    put_text(p, group->text, 0);
    for (size_t i = 0; i < n_option_texts; i++)
        if (is_of(&option_texts[i], group, usage)) {
            putc('\n', p->out);
            explain(p, &option_texts[i], usage);
        }
}

/* ---- Commands ---- */

static void put_usage(const page *p, const cli_usage *u)
{
    char kinds[80];
    usage_kinds(u, "|", kinds);
    fprintf(p->out, "%susage:%s drey %s%s%s%s%s [options]\n", p->bold, p->plain, u->name,
            *kinds ? " " : "", kinds, *u->operands ? " " : "", u->operands);
}

const char *help_groups(const cli_usage *usage, char out[200])
{
    size_t n = 0;
    *out = '\0';
    for (size_t g = 0; g < n_option_groups; g++)
        if (group_has_any(&option_groups[g], usage))
            n += (size_t)snprintf(out + n, 200 - n, "%s%s", n ? ", " : "", option_groups[g].name);
    return out;
}

static void put_kinds(const page *p, const cli_usage *u)
{
    const size_t n = strlen(u->name);
    for (size_t i = 0; i < cli_n_usages; i++)
        if (strncmp(cli_usages[i].name, u->name, n) == 0 && cli_usages[i].name[n] == ' ')
            fprintf(p->out, "  drey %-20s%s\n", cli_usages[i].name, cli_usages[i].summary);
}

/* all: not only what comes first. */
static void make_short(const page *p, const cli_usage *u, bool all, bool spaced)
{
    int n_left = 0;
    char groups[200], more[300];
    put_usage(p, u);
    wrap(p, u->about, 0, 0);
    if (u->command)
        n_left = put_options(p, u, all, true, spaced);
    else
        put_kinds(p, u);
    if (spaced)
        putc('\n', p->out);
    put_heading(p, "example");
    fputs(u->example, p->out);
    if (spaced)
        putc('\n', p->out);
    if (n_left)
        snprintf(more, sizeof more, "%d more: `drey %s --help all`, or one of the groups %s",
                 n_left, u->name, help_groups(u, groups));
    else if (u->command)
        snprintf(more, sizeof more, "`drey help %s all` says more", u->name);
    else
        snprintf(more, sizeof more, "Each has its own --help.");
    wrap(p, more, 0, 0);
}

/* The commands, as on 24 lines: the first heading is on the first line. */
static void make_first(const page *p)
{
    const char *place = "";
    fprintf(p->out, "%sdrey runs language models that are larger than memory.", p->bold);
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        char kinds[80];
        if (!*u->place)
            continue;
        if (strcmp(place, u->place) != 0) {
            fputs(*place ? "" : " ", p->out);
            put_heading(p, u->place);
        }
        place = u->place;
        usage_kinds(u, ", ", kinds);
        fprintf(p->out, "  %s%-12s%s%s%s%s\n", p->bold, u->name, p->plain, u->summary,
                *kinds ? ": " : "", kinds);
    }
    wrap(p, "`drey help COMMAND` or `--memory` or `all`; `drey --version`; `drey --completion zsh`",
         0, 0);
}

typedef struct text {
    char *bytes;
    size_t n;
} text;

/* Measures the output of make_short without sequences; false: out of memory. */
static bool measure(const cli_usage *usage, bool all, bool spaced, int *n_lines)
{
    text t = {0};
    FILE *out = open_memstream(&t.bytes, &t.n);
    page plain = page_on(out, false);
    if (!out)
        return false;
    make_short(&plain, usage, all, spaced);
    bool made = fclose(out) == 0;
    *n_lines = 0;
    for (size_t i = 0; made && i < t.n; i++)
        *n_lines += t.bytes[i] == '\n';
    free(t.bytes);
    return made;
}

bool help_short(FILE *out, const cli_usage *usage, bool bold)
{
    page p = page_on(out, bold);
    if (!usage) {
        make_first(&p);
        return true;
    }
    /* All options or the first ones, with empty lines or without. */
    int form = 0, n_lines = 0;
    do
        if (!measure(usage, form < 2, form % 2 == 0, &n_lines))
            return false;
    while (n_lines > N_LINES && ++form < 3);
    make_short(&p, usage, form < 2, form % 2 == 0);
    return true;
}

/* All options of a command, a line each, and all that is said of itself. */
static void help_command(const page *p, const cli_usage *usage)
{
    char groups[200], more[300];
    put_usage(p, usage);
    wrap(p, usage->about, 0, 0);
    if (*usage->text)
        putc('\n', p->out);
    put_text(p, usage->text, 0);
    if (usage->command)
        put_options(p, usage, true, false, true);
    else
        put_kinds(p, usage);
    putc('\n', p->out);
    put_heading(p, "example");
    fputs(usage->example, p->out);
    if (!usage->command)
        return;
    snprintf(more, sizeof more,
             "`drey help --json` explains an option, `drey %s --help GROUP` those of a group: %s",
             usage->name, help_groups(usage, groups));
    putc('\n', p->out);
    wrap(p, more, 0, 0);
}

static void help_all(const page *p)
{
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        fprintf(p->out, "%sdrey %s%s%s%s\n    ", p->bold, u->name, *u->operands ? " " : "",
                u->operands, p->plain);
        wrap(p, u->about, 4, 4);
        if (*u->text)
            putc('\n', p->out);
        put_text(p, u->text, 4);
        putc('\n', p->out);
    }
    for (size_t g = 0; g < n_option_groups; g++) {
        if (g)
            putc('\n', p->out);
        explain_group(p, &option_groups[g], NULL);
    }
}

bool help_topic(FILE *out, const cli_usage *usage, const char *topic, bool bold)
{
    page p = page_on(out, bold);
    const option_group *group = option_group_find(topic);
    const cli_option *option = strncmp(topic, "--", 2) == 0 ? option_find(topic + 2)
                               : *topic == '-' && topic[1] && !topic[2]
                                   ? option_find_letter(topic[1])
                                   : NULL;
    if (strcmp(topic, "all") == 0 && usage) {
        help_command(&p, usage);
    } else if (strcmp(topic, "all") == 0) {
        help_all(&p);
    } else if (group && group_has_any(group, usage)) {
        explain_group(&p, group, usage);
    } else if (option && (!usage || option->commands & usage->command)) {
        explain(&p, option_text_of(option), usage);
    } else {
        return false;
    }
    return true;
}

bool help_answer(FILE *out, int argc, char *const *argv, bool bold, drey_error *err)
{
    int n_words = 0;
    char groups[200];
    const cli_usage *usage = usage_find(argc, argv, &n_words);
    const char *topic = argc > n_words + 1 ? argv[n_words + 1] : NULL;
    if (topic && strcmp(topic, "help") == 0)
        topic = NULL;
    other_word near;
    if (!topic ? help_short(out, usage, bold) : help_topic(out, usage, topic, bold))
        return true;
    if (!topic)
        error_set(err, DREY_ERR_MEMORY, "out of memory");
    else if (usage)
        error_set(err, DREY_ERR_USAGE, "drey %s has no options \"%.80s\": name all, or one of %s",
                  usage->name, topic, help_groups(usage, groups));
    else if (*topic == '-')
        other_option(&(other_line){0}, topic, err);
    else if (nearest_command(topic, &near))
        error_set(err, DREY_ERR_USAGE, "there is no help for \"%.80s\"; did you mean drey help %s?",
                  topic, near.text);
    else
        error_set(err, DREY_ERR_USAGE,
                  "there is no help for \"%.80s\": name a command, an option, all, or one of %s",
                  topic, help_groups(NULL, groups));
    return false;
}
