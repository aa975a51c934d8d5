/* Speeds of this machine in a cache folder: see drey_planner_speeds in drey/tune.h. */
#pragma once

#include "drey/drey_engine.h"

typedef struct json_value json_value;

/* A file has those of a disk, or those of computing; the others are 0. */
typedef struct kept_speeds {
    drey_speeds speeds;
    double until; /* seconds since 1970 from which on they do not count */
} kept_speeds;
/* False if any of it is missing or odd. */
bool kept_speeds_parse(const json_value *root, kept_speeds *out);

/* Fills in what is 0 and what the folder, which may be NULL, has: of the disk that the target is
 * on, and of computing with this tensor type. e has its configuration. */
void kept_speeds_find(const drey_engine *e, int type, const char *folder, drey_speeds *speeds);
/* Keeps what was measured just now, and no other: 0 is what was not. busy: other programs were at
 * work meanwhile, so that it counts for a shorter time. A folder that cannot be written to is the
 * same as none. */
void kept_speeds_keep_disk(const drey_engine *e, const char *folder, double bytes_per_s, bool busy);
void kept_speeds_keep_computing(const drey_engine *e, int type, const char *folder,
                                const drey_speeds *measured);
