/* Times attention and the row operations of every tier that runs here: CPU time, and for
 * attention the bytes of keys and values that went by. Not part of ctest.
 *     bench_rows [POSITIONS] */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/fmath.h"
#include "kernel/kernel.h"
#include "os/pool.h"

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void *numbers(size_t n, int half)
{
    float *f = aligned_alloc(64, (n * 4 + 63) / 64 * 64);
    uint16_t *h = (uint16_t *)f;
    if (!f)
        exit(1);
    for (size_t i = 0; i < n; i++) {
        float v = (float)((i * 2654435761u >> 8 & 0xffff)) / 32768.0f - 1.0f;
        if (half)
            h[i] = f32_to_f16(v);
        else
            f[i] = v;
    }
    return f;
}

/* The best of several repetitions of about 20 ms each. */
#define BEST_NS(best, statement)                                                                   \
    do {                                                                                           \
        (best) = 1e30;                                                                             \
        for (int rep_ = 0; rep_ < 5; rep_++) {                                                     \
            double start_ = now_ns();                                                              \
            int calls_ = 0;                                                                        \
            do {                                                                                   \
                statement;                                                                         \
                calls_++;                                                                          \
            } while (now_ns() - start_ < 2e7);                                                     \
            double each_ = (now_ns() - start_) / calls_;                                           \
            (best) = each_ < (best) ? each_ : (best);                                              \
        }                                                                                          \
    } while (0)

/* ---- Attention ---- */

static double wall_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Layers of caches, as many as the last-level cache cannot hold, so that keys and values come from
 * memory. */
typedef struct layers {
    attend_layer layer;
    int32_t n_layers, n_threads;
    size_t layer_bytes;
    uint8_t *keys, *values;
    void **scratch;
    const kernel_table *kernels;
    double read_sum;
    int32_t at;
} layers;

static void attend_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    layers *l = arg;
    attend_work(&l->layer, l->scratch[thread]);
}

static void read_thread(void *arg, int32_t thread, int32_t n_threads)
{
    layers *l = arg;
    size_t bytes = (size_t)l->n_layers * l->layer_bytes / 64 * 64;
    size_t from = bytes / (size_t)n_threads / 64 * (size_t)thread * 64;
    size_t to = thread + 1 == n_threads ? bytes : bytes / (size_t)n_threads / 64 * 64 + from;
    uint64_t sum[8] = {0};
    for (int side = 0; side < 2; side++) {
        const uint64_t *x = (const uint64_t *)(const void *)((side ? l->keys : l->values));
        for (size_t i = from / 8; i < to / 8; i += 8) {
            __builtin_prefetch(x + i + 512);
            for (int j = 0; j < 8; j++)
                sum[j] += x[i + (size_t)j];
        }
    }
    for (int j = 0; j < 8; j++)
        l->read_sum += (double)sum[j];
}

static double best_of(pool *p, layers *l, pool_fn *fn, int32_t calls)
{
    double best = 1e30;
    for (int rep = 0; rep < 5; rep++) {
        double start = wall_ns();
        for (int32_t i = 0; i < calls; i++) {
            if (fn == attend_thread) {
                l->at = (l->at + 1) % l->n_layers;
                l->layer.head.keys = l->keys + (size_t)l->at * l->layer_bytes;
                l->layer.head.values = l->values + (size_t)l->at * l->layer_bytes;
                attend_cut(&l->layer);
            }
            pool_run(p, fn, l);
        }
        double each = (wall_ns() - start) / calls;
        best = each < best ? each : best;
    }
    return best;
}

enum { MAX_ROWS = 16 };

