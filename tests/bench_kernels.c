/* Speed of the matrix kernels, each type of the inventory (not a test; nothing runs it by itself).
 *
 * bench_kernels [TYPE|all] [TIER] [THREADS] [WEIGHT_MB] [MAX_ROWS]
 *
 * Weights are larger than the caches, so t(1) is memory bandwidth; the first line is what plain
 * reading of the same bytes reaches. Each figure is the best of several passes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernel/layout.h"

enum { BENCH_K = 4096, MAX_THREADS = 64 };

typedef struct type_entry {
    tensor_type type;
    const char *name;
    int32_t block_k, block_bytes;
} type_entry;

#define ENTRY(TYPE, name, act, block_k, block_bytes) {TYPE_##TYPE, #TYPE, block_k, block_bytes},
static const type_entry types[] = {KERNEL_TYPES(ENTRY)};
#undef ENTRY

/* What one thread does in a pass: its share of the groups. */
typedef struct job {
    enum { JOB_READ, JOB_DOT, JOB_PACK, JOB_QUANTISE } what;
    const kernel_table *table;
    const matmul_kernel *kernel;
    uint8_t *groups, *file; /* this thread's */
    float *y;               /* [n][ldy], this thread's columns */
    const float *x;
    void *acts, *scratch;
    int32_t n_groups, n;
    int64_t ldy, row_bytes;
    uint64_t sum;
} job;

