/* The energy that the processor reports: Intel's since 2011 and AMD's since Zen (RAPL), where the
 * system lets this user read it. It is that of the whole machine. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { ENERGY_PACKAGES = 8 };

typedef struct energy_reading {
    bool has[ENERGY_PACKAGES];
    uint64_t uj[ENERGY_PACKAGES], range[ENERGY_PACKAGES]; /* it begins again after range */
} energy_reading;

/* root: the folder of the counters; NULL: the system's. */
void energy_read(energy_reading *r, const char *root);
/* Joules from a to b, of the packages that both have; 0: none. A counter that began again did so
 * once. */
double energy_between(const energy_reading *a, const energy_reading *b);

/* Joules while texts are written. A counter begins again after some minutes, so it is read at least
 * each second meanwhile. */
typedef struct energy_meter {
    energy_reading last;
    int64_t last_ns; /* time of the monotonic clock */
    double joules;
} energy_meter;
/* Ignores what was used since the last call: nothing was written. */
void energy_meter_skip(energy_meter *m, const char *root);
/* Counts what was used since the last call. now: also if that was within this second. */
void energy_meter_add(energy_meter *m, const char *root, bool now);
