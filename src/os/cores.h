/* Sets of processor cores: those that a process may use, those that a thread runs on, and those of
 * equal speed. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "drey/choices.h"

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

/* Adds the cores of a list such as "0-3,6", which a line's end may close. False: it is none. */
bool cores_parse(const char *text, core_set *out);

/* Groups the cores of `among` by speed, the fastest first: one set per different speed, at most
 * `most` sets; slower cores join the last set. A core's speed is system/cpu/cpuN/cpu_capacity in
 * `devices` (/sys/devices). Intel's processors have lists instead, cpu_core/cpus and cpu_atom/cpus:
 * 1024 for performance cores and EFFICIENCY_SPEED for efficiency cores, which is one byte product
 * of 256 bits per cycle instead of two at three quarters of the clock (not measured; `drey tune`
 * measures shares). Returns how many sets; 0: the speed of some core is not known. */
enum { EFFICIENCY_SPEED = 390 };
int32_t cores_by_speed(const char *devices, const core_set *among, core_set *sets, int32_t *speed,
                       int32_t most);
