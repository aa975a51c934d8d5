/* The machines of drey plan --ranks: see ranks_file.h. */
#include "cli/files/ranks_file.h"

#include "cli/args/options.h"
#include "cli/files/input.h"
#include "common/error.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 3 };

/* Returns the error of a line, to be shown with its number; NULL: nothing. */
static const char *read_line(char *line, drey_rank_machine *m)
{
    char *word[WORDS + 1] = {NULL}, *rest = NULL;
    int n = 0;
    line[strcspn(line, "#")] = '\0';
    while (n <= WORDS && (word[n] = strtok_r(n ? NULL : line, " \t\r", &rest)))
        n++;
    *m = (drey_rank_machine){.memory_bytes = 0};
    if (n == 0)
        return NULL;
    if (n < 2 || n > WORDS)
        return "has to be a name, the memory, and perhaps the speed of the disk";
    if (strlen(word[0]) >= sizeof m->host)
        return "has a name that is too long";
    snprintf(m->host, sizeof m->host, "%s", word[0]);
    if (!size_parse(word[1], &m->memory_bytes) || m->memory_bytes == 0 ||
        m->memory_bytes == DREY_MEMORY_UNLIMITED)
        return "has to have the memory in second place, a size such as 6G";
    if (word[2] && !rate_parse(word[2], &m->disk_bytes_per_s))
        return "has to have the speed of the disk in third place, such as 500M/s";
    return NULL;
}

static drey_status read_lines(const char *path, char *text, drey_rank_machine *machines, int32_t *n,
                              drey_error *err)
{
    int line = 1;
    for (char *at = text, *next; at; at = next, line++) {
        drey_rank_machine m;
        next = strchr(at, '\n');
        if (next)
            *next++ = '\0';
        const char *wrong = read_line(at, &m);
        if (wrong)
            FAIL(err, DREY_ERR_USAGE, "%.200s, line %d: it %s", path, line, wrong);
        if (!m.memory_bytes)
            continue;
        if (*n == RANKS_FILE_MOST)
            FAIL(err, DREY_ERR_USAGE, "%.200s, line %d: more than %d machines", path, line,
                 RANKS_FILE_MOST);
        machines[(*n)++] = m;
    }
    if (*n < 2)
        FAIL(err, DREY_ERR_USAGE, "%.200s has %d machines: ranks are 2 to %d, a line each", path,
             *n, RANKS_FILE_MOST);
    return DREY_OK;
}

drey_status ranks_file_read(const char *path, drey_rank_machine *machines, int32_t *n,
                            drey_error *err)
{
    const input_limit limit = {.n_bytes = 64 << 10, .reason = "lists of ranks are read up to 64K"};
    char *text;
    size_t n_bytes;
    *n = 0;
    TRY(input_read(path, "the ranks", &limit, &text, &n_bytes, err));
    drey_status status = DREY_OK;
    if (strlen(text) != n_bytes)
        status = error_set(err, DREY_ERR_USAGE, "%.200s has a NUL byte: it is no text", path);
    else
        status = read_lines(path, text, machines, n, err);
    free(text);
    return status;
}

drey_status rank_layers_read(const char *text, int32_t *layers, uint64_t *n, drey_error *err)
{
    int32_t n_layers;
    bool good = numbers_parse(text, INT32_MAX, layers, RANKS_FILE_MOST, &n_layers);
    *n = (uint64_t)n_layers;
    if (good)
        return DREY_OK;
    FAIL(err, DREY_ERR_USAGE,
         "--rank-layers takes up to %d numbers of layers such as 0,12,16, not \"%.80s\"",
         RANKS_FILE_MOST, text);
}
