/* Sets of processor cores: those that a process may use, those that a thread runs on, and those of
 * equal speed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drey/drey.h"

typedef struct core_set {
    uint64_t bits[DREY_MAX_THREADS / 64];
} core_set;

static inline bool cores_has(const core_set *s, int32_t core)
{
    return s->bits[core / 64] >> (core % 64) & 1;
}
static inline void cores_add(core_set *s, int32_t core)
{
    s->bits[core / 64] |= UINT64_C(1) << (core % 64);
}
int32_t cores_count(const core_set *s);

/* The cores that the calling thread may run on; false: the system does not say. */
bool cores_of_thread(core_set *out);
/* Restricts the calling thread to them; false: the system refuses. */
bool cores_pin(const core_set *s);

/* Groups the cores of `among` by speed, the fastest first: one set per different value of
 * cpuN/cpu_capacity in `folder` (/sys/devices/system/cpu), at most `most` sets; slower cores join
 * the last set. Returns how many sets; 0: some core has no such file. */
int32_t cores_by_capacity(const char *folder, const core_set *among, core_set *sets,
                          int32_t *capacity, int32_t most);
