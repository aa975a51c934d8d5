/* Choosing between the variants of the kernels by measuring them: the ways in turns, so that other
 * work of the machine disturbs all of them. The weights are far larger than the caches; each round
 * continues in them where the last one stopped. */
#include "drey/tune.h"

#include <math.h>
#include <string.h>

#include "base/arena.h"
#include "common/error.h"
#include "kernel/kernel.h"
#include "os/clock.h"
#include "os/cpu_tuning.h"
#include "os/pool.h"
#include "tune/machine_limits.h"

enum { TUNE_K = 4096, TUNE_ROUNDS = 21, MOST_ROWS = 16, MOST_THREADS = 256, CLAIM_GROUPS = 4 };
static const size_t weight_bytes = (size_t)192 << 20;
static const double round_s = 0.02;
static const double worth = 1.02; /* gain below which the family's choice stays */

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
        matmul_dot(t->kernel, t->sums + (size_t)thread * sums_floats(), CLAIM_GROUPS * GROUP_ROWS,
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

/* Ways to do the same; tiers may lack some. */
typedef struct tune_way {
    const char *name;
    int32_t shape;
} tune_way;

typedef struct tune_choice {
    const char *name;
    int32_t n_rows, n_ways;
    tune_way way[DREY_TUNE_WAYS]; /* in the order of drey_fetch and drey_tile; no, yes */
} tune_choice;

static const tune_choice fetches = {
    "fetch", 1, 3, {{"sparse", 0}, {"near", SHAPE_NEAR}, {"far", SHAPE_FAR}}};
static const tune_choice tiles = {
    "tile", MOST_ROWS, 3, {{"halves", 0}, {"lines", SHAPE_LINES}, {"chains", SHAPE_CHAINS}}};
static const tune_choice amx = {
    "AMX", MOST_ROWS, 2, {{"from 25 rows", 0}, {"from 9 rows", SHAPE_EARLY}}};

/* Gains of each way over way `usual`: the median of the rounds, and what three of four rounds are
 * above. */
typedef struct tune_gain {
    double median, sure;
} tune_gain;

/* Groups that take about round_s. */
static void tune_size(tuner *t, const kernel_table *table, tensor_type type)
{
    t->n_all = (int64_t)(weight_bytes / table->matmul[type].group_bytes(TUNE_K));
    t->n_groups = (int64_t)pool_n_threads(t->pool) * CLAIM_GROUPS;
    tune_round(t, table, type); /* wakes the threads and the clock */
    double enough = round_s / tune_round(t, table, type);
    t->n_groups = enough > (double)t->n_all      ? t->n_all
                  : enough > (double)t->n_groups ? (int64_t)enough
                                                 : t->n_groups;
}

/* table[n_ways]: of the ways; NULL: the tier does not have it. */
static void compare(tuner *t, const kernel_table *const *table, int32_t n_ways, int32_t usual,
                    tensor_type type, tune_gain gain[DREY_TUNE_WAYS], drey_tune_report *report)
{
    double seconds[DREY_TUNE_WAYS][TUNE_ROUNDS], gains[TUNE_ROUNDS];
    tune_size(t, table[usual], type);
    for (int i = 0; i < TUNE_ROUNDS; i++)
        for (int32_t w = 0; w < n_ways; w++)
            seconds[w][i] = table[w] ? tune_round(t, table[w], type) : 1;
    report->n_ways = 0;
    for (int32_t w = 0; w < n_ways; w++) {
        if (!table[w])
            continue;
        for (int i = 0; i < TUNE_ROUNDS; i++)
            gains[i] = seconds[usual][i] / seconds[w][i];
        gain[w].median *= median(gains, TUNE_ROUNDS); /* and sorts them */
        gain[w].sure *= gains[TUNE_ROUNDS / 4];
        report->bytes_per_s[report->n_ways++] =
            (double)table[w]->matmul[type].group_bytes(TUNE_K) / median(seconds[w], TUNE_ROUNDS);
    }
}

/* The way to choose, next to what `shape` already says. */
static int32_t choose(tuner *t, const char *tier, const tune_choice *c, int32_t shape,
                      int32_t usual, drey_tune_fn *visit, void *user)
{
    tune_gain gain[DREY_TUNE_WAYS];
    const kernel_table *table[DREY_TUNE_WAYS] = {NULL};
    drey_tune_report report = {.choice = c->name, .rows = c->n_rows};
    int32_t n = 0;
    for (int32_t w = 0; w < c->n_ways; w++) {
        const kernel_table *has = kernel_select_shape(tier, c->way[w].shape | shape);
        gain[w] = (tune_gain){1, 1};
        if ((has->shape & c->way[w].shape) != c->way[w].shape)
            continue;
        table[w] = has;
        report.way[n++] = c->way[w].name;
    }
    if (n < 2 || !table[usual])
        return usual;
    t->n_rows = c->n_rows;
    for (int i = 0; i < N_TUNED; i++) {
        report.kernel = tuned_names[i];
        compare(t, table, c->n_ways, usual, tuned_types[i], gain, &report);
        if (visit)
            visit(user, &report);
    }
    int32_t best = usual;
    for (int32_t w = 0; w < c->n_ways; w++)
        if (gain[w].sure > 1 && gain[w].median > gain[best].median &&
            pow(gain[w].median, 1.0 / N_TUNED) > worth)
            best = w;
    return best;
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
        best->fetch =
            (drey_fetch)choose(&t, cpu_tier, &fetches, 0, (int32_t)best->fetch, visit, user);
        best->tile = (drey_tile)choose(&t, cpu_tier, &tiles, 0, (int32_t)best->tile, visit, user);
        best->early_amx =
            choose(&t, cpu_tier, &amx, tiles.way[best->tile].shape, best->early_amx, visit, user);
    }
    pool_close(&t.pool);
    arena_free(&t.memory);
    return status;
}
