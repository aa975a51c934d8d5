/* Parts of a path. */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The last part: what follows the last slash, or all of it. */
static inline const char *path_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* Bytes of the folder before it, with its slash; 0: none is named. */
static inline size_t path_folder_bytes(const char *path)
{
    return (size_t)(path_name(path) - path);
}

/* The path with this ending added; the caller frees. NULL: out of memory. */
static inline char *path_with(const char *path, const char *ending)
{
    size_t n = strlen(path) + strlen(ending) + 1;
    char *out = malloc(n);
    if (out)
        snprintf(out, n, "%s%s", path, ending);
    return out;
}

/* Returns whether a name ends so, with something before it. */
static inline bool path_ends(const char *path, const char *ending)
{
    size_t n = strlen(path), n_ending = strlen(ending);
    return n > n_ending && strcmp(path + n - n_ending, ending) == 0;
}

/* Returns whether both exist and are one file, under whatever names. */
static inline bool path_same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}
