/* The folder in which clients save sessions: it has a bound, for its files are as large as clients
 * make them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "common/error.h"

enum { SLOT_FOLDER_FILES = 4096 }; /* at most */

/* Returns whether name[0..n) is one that unfinished files have. */
bool slot_folder_is_unfinished(const char *name, size_t n);
/* At the server's start: it is a folder in which files can be made. Removes what a save that was
 * killed has left. DREY_ERR_USAGE. */
drey_status slot_folder_open(const char *folder, drey_error *err);
/* Checks that a file `name` of n_bytes, which takes the place of one that is there, leaves the
 * folder within most_bytes. DREY_ERR_USAGE: it does not. */
drey_status slot_folder_room(const char *folder, const char *name, uint64_t n_bytes,
                             uint64_t most_bytes, drey_error *err);
