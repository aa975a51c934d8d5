/* Files of a cache folder: JSON that says with which processor, tier and version it was measured.
 * Anybody may have edited them: what is read is checked to the last number. */
#pragma once

#include "common/json_buffer.h"

enum { CACHE_NAME_BYTES = 120 };

typedef struct cache_kind {
    const char *format; /* as the file names it; NULL: it names none */
    bool (*take)(const json_value *root, void *out);
} cache_kind;

/* The tier that NULL stands for is the best. */
const char *cache_tier(const char *cpu_tier);
/* Members of an object: the format, and this machine. n_threads: 0: not a member. */
void cache_put_origin(json_writer *w, const cache_kind *kind, const char *cpu_tier,
                      int32_t n_threads);
/* DREY_ERR_IO, DREY_ERR_FORMAT, DREY_ERR_MISMATCH: as drey_profile_load. folder may be NULL. */
drey_status cache_read(const char *folder, const char *name, const cache_kind *kind,
                       const char *cpu_tier, void *out, drey_error *err);
/* The error of a file that is not there. */
drey_status cache_missing(drey_error *err);
/* Ends and frees the JSON, and writes it, with the folders above it. */
drey_status cache_write(const char *folder, const char *name, json_buffer *b, drey_error *err);

/* A whole number from least to most; false: there is none. */
bool cache_take_whole(const json_value *from, const char *key, double least, double most,
                      double *out);
/* n numbers, none below 0 or more than anybody measures. */
bool cache_take_numbers(const json_value *from, const char *key, double *out, int n);
