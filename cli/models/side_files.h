/* The files that drey keeps next to a model or for it. */
#pragma once

#include "cli/models/model_store.h"

/* Flags that say whether the model has packed weights, heads, predictors of early exits, an EAGLE
 * layer next to it; and when a command last worked with it, 0: not known. */
typedef struct side_files {
    bool sidecar, heads, exits, eagle, profile;
    int64_t used_s; /* seconds since 1970 */
} side_files;
void side_files_find(side_files *found, const stored_model *m);
/* Writes "sidecar, heads, profile", or "". Returns out. */
const char *side_files_text(char out[80], const side_files *s);

/* Calls `visit` for each file of the model that there is: its parts first, then what drey made for
 * it. */
void side_files_visit(const stored_model *m, void (*visit)(void *user, const char *path, bool part),
                      void *user);

/* Notes that a command works with a model of the folder now. Failures are not reported: nothing
 * depends on it. */
void side_files_note_use(const char *path);
/* Removes that note. */
void side_files_forget_use(const char *path);
