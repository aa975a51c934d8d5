/* The user's cache folder: $XDG_CACHE_HOME/drey, or ~/.cache/drey. What is there can be measured
 * again. */
#pragma once

#include "drey/drey_error.h"

#include <limits.h>

/* Returns out; NULL if neither variable names a folder, or it is too long. */
const char *cache_folder(char out[PATH_MAX]);
/* The same for one that is to be written to. DREY_ERR_USAGE: neither variable names one. */
drey_status cache_folder_find(char out[PATH_MAX], drey_error *err);
/* The path of a file in it that is to be written: makes the folders above it. */
drey_status cache_place(char *out, size_t capacity, const char *name, drey_error *err);
