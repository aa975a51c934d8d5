/* Parts of a path. */
#ifndef DREY_COMMON_PATH_H
#define DREY_COMMON_PATH_H

#include <string.h>

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

#endif
