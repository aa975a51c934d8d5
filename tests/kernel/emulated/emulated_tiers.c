/* The library's tiers and the test-only ones: see the header. */
#include "kernel/emulated/emulated_tiers.h"

#include <pthread.h>
#include <string.h>

#if defined(__x86_64__)

#include "kernel/x86/x86.h"
#include "os/cpu_tuning.h"

enum { MAX_NAMES = 24 };

/* Shapes of the tiers that have several, besides the one that the tier's own name means. */
typedef struct shaped {
    const char *name, *tier;
    int32_t shape;
} shaped;
static const shaped shapes[] = {
    {"avx512 (halves, sparse)", "avx512", 0},
    {"avx512 (lines, sparse)", "avx512", SHAPE_LINES},
    {"avx512 (halves, near)", "avx512", SHAPE_NEAR},
    {"avx512 (lines, near)", "avx512", SHAPE_LINES | SHAPE_NEAR},
    {"avx512 (halves, far)", "avx512", SHAPE_FAR},
    {"avx512 (lines, far)", "avx512", SHAPE_LINES | SHAPE_FAR},
    {"avx512 (chains, sparse)", "avx512", SHAPE_CHAINS},
    {"avx512 (chains, near)", "avx512", SHAPE_CHAINS | SHAPE_NEAR},
    {"avx512 (chains, far)", "avx512", SHAPE_CHAINS | SHAPE_FAR},
    {"ref (full tiles)", "ref", 0},
    {"ref (even tiles)", "ref", SHAPE_LINES},
};
enum { SHAPED = sizeof shapes / sizeof *shapes };

static const char *names[MAX_NAMES];
static kernel_table evex, emulated, plain;
static pthread_once_t once = PTHREAD_ONCE_INIT;

void emulated_avxvnni_matmul_init(kernel_table *table);
void emulated_amx_matmul_init(kernel_table *table);

/* Makes the coded types what they are on processors with AVX-512 and without VBMI. */
static void plain_build(void)
{
    plain = *kernel_select_shape("avx512", 0);
#define SET_CODED(TYPE, name, act, block_k, block_bytes)                                           \
    plain.matmul[TYPE_##TYPE] = kernel_select("avx2")->matmul[TYPE_##TYPE];
    KERNEL_CODED_TYPES(SET_CODED)
#undef SET_CODED
    decoded_avx512_set(&plain, false);
}

static void names_build(void)
{
    int n = 0;
    for (const char *const *tier = kernel_tiers(); *tier; tier++)
        names[n++] = *tier;
    for (int i = 0; i < SHAPED; i++)
        if (kernel_select(shapes[i].tier))
            names[n++] = shapes[i].name;
    if (!kernel_select("avx512"))
        return;
    evex = *kernel_select("avx2");
    emulated_avxvnni_matmul_init(&evex);
    evex.tier = names[n++] = "avxvnni (as EVEX)";
    emulated = *kernel_select_shape("avx512", 0);
    emulated.shape = SHAPE_EARLY;
    emulated_amx_matmul_init(&emulated);
    emulated.tier = names[n++] = "amx (emulated)";
    plain_build();
    plain.tier = names[n++] = "avx512 (without VBMI)";
}

const char *const *test_tiers(void)
{
    pthread_once(&once, names_build);
    return names;
}

const kernel_table *test_table(const char *tier)
{
    pthread_once(&once, names_build);
    if (evex.tier && strcmp(tier, evex.tier) == 0)
        return &evex;
    if (emulated.tier && strcmp(tier, emulated.tier) == 0)
        return &emulated;
    if (plain.tier && strcmp(tier, plain.tier) == 0)
        return &plain;
    for (int i = 0; i < SHAPED; i++)
        if (strcmp(tier, shapes[i].name) == 0)
            return kernel_select_shape(shapes[i].tier, shapes[i].shape);
    return kernel_select(tier);
}

size_t test_scratch_least(void)
{
    return AMX_SCRATCH_BYTES;
}

bool test_tiles_at_rest(void)
{
    return !emulated_tiles_in_use();
}

tile_counts test_tile_counts(void)
{
    return emulated_tile_counts();
}

#else

const char *const *test_tiers(void)
{
    return kernel_tiers();
}

const kernel_table *test_table(const char *tier)
{
    return kernel_select(tier);
}

size_t test_scratch_least(void)
{
    return 0;
}

bool test_tiles_at_rest(void)
{
    return true;
}

tile_counts test_tile_counts(void)
{
    return (tile_counts){0, 0, 0};
}

#endif

size_t test_scratch_bytes(int64_t k)
{
    size_t bytes = dot_scratch_bytes(k), least = test_scratch_least();
    return bytes > least ? bytes : least;
}
