/* The control groups that this process is in, v1 and v2. Limits of memory or processor time may be
 * set at any level, so all levels are visited. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The system's files that describe them; tests use others. */
typedef struct cgroup_source {
    const char *membership; /* /proc/self/cgroup */
    const char *mounts;     /* /proc/self/mountinfo */
} cgroup_source;
extern const cgroup_source cgroup_system;

/* Called for a group's directory, from the process' own up to the mount's root. */
typedef void cgroup_visit_fn(void *user, const char *directory);

/* controller: "memory" or "cpu". Visits the v1 hierarchy that has it and the v2 hierarchy, if they
 * are mounted. Directories may not exist (a container sees only its own part). */
void cgroup_walk(const cgroup_source *source, const char *controller, cgroup_visit_fn *visit,
                 void *user);

/* The first bytes of a small file, NUL-terminated; false when it cannot be read. */
bool cgroup_read(const char *directory, const char *name, char *text, int32_t capacity);
