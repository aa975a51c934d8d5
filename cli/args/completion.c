/* The completions: see completion.h. What a value can be is read from an option's argument:
 * FILE.gguf is a model, FILE, PATH and FOLDER are paths, words in small letters and sizes stand for
 * themselves. */
#include "cli/args/completion.h"

#include "cli/args/help.h"

#include "drey/quantize.h"

#include <string.h>

typedef struct value {
    char words[200]; /* with a blank between them */
    bool model, file, folder;
} value;

static void add_word(value *v, const char *word)
{
    size_t n = strlen(v->words);
    snprintf(v->words + n, sizeof v->words - n, n ? " %s" : "%s", word);
}

static value value_of(const cli_option *o)
{
    char argument[200];
    value v = {0};
    if (o->value == CLI_HELP) {
        add_word(&v, "all");
        for (size_t i = 0; i < n_option_groups; i++)
            add_word(&v, option_groups[i].name);
        return v;
    }
    snprintf(argument, sizeof argument, "%s", option_text_of(o)->argument);
    for (char *rest = argument, *word; (word = strtok_r(rest, "|", &rest));) {
        v.model |= strcmp(word, "FILE.gguf") == 0;
        v.file |= strcmp(word, "FILE") == 0 || strcmp(word, "PATH") == 0;
        v.folder |= strcmp(word, "FOLDER") == 0;
        if (strchr("abcdefghijklmnopqrstuvwxyz0123456789", *word))
            add_word(&v, word);
    }
    return v;
}

/* Completes the operand of a command without -m: a model, a folder or another file. */
static value value_of_operand(const cli_usage *u)
{
    const bool folder = strncmp(u->operands, "FOLDER", 6) == 0;
    const bool model = !folder && strstr(u->operands, ".gguf");
    if (!(u->command & CLI_OPERAND) || u->command == CLI_PULL)
        return (value){0};
    return (value){.model = model, .folder = folder, .file = !model && !folder};
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
    fputs("help version --help --version --completion", out);
}

static void write_groups(FILE *out)
{
    fputs("all", out);
    for (size_t i = 0; i < n_option_groups; i++)
        fprintf(out, " %s", option_groups[i].name);
}

/* The types that quantize makes. */
static void write_types(FILE *out)
{
    for (int32_t i = 0; drey_quantize_type(i); i++)
        fprintf(out, i ? " %s" : "%s", drey_quantize_type(i));
}

/* Words and files that each shell completes in its own syntax: files of models. */
#define MODELS "${DREY_MODELS:-${XDG_CACHE_HOME:-$HOME/.cache}/drey/models}"

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

static const char *bash_kind(const value *v)
{
    return v->model ? "model" : v->file ? "-f" : v->folder ? "-d" : "";
}

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
        fprintf(out, "--%s) kind='%s' words='%s' ;;\n", o->name, bash_kind(&v), v.words);
    }
}

static void bash_commands(FILE *out)
{
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        value operand = value_of_operand(u);
        fprintf(out, "        '%s') kind='%s' words='", u->name, bash_kind(&operand));
        if (has_kinds(u))
            write_kinds(out, u);
        for (size_t k = 0; k < cli_n_options; k++) {
            const cli_option *o = &cli_options[k];
            if (o->commands & u->command && o->letter)
                fprintf(out, "-%c ", o->letter);
            if (o->commands & u->command)
                fprintf(out, "--%s ", o->name);
        }
        if (u->command == CLI_QUANTIZE) {
            fputs("'\n            ((COMP_CWORD != 4)) || kind='' words='", out);
            write_types(out);
        }
        fputs("' ;;\n", out);
    }
}

