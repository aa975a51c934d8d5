/* Cores as Linux has them: see cores.h. */
#include "os/cores.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

int32_t cores_count(const core_set *s)
{
    int32_t n = 0;
    for (int32_t i = 0; i < DREY_MAX_THREADS / 64; i++)
        n += __builtin_popcountll(s->bits[i]);
    return n;
}

bool cores_of_thread(core_set *out)
{
    cpu_set_t set;
    *out = (core_set){{0}};
    if (sched_getaffinity(0, sizeof set, &set) != 0)
        return false;
    for (int32_t core = 0; core < DREY_MAX_THREADS && core < CPU_SETSIZE; core++)
        if (CPU_ISSET((size_t)core, &set))
            cores_add(out, core);
    return true;
}

bool cores_pin(const core_set *s)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int32_t core = 0; core < DREY_MAX_THREADS && core < CPU_SETSIZE; core++)
        if (cores_has(s, core))
            CPU_SET((size_t)core, &set);
    return sched_setaffinity(0, sizeof set, &set) == 0;
}

bool cores_parse(const char *text, core_set *out)
{
    const char *at = text;
    do {
        char *end;
        if (*at < '0' || *at > '9')
            return false;
        long first = strtol(at, &end, 10), last = first;
        if (*end == '-') {
            if (end[1] < '0' || end[1] > '9')
                return false;
            last = strtol(end + 1, &end, 10);
        }
        if (last < first || last >= DREY_MAX_THREADS)
            return false;
        for (long core = first; core <= last; core++)
            cores_add(out, (int32_t)core);
        at = end + 1;
        if (*end == 0 || *end == '\n')
            return true;
        if (*end != ',')
            return false;
    } while (true);
}

/* The first line of a file in `devices`, "" if there is none. */
static void read_line(const char *devices, const char *name, char *line, int size)
{
    char path[300];
    line[0] = 0;
    snprintf(path, sizeof path, "%.200s/%.90s", devices, name);
    FILE *f = fopen(path, "r");
    if (!f)
        return;
    if (!fgets(line, size, f))
        line[0] = 0;
    fclose(f);
}

static int32_t capacity_of(const char *devices, int32_t core)
{
    char name[64], line[32];
    snprintf(name, sizeof name, "system/cpu/cpu%d/cpu_capacity", core);
    read_line(devices, name, line, sizeof line);
    long capacity = strtol(line, NULL, 10);
    return capacity > 0 && capacity <= 65536 ? (int32_t)capacity : 0;
}

static core_set cores_listed(const char *devices, const char *name)
{
    char line[1000];
    core_set listed = {{0}};
    read_line(devices, name, line, sizeof line);
    return cores_parse(line, &listed) ? listed : (core_set){{0}};
}

int32_t cores_by_speed(const char *devices, const core_set *among, core_set *sets, int32_t *speed,
                       int32_t most)
{
    const core_set fast = cores_listed(devices, "cpu_core/cpus");
    const core_set small = cores_listed(devices, "cpu_atom/cpus");
    int32_t n = 0, of_core[DREY_MAX_THREADS] = {0};
    for (int32_t core = 0; core < DREY_MAX_THREADS; core++) {
        if (!cores_has(among, core))
            continue;
        of_core[core] = cores_has(&fast, core)    ? 1024
                        : cores_has(&small, core) ? EFFICIENCY_SPEED
                                                  : capacity_of(devices, core);
        if (of_core[core] == 0)
            return 0;
    }
    for (int32_t below = INT32_MAX; n < most;) {
        int32_t next = 0;
        for (int32_t core = 0; core < DREY_MAX_THREADS; core++)
            if (of_core[core] < below && of_core[core] > next)
                next = of_core[core];
        if (next == 0)
            break;
        sets[n] = (core_set){{0}};
        speed[n++] = below = next;
    }
    for (int32_t core = 0; core < DREY_MAX_THREADS; core++) {
        int32_t set = 0;
        while (set < n - 1 && of_core[core] < speed[set])
            set++;
        if (of_core[core] > 0)
            cores_add(&sets[set], core);
    }
    return n;
}
