/* Times a device's products, each begun and awaited alone, as a pass asks for them:
 * device_speed opencl|cuda[:WHICH] [REPEATS [copies]]. Weights are random bytes in matrices that
 * are used in turns and together are larger than a device's cache; the first and the last groups of
 * every result are compared with the plain C kernels. Activations and results are in memory that is
 * lent to the device, or copied. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernel/kernel.h"
#include "kernel/packing.h"
#include "os/clock.h"
#include "support/rng.h"
#include "unit/device.h"

enum { MOST_ROWS = 64, MATRICES = 16, CHECKED = 2 /* groups that are compared */ };
static rng random_numbers = {1};

static void must(bool good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "device_speed: %s\n", what);
    exit(1);
}

static void *take(size_t bytes)
{
    void *p = aligned_alloc(4096, (bytes + 4095) / 4096 * 4096);
    must(p != NULL, "no memory");
    memset(p, 0, bytes);
    return p;
}

/* One group of random rows with small scales, as often as needed. */
static void groups_fill(uint8_t *packed, const matmul_kernel *kernel, tensor_type type, int64_t k,
                        int32_t n_groups)
{
    const type_layout *layout = layout_find(type);
    const int64_t row_bytes = k / layout->block_k * layout->file_block_bytes;
    uint8_t *rows = take((size_t)row_bytes * GROUP_ROWS);
    for (int64_t i = 0; i < row_bytes * GROUP_ROWS; i++)
        rows[i] = (uint8_t)rng_below(&random_numbers, 256);
    for (int64_t b = 0; b < row_bytes * GROUP_ROWS; b += layout->file_block_bytes)
        for (int32_t p = 0; p < layout->n_parts; p++)
            if (layout->block_k == 1 || p < layout->n_scales)
                rows[b + layout->parts[p].file_offset + 1] &= 0x3b;
    const size_t bytes = kernel->group_bytes(k);
    must(kernel->pack(packed, rows, row_bytes, GROUP_ROWS, k), "rows that cannot be packed");
    for (int32_t g = 1; g < n_groups; g++)
        memcpy(packed + (size_t)g * bytes, packed, bytes);
    free(rows);
}

typedef struct trial {
    device *d;
    const matmul_kernel *kernel;
    int64_t k;
    int32_t n_groups;
    uint8_t *packed;
    void *acts[ACT_KINDS];
    float *x, *y, *expected;
    void *scratch;
} trial;

static void run(trial *t, int32_t matrix, int32_t n)
{
    drey_error err;
    const device_work work = {.matrix = matrix,
                              .n_groups = t->n_groups,
                              .acts = t->acts[t->kernel->act],
                              .act = t->kernel->act,
                              .act_bytes = act_bytes(t->kernel->act, n, t->k),
                              .n = n,
                              .y = t->y,
                              .ldy = (int64_t)t->n_groups * GROUP_ROWS};
    if (t->d->class->submit(t->d, &work, &err) != DREY_OK ||
        t->d->class->wait(t->d, &err) != DREY_OK)
        must(false, err.message);
}

static void check(const trial *t, int32_t n)
{
    const int64_t ld = (int64_t)t->n_groups * GROUP_ROWS;
    for (int32_t from = 0; from < t->n_groups; from += t->n_groups - CHECKED) {
        matmul_dot(t->kernel, t->expected, CHECKED * GROUP_ROWS,
                   t->packed + (size_t)from * t->kernel->group_bytes(t->k), CHECKED,
                   t->acts[t->kernel->act], n, t->k, t->scratch);
        for (int32_t row = 0; row < n; row++)
            must(memcmp(t->expected + row * CHECKED * GROUP_ROWS,
                        t->y + row * ld + from * GROUP_ROWS,
                        CHECKED * GROUP_ROWS * sizeof(float)) == 0,
                 "other bits than the processor's");
    }
}

