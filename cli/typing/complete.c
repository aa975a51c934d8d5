/* See complete.h. */
#include "cli/typing/complete.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Names that begin as the line ends: what they have in common beyond that, and all of them. */
typedef struct matches {
    completion *out;
    const char *begun; /* [n_begun] */
    size_t n_begun;
    int n;
} matches;

static void add(matches *m, const char *name, const char *ending)
{
    if (strncmp(name, m->begun, m->n_begun) != 0)
        return;
    completion *o = m->out;
    const char *rest = name + m->n_begun;
    if (m->n++ == 0) {
        snprintf(o->added, sizeof o->added, "%s%s", rest, ending);
    } else {
        size_t same = 0;
        while (o->added[same] && o->added[same] == rest[same])
            same++;
        while (same > 0 && (o->added[same] & 0xC0) == 0x80) /* whole characters */
            same--;
        o->added[same] = 0;
    }
    size_t n = strlen(o->choices);
    snprintf(o->choices + n, sizeof o->choices - n, "%s%s", n ? "  " : "", name);
}

static bool takes_file(const char *command)
{
    const char *blank = strchr(command, ' ');
    return blank && strcmp(blank, " FILE") == 0;
}

static void add_commands(matches *m, const char *const *commands)
{
    for (; *commands; commands++) {
        char name[32];
        size_t n = strcspn(*commands, " ");
        snprintf(name, sizeof name, "%.*s", (int)n, *commands);
        add(m, name, (*commands)[n] ? " " : "");
    }
}

/* Hidden ones only where the name begins with a dot. */
static void add_files(matches *m, const char *path)
{
    char folder[1024] = ".", whole[1400];
    const char *slash = strrchr(path, '/');
    if (slash)
        snprintf(folder, sizeof folder, "%.*s", (int)(slash + 1 - path), path);
    m->begun = slash ? slash + 1 : path;
    m->n_begun = strlen(m->begun);
    DIR *files = opendir(folder);
    for (struct dirent *file; files && (file = readdir(files));) {
        struct stat s;
        if (file->d_name[0] == '.' && m->begun[0] != '.')
            continue;
        snprintf(whole, sizeof whole, "%s/%s", folder, file->d_name);
        add(m, file->d_name, stat(whole, &s) == 0 && S_ISDIR(s.st_mode) ? "/" : "");
    }
    if (files)
        closedir(files);
}

void complete_line(const char *line, const char *const *commands, completion *out)
{
    matches m = {.out = out, .begun = line, .n_begun = strlen(line)};
    size_t n = strcspn(line, " ");
    out->added[0] = out->choices[0] = 0;
    if (line[0] != '/')
        return;
    if (!line[n])
        add_commands(&m, commands);
    for (; line[n] && *commands; commands++)
        if (takes_file(*commands) && strncmp(*commands, line, n + 1) == 0)
            add_files(&m, line + n + strspn(line + n, " "));
    if (m.n < 2 || out->added[0])
        out->choices[0] = 0;
}
