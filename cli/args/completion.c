/* The completions: see completion.h. What a value can be is read from an option's argument: FILE,
 * PATH and FOLDER are paths, words in small letters and sizes stand for themselves. */
#include "cli/args/completion.h"

#include "cli/args/help.h"

#include <string.h>

typedef struct value {
    char words[160]; /* with a blank between them */
    bool file, folder;
} value;

static value value_of(const cli_option *o)
{
    char argument[160];
    value v = {0};
    option_argument(o, argument);
    for (char *rest = argument, *word; (word = strtok_r(rest, "|", &rest));) {
        v.file |= strcmp(word, "FILE") == 0 || strcmp(word, "PATH") == 0;
        v.folder |= strcmp(word, "FOLDER") == 0;
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789", *word)) {
            size_t n = strlen(v.words);
            snprintf(v.words + n, sizeof v.words - n, n ? " %s" : "%s", word);
        }
    }
    return v;
}

/* For single quotes; characters in special get a backslash. */
static void write_quoted(FILE *out, const char *text, const char *special)
{
    for (; *text; text++) {
        if (*text == '\'')
            fputs("'\\'", out);
        else if (strchr(special, *text))
            fputc('\\', out);
        fputc(*text, out);
    }
}

static bool has_kinds(const cli_usage *u)
{
    return u->command == 0;
}

/* The commands' first words, or the second ones after this. */
static void write_kinds(FILE *out, const cli_usage *of)
{
    char kinds[80];
    if (of) {
        fprintf(out, "%s --help", usage_kinds(of, " ", kinds));
        return;
    }
    for (size_t i = 0; i < cli_n_usages; i++)
        if (!strchr(cli_usages[i].name, ' '))
            fprintf(out, "%s ", cli_usages[i].name);
    fputs("--help --version --completion", out);
}

/* The first words that are followed by a second one, as a pattern: "train|bench". */
static void write_first_words(FILE *out, const char *between)
{
    bool any = false;
    for (size_t i = 0; i < cli_n_usages; i++)
        if (has_kinds(&cli_usages[i])) {
            fprintf(out, "%s%s", any ? between : "", cli_usages[i].name);
            any = true;
        }
}

/* ---- bash ---- */

static void bash_values(FILE *out)
{
    for (size_t i = 0; i < cli_n_options; i++) {
        const cli_option *o = &cli_options[i];
        if (o->value == CLI_FLAG)
            continue;
        value v = value_of(o);
        fputs("    ", out);
        if (o->letter)
            fprintf(out, "-%c | ", o->letter);
        fprintf(out, "--%s) kind='%s' words='%s' ;;\n", o->name,
                v.file     ? "-f"
                : v.folder ? "-d"
                           : "",
                v.words);
    }
}

static void bash_commands(FILE *out)
{
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        fprintf(out, "        '%s') kind='%s' words='", u->name,
                u->command & CLI_OPERAND ? "-f" : "");
        if (has_kinds(u))
            write_kinds(out, u);
        for (size_t k = 0; k < cli_n_options; k++) {
            const cli_option *o = &cli_options[k];
            if (o->commands & u->command && o->letter)
                fprintf(out, "-%c ", o->letter);
            if (o->commands & u->command)
                fprintf(out, "--%s ", o->name);
        }
        fputs("' ;;\n", out);
    }
}

static void write_bash(FILE *out)
{
    fputs("# Completion of drey for bash, which drey --completion bash has written.\n"
          "_drey() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=${COMP_WORDS[1]-} kind='' words=''\n"
          "    case $command in ",
          out);
    write_first_words(out, " | ");
    fputs(") ((COMP_CWORD > 2)) && command+=\" ${COMP_WORDS[2]}\" ;; esac\n"
          "    case $prev in\n",
          out);
    bash_values(out);
    fputs("    *)\n"
          "        ((COMP_CWORD > 1)) || command=\n"
          "        case $command in\n"
          "        '') words='",
          out);
    write_kinds(out, NULL);
    fputs("' ;;\n", out);
    bash_commands(out);
    fputs("        esac\n"
          "        ;;\n"
          "    esac\n"
          "    mapfile -t COMPREPLY < <(compgen $kind -W \"$words\" -- \"$cur\")\n"
          "}\n"
          "complete -o filenames -F _drey drey\n",
          out);
}

/* ---- zsh ---- */