static void write_bash(FILE *out)
{
    fputs("# Completion of drey for bash, which drey --completion bash has written.\n"
          "_drey_models() { # files here, and in the models' folder\n"
          "    compgen -f -X '!*.gguf' -- \"$1\"\n"
          "    compgen -d -- \"$1\"\n"
          "    [[ $1 == */* ]] || (cd \"" MODELS "\" 2>/dev/null &&\n"
          "        compgen -f -X '!*.gguf' -- \"$1\")\n"
          "}\n"
          "_drey() {\n"
          "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
          "    local command=${COMP_WORDS[1]-} kind='' words=''\n"
          "    case $command in ",
          out);
    write_first_words(out, " | ");
    fputs(") ((COMP_CWORD > 2)) && command+=\" ${COMP_WORDS[2]}\" ;; esac\n"
          "    case $prev in\n"
          "    --completion) words='bash zsh fish' ;;\n",
          out);
    bash_values(out);
    fputs("    *)\n"
          "        ((COMP_CWORD > 1)) || command=\n"
          "        case $command in\n"
          "        '') words='",
          out);
    write_kinds(out, NULL);
    fputs("' ;;\n        help) words='", out);
    write_kinds(out, NULL);
    putc(' ', out);
    write_groups(out);
    fputs("' ;;\n", out);
    bash_commands(out);
    fputs("        esac\n"
          "        ;;\n"
          "    esac\n"
          "    mapfile -t COMPREPLY < <(\n"
          "        if [[ $kind == model ]]; then\n"
          "            _drey_models \"$cur\" || :\n"
          "            kind=''\n"
          "        fi\n"
          "        compgen $kind -W \"$words\" -- \"$cur\"\n"
          "    )\n"
          "}\n"
          "complete -o filenames -F _drey drey\n",
          out);
}

/* ---- zsh ---- */

static const char *zsh_paths(const value *v)
{
    return v->model ? "_drey_models" : v->file ? "_files" : v->folder ? "_files -/" : "";
}

/* Words with descriptions: the commands, or the second words after `of`. */
static void zsh_describe(FILE *out, const cli_usage *of)
{
    const size_t n = of ? strlen(of->name) : 0;
    fputs("local -a kinds=(", out);
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        const char *name = of ? u->name + n + 1 : u->name;
        if (of ? strncmp(u->name, of->name, n) != 0 || u->name[n] != ' ' : !!strchr(u->name, ' '))
            continue;
        fprintf(out, "\n            '%s:", name);
        write_quoted(out, u->summary, ":\\");
        fputs("'", out);
    }
    if (!of)
        fputs("\n            'help:explains a command, an option or a group of options'"
              "\n            'version:shows the version'",
              out);
    fputs(")\n        _describe command kinds", out);
}

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
    write_quoted(out, option_line(option_text_of(o), command), "[]:\\");
    fputc(']', out);
    const char *paths = zsh_paths(&v);
    if (o->value == CLI_HELP)
        fprintf(out, "::group:(%s)'", v.words);
    else if (!option_takes_value(o, command))
        fputs("'", out);
    else if (*v.words && *paths)
        fprintf(out, ":value:{ compadd %s; %s }'", v.words, paths);
    else if (*v.words)
        fprintf(out, ":value:(%s)'", v.words);
    else
        fprintf(out, ":value:%s'", paths);
}

static void zsh_operands(FILE *out, const cli_usage *u)
{
    value operand = value_of_operand(u);
    if (u->command == CLI_QUANTIZE) {
        fputs(" \\\n            ':model:_drey_models' ':output:_files' ':type:(", out);
        write_types(out);
        fputs(")'", out);
    } else if (*zsh_paths(&operand)) {
        fprintf(out, " \\\n            ':file:%s'", zsh_paths(&operand));
    }
}