static void bench_shape(pool *p, const kernel_table *t, kv_format format, int32_t n, int32_t n_q,
                        int32_t dim, int32_t n_heads)
{
    static const int32_t rows[] = {1, 4, 8, 16};
    layers l = {.n_threads = pool_n_threads(p), .kernels = t};
    size_t head = kv_head_bytes(format, n, dim);
    l.layer_bytes = head * (size_t)n_heads;
    l.n_layers = (int32_t)((96 << 20) / l.layer_bytes / 2) + 1;
    l.keys = numbers(l.layer_bytes * (size_t)l.n_layers / 2 + 64, 1);
    l.values = numbers(l.layer_bytes * (size_t)l.n_layers / 2 + 64, 1);
    for (size_t i = 0; format == KV_Q8_0 && i < l.layer_bytes * (size_t)l.n_layers; i += 2)
        l.keys[i + 1] = l.values[i + 1] = (uint8_t)(i >> 7 & 63); /* d is finite */
    l.scratch = calloc((size_t)l.n_threads, sizeof *l.scratch);
    for (int32_t i = 0; i < l.n_threads; i++)
        l.scratch[i] = numbers(attend_scratch_bytes(dim) / 4, 0);
    size_t n_parts = attend_parts_wanted(n_q, dim, n, l.n_threads);
    float *parts = numbers(n_parts + 16, 0);
    float *q = numbers((size_t)(MAX_ROWS * n_q * n_heads * dim), 0);
    float *out = numbers((size_t)(MAX_ROWS * n_q * n_heads * dim), 0);
    int32_t n_prefix[MAX_ROWS], n_path[MAX_ROWS] = {0};
    double read_ns = best_of(p, &l, read_thread, 1);
    double read_rate = 2.0 * (double)l.layer_bytes * l.n_layers / read_ns;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        for (int32_t r = 0; r < rows[i]; r++)
            n_prefix[r] = n - rows[i] + 1 + r;
        l.layer = (attend_layer){.head = {.kernels = t,
                                          .format = format,
                                          .head_dim = dim,
                                          .n_q = n_q,
                                          .n_rows = rows[i],
                                          .scale = 0.1f,
                                          .n_prefix = n_prefix,
                                          .n_path = n_path,
                                          .q = q,
                                          .out = out,
                                          .ld = (int64_t)n_q * n_heads * dim},
                                 .head_bytes = head,
                                 .n_heads = n_heads,
                                 .n_threads = l.n_threads,
                                 .parts = parts,
                                 .n_parts = n_parts};
        double flop = 4.0 * n * n_q * n_heads * dim * rows[i];
        int32_t calls = (int32_t)(3e9 / flop) + 1;
        double ns = best_of(p, &l, attend_thread, calls);
        double rate = 2.0 * (double)l.layer_bytes / ns;
        printf("%-7s %-5s %6d %2d/%d x %3d N %2d %9.1f us %6.1f GB/s %4.0f%% %7.1f GFLOP/s\n",
               t->tier, format == KV_F16 ? "f16" : "q8_0", n, n_q * n_heads, n_heads, dim, rows[i],
               ns / 1e3, rate, 100 * rate / read_rate, flop / ns);
    }
    for (int32_t i = 0; i < l.n_threads; i++)
        free(l.scratch[i]);
    free(l.scratch), free(l.keys), free(l.values), free(parts), free(q), free(out);
}

static void bench_rows(void)
{
    enum { N = 8960, D = 1536, VOCABULARY = 151936 };
    float *x = numbers(VOCABULARY, 0), *y = numbers(VOCABULARY, 0), *z = numbers(VOCABULARY, 0);
    uint16_t *h = numbers(N, 1);
    volatile float sink = 0; /* keeps what has no other effect */
    printf("%-8s %-24s %12s\n", "tier", "operation", "us");
    for (const char *const *tier = kernel_tiers(); *tier && strcmp(*tier, "float"); tier++) {
        const kernel_table *t = kernel_select(*tier);
        double ns;
#define ROW(name, statement)                                                                       \
    BEST_NS(ns, statement);                                                                        \
    printf("%-8s %-24s %12.2f\n", *tier, name, ns / 1e3)
        ROW("rmsnorm 1536", t->rmsnorm(y, x, z, D, 1e-6f));
        ROW("rope neox 12 x 128", t->rope(y, x, 12, 128, 64, true));
        ROW("rope 12 x 128", t->rope(y, x, 12, 128, 64, false));
        ROW("swiglu 8960", t->swiglu(y, x, z, N));
        ROW("add 1536", t->add(y, x, D));
        ROW("to_f16 1536", t->to_f16(h, x, D));
        ROW("from_f16 1536", t->from_f16(y, h, D));
        ROW("arg_max 151936", sink += (float)t->arg_max(x, VOCABULARY));
        ROW("sum_exp 151936", sink += t->sum_exp(x, VOCABULARY, 1.0f, 1.0f));
#undef ROW
    }
    (void)sink;
    free(x), free(y), free(z), free(h);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 16384, threads = argc > 2 ? atoi(argv[2]) : 2;
    const char *tier = argc > 3 ? argv[3] : NULL;
    pool *p;
    if (pool_open(&p, threads, NULL) != DREY_OK)
        return 1;
    bench_shape(p, kernel_select(tier), KV_F16, n, 6, 128, 2);
    bench_shape(p, kernel_select(tier), KV_Q8_0, n, 6, 128, 2);
    if (argc > 4) {
        bench_shape(p, kernel_select(tier), KV_F16, n, 7, 64, 2);
        bench_shape(p, kernel_select(tier), KV_F16, n, 3, 64, 3);
        bench_shape(p, kernel_select(tier), KV_F16, n, 8, 128, 4);
        bench_rows();
    }
    pool_close(&p);
    return 0;
}
