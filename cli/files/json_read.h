/* Taking values out of JSON that anybody may have written. */
#ifndef DREY_CLI_JSON_READ_H
#define DREY_CLI_JSON_READ_H

#include "drey/drey.h"

#include <cjson/cJSON.h>

/* A member that is a text, borrowed from the JSON; NULL: there is none. */
const char *json_text(const cJSON *in, const char *key);
/* One that is a finite number; NAN: there is none. */
double json_number(const cJSON *in, const char *key);
/* One that is a list of finite numbers, at most `most`: how many; -1: there is none. */
int json_numbers(const cJSON *in, const char *key, double *out, int most);

/* Parses a file of at most 1 MiB, which holds one value. what names it in messages: "the profile".
 * *out is the caller's to delete; NULL where it fails. */
drey_status json_read(cJSON **out, const char *path, const char *what, drey_error *err);

#endif
