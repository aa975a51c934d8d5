/* Defaults by processor family. Each line says where it was measured. A family that is not listed
 * has the first line, which suits most processors. */
#include "os/cpu_tuning.h"

#include <pthread.h>
#include <string.h>

#include "os/cpu.h"

typedef struct family_tuning {
    const char *vendor; /* as CPUID names it; NULL: any */
    int32_t family;
    cpu_tuning values;
} family_tuning;

/* Values that are the same for all families so far. */
#define COMMON                                                                                     \
    .claim_bytes = 192 << 10, .ahead_bytes = 16 << 10, .shared_numbers = 8192,                     \
    .attend_alone = 50000, .pool_spin_ns = 40 * 1000, .stream_spin_ns = 15 * 1000,                 \
    .product_spin_ns = 15 * 1000

static const family_tuning families[] = {
    {NULL, 0, {COMMON, .shape = 0}},                                     /* Zen 4, 2 cores */
    {"AuthenticAMD", 0x1a, {COMMON, .shape = SHAPE_LINES | SHAPE_NEAR}}, /* Zen 5, 2 cores */
    /* A Xeon with AMX, 2 cores (lines are better at 8 rows, but the amx tier has none). */
    {"GenuineIntel", 6, {COMMON, .shape = SHAPE_CHAINS | SHAPE_FAR}},
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const cpu_tuning *chosen;

static void choose(void)
{
    const cpu_identity cpu = cpu_identify();
    chosen = &families[0].values;
    for (size_t i = 1; i < sizeof families / sizeof *families; i++)
        if (strcmp(families[i].vendor, cpu.vendor) == 0 && families[i].family == cpu.family)
            chosen = &families[i].values;
}

const cpu_tuning *cpu_tuning_default(void)
{
    pthread_once(&once, choose);
    return chosen;
}
