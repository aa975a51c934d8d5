/* What the machine can do at best: memory bandwidth, the peak of every tier that runs here, what
 * the chosen tier's matrix kernel makes of its peak, and what a job costs the pool. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernel/kernel.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/memory.h"
#include "os/pool.h"
#include "profile/limits.h"

static const size_t block_bytes = (size_t)384 << 20; /* far beyond any cache */
enum { DOT_K = 2048, DOT_ROWS = 64, DOT_CALLS = 16, MAX_THREADS = 256 };

/* A product in the caches: one group of Q4_K against 64 rows. */
typedef struct dot_job {
    const kernel_table *kernels;
    float *y; /* [n_threads][DOT_ROWS][GROUP_ROWS] */
    uint8_t *acts, *groups, *scratch;
} dot_job;

static void dot_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    dot_job *j = arg;
    float *y = j->y + (size_t)thread * DOT_ROWS * GROUP_ROWS;
    uint8_t *scratch = j->scratch + (size_t)thread * dot_scratch_bytes(DOT_K);
    for (int i = 0; i < DOT_CALLS; i++)
        j->kernels->matmul[TYPE_Q4_K].dot(y, GROUP_ROWS, j->groups, 1, j->acts, DOT_ROWS, DOT_K,
                                          scratch);
}

static double kernel_rate(dot_job *j, pool *p)
{
    double rate[LIMITS_ROUNDS];
    double ops = 2.0 * DOT_K * DOT_ROWS * GROUP_ROWS * DOT_CALLS * pool_n_threads(p);
    for (int i = 0; i < LIMITS_ROUNDS; i++) {
        double start = clock_s();
        pool_run(p, dot_thread, j);
        rate[i] = ops / (clock_s() - start);
    }
    return median(rate, LIMITS_ROUNDS);
}

/* Carves the product's operands out of the block that was read. */
static void set_operands(dot_job *j, const kernel_table *k, arena *memory, int32_t n_threads)
{
    const matmul_kernel *m = &k->matmul[TYPE_Q4_K];
    memset(memory->base, 0, block_bytes / 8);
    float *x = arena_take(memory, sizeof(float) * DOT_K * DOT_ROWS);
    j->kernels = k;
    j->acts = arena_take(memory, act_bytes(m->act, DOT_ROWS, DOT_K));
    j->groups = arena_take(memory, m->group_bytes(DOT_K));
    j->scratch = arena_take(memory, (size_t)n_threads * dot_scratch_bytes(DOT_K));
    j->y = arena_take(memory, sizeof(float) * DOT_ROWS * GROUP_ROWS * (size_t)n_threads);
    for (int i = 0; i < DOT_K * DOT_ROWS; i++)
        x[i] = (float)(i % 17) - 8.0f;
    k->quantise[m->act](j->acts, x, DOT_K, 0, DOT_ROWS, DOT_ROWS, DOT_K);
}

/* Peaks of all tiers whose arithmetic is in integers. */
static void measure_tiers(drey_machine_report *r, pool *p)
{
    const char *const *tiers = kernel_tiers();
    for (int i = 0; tiers[i] && r->n_tiers < DREY_BENCH_MAX_TIERS; i++) {
        if (strcmp(tiers[i], "float") == 0)
            continue;
        const kernel_table *k = kernel_select(tiers[i]);
        r->tiers[r->n_tiers++] = (drey_tier_report){.name = tiers[i],
                                                    .int8_ops_per_s = limits_int8(p, k),
                                                    .float_ops_per_s = limits_float(p, k)};
    }
}

static drey_status measure(const kernel_table *k, int32_t n_threads, drey_machine_report *r,
                           drey_error *err)
{
    arena memory = {0};
    pool *p = NULL;
    drey_status status = arena_init(&memory, block_bytes, true, err);
    if (status == DREY_OK)
        status = pool_open(&p, n_threads, err);
    if (status == DREY_OK) {
        memset(memory.base, 1, block_bytes);
        r->limits = limits_measure(p, k, memory.base, block_bytes);
        measure_tiers(r, p);
        dot_job dot;
        set_operands(&dot, k, &memory, n_threads);
        r->kernel_ops_per_s = kernel_rate(&dot, p);
    }
    pool_close(&p);
    arena_free(&memory);
    return status;
}

drey_status drey_bench_machine(int32_t n_threads, const char *cpu_tier, drey_machine_report *report,
                               drey_error *err)
{
    *report = (drey_machine_report){.n_cores = pool_default_threads(),
                                    .memory_total_bytes = memory_total(),
                                    .memory_available_bytes = memory_available()};
    cpu_name(report->cpu, sizeof report->cpu);
    if (n_threads < 0 || n_threads > MAX_THREADS)
        FAIL(err, DREY_ERR_USAGE, "%d threads are not possible (1 to %d)", n_threads, MAX_THREADS);
    const kernel_table *kernels = kernel_select(cpu_tier);
    if (!kernels)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the CPU tier \"%s\" does not run on this machine; the best that does is %s", cpu_tier,
             kernel_tiers()[0]);
    report->cpu_tier = kernels->tier;
    report->n_threads = n_threads ? n_threads : report->n_cores;
    return measure(kernels, report->n_threads, report, err);
}
