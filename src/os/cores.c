/* Cores as Linux has them: see cores.h. */
#include "os/cores.h"

#include <sched.h>
#include <stdio.h>

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

static int32_t capacity_of(const char *folder, int32_t core)
{
    char path[300];
    int capacity = 0;
    snprintf(path, sizeof path, "%.250s/cpu%d/cpu_capacity", folder, core);
    FILE *f = fopen(path, "r");
    if (!f)
        return 0;
    if (fscanf(f, "%d", &capacity) != 1 || capacity < 0)
        capacity = 0;
    fclose(f);
    return capacity;
}

int32_t cores_by_capacity(const char *folder, const core_set *among, core_set *sets,
                          int32_t *capacity, int32_t most)
{
    int32_t n = 0, of_core[DREY_MAX_THREADS] = {0};
    for (int32_t core = 0; core < DREY_MAX_THREADS; core++) {
        if (!cores_has(among, core))
            continue;
        of_core[core] = capacity_of(folder, core);
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
        capacity[n++] = below = next;
    }
    for (int32_t core = 0; core < DREY_MAX_THREADS; core++) {
        int32_t set = 0;
        while (set < n - 1 && of_core[core] < capacity[set])
            set++;
        if (of_core[core] > 0)
            cores_add(&sets[set], core);
    }
    return n;
}
