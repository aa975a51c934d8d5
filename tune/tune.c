/* Choosing between the variants of the kernels by measuring them: two ways in turns, so that other
 * work of the machine disturbs both. The weights are far larger than the caches; each round
 * continues in them where the last one stopped. */
#include "drey/tune.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "common/error.h"
#include "kernel/kernel.h"
#include "os/clock.h"
#include "os/pool.h"
#include "tune/machine_limits.h"

enum { TUNE_K = 4096, TUNE_ROUNDS = 21, MOST_ROWS = 16, MOST_THREADS = 256, CLAIM_GROUPS = 4 };
static const size_t weight_bytes = (size_t)192 << 20;
static const double round_s = 0.02;
static const double worth = 1.02; /* a choice that gains less stays as the family has it */

typedef struct tuner {
    pool *pool;
    arena memory;
    uint8_t *weights, *acts, *scratch; /* scratch, sums: [n_threads] */
    float *x, *sums;
    /* The round that runs. */
    const matmul_kernel *kernel;
    int32_t n_rows;
    int64_t first, n_groups, n_all;
} tuner;

static const tensor_type tuned_types[] = {TYPE_Q4_K, TYPE_Q6_K};
static const char *const tuned_names[] = {"Q4_K", "Q6_K"};
enum { N_TUNED = sizeof tuned_types / sizeof *tuned_types };

static size_t sums_floats(void)
{
    return (size_t)MOST_ROWS * CLAIM_GROUPS * GROUP_ROWS;
}

static void tune_thread(void *arg, int32_t thread, int32_t n_threads)
{
    tuner *t = arg;
    int64_t group = t->n_groups * thread / n_threads, end = t->n_groups * (thread + 1) / n_threads;
    const size_t group_bytes = t->kernel->group_bytes(TUNE_K);
    while (group < end) {
        int32_t n = end - group < CLAIM_GROUPS ? (int32_t)(end - group) : CLAIM_GROUPS;
        int64_t at = (t->first + group) % (t->n_all - CLAIM_GROUPS + 1);
        t->kernel->dot(t->sums + (size_t)thread * sums_floats(), CLAIM_GROUPS * GROUP_ROWS,
                       t->weights + (size_t)at * group_bytes, n, t->acts, t->n_rows, TUNE_K,
                       t->scratch + (size_t)thread * dot_scratch_bytes(TUNE_K));
        group += n;
    }
}

/* Seconds per group of a round of a table's kernel. */
static double tune_round(tuner *t, const kernel_table *table, tensor_type type)
{
    t->kernel = &table->matmul[type];
    table->quantise[t->kernel->act](t->acts, t->x, TUNE_K, 0, t->n_rows, t->n_rows, TUNE_K);
    double start = clock_s();
    pool_run(t->pool, tune_thread, t);
    double taken = clock_s() - start;
    t->first = (t->first + t->n_groups) % t->n_all;
    return taken / (double)t->n_groups;
}

/* How much faster `with` is than `without`. */
static double compare(tuner *t, const kernel_table *without, const kernel_table *with,
                      tensor_type type, drey_tune_report *report)
{
    const double group_bytes = (double)without->matmul[type].group_bytes(TUNE_K);
    double seconds[2][TUNE_ROUNDS], gain[TUNE_ROUNDS];
    t->n_all = (int64_t)((double)weight_bytes / group_bytes);
    t->n_groups = (int64_t)pool_n_threads(t->pool) * CLAIM_GROUPS;
    tune_round(t, without, type); /* wakes the threads and the clock */
    double enough = round_s / tune_round(t, without, type);
    t->n_groups = enough > (double)t->n_all      ? t->n_all
                  : enough > (double)t->n_groups ? (int64_t)enough
                                                 : t->n_groups;
    for (int i = 0; i < TUNE_ROUNDS; i++) {
        seconds[0][i] = tune_round(t, without, type);
        seconds[1][i] = tune_round(t, with, type);
        gain[i] = seconds[0][i] / seconds[1][i];
    }
    report->without_bytes_per_s = group_bytes / median(seconds[0], TUNE_ROUNDS);
    report->with_bytes_per_s = group_bytes / median(seconds[1], TUNE_ROUNDS);
    return median(gain, TUNE_ROUNDS);
}

