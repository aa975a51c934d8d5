/* Memory figures from /proc and the cgroup files. */
#include "os/memory.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* v1 says "no limit" as the largest multiple of a page that a signed 64-bit number holds. */
static const uint64_t V1_NO_LIMIT = UINT64_C(1) << 62;

uint64_t memory_parse_limit(const char *text)
{
    if (!isdigit((unsigned char)text[0]))
        return UINT64_MAX; /* "max" */
    errno = 0;
    unsigned long long bytes = strtoull(text, NULL, 10);
    return errno || bytes >= V1_NO_LIMIT ? UINT64_MAX : bytes;
}

uint64_t memory_parse_field(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0)
            return strtoull(line + n, NULL, 10) * 1024;
    }
    return 0;
}

static void take_limit(void *user, const char *directory)
{
    uint64_t *least = user;
    char text[64];
    if (!cgroup_read(directory, "memory.max", text, sizeof text) &&
        !cgroup_read(directory, "memory.limit_in_bytes", text, sizeof text))
        return;
    uint64_t limit = memory_parse_limit(text);
    if (limit < *least)
        *least = limit;
}

uint64_t memory_cgroup_limit_in(const cgroup_source *source)
{
    uint64_t least = UINT64_MAX;
    cgroup_walk(source, "memory", take_limit, &least);
    return least;
}

uint64_t memory_cgroup_limit(void)
{
    return memory_cgroup_limit_in(&cgroup_system);
}

static uint64_t read_field(const char *directory, const char *file, const char *name)
{
    char text[8192];
    return cgroup_read(directory, file, text, sizeof text) ? memory_parse_field(text, name) : 0;
}

uint64_t memory_total(void)
{
    return read_field("/proc", "meminfo", "MemTotal:");
}

uint64_t memory_available(void)
{
    return read_field("/proc", "meminfo", "MemAvailable:");
}

uint64_t memory_resident(void)
{
    return read_field("/proc/self", "status", "VmRSS:");
}

uint64_t memory_resident_peak(void)
{
    return read_field("/proc/self", "status", "VmHWM:");
}

int64_t memory_major_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_majflt : 0;
}

uint64_t memory_auto_budget(void)
{
    uint64_t limit = memory_cgroup_limit(), available = memory_available();
    uint64_t least = available && available < limit ? available : limit;
    return least == UINT64_MAX ? least : least / 105 * 100;
}
