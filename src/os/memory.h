/* What the system says about memory. All figures in bytes; 0 where it does not say. */
#ifndef DREY_OS_MEMORY_H
#define DREY_OS_MEMORY_H

#include <stdint.h>

#include "os/cgroup.h"

/* The smallest limit of the memory cgroups that this process is in (v1 or v2), UINT64_MAX if none.
 */
uint64_t memory_cgroup_limit(void);
uint64_t memory_total(void);
uint64_t memory_available(void); /* MemAvailable */
uint64_t memory_resident(void);  /* this process now */
/* What this process holds already, the same from one run to the next but for some pages: code and
 * constants of the program and its libraries as if all of them were in memory, and what it has
 * written to. Memory that was freed is given back to the system first. */
uint64_t memory_program(void);
/* Makes that true of the object that holds this code: brings all of it in, so that no step waits
 * for the disk to read code, and lets the page cache forget what came along of the rest of the
 * file, such as symbols for a debugger, which can be ten times as much. */
void memory_settle_code(void);
uint64_t memory_resident_peak(void); /* its high-water mark */
int64_t memory_major_faults(void);   /* of this process so far */

/* What this process may grow to in its memory cgroups: at each level the limit less what others in
 * it hold and cannot be made to give back; the smallest, UINT64_MAX if no level has a limit. */
uint64_t memory_cgroup_room(void);

/* What a budget of "auto" means: the lower of that and of the machine's available memory, over
 * 1.05; 0 where nothing is known. *estimated: /proc does not say what is available, and what
 * sysinfo(2) calls free and buffers was taken for it. */
uint64_t memory_auto_budget(bool *estimated);

/* The parts of the above that know nothing of the system. budget: from the room in the groups
 * (UINT64_MAX: no limit), and from available and idle memory (0: not known). limit: of memory.max
 * or memory.limit_in_bytes, UINT64_MAX for none. field: a "Name:   123 kB" line of /proc/meminfo
 * or /proc/self/status; name with its colon; 0 when there is none. stat: a "name 123" line of
 * memory.stat, in bytes; 0 when there is none. */
uint64_t memory_budget_of(uint64_t allowed, uint64_t available, uint64_t idle, bool *estimated);
uint64_t memory_cgroup_limit_in(const cgroup_source *source);
uint64_t memory_cgroup_room_in(const cgroup_source *source, uint64_t own_bytes);
uint64_t memory_parse_limit(const char *text);
uint64_t memory_parse_field(const char *text, const char *name);
uint64_t memory_parse_stat(const char *text, const char *name);

#endif
