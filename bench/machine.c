/* The limits of the machine: memory bandwidth, the peak of every tier that runs here, the chosen
 * tier's matrix kernel compared with its peak, and the cost of a job in the pool. */
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "base/arena.h"
#include "kernel/kernel.h"
#include "os/cpu.h"
#include "os/memory.h"
#include "os/pool.h"
#include "tune/machine_limits.h"

static const size_t block_bytes = (size_t)384 << 20; /* far beyond any cache */
enum { DOT_ROWS = 64, MAX_THREADS = 256 };

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
        r->kernel_ops_per_s = limits_dot(p, k, TYPE_Q4_K, DOT_ROWS, &memory);
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

static const double bench_s = 2, most_bench_s = 3600;

drey_status drey_bench_disk(const char *path, drey_io io, uint64_t read_bytes, double seconds,
                            drey_disk_report *report, drey_error *err)
{
    if (seconds != 0 && !(seconds > 0 && seconds <= most_bench_s))
        FAIL(err, DREY_ERR_USAGE, "give 0 for the usual time, or up to %.0f seconds", most_bench_s);
    const limits_reading what = {.path = path,
                                 .io = io,
                                 .read_bytes = read_bytes,
                                 .seconds = seconds == 0 ? bench_s : seconds,
                                 .again = seconds != 0};
    return limits_disk(&what, report, err);
}
