/* Facts that the library reports of the machine: its processor, its memory, its usual tuning. */
#include "engine/engine.h"

#include <stdio.h>

#include "os/cpu.h"
#include "os/memory.h"

void drey_tuning_init(drey_tuning *tuning)
{
    int32_t shape = cpu_tuning_default()->shape;
    *tuning = (drey_tuning){.early_amx = shape & SHAPE_EARLY,
                            .fetch = shape & SHAPE_NEAR  ? DREY_FETCH_NEAR
                                     : shape & SHAPE_FAR ? DREY_FETCH_FAR
                                                         : DREY_FETCH_SPARSE,
                            .tile = shape & SHAPE_LINES    ? DREY_TILE_LINES
                                    : shape & SHAPE_CHAINS ? DREY_TILE_CHAINS
                                                           : DREY_TILE_HALVES};
}

void drey_cpu_id(char *out, size_t capacity)
{
    const cpu_identity id = cpu_identify();
    if (id.vendor[0])
        snprintf(out, capacity, "%s-%d-%d-%d", id.vendor, id.family, id.model, id.stepping);
    else
        cpu_name(out, capacity);
}

int32_t engine_shape_of(const drey_tuning *tuning)
{
    static const int32_t fetch[] = {0, SHAPE_NEAR, SHAPE_FAR};
    static const int32_t tile[] = {0, SHAPE_LINES, SHAPE_CHAINS};
    return fetch[tuning->fetch] | tile[tuning->tile] | (tuning->early_amx ? SHAPE_EARLY : 0);
}

uint64_t drey_memory_auto(void)
{
    bool estimated;
    return memory_auto_budget(&estimated);
}

uint64_t drey_memory_machine(void)
{
    uint64_t total = memory_total(), room = memory_cgroup_room();
    return total && room < total ? room : total;
}
