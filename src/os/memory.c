/* Memory figures from /proc and the cgroup files. */
#include "os/memory.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

#include "common/num.h"

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

/* The number after `name` at the start of a line, or 0. */
static uint64_t parse_line(const char *text, const char *name)
{
    size_t n = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, n) == 0 && (line[n] == ' ' || line[n] == '\t'))
            return strtoull(line + n, NULL, 10);
    }
    return 0;
}

uint64_t memory_parse_field(const char *text, const char *name)
{
    return parse_line(text, name) * 1024;
}

uint64_t memory_parse_stat(const char *text, const char *name)
{
    return parse_line(text, name);
}

/* The limit of one level; memory.high of v2 counts as well: above it a process is slowed down. */
static uint64_t limit_of(const char *directory)
{
    static const char *const files[] = {"memory.max", "memory.high", "memory.limit_in_bytes"};
    uint64_t least = UINT64_MAX;
    char text[64];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        if (!cgroup_read(directory, files[i], text, sizeof text))
            continue;
        uint64_t limit = memory_parse_limit(text);
        least = min_u64(limit, least);
    }
    return least;
}

/* The memory of a level's processes that cannot be dropped, as page cache can. The total_ lines of
 * v1 include the levels below, as all lines of v2 do. */
static uint64_t held_in(const char *directory)
{
    static const char *const cache[][2] = {{"total_inactive_file", "inactive_file"},
                                           {"total_active_file", "active_file"}};
    char text[8192];
    if (!cgroup_read(directory, "memory.current", text, sizeof text) &&
        !cgroup_read(directory, "memory.usage_in_bytes", text, sizeof text))
        return 0;
    uint64_t held = memory_parse_limit(text);
    if (held == UINT64_MAX)
        return 0;
    if (!cgroup_read(directory, "memory.stat", text, sizeof text))
        return held;
    for (int i = 0; i < 2; i++) {
        uint64_t bytes = memory_parse_stat(text, cache[i][0]);
        bytes = bytes ? bytes : memory_parse_stat(text, cache[i][1]);
        held -= min_u64(bytes, held);
    }
    return held;
}

typedef struct room {
    uint64_t own, least;
} room;

static void take_room(void *user, const char *directory)
{
    room *r = user;
    uint64_t limit = limit_of(directory);
    if (limit == UINT64_MAX)
        return;
    uint64_t held = held_in(directory), others = held > r->own ? held - r->own : 0;
    uint64_t left = limit > others ? limit - others : 0;
    if (left < r->least)
        r->least = left;
}

uint64_t memory_cgroup_room_in(const cgroup_source *source, uint64_t own_bytes)
{
    room found = {.own = own_bytes, .least = UINT64_MAX};
    cgroup_walk(source, "memory", take_room, &found);
    return found.least;
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

/* Adds what an object of the program maps from its file and cannot write to. */
static int add_object(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    uint64_t *sum = user;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && !(part->p_flags & PF_W))
            *sum += (part->p_memsz + 8191) & ~(uint64_t)4095; /* its ends may be inside pages */
    }
    return 0;
}

/* Reads a byte of each page. A sanitizer would report bytes between two constants as out of
 * bounds. */
__attribute__((no_sanitize("address"))) static void touch_pages(uint64_t begin, uint64_t end)
{
    for (uint64_t at = begin; at < end; at = (at | 4095) + 1)
        (void)*(const volatile uint8_t *)(uintptr_t)at;
}

typedef struct own_object { /* the one that contains this code */
    const char *path;
    size_t n_pages; /* pages that it maps from its file */
} own_object;

/* If this code is in the object, loads what it maps of its file, including data: a missed page
 * would load megabytes of the file again when it is first used. */
static int settle_object(struct dl_phdr_info *object, size_t size, void *user)
{
    (void)size;
    own_object *own = user;
    uint64_t here = (uint64_t)(uintptr_t)&settle_object;
    bool mine = false;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        uint64_t begin = object->dlpi_addr + part->p_vaddr;
        mine |= part->p_type == PT_LOAD && here >= begin && here < begin + part->p_memsz;
    }
    for (int i = 0; mine && i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type != PT_LOAD)
            continue;
        own->n_pages += part->p_filesz / 4096 + 2;
        if (!(part->p_flags & PF_R))
            continue;
        uint64_t begin = object->dlpi_addr + part->p_vaddr, end = begin + part->p_filesz;
        touch_pages(begin, end);
    }
    if (mine)
        own->path =
            object->dlpi_name && object->dlpi_name[0] ? object->dlpi_name : "/proc/self/exe";
    return mine;
}

