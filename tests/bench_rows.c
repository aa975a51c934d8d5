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

static void bench_attention(int32_t n)
{
    static const int32_t shapes[][2] = {{1, 64}, {3, 64}, {7, 64}, {1, 128}, {6, 128}, {16, 128}};
    printf("%-8s %-24s %12s %10s %10s\n", "tier", "attention", "us", "GB/s", "GFLOP/s");
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        int32_t n_q = shapes[i][0], dim = shapes[i][1];
        size_t cache = (size_t)n * (size_t)dim;
        float *q = numbers((size_t)(n_q * dim), 0), *out = numbers((size_t)(n_q * dim), 0);
        float *scratch = numbers(ATTEND_SCRATCH_FLOATS(n_q, dim), 0);
        uint16_t *keys = numbers(cache, 1), *values = numbers(cache, 1);
        for (const char *const *tier = kernel_tiers(); *tier && strcmp(*tier, "ref"); tier++) {
            const kernel_table *t = kernel_select(*tier);
            double ns;
            BEST_NS(ns, t->attend(out, q, keys, values, n, NULL, 0, n_q, dim, 0.1f, scratch));
            printf("%-8s n %5d heads %2d x %3d %12.1f %10.1f %10.1f\n", *tier, n, n_q, dim,
                   ns / 1e3, 4.0 * (double)cache / ns, 4.0 * (double)cache * n_q / ns);
        }
        free(q), free(out), free(scratch), free(keys), free(values);
    }
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
    int n = argc > 1 ? atoi(argv[1]) : 2048;
    if (n < 1) {
        fprintf(stderr, "usage: bench_rows [POSITIONS]\n");
        return 2;
    }
    bench_attention(n);
    bench_rows();
    return 0;
}
