/* Reading the processor's counters of energy: see energy.h. */
#include "os/energy.h"

#include <inttypes.h>
#include <stdio.h>

#include "os/clock.h"

static bool read_number(const char *root, int package, const char *name, uint64_t *out)
{
    char path[512];
    snprintf(path, sizeof path, "%s/intel-rapl:%d/%s", root, package, name);
    FILE *f = fopen(path, "re");
    bool good = f && fscanf(f, "%" SCNu64, out) == 1;
    if (f)
        fclose(f);
    return good;
}

void energy_read(energy_reading *r, const char *root)
{
    root = root ? root : "/sys/class/powercap"; /* AMD's have Intel's name there */
    for (int i = 0; i < ENERGY_PACKAGES; i++)
        r->has[i] = read_number(root, i, "energy_uj", &r->uj[i]) &&
                    read_number(root, i, "max_energy_range_uj", &r->range[i]);
}

double energy_between(const energy_reading *a, const energy_reading *b)
{
    uint64_t uj = 0;
    for (int i = 0; i < ENERGY_PACKAGES; i++)
        if (a->has[i] && b->has[i])
            uj += b->uj[i] - a->uj[i] + (b->uj[i] < a->uj[i] ? b->range[i] : 0);
    return (double)uj * 1e-6;
}

void energy_meter_skip(energy_meter *m, const char *root)
{
    energy_read(&m->last, root);
    m->last_ns = clock_ns();
}

void energy_meter_add(energy_meter *m, const char *root, bool now)
{
    const int64_t second_ns = 1000000000;
    if (!now && clock_ns() - m->last_ns < second_ns)
        return;
    energy_reading before = m->last;
    energy_meter_skip(m, root);
    m->joules += energy_between(&before, &m->last);
}