/* Pages of a file that the page cache holds, those included that are still being read; SIZE_MAX
 * where the system does not say: before Linux 6.5, and of files that this user may not write to. */
static size_t cached_pages(int fd)
{
#ifndef SYS_cachestat
    enum { SYS_cachestat = 451 }; /* on every architecture */
#endif
    const uint64_t range[2] = {0, 0}; /* offset, length: all of it */
    uint64_t counts[5] = {0};         /* the first: pages that are cached */
    return syscall(SYS_cachestat, fd, range, counts, 0) == 0 ? (size_t)counts[0] : SIZE_MAX;
}

/* Mapped pages stay. Pages that are still being read stay as well when they should be dropped: a
 * program that has just started may have megabytes of read-ahead under way when it gets here (on a
 * busy machine in one start of 30). So we wait for that for a while. */
static void drop_rest(const own_object *own, int fd)
{
    enum { MOST_DROPS = 25, PAUSE_NS = 2 * 1000 * 1000 };
    for (int i = 0; i < MOST_DROPS; i++) {
        posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        size_t left = cached_pages(fd);
        if (left <= own->n_pages || (left == SIZE_MAX && i >= 3))
            return;
        nanosleep(&(struct timespec){.tv_nsec = PAUSE_NS}, NULL);
    }
}

void memory_settle_code(void)
{
    own_object own = {0};
    dl_iterate_phdr(settle_object, &own);
    int fd = own.path ? open(own.path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0)
        return;
    drop_rest(&own, fd);
    close(fd);
}

/* The highest resident size so far, including files: the only figure without /proc. */
static uint64_t most_resident(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (uint64_t)usage.ru_maxrss * 1024 : 0;
}

/* Returns the bytes to which the process has written. smaps_rollup counts pages; the next two are
 * sums that may be some pages out of date. */
static uint64_t written_bytes(void)
{
    uint64_t bytes = read_field("/proc/self", "smaps_rollup", "Anonymous:");
    if (!bytes)
        bytes = read_field("/proc/self", "status", "RssAnon:");
    if (!bytes)
        bytes = memory_resident();
    return bytes ? bytes : most_resident();
}

/* Returns freed memory to the system. How much an allocator keeps depends on the order in which
 * threads freed it: of the tens of megabytes of a sidecar's writer, glibc kept 10 to 13. */
static void give_back_freed(void)
{
#if defined(__GLIBC__)
    malloc_trim(0);
#endif
}

uint64_t memory_program(void)
{
    uint64_t code = 0;
    give_back_freed();
    dl_iterate_phdr(add_object, &code);
    return code + written_bytes();
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

uint64_t memory_cgroup_room(void)
{
    return memory_cgroup_room_in(&cgroup_system, written_bytes());
}

uint64_t memory_budget_of(uint64_t allowed, uint64_t available, uint64_t idle, bool *estimated)
{
    *estimated = available == 0;
    uint64_t machine = available ? available : idle;
    uint64_t least = machine && machine < allowed ? machine : allowed;
    return least == UINT64_MAX ? 0 : least / 105 * 100;
}

/* Free memory, and buffers, which can be dropped. sysinfo(2) counts the page cache as used, so this
 * is less than what is available. */
static uint64_t idle_bytes(void)
{
    struct sysinfo info;
    if (sysinfo(&info) != 0)
        return 0;
    return ((uint64_t)info.freeram + info.bufferram) * info.mem_unit;
}

/* The budget includes what the process has written to already. */
static uint64_t with_own(uint64_t bytes)
{
    return bytes ? bytes + written_bytes() : 0;
}

uint64_t memory_auto_budget(bool *estimated)
{
    return memory_budget_of(memory_cgroup_room(), with_own(memory_available()),
                            with_own(idle_bytes()), estimated);
}