/* One thread is timed by its own CPU time, which a busy machine disturbs less. */
static double seconds(int n_threads)
{
    struct timespec t;
    clock_gettime(n_threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *job_run(void *argument)
{
    job *j = argument;
    size_t group_bytes = j->kernel->group_bytes(BENCH_K);
    if (j->what == JOB_DOT)
        j->kernel->dot(j->y, j->ldy, j->groups, j->n_groups, j->acts, j->n, BENCH_K, j->scratch);
    if (j->what == JOB_QUANTISE)
        j->table->quantise[j->kernel->act](j->acts, j->x, BENCH_K, 0, j->n, j->n, BENCH_K);
    for (int32_t g = 0; j->what == JOB_PACK && g < j->n_groups; g++)
        j->kernel->pack(j->groups, j->file + g * GROUP_ROWS * j->row_bytes, j->row_bytes,
                        GROUP_ROWS, BENCH_K);
    if (j->what == JOB_READ) {
        const uint64_t *p = (const uint64_t *)(void *)j->groups;
        uint64_t sum[8] = {0};
        for (size_t i = 0; i < group_bytes * (size_t)j->n_groups / 8; i += 8)
            for (size_t l = 0; l < 8; l++)
                sum[l] += p[i + l];
        for (size_t l = 0; l < 8; l++)
            j->sum += sum[l];
    }
    return NULL;
}

/* Best time of a pass by all threads. */
static double pass_seconds(job *jobs, int n_threads)
{
    double best = 1e9, spent = 0;
    for (int round = 0; round < 12 && (round < 2 || spent < 0.6); round++) {
        pthread_t threads[MAX_THREADS];
        double start = seconds(n_threads);
        for (int i = 1; i < n_threads; i++)
            pthread_create(&threads[i], NULL, job_run, &jobs[i]);
        job_run(&jobs[0]);
        for (int i = 1; i < n_threads; i++)
            pthread_join(threads[i], NULL);
        double t = seconds(n_threads) - start;
        spent += t;
        best = t < best ? t : best;
    }
    return best;
}

static void *must_alloc(size_t bytes)
{
    void *p = aligned_alloc(1 << 21, (bytes + (1 << 21) - 1) >> 21 << 21);
    if (!p) {
        fprintf(stderr, "bench_kernels: out of memory; give a smaller WEIGHT_MB\n");
        exit(1);
    }
    return p;
}

static void bench_type(const type_entry *e, const kernel_table *table, int n_threads,
                       size_t weight_bytes, int32_t max_rows)
{
    const matmul_kernel *kernel = &table->matmul[e->type];
    size_t group_bytes = kernel->group_bytes(BENCH_K);
    int32_t n_groups = (int32_t)(weight_bytes / group_bytes / (size_t)n_threads);
    double weights = (double)n_groups * n_threads * GROUP_ROWS * BENCH_K;
    double bytes = (double)n_groups * n_threads * (double)group_bytes;
    float *x = must_alloc((size_t)max_rows * BENCH_K * sizeof(float));
    void *acts = must_alloc(act_bytes(kernel->act, max_rows, BENCH_K));
    for (int64_t i = 0; i < (int64_t)max_rows * BENCH_K; i++)
        x[i] = (float)(i * 37 % 1001 - 500);
    job jobs[MAX_THREADS];
    for (int i = 0; i < n_threads; i++) {
        jobs[i] = (job){.table = table, .kernel = kernel, .x = x, .acts = acts};
        jobs[i].n_groups = n_groups;
        jobs[i].groups = must_alloc(group_bytes * (size_t)n_groups);
        jobs[i].file = must_alloc(group_bytes * (size_t)n_groups);
        jobs[i].row_bytes = BENCH_K / e->block_k * e->block_bytes;
        jobs[i].ldy = (int64_t)n_groups * GROUP_ROWS + 16;
        jobs[i].y = must_alloc((size_t)(jobs[i].ldy * max_rows) * sizeof(float));
        jobs[i].scratch = must_alloc(dot_scratch_bytes(BENCH_K));
        memset(jobs[i].groups, 1, group_bytes * (size_t)n_groups);
        memset(jobs[i].file, 1, group_bytes * (size_t)n_groups);
        memset(jobs[i].y, 0, (size_t)(jobs[i].ldy * max_rows) * sizeof(float));
        jobs[i].what = JOB_READ;
    }
    double read = pass_seconds(jobs, n_threads);
    for (int i = 0; i < n_threads; i++)
        jobs[i].what = JOB_PACK;
    double pack = pass_seconds(jobs, n_threads);
    printf("%-6s %s, %d threads: read %.1f GB/s, pack %.1f GB/s\n", e->name, table->tier, n_threads,
           bytes / read * 1e-9, bytes / pack * 1e-9);
    static const int32_t counts[] = {1, 2, 4, 8, 16, 32, 64, 256};
    double first = 0;
    for (size_t c = 0; c < sizeof counts / sizeof counts[0] && counts[c] <= max_rows; c++) {
        int32_t n = counts[c];
        for (int i = 0; i < n_threads; i++) {
            jobs[i].n = n;
            jobs[i].what = JOB_QUANTISE;
        }
        double quantise = pass_seconds(jobs, 1);
        for (int i = 0; i < n_threads; i++)
            jobs[i].what = JOB_DOT;
        double t = pass_seconds(jobs, n_threads);
        first = n == 1 ? t : first;
        printf("  n %3d: %8.2f ms, t(n)/t(1) %6.2f, %5.1f GB/s, %6.3f TOPS, quantise %.1f GB/s\n",
               n, t * 1e3, t / first, bytes / t * 1e-9, 2 * weights * n / t * 1e-12,
               (double)n * BENCH_K * 4 / quantise * 1e-9);
        fflush(stdout);
    }
    for (int i = 0; i < n_threads; i++) {
        free(jobs[i].groups);
        free(jobs[i].file);
        free(jobs[i].y);
        free(jobs[i].scratch);
    }
    free(x);
    free(acts);
}

int main(int argc, char **argv)
{
    const char *type = argc > 1 ? argv[1] : "all";
    const kernel_table *table = kernel_select(argc > 2 && argv[2][0] ? argv[2] : NULL);
    int n_threads = argc > 3 ? atoi(argv[3]) : 1;
    size_t weight_mb = argc > 4 ? (size_t)atol(argv[4]) : 256;
    int32_t max_rows = argc > 5 ? atoi(argv[5]) : 256;
    if (!table || n_threads < 1 || n_threads > MAX_THREADS || weight_mb < 1 || max_rows < 1) {
        fprintf(stderr,
                "usage: bench_kernels [TYPE|all] [TIER] [THREADS] [WEIGHT_MB] [MAX_ROWS]\n");
        return 2;
    }
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (strcmp(type, "all") == 0 || strcmp(type, types[i].name) == 0)
            bench_type(&types[i], table, n_threads, weight_mb << 20, max_rows);
    return 0;
}