static void write_zsh(FILE *out)
{
    fputs("#compdef drey\n"
          "# Completion of drey for zsh, which drey --completion zsh has written.\n"
          "_drey_models() { # files here, and in the models' folder\n"
          "    _files -g '*.gguf(-.)'\n"
          "    compadd -- " MODELS "/*.gguf(N:t)\n"
          "}\n"
          "_drey() {\n"
          "    local command=$words[2]\n"
          "    if ((CURRENT == 2)); then\n"
          "        ",
          out);
    zsh_describe(out, NULL);
    fputs("\n        compadd -- --help --version --completion", out);
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
    fputs("    'help')\n        ", out);
    zsh_describe(out, NULL);
    fputs("\n        compadd -- ", out);
    write_groups(out);
    fputs("\n        ;;\n    '--completion')\n        compadd -- bash zsh fish\n        ;;\n", out);
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        fprintf(out, "    '%s')\n        ", u->name);
        if (has_kinds(u))
            zsh_describe(out, u);
        else
            fputs("_arguments", out);
        for (size_t k = 0; k < cli_n_options; k++)
            if (cli_options[k].commands & u->command)
                zsh_option(out, &cli_options[k], u->command);
        zsh_operands(out, u);
        fputs("\n        ;;\n", out);
    }
    fputs("    esac\n}\n"
          "if [[ $funcstack[1] == _drey ]]; then # from a folder of completions\n"
          "    _drey \"$@\"\n"
          "elif ((! $+functions[compdef])); then\n"
          "    print -u2 'drey: completions need: autoload -U compinit; compinit'\n"
          "else\n"
          "    compdef _drey drey\n"
          "fi\n",
          out);
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
            o->value == CLI_FLAG || o->value == CLI_HELP ? ""
            : v.file || v.folder                         ? " -r -F"
                                                         : " -x");
    if (v.model || (*v.words && o->value != CLI_HELP))
        fprintf(out, " -a '%s%s%s'", v.model ? "(__drey_models)" : "",
                v.model && *v.words ? " " : "", v.words);
    fish_description(out, option_text_of(o)->line);
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
          "function __drey_models\n"
          "    set -l folder $DREY_MODELS\n"
          "    set -q XDG_CACHE_HOME; or set -l XDG_CACHE_HOME $HOME/.cache\n"
          "    test -n \"$folder\"; or set folder $XDG_CACHE_HOME/drey/models\n"
          "    __fish_complete_suffix .gguf\n"
          "    for file in $folder/*.gguf\n"
          "        string replace -r '.*/' '' -- $file\n"
          "    end\n"
          "end\n"
          "complete -c drey -n __fish_use_subcommand -l version -d 'the version'\n"
          "complete -c drey -n __fish_use_subcommand -a version -d 'the version'\n"
          "complete -c drey -n __fish_use_subcommand -a help -d 'explains commands and options'\n"
          "complete -c drey -n __fish_use_subcommand -l completion -x -a 'bash zsh fish'\n"
          "complete -c drey -n __fish_use_subcommand -s h -l help -d 'the commands'\n"
          "complete -c drey -n '__drey_is help' -a '",
          out);
    write_groups(out);
    fputs("'\ncomplete -c drey -n '__drey_is quantize' -a '", out);
    write_types(out);
    fputs("' -d type\n", out);
    for (size_t i = 0; i < cli_n_usages; i++) {
        const cli_usage *u = &cli_usages[i];
        const char *kind = strchr(u->name, ' ');
        if (kind)
            fprintf(out, "complete -c drey -n '__drey_is %.*s' -a %s", (int)(kind - u->name),
                    u->name, kind + 1);
        else
            fprintf(out, "complete -c drey -n __fish_use_subcommand -a %s", u->name);
        fish_description(out, u->summary);
        value operand = value_of_operand(u);
        if (operand.model)
            fprintf(out, "complete -c drey -n '__drey_is %s' -a '(__drey_models)'\n", u->name);
        else if (operand.file || operand.folder)
            fprintf(out, "complete -c drey -n '__drey_is %s' -F\n", u->name);
        if (!strchr(u->name, ' '))
            fprintf(out, "complete -c drey -n '__drey_is help' -a %s\n", u->name);
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
