/* Hints in words: see hints.h. */
#include "cli/terminal/hints.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Words for each hint, in their order; a command shows those whose option it has. */
static const struct {
    drey_hint hint;
    const char *option; /* option of the command; NULL: the words are about another command, */
    const char *words;  /* and end before the model's file */
    const char *between;
} ways[] = {
    {DREY_HINT_N_CONTEXT, "context", "-c", ", "},
    {DREY_HINT_MEMORY_BYTES, "memory", "--memory", ", "},
    {DREY_HINT_N_THREADS, "threads", "-t", ", "},
    {DREY_HINT_IO, "io", "--io auto", ", "},
    {DREY_HINT_SIDECAR, NULL, "drey prepare", ", "},
    {DREY_HINT_SIDECAR, "sidecar", "--sidecar none", ", or "},
    {DREY_HINT_OUTPUT, "output", "--output", ", "},
    {DREY_HINT_FORCE, "output", "--output", ", "},
    {DREY_HINT_FORCE, "force", "--force", ", "},
    {DREY_HINT_PREPARE, NULL, "drey prepare --force", ", "},
    {DREY_HINT_CHAT, "chat", "without --chat", ", "},
    {DREY_HINT_PLANES, NULL, "drey prepare --planes", ", "},
    {DREY_HINT_EXIT_FILE, NULL, "drey train exit -m", ", "},
    {DREY_HINT_EXIT_FILE, "exit-file", "--exit-file", ", or "},
    {DREY_HINT_REQUANTIZE, "allow-requantize", "--allow-requantize", ", "},
    {DREY_HINT_HEADS, NULL, "drey train medusa -m", ", "},
    {DREY_HINT_IMPORTANCE, NULL, "drey imatrix -f TEXT -o FILE -m", ", "},
    {DREY_HINT_IMPORTANCE, "imatrix", "--imatrix FILE", ", and "},
};

const char *hint_quote(const char *word, char out[HINT_WORD_BYTES])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./:=@%+,";
    bool quotes = !*word || word[strspn(word, plain)];
    size_t n = 0;
    for (const char *c = word; *c; c++) {
        const char *as = *c == '\'' ? "'\\''" : (char[]){*c, '\0'};
        if (n + strlen(as) + 3 > HINT_WORD_BYTES)
            return strcpy(out, "");
        n += (size_t)sprintf(out + n, "%s%s", quotes && n == 0 ? "'" : "", as);
    }
    return strcpy(out + n, quotes ? "'" : "") - n;
}

const char *hint_words(drey_hint hint, cli_command command, const char *model, char out[HINT_BYTES])
{
    char file[HINT_WORD_BYTES] = "";
    size_t n = 0;
    out[0] = '\0';
    if (!model || !*hint_quote(model, file))
        strcpy(file, "MODEL");
    for (size_t i = 0; i < sizeof ways / sizeof *ways && n < HINT_BYTES; i++) {
        const cli_option *option = ways[i].option ? option_find(ways[i].option) : NULL;
        if (ways[i].hint != hint || (ways[i].option && !(option && option->commands & command)))
            continue;
        n += (size_t)snprintf(out + n, HINT_BYTES - n, "%s%s%s%s", n ? ways[i].between : " (",
                              ways[i].words, option ? "" : " ", option ? "" : file);
    }
    if (n > 0 && n + 1 < HINT_BYTES)
        snprintf(out + n, HINT_BYTES - n, ")");
    return out;
}