/* '(-m --model)'{-m,--model}'[what it is]:FILE:_files' */
static void zsh_option(FILE *out, const cli_option *o, cli_command command)
{
    value v = value_of(o);
    fputs(" \\\n            ", out);
    if (o->letter)
        fprintf(out, "'(-%c --%s)'{-%c,--%s}'", o->letter, o->name, o->letter, o->name);
    else
        fprintf(out, "'%s--%s", o->value == CLI_STOP ? "*" : "", o->name);
    fputc('[', out);
    write_quoted(out, option_help(o, command), "[]:\\");
    fputc(']', out);
    const char *paths = v.file ? "_files" : v.folder ? "_files -/" : "";
    if (!option_takes_value(o, command))
        fputs("'", out);
    else if (*v.words && *paths)
        fprintf(out, ":value:{ compadd %s; %s }'", v.words, paths);
    else if (*v.words)
        fprintf(out, ":value:(%s)'", v.words);
    else
        fprintf(out, ":value:%s'", paths);
}

static void write_zsh(FILE *out)
{
    fputs("#compdef drey\n"
          "# Completion of drey for zsh, which drey --completion zsh has written.\n"
          "_drey() {\n"
          "    local command=$words[2]\n"
          "    if ((CURRENT == 2)); then\n"
          "        compadd -- ",
          out);
    write_kinds(out, NULL);
    fputs("\n        return\n    fi\n    if [[ $command == (", out);
    write_first_words(out, "|");
    fputs(") ]] && ((CURRENT > 3)); then\n"
          "        command+=\" $words[3]\"\n"
          "        shift words\n"
          "        ((CURRENT--))\n"
          "    fi\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $command in\n",
          out);
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        fprintf(out, "    '%s')\n        ", u->name);
        fputs(has_kinds(u) ? "compadd -- " : "_arguments", out);
        if (has_kinds(u))
            write_kinds(out, u);
        for (size_t k = 0; k < cli_n_options; k++)
            if (cli_options[k].commands & u->command)
                zsh_option(out, &cli_options[k], u->command);
        if (u->command & CLI_OPERAND)
            fputs(" \\\n            ':file:_files'", out);
        fputs("\n        ;;\n", out);
    }
    fputs("    esac\n}\n_drey \"$@\"\n", out);
}

/* ---- fish ---- */

static void fish_description(FILE *out, const char *text)
{
    fputs(" -d '", out);
    write_quoted(out, text, "\\");
    fputs("'\n", out);
}

static void fish_option(FILE *out, const cli_option *o)
{
    value v = value_of(o);
    fputs("complete -c drey -n \"__drey_is", out);
    for (size_t i = 0; i < cli_n_usages; i++)
        if (o->commands & cli_usages[i].command)
            fprintf(out, " '%s'", cli_usages[i].name);
    fputs("\"", out);
    if (o->letter)
        fprintf(out, " -s %c", o->letter);
    fprintf(out, " -l %s%s", o->name,
            o->value == CLI_FLAG ? ""
            : v.file || v.folder ? " -r -F"
                                 : " -x");
    if (*v.words)
        fprintf(out, " -a '%s'", v.words);
    fish_description(out, o->help);
}

static void write_fish(FILE *out)
{
    fputs("# Completion of drey for fish, which drey --completion fish has written.\n"
          "complete -c drey -f\n"
          "function __drey_is\n"
          "    set -l words (commandline -opc)\n"
          "    test (count $words) -gt 1; or return 1\n"
          "    contains -- $words[2] $argv; or contains -- \"$words[2..3]\" $argv\n"
          "end\n"
          "complete -c drey -n __fish_use_subcommand -l version -d 'the version'\n"
          "complete -c drey -n __fish_use_subcommand -s h -l help -d 'the commands'\n",
          out);
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        const char *kind = strchr(u->name, ' ');
        if (kind)
            fprintf(out, "complete -c drey -n '__drey_is %.*s' -a %s", (int)(kind - u->name),
                    u->name, kind + 1);
        else
            fprintf(out, "complete -c drey -n __fish_use_subcommand -a %s", u->name);
        fish_description(out, u->summary);
        if (u->command & CLI_OPERAND)
            fprintf(out, "complete -c drey -n '__drey_is %s' -F\n", u->name);
    }
    for (size_t i = 0; i < cli_n_options; i++)
        fish_option(out, &cli_options[i]);
}

bool completion_write(FILE *out, const char *shell)
{
    static const struct {
        const char *shell;
        void (*write)(FILE *out);
    } shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(shell, shells[i].shell) == 0) {
            shells[i].write(out);
            return true;
        }
    return false;
}
