/* The machine's limits: see machine_limits.h.
 *
 * A limit that is measured too low makes a kernel look too good: if the reader finds 34 GB/s and a
 * matrix kernel streams 48, the kernel has 140 %. So memory is read in a dozen ways, from the
 * plainest loop to four prefetched streams per thread, in one share per thread and in small claims.
 * The ways take turns: a moment in which other work disturbs the machine then slows all of them. */
#include "tune/machine_limits.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "common/num.h"
#include "kernel/kernel.h"
#include "os/clock.h"
#include "os/pool.h"

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* ---- Reading ---- */

typedef struct way {
    int32_t claim_words; /* words that a thread takes at a time; 0: its share at once */
    int32_t n_streams, ahead;
} way;

static const way ways[] = {
    {0, 1, 0},         {0, 2, 0},          {0, 4, 0},           {24 << 10, 1, 0},
    {24 << 10, 1, 64}, {24 << 10, 1, 256}, {24 << 10, 4, 0},    {24 << 10, 4, 64},
    {128 << 10, 1, 0}, {128 << 10, 1, 64}, {128 << 10, 1, 256}, {128 << 10, 4, 64},
};
enum { N_WAYS = sizeof ways / sizeof *ways, MOST_ROUNDS = 16 };

typedef struct read_job {
    const kernel_table *kernels;
    const uint64_t *from;
    int64_t n_words;
    const way *way;
    _Atomic int64_t next;
    _Atomic uint64_t sum; /* so that the reads have an effect */
} read_job;

static void read_thread(void *arg, int32_t thread, int32_t n_threads)
{
    read_job *j = arg;
    const way *w = j->way;
    int64_t claim = w->claim_words ? w->claim_words : j->n_words / n_threads;
    uint64_t sum = 0;
    if (w->claim_words == 0)
        sum = j->kernels->read(j->from + thread * claim, claim, w->n_streams, w->ahead);
    while (w->claim_words) {
        int64_t at = atomic_fetch_add_explicit(&j->next, claim, memory_order_relaxed);
        if (at >= j->n_words)
            break;
        sum += j->kernels->read(j->from + at, j->n_words - at < claim ? j->n_words - at : claim,
                                w->n_streams, w->ahead);
    }
    atomic_fetch_add(&j->sum, sum);
}

/* Bytes per second of reading n_bytes at `from` in several ways in turn, `rounds` times: the median
 * of the fastest way. n_bytes should be far more than the caches hold, and have been written to. */
static double limits_read(pool *p, const kernel_table *kernels, const void *from, size_t n_bytes,
                          int rounds)
{
    double rate[N_WAYS][MOST_ROUNDS], best = 0;
    rounds = min_i32(rounds, MOST_ROUNDS);
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < N_WAYS; i++) {
            read_job j = {.kernels = kernels, .from = from, .way = &ways[i]};
            j.n_words = (int64_t)(n_bytes / sizeof(uint64_t));
            double start = clock_s();
            pool_run(p, read_thread, &j);
            rate[i][round] = (double)n_bytes / (clock_s() - start);
        }
    for (int i = 0; i < N_WAYS; i++) {
        double m = median(rate[i], rounds);
        best = max_f64(m, best);
    }
    return best;
}

/* ---- Peaks ---- */

/* First member of a job that threads repeat. */
typedef struct steady {
    int64_t rounds;
    _Atomic int64_t ops; /* operations of all threads */
} steady;

/* Operations per second: rounds double until a run takes run_s; then the median of some runs. */
static double steady_rate(pool *p, pool_fn *fn, steady *job, double run_s)
{
    double rate[LIMITS_ROUNDS];
    for (int round = 0; round < LIMITS_ROUNDS;) {
        atomic_store(&job->ops, 0);
        double start = clock_s();
        pool_run(p, fn, job);
        double taken = clock_s() - start;
        if (taken < run_s)
            job->rounds *= 2;
        else
            rate[round++] = (double)atomic_load(&job->ops) / taken;
    }
    return median(rate, LIMITS_ROUNDS);
}

typedef struct peak_job {
    steady base;
    int64_t (*run)(int64_t rounds);
} peak_job;

static void peak_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)thread, (void)n_threads;
    peak_job *j = arg;
    atomic_fetch_add(&j->base.ops, j->run(j->base.rounds));
}

static double peak_rate(pool *p, int64_t (*run)(int64_t rounds))
{
    peak_job j = {.base = {.rounds = 1000}, .run = run};
    return steady_rate(p, peak_thread, &j.base, 4e-3);
}

double limits_int8(pool *p, const kernel_table *kernels)
{
    return peak_rate(p, kernels->int8_peak);
}

double limits_float(pool *p, const kernel_table *kernels)
{
    return peak_rate(p, kernels->float_peak);
}

/* ---- Products ---- */

typedef struct dot_job {
    steady base;
    const matmul_kernel *kernel;
    float *y; /* [n_threads][n_rows][GROUP_ROWS] */
    uint8_t *acts, *group, *scratch;
    int32_t n_rows;
} dot_job;

static void dot_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    dot_job *j = arg;
    float *y = j->y + (size_t)thread * (size_t)j->n_rows * GROUP_ROWS;
    uint8_t *scratch = j->scratch + (size_t)thread * dot_scratch_bytes(LIMITS_DOT_K);
    for (int64_t i = 0; i < j->base.rounds; i++)
        matmul_dot(j->kernel, y, GROUP_ROWS, j->group, 1, j->acts, j->n_rows, LIMITS_DOT_K,
                   scratch);
    atomic_fetch_add(&j->base.ops, j->base.rounds * 2 * LIMITS_DOT_K * GROUP_ROWS * j->n_rows);
}

