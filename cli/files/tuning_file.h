/* What `drey tune` found, kept in the user's cache directory: $XDG_CACHE_HOME/drey/tuning.json, or
 * ~/.cache/drey/tuning.json. It belongs to one processor, tier and version. */
#ifndef DREY_CLI_TUNING_FILE_H
#define DREY_CLI_TUNING_FILE_H

#include "drey/drey.h"

/* Where it lies; false if neither variable names a folder. */
bool tuning_path(char *out, size_t capacity);

/* True if there is one for this machine and tier (NULL: the best). A file that is broken, or not of
 * this machine and version, is passed over with one sentence on standard error; where there is
 * none, or one for another tier, nothing is said. */
bool tuning_load(const char *cpu_tier, drey_tuning *tuning);

/* Writes it, with the folders above it. */
drey_status tuning_save(const char *cpu_tier, const drey_tuning *tuning, drey_error *err);

#endif
