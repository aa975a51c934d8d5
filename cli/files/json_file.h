/* JSON for other programs: files that are there whole or not at all. */
#ifndef DREY_CLI_JSON_FILE_H
#define DREY_CLI_JSON_FILE_H

#include "drey/drey.h"

#include <cjson/cJSON.h>
#include <stdio.h>

/* Fails early where json_write would fail after a long run, the folder being missing or closed, and
 * where it would replace a model. */
drey_status json_check_path(const char *path, drey_error *err);

/* Has put write to path: into a new file beside it that then takes its place, so that a reader
 * never sees half of it. "-" is standard output; a device or pipe is written to as it is. put
 * returns false, with errno, where it fails. */
typedef bool file_put_fn(FILE *file, void *user);
drey_status file_write(const char *path, file_put_fn *put, void *user, drey_error *err);
/* The same for a text, and a newline. NULL (out of memory while it was built) is an error. */
drey_status text_write(const char *path, const char *text, drey_error *err);
/* The same for JSON. */
drey_status json_write(const char *path, const cJSON *root, drey_error *err);

/* Writes a JSON string of n bytes; what is no UTF-8 becomes U+FFFD. */
void json_put_string(FILE *out, const char *bytes, size_t n);

/* CPU, cores, kernel and memory of this machine; NULL if memory is short. */
cJSON *json_machine(void);

/* A plan with what it predicts; NULL if memory is short. */
cJSON *json_plan(const drey_plan *plan);

/* The statistics of a run, keys as documented in drey(1); NULL if memory is short. */
cJSON *json_statistics(const drey_statistics *s);

/* What came of drafting, likewise. */
cJSON *json_speculation(const drey_speculation *c);

/* The engine's units, a list. */
cJSON *json_units(const drey_engine *engine);
/* What came of early exits, likewise. */
cJSON *json_exits(const drey_exits *c);

#endif
