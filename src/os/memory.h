/* Memory, as the system reports it. All figures in bytes; 0 if it reports none. */
#pragma once

#include <stdint.h>

#include "os/cgroup.h"

uint64_t memory_total(void);
uint64_t memory_available(void); /* MemAvailable */
uint64_t memory_resident(void);  /* this process now */
/* The memory that this process has already, the same in every run except for some pages: all code
 * and constants of the program and its libraries, as if they were in memory, and what it has
 * written to. Returns freed memory to the system first. */
uint64_t memory_program(void);
/* Makes this true for the object that contains this code: loads all of it, so that no step waits
 * for code from the disk, and drops the rest of its file from the page cache, such as debug
 * symbols, which can be ten times as much. */
void memory_settle_code(void);
uint64_t memory_resident_peak(void); /* its high-water mark */
int64_t memory_major_faults(void);   /* Major faults of this process so far */

/* The size to which this process may grow in its memory cgroups (v1 or v2): the smallest over all
 * levels of the limit minus what others in it use and cannot drop. UINT64_MAX if no level has a
 * limit. */
uint64_t memory_cgroup_room(void);

/* The budget for "auto": the lower of that and the machine's available memory, divided by 1.05; 0
 * if nothing is known. *estimated: /proc does not report available memory, and the sum of free
 * memory and buffers from sysinfo(2) was used. */
uint64_t memory_auto_budget(bool *estimated);

/* The parts of the above that do not ask the system. budget: from the room in the groups
 * (UINT64_MAX: no limit), and from available and idle memory (0: not known). limit: of memory.max
 * or memory.limit_in_bytes, UINT64_MAX for none. field: a "Name: 123 kB" line of /proc/meminfo or
 * /proc/self/status; name with its colon; 0 when there is none. stat: a "name 123" line of
 * memory.stat, in bytes; 0 when there is none. */
uint64_t memory_budget_of(uint64_t allowed, uint64_t available, uint64_t idle, bool *estimated);
uint64_t memory_cgroup_room_in(const cgroup_source *source, uint64_t own_bytes);
uint64_t memory_parse_limit(const char *text);
uint64_t memory_parse_field(const char *text, const char *name);
uint64_t memory_parse_stat(const char *text, const char *name);
