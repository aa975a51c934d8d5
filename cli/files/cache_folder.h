/* The user's cache folder: $XDG_CACHE_HOME/drey, or ~/.cache/drey. What lies there can be measured
 * again. */
#ifndef DREY_CLI_CACHE_FOLDER_H
#define DREY_CLI_CACHE_FOLDER_H

#include "common/json_buffer.h"

/* The path of a name in it; false if neither variable names a folder, or it is too long. */
bool cache_path(char *out, size_t capacity, const char *name);

/* The same for a file that is to be written: makes the folders above it. DREY_ERR_USAGE: neither
 * variable names one. */
drey_status cache_place(char *out, size_t capacity, const char *name, drey_error *err);
/* Writes JSON there, with the folders above it; ends and frees it. */
drey_status cache_write(const char *name, json_buffer *b, drey_error *err);

#endif
