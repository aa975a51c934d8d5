/* One table a tier, built once. A tier is a ladder of overlays read from top to bottom: plain C
 * first, so that every entry exists, then each instruction set writes what it does better. */
#include "kernel/kernel.h"

#include <pthread.h>
#include <string.h>

#include "kernel/code_books.h"
#include "kernel/tiers.h"
#include "kernel/x86/x86.h"
#include "os/cpu.h"
#include "os/cpu_tuning.h"

typedef void (*overlay)(kernel_table *table);

typedef struct tier {
    const char *name;
    overlay ladder[8]; /* ends with NULL */
} tier;

/* Best first. */
static const tier tiers[] = {
#if defined(__x86_64__)
    {"amx",
     {ref_matmul_init, ref_rows_init, avx2_matmul_init, avx2_rows_init, avx512_matmul_init,
      avx512_rows_init, amx_matmul_init}},
    {"avx512",
     {ref_matmul_init, ref_rows_init, avx2_matmul_init, avx2_rows_init, avx512_matmul_init,
      avx512_rows_init}},
    {"avxvnni",
     {ref_matmul_init, ref_rows_init, avx2_matmul_init, avx2_rows_init, avxvnni_matmul_init}},
    {"avx2", {ref_matmul_init, ref_rows_init, avx2_matmul_init, avx2_rows_init}},
#elif defined(__aarch64__)
    {"i8mm", {ref_matmul_init, ref_rows_init, neon_matmul_init, neon_rows_init, i8mm_matmul_init}},
    {"dotprod",
     {ref_matmul_init, ref_rows_init, neon_matmul_init, neon_rows_init, dotprod_matmul_init}},
    {"neon", {ref_matmul_init, ref_rows_init, neon_matmul_init, neon_rows_init}},
#endif
    {"ref", {ref_matmul_init, ref_rows_init}},
    {"float", {ref_matmul_init, ref_rows_init, float_matmul_init, float_rows_init}},
};

enum { N_TIERS = sizeof(tiers) / sizeof(tiers[0]) };

static kernel_table tables[N_TIERS][N_KERNEL_SHAPES];
static const char *running_names[N_TIERS + 1];
static const char *all_names[N_TIERS + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool tier_runs(const char *name, const cpu_features *cpu)
{
    if (strcmp(name, "amx") == 0)
        return cpu->avx2 && cpu->avx512 && cpu->amx;
    if (strcmp(name, "avxvnni") == 0)
        return cpu->avx2 && cpu->avxvnni;
    if (strcmp(name, "avx512") == 0)
        return cpu->avx2 && cpu->avx512;
    if (strcmp(name, "avx2") == 0)
        return cpu->avx2;
    if (strcmp(name, "i8mm") == 0)
        return cpu->neon && cpu->dotprod && cpu->i8mm;
    if (strcmp(name, "dotprod") == 0)
        return cpu->neon && cpu->dotprod;
    if (strcmp(name, "neon") == 0)
        return cpu->neon;
    return true;
}

/* Returns the part of a shape that a tier has. amx takes full tiles of activations, so it has no
 * SHAPE_LINES; ref is what avx512 is compared with. */
static int32_t tier_shape(const char *name, int32_t shape)
{
    if (strcmp(name, "avx512") == 0)
        return shape & (SHAPE_LINES | SHAPE_CHAINS | SHAPE_NEAR | SHAPE_FAR);
    if (strcmp(name, "amx") == 0)
        return shape & (SHAPE_CHAINS | SHAPE_NEAR | SHAPE_FAR | SHAPE_EARLY);
    return strcmp(name, "ref") == 0 ? shape & SHAPE_LINES : 0;
}

static bool contradicts(int32_t shape)
{
    const int32_t tile = SHAPE_LINES | SHAPE_CHAINS, fetch = SHAPE_NEAR | SHAPE_FAR;
    return (shape & tile) == tile || (shape & fetch) == fetch;
}

static void tables_build(void)
{
    code_books_make();
    cpu_features cpu = cpu_detect();
    int n_running = 0;
    for (int i = 0; i < N_TIERS; i++) {
        all_names[i] = tiers[i].name;
        if (!tier_runs(tiers[i].name, &cpu))
            continue;
        running_names[n_running++] = tiers[i].name;
        for (int32_t shape = 0; shape < N_KERNEL_SHAPES; shape++) {
            kernel_table *table = &tables[i][shape];
            if (contradicts(shape) || shape != tier_shape(tiers[i].name, shape))
                continue;
            table->shape = shape;
            for (const overlay *step = tiers[i].ladder; *step; step++)
                (*step)(table);
#if defined(__x86_64__)
            if (cpu.avx2 && strcmp(tiers[i].name, "float") == 0)
                float_avx2_matmul_init(table);
#endif
            table->tier = tiers[i].name;
        }
    }
}

const kernel_table *kernel_select_shape(const char *name, int32_t shape)
{
    pthread_once(&once, tables_build);
    for (int i = 0; i < N_TIERS; i++)
        if (tables[i][0].tier && (!name || strcmp(name, tiers[i].name) == 0))
            return &tables[i][tier_shape(tiers[i].name, shape)];
    return NULL;
}

const kernel_table *kernel_select(const char *name)
{
    return kernel_select_shape(name, cpu_tuning_default()->shape);
}

size_t dot_scratch_bytes(int64_t k)
{
    size_t bytes = (size_t)k * 4 + 65536;
    bool tiles = kernel_select("amx") != NULL;
    return tiles && bytes < AMX_SCRATCH_BYTES ? AMX_SCRATCH_BYTES : bytes;
}

const char *const *kernel_tiers(void)
{
    pthread_once(&once, tables_build);
    return running_names;
}

const char *const *kernel_all_tiers(void)
{
    pthread_once(&once, tables_build);
    return all_names;
}

static bool same_kernels(const matmul_kernel *a, const matmul_kernel *b)
{
    return a->dot == b->dot && a->dot_many == b->dot_many;
}

const char *kernel_owner(const char *name, tensor_type type)
{
    const kernel_table *table = kernel_select_shape(name, 0);
    if (!table)
        return NULL;
    int lowest = N_TIERS;
    for (int i = 0; i < N_TIERS; i++) /* from the best down: the last that agrees is the source */
        if (tables[i][0].tier && same_kernels(&tables[i][0].matmul[type], &table->matmul[type]))
            lowest = i;
    return tiers[lowest].name;
}
