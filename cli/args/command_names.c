/* Commands by their names, and options by their texts: see help.h and option_texts.h. */
#include "cli/args/help.h"

#include <string.h>

const char *command_name(cli_command command)
{
    size_t i = 0;
    while (cli_usages[i].command != command)
        i++;
    return cli_usages[i].name;
}

/* usage is one of the commands whose first word is name. */
static bool is_kind(const cli_usage *usage, const char *name)
{
    size_t n = strlen(name);
    return strncmp(usage->name, name, n) == 0 && usage->name[n] == ' ';
}

const cli_usage *usage_find(int argc, char *const *argv, int *n_words)
{
    const cli_usage *found = NULL;
    *n_words = 0;
    for (size_t i = 0; argc > 1 && i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        if (strcmp(u->name, argv[1]) == 0) {
            found = u;
            *n_words = 1;
        } else if (argc > 2 && is_kind(u, argv[1]) &&
                   strcmp(u->name + strlen(argv[1]) + 1, argv[2]) == 0) {
            *n_words = 2;
            return u;
        }
    }
    return found;
}

const char *usage_kinds(const cli_usage *usage, const char *between, char out[80])
{
    size_t n = 0;
    *out = '\0';
    for (size_t i = 0; i < cli_n_usages; i++)
        if (is_kind(&cli_usages[i], usage->name))
            n += (size_t)snprintf(out + n, 80 - n, "%s%s", n ? between : "",
                                  cli_usages[i].name + strlen(usage->name) + 1);
    return out;
}

const option_text *option_text_of(const cli_option *option)
{
    for (size_t i = 0; i < n_option_texts; i++)
        if (strcmp(option_texts[i].name, option->name) == 0)
            return &option_texts[i];
    return NULL;
}

const char *option_line(const option_text *text, cli_command command)
{
    for (const option_meaning *m = text->meanings; m && m->commands; m++)
        if (m->commands & command)
            return m->line;
    return text->line;
}

const option_group *option_group_find(const char *name)
{
    for (size_t i = 0; i < n_option_groups; i++)
        if (strcmp(option_groups[i].name, name) == 0)
            return &option_groups[i];
    return NULL;
}