/* Whether to choose `bit` of a kernel's shape. */
static bool choose(tuner *t, const char *tier, int32_t bit, bool usual, drey_tune_report *report,
                   drey_tune_fn *visit, void *user)
{
    const kernel_table *without = kernel_select_shape(tier, 0);
    const kernel_table *with = kernel_select_shape(tier, bit);
    double gain = 1;
    if (with->shape == without->shape)
        return usual;
    for (int i = 0; i < N_TUNED; i++) {
        report->kernel = tuned_names[i];
        gain *= compare(t, without, with, tuned_types[i], report);
        if (visit)
            visit(user, report);
    }
    gain = pow(gain, 1.0 / N_TUNED);
    return gain > worth || (usual && gain > 1 / worth);
}

static drey_status tuner_open(tuner *t, int32_t n_threads, drey_error *err)
{
    size_t threads = (size_t)n_threads;
    size_t bytes = weight_bytes + arena_size(sizeof(float) * MOST_ROWS * TUNE_K) +
                   arena_size(act_bytes(ACT_Q8_256, MOST_ROWS, TUNE_K)) +
                   arena_size(threads * dot_scratch_bytes(TUNE_K)) +
                   arena_size(threads * sums_floats() * sizeof(float)) + ARENA_ALIGN;
    TRY(arena_init(&t->memory, bytes, true, err));
    TRY(pool_open(&t->pool, n_threads, err));
    t->weights = arena_take(&t->memory, weight_bytes);
    t->x = arena_take(&t->memory, sizeof(float) * MOST_ROWS * TUNE_K);
    t->acts = arena_take(&t->memory, act_bytes(ACT_Q8_256, MOST_ROWS, TUNE_K));
    t->scratch = arena_take(&t->memory, threads * dot_scratch_bytes(TUNE_K));
    t->sums = arena_take(&t->memory, threads * sums_floats() * sizeof(float));
    memset(t->weights, 0x22, weight_bytes); /* scales of 0.012: no denormal numbers */
    for (int i = 0; i < MOST_ROWS * TUNE_K; i++)
        t->x[i] = (float)(i * 37 % 1001 - 500) * 1e-2f;
    return DREY_OK;
}

drey_status drey_tune(int32_t n_threads, const char *cpu_tier, drey_tuning *best,
                      drey_tune_fn *visit, void *user, drey_error *err)
{
    drey_tuning_init(best);
    n_threads = n_threads ? n_threads : pool_default_threads();
    if (n_threads < 1 || n_threads > MOST_THREADS)
        FAIL(err, DREY_ERR_USAGE, "%d threads are not possible (1 to %d)", n_threads, MOST_THREADS);
    if (!kernel_select(cpu_tier))
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the CPU tier \"%s\" does not run on this machine; the best that does is %s", cpu_tier,
             kernel_tiers()[0]);
    tuner t = {0};
    drey_status status = tuner_open(&t, n_threads, err);
    if (status == DREY_OK) {
        drey_tune_report report = {.choice = "near fetch", .rows = t.n_rows = 1};
        best->near_fetch = choose(&t, cpu_tier, SHAPE_NEAR, best->near_fetch, &report, visit, user);
        report = (drey_tune_report){.choice = "whole lines", .rows = t.n_rows = MOST_ROWS};
        best->whole_lines =
            choose(&t, cpu_tier, SHAPE_LINES, best->whole_lines, &report, visit, user);
    }
    pool_close(&t.pool);
    arena_free(&t.memory);
    return status;
}