static void time_shape(trial *t, tensor_type type, int32_t repeats)
{
    static const int32_t rows[] = {1, 4, 16, 64};
    const kernel_table *ref = kernel_select_shape("ref", 0);
    const double bytes = (double)t->kernel->group_bytes(t->k) * t->n_groups;
    printf("%-6s %6d x %-6d", type_find(type)->name, (int)t->k, t->n_groups * GROUP_ROWS);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const int32_t n = rows[i];
        ref->quantise[t->kernel->act](t->acts[t->kernel->act], t->x, t->k, 0, n, n, t->k);
        memset(t->y, 0xff, sizeof(float) * MOST_ROWS * (size_t)t->n_groups * GROUP_ROWS);
        run(t, 0, n);
        check(t, n);
        const int64_t begin = clock_ns();
        for (int32_t r = 0; r < repeats; r++)
            run(t, r % MATRICES, n);
        const double ns = (double)(clock_ns() - begin) / repeats;
        printf("  %2d: %7.1f us %6.1f GB/s", (int)n, ns * 1e-3, bytes / ns);
    }
    printf("\n");
    fflush(stdout);
}

static void try_shape(const device_class *class, const char *which, tensor_type type, int64_t k,
                      int32_t n_groups, int32_t repeats, bool lends)
{
    drey_error err;
    device_matrix matrix[MATRICES];
    trial t = {
        .kernel = &kernel_select_shape("ref", 0)->matmul[type], .k = k, .n_groups = n_groups};
    if (class->open(&t.d, which, &err) != DREY_OK)
        must(false, err.message);
    t.packed = take(t.kernel->group_bytes(k) * (size_t)n_groups);
    const size_t for_acts = (act_bytes(t.kernel->act, MOST_ROWS, k) + 63) / 64 * 64;
    const size_t for_work = for_acts + sizeof(float) * MOST_ROWS * (size_t)n_groups * GROUP_ROWS;
    t.acts[t.kernel->act] = take(for_work);
    t.y = (float *)(void *)((uint8_t *)t.acts[t.kernel->act] + for_acts);
    t.x = take(sizeof(float) * MOST_ROWS * (size_t)k);
    t.expected = take(sizeof(float) * MOST_ROWS * CHECKED * GROUP_ROWS);
    t.scratch = take(dot_scratch_bytes(k));
    for (int64_t i = 0; i < MOST_ROWS * k; i++)
        t.x[i] = (float)rng_unit(&random_numbers) - 0.5f;
    groups_fill(t.packed, t.kernel, type, k, n_groups);
    for (int32_t i = 0; i < MATRICES; i++)
        matrix[i] = (device_matrix){type, t.kernel->act, k,       t.kernel->group_bytes(k),
                                    0,    n_groups,      t.packed};
    if (t.d->class->attach(t.d, matrix, MATRICES, MOST_ROWS, &err) != DREY_OK)
        must(false, err.message);
    if (lends && class->lend_work)
        class->lend_work(t.d, t.acts[t.kernel->act], for_work);
    time_shape(&t, type, repeats);
    class->close(&t.d);
    void *all[] = {t.packed, t.acts[t.kernel->act], t.x, t.expected, t.scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

int main(int argc, char **argv)
{
    static const struct {
        tensor_type type;
        int64_t k;
        int32_t n_groups;
    } shapes[] = {{TYPE_Q4_K, 1536, 48},   {TYPE_Q4_K, 1536, 280}, {TYPE_Q4_K, 3584, 592},
                  {TYPE_Q6_K, 18944, 112}, {TYPE_Q4_1, 1152, 96},  {TYPE_Q8_0, 4096, 128},
                  {TYPE_F16, 2048, 64}};
    if (argc < 2) {
        fprintf(stderr, "usage: device_speed opencl|cuda[:WHICH] [REPEATS [copies]]\n");
        return 2;
    }
    const char *which = strchr(argv[1], ':');
    const size_t name = which ? (size_t)(which - argv[1]) : strlen(argv[1]);
    for (const device_class *const *class = device_all(); *class; class ++)
        for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
            if (strlen((*class)->name) == name && strncmp((*class)->name, argv[1], name) == 0)
                try_shape(*class, which ? which + 1 : NULL, shapes[i].type, shapes[i].k,
                          shapes[i].n_groups, argc > 2 ? atoi(argv[2]) : 200, argc <= 3);
    return 0;
}
