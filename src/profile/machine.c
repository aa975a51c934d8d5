/* What the machine can do at best: memory bandwidth, and the integer peak of the tier's own matrix
 * kernel. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "kernel/kernel.h"
#include "os/clock.h"
#include "os/cpu.h"
#include "os/memory.h"
#include "os/pool.h"

static const size_t block_bytes = (size_t)512 << 20; /* far beyond any cache */
enum { ROUNDS = 4, DOT_K = 2048, DOT_ROWS = 64, DOT_ROUNDS = 40, MAX_THREADS = 256 };

typedef struct machine_job {
    const kernel_table *kernels;
    arena memory;
    uint64_t sums[MAX_THREADS];
    float *y; /* [n_threads][DOT_ROWS][GROUP_ROWS] */
    uint8_t *acts, *groups, *scratch;
    size_t group_bytes;
} machine_job;

static void read_thread(void *arg, int32_t thread, int32_t n_threads)
{
    machine_job *j = arg;
    size_t words = block_bytes / 8 / (size_t)n_threads;
    const uint64_t *at = (const uint64_t *)j->memory.base + words * (size_t)thread;
    uint64_t sum[8] = {0};
    for (size_t i = 0; i + 8 <= words; i += 8)
        for (int l = 0; l < 8; l++)
            sum[l] += at[i + (size_t)l];
    for (int l = 1; l < 8; l++)
        sum[0] += sum[l];
    j->sums[thread] += sum[0]; /* so that the reads are not optimised away */
}

static double best_read_rate(machine_job *j, pool *p)
{
    double best = 0;
    memset(j->memory.base, 1, block_bytes);
    for (int i = 0; i < ROUNDS; i++) {
        double start = clock_s();
        pool_run(p, read_thread, j);
        double rate = (double)block_bytes / (clock_s() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

static void dot_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    machine_job *j = arg;
    const matmul_kernel *m = &j->kernels->matmul[TYPE_Q4_K];
    float *y = j->y + (size_t)thread * DOT_ROWS * GROUP_ROWS;
    uint8_t *scratch = j->scratch + (size_t)thread * dot_scratch_bytes(DOT_K);
    for (int i = 0; i < DOT_ROUNDS; i++)
        m->dot(y, GROUP_ROWS, j->groups, 1, j->acts, DOT_ROWS, DOT_K, scratch);
}

static double best_int8_rate(machine_job *j, pool *p)
{
    double best = 0;
    int32_t n = pool_n_threads(p);
    for (int i = 0; i < ROUNDS; i++) {
        double start = clock_s();
        pool_run(p, dot_thread, j);
        double ops = 2.0 * DOT_K * DOT_ROWS * GROUP_ROWS * DOT_ROUNDS * n;
        double rate = ops / (clock_s() - start);
        best = rate > best ? rate : best;
    }
    return best;
}

/* Carves the product's operands out of the block that was read. */
static void set_operands(machine_job *j, int32_t n_threads)
{
    const kernel_table *k = j->kernels;
    const matmul_kernel *m = &k->matmul[TYPE_Q4_K];
    memset(j->memory.base, 0, block_bytes / 8);
    float *x = arena_take(&j->memory, sizeof(float) * DOT_K * DOT_ROWS);
    j->acts = arena_take(&j->memory, act_bytes(m->act, DOT_ROWS, DOT_K));
    j->groups = arena_take(&j->memory, m->group_bytes(DOT_K));
    j->scratch = arena_take(&j->memory, (size_t)n_threads * dot_scratch_bytes(DOT_K));
    j->y = arena_take(&j->memory, sizeof(float) * DOT_ROWS * GROUP_ROWS * (size_t)n_threads);
    for (int i = 0; i < DOT_K * DOT_ROWS; i++)
        x[i] = (float)(i % 17) - 8.0f;
    k->quantise[m->act](j->acts, x, DOT_K, 0, DOT_ROWS, DOT_ROWS, DOT_K);
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
    machine_job *j = calloc(1, sizeof *j);
    pool *p = NULL;
    if (!j)
        FAIL(err, DREY_ERR_MEMORY, "not enough memory to measure the machine");
    j->kernels = kernels;
    drey_status status = arena_init(&j->memory, block_bytes, true, err);
    if (status == DREY_OK)
        status = pool_open(&p, n_threads ? n_threads : pool_default_threads(), err);
    if (status == DREY_OK) {
        report->memory_bytes_per_s = best_read_rate(j, p);
        set_operands(j, pool_n_threads(p));
        report->int8_ops_per_s = best_int8_rate(j, p);
    }
    pool_close(&p);
    arena_free(&j->memory);
    free(j);
    return status;
}