size_t limits_dot_bytes(const kernel_table *kernels, int type, int32_t n_rows, int32_t n_threads)
{
    const matmul_kernel *m = &kernels->matmul[type];
    size_t rows = (size_t)n_rows, threads = (size_t)n_threads;
    return arena_size(sizeof(float) * LIMITS_DOT_K * rows) +
           arena_size(act_bytes(m->act, n_rows, LIMITS_DOT_K)) +
           arena_size(m->group_bytes(LIMITS_DOT_K)) +
           arena_size(threads * dot_scratch_bytes(LIMITS_DOT_K)) +
           arena_size(sizeof(float) * rows * GROUP_ROWS * threads);
}

double limits_dot(pool *p, const kernel_table *kernels, int type, int32_t n_rows, arena *memory)
{
    const matmul_kernel *m = &kernels->matmul[type];
    size_t rows = (size_t)n_rows, threads = (size_t)pool_n_threads(p);
    float *x = arena_take(memory, sizeof(float) * LIMITS_DOT_K * rows);
    dot_job j = {.kernel = m, .n_rows = n_rows, .base = {.rounds = 1}};
    j.acts = arena_take(memory, act_bytes(m->act, n_rows, LIMITS_DOT_K));
    j.group = arena_take(memory, m->group_bytes(LIMITS_DOT_K));
    j.scratch = arena_take(memory, threads * dot_scratch_bytes(LIMITS_DOT_K));
    j.y = arena_take(memory, sizeof(float) * rows * GROUP_ROWS * threads);
    for (int i = 0; i < LIMITS_DOT_K * n_rows; i++)
        x[i] = (float)(i % 17) - 8.0f;
    memset(j.group, 0, m->group_bytes(LIMITS_DOT_K));
    kernels->quantise[m->act](j.acts, x, LIMITS_DOT_K, 0, n_rows, n_rows, LIMITS_DOT_K);
    return steady_rate(p, dot_thread, &j.base, 2e-3);
}

/* ---- Products of weights that come from memory ---- */

typedef struct stream_job {
    const matmul_kernel *kernel;
    float *y;                    /* [n_threads][GROUP_ROWS] */
    const uint8_t *acts, *group; /* operands of one row; [n_groups] */
    uint8_t *scratch;            /* [n_threads] */
    int64_t n_groups;
} stream_job;

static void stream_thread(void *arg, int32_t thread, int32_t n_threads)
{
    stream_job *j = arg;
    const size_t group_bytes = j->kernel->group_bytes(LIMITS_DOT_K);
    int64_t end = j->n_groups * (thread + 1) / n_threads;
    for (int64_t i = j->n_groups * thread / n_threads; i < end; i++)
        matmul_dot(j->kernel, j->y + (size_t)thread * GROUP_ROWS, GROUP_ROWS,
                   j->group + (size_t)i * group_bytes, 1, j->acts, 1, LIMITS_DOT_K,
                   j->scratch + (size_t)thread * dot_scratch_bytes(LIMITS_DOT_K));
}

double limits_stream(pool *p, const kernel_table *kernels, int type, const void *weights,
                     size_t n_bytes, arena *memory)
{
    const matmul_kernel *m = &kernels->matmul[type];
    const size_t group_bytes = m->group_bytes(LIMITS_DOT_K);
    size_t threads = (size_t)pool_n_threads(p);
    double rate[LIMITS_ROUNDS];
    stream_job j = {.kernel = m, .group = weights, .n_groups = (int64_t)(n_bytes / group_bytes)};
    float *x = arena_take(memory, sizeof(float) * LIMITS_DOT_K);
    uint8_t *acts = arena_take(memory, act_bytes(m->act, 1, LIMITS_DOT_K));
    j.acts = acts;
    j.scratch = arena_take(memory, threads * dot_scratch_bytes(LIMITS_DOT_K));
    j.y = arena_take(memory, sizeof(float) * GROUP_ROWS * threads);
    for (int i = 0; i < LIMITS_DOT_K; i++)
        x[i] = (float)(i % 17) - 8.0f;
    kernels->quantise[m->act](acts, x, LIMITS_DOT_K, 0, 1, 1, LIMITS_DOT_K);
    for (int round = 0; round < LIMITS_ROUNDS; round++) {
        double start = clock_s();
        pool_run(p, stream_thread, &j);
        rate[round] = (double)j.n_groups * (double)group_bytes / (clock_s() - start);
    }
    return median(rate, LIMITS_ROUNDS);
}

/* ---- The pool ---- */

static void nothing(void *arg, int32_t thread, int32_t n_threads)
{
    (void)arg, (void)thread, (void)n_threads;
}

static double barrier(pool *p)
{
    enum { JOBS = 500 };
    double seconds[LIMITS_ROUNDS];
    for (int round = 0; round < LIMITS_ROUNDS; round++) {
        double start = clock_s();
        for (int i = 0; i < JOBS; i++)
            pool_run(p, nothing, NULL);
        seconds[round] = (clock_s() - start) / JOBS;
    }
    return median(seconds, LIMITS_ROUNDS);
}

drey_limits limits_measure(pool *p, const kernel_table *kernels, const void *from, size_t n_bytes)
{
    return (drey_limits){.memory_bytes_per_s =
                             limits_read(p, kernels, from, n_bytes, LIMITS_ROUNDS),
                         .int8_ops_per_s = limits_int8(p, kernels),
                         .float_ops_per_s = limits_float(p, kernels),
                         .barrier_s = barrier(p)};
}
