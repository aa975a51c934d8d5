/* The speed of each kernel of the inventory. The lists are those of the kernel tests (KERNEL_TYPES,
 * KERNEL_ROWS, KERNEL_DELTA), so every kernel is both checked and timed.
 *
 * Weights stream from memory like the pinned ones of a pass: each thread reads its own share of the
 * groups in order, so that prefetchers work, and then helps with the rest of the others'. A round
 * begins where the last one stopped, in a block far larger than the caches, so that even a short
 * round finds nothing cached. Activations and row operations stay in the caches. */
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#include "bench/bench.h"
#include "base/arena.h"
#include "common/num.h"
#include "kernel/delta.h"
#include "kernel/kernel.h"
#include "kernel/packing.h"
#include "kernel/planes.h"
#include "os/clock.h"
#include "bench/attention_speed.h"
#include "bench/repeat.h"
#include "tune/machine_limits.h"
#include "bench/tree_attention.h"

enum {
    BENCH_K = 4096,
    MOST_ROWS = 512,
    CLAIM_BYTES = 192 << 10, /* bytes of packed weights, as a pass of one row takes at a time */
    MOST_CLAIM = 8,          /* groups, */
    MOST_GROUPS = 16,        /* or as many as the kernel asks for */
    MOST_THREADS = 256,
    QUANTISE_ROWS = 64,
    PART_ROUNDS = 4096,
    PART_ROWS = 16,
    ROUNDS = 5,
    N_NUMBERS = 151936 /* numbers in a row operation's operand: a large vocabulary */
};
static const size_t block_bytes = (size_t)192 << 20;
static const double call_round_s = 2e-3;
static const double round_s = 0.03; /* a round is not much longer, however slow the tier */
static const int32_t row_counts[] = {1, 2, 4, 8, 16, 32, 64, 512}, plane_rows[] = {1, 8, 32};

typedef struct type_entry {
    tensor_type type;
    const char *name;
    int32_t block_k, block_bytes;
} type_entry;

#define ENTRY(TYPE, name, act, block_k, block_bytes) {TYPE_##TYPE, #TYPE, block_k, block_bytes},
static const type_entry types[] = {KERNEL_TYPES(ENTRY)};
#undef ENTRY
enum { N_TYPES = sizeof types / sizeof *types };

/* The next of one thread's groups that is not taken. On its own cache line. */
typedef struct thread_share {
    _Alignas(64) _Atomic int64_t next;
} thread_share;

typedef struct bench {
    const kernel_table *kernels;
    pool *pool;
    arena memory;
    const drey_limits *limits;
    drey_kernel_fn *visit;
    void *user;
    uint8_t *block; /* [block_bytes]: packed groups, or rows of a file */
    float *x, *y, *z;
    uint16_t *half;
    void *acts;
    uint8_t *per_thread; /* [n_threads][thread_bytes()]: sums, a packed group, scratch */
    /* The current round. */
    const type_entry *type;
    bool packing, in_planes;
    int32_t part;
    int32_t n;                             /* activation rows */
    int64_t first, n_groups, claim, n_all; /* groups; of the block */
    thread_share *shares;                  /* [n_threads] */
} bench;

enum {
    SUM_BYTES = MOST_ROWS * MOST_GROUPS * GROUP_ROWS * (int)sizeof(float),
    GROUP_BYTES = BENCH_K * 4 * GROUP_ROWS, /* bytes of F32, the largest */
};
_Static_assert((SUM_BYTES + GROUP_BYTES) % ARENA_ALIGN == 0, "what threads have is aligned");

static size_t thread_bytes(void)
{
    return arena_size(SUM_BYTES + GROUP_BYTES + dot_scratch_bytes(BENCH_K));
}

/* ---- Types ---- */

/* The first group of a thread's share, a multiple of a claim. */
static int64_t share_first(const bench *b, int32_t thread, int32_t n_threads)
{
    return b->n_groups / b->claim * thread / n_threads * b->claim;
}

/* One by one, as in a pass. Each plane of all groups is after the plane before it. */
static void sweep_planes(const bench *b, uint8_t *mine, int64_t group)
{
    const plane_layout *l = plane_layout_find(b->type->type);
    size_t bytes[N_PLANES];
    plane_blocks from;
    const uint8_t *plane = b->block;
    for (int i = 0; i < N_PLANES; i++) {
        bytes[i] = BENCH_K / (size_t)b->type->block_k * plane_block_bytes(l, i);
        from.plane[i] = plane + (size_t)group * bytes[i];
        plane += (size_t)b->n_all * bytes[i];
    }
    for (int64_t g = 0; g < b->claim; g++) {
        dot_planes(b->kernels, b->type->type, (float *)(void *)mine + g * GROUP_ROWS,
                   b->claim * GROUP_ROWS, &from, b->acts, b->n, BENCH_K,
                   mine + SUM_BYTES + GROUP_BYTES, mine + SUM_BYTES);
        for (int i = 0; i < N_PLANES; i++)
            from.plane[i] += bytes[i];
    }
}

/* The groups of a claim, beginning with number `at` of the round. */
static void sweep(bench *b, uint8_t *mine, int64_t at)
{
    const matmul_kernel *m = &b->kernels->matmul[b->type->type];
    size_t group_bytes = m->group_bytes(BENCH_K);
    int64_t row_bytes = BENCH_K / b->type->block_k * b->type->block_bytes;
    int64_t group = (b->first + at) % (b->n_all - b->claim + 1);
    const uint8_t *from = b->block + (size_t)group * group_bytes;
    if (b->in_planes)
        sweep_planes(b, mine, group);
    else if (!b->packing)
        matmul_dot(m, (float *)(void *)mine, b->claim * GROUP_ROWS, from, (int32_t)b->claim,
                   b->acts, b->n, BENCH_K, mine + SUM_BYTES + GROUP_BYTES);
    for (int64_t g = 0; b->packing && g < b->claim; g++)
        m->pack(mine + SUM_BYTES, from + (size_t)g * group_bytes, row_bytes, GROUP_ROWS, BENCH_K);
}

static void type_thread(void *arg, int32_t thread, int32_t n_threads)
{
    bench *b = arg;
    uint8_t *mine = b->per_thread + (size_t)thread * thread_bytes();
    for (int32_t i = 0; i < n_threads; i++) {
        int32_t owner = (thread + i) % n_threads;
        int64_t end = share_first(b, owner + 1, n_threads), at;
        while ((at = atomic_fetch_add_explicit(&b->shares[owner].next, b->claim,
                                               memory_order_relaxed)) < end)
            sweep(b, mine, at);
    }
}

/* Seconds of a round over *n_groups groups, which is rounded up to claims. */
static double type_round(bench *b, int64_t *n_groups)
{
    int32_t n_threads = pool_n_threads(b->pool);
    b->n_groups = *n_groups = (*n_groups + b->claim - 1) / b->claim * b->claim;
    for (int32_t t = 0; t < n_threads; t++)
        atomic_store(&b->shares[t].next, share_first(b, t, n_threads));
    double start = clock_s();
    pool_run(b->pool, type_thread, b);
    double taken = clock_s() - start;
    b->first = (b->first + *n_groups) % b->n_all;
    return taken;
}

/* A first round finds out how many groups are enough. */
static int64_t enough_groups(bench *b)
{
    int64_t n_groups = b->claim * pool_n_threads(b->pool);
    double each = type_round(b, &n_groups) / (double)n_groups, enough = round_s / each;
    n_groups = enough > (double)b->n_all ? b->n_all : (int64_t)enough;
    return max_i64(n_groups, b->claim);
}

/* Median seconds per group. */
static double group_seconds(bench *b)
{
    int64_t n_groups = enough_groups(b);
    double seconds[ROUNDS];
    for (int i = 0; i < ROUNDS; i++)
        seconds[i] = type_round(b, &n_groups) / (double)n_groups;
    return median(seconds, ROUNDS);
}

static void quantise_once(void *user)
{
    bench *b = user;
    act_kind act = b->kernels->matmul[b->type->type].act;
    b->kernels->quantise[act](b->acts, b->x, BENCH_K, 0, QUANTISE_ROWS, QUANTISE_ROWS, BENCH_K);
}

static void report_products(const bench *b, drey_kernel_report *r, double group_s)
{
    const matmul_kernel *m = &b->kernels->matmul[b->type->type];
    double peak = m->act == ACT_F32 ? b->limits->float_ops_per_s : b->limits->int8_ops_per_s;
    r->rows = b->n;
    r->bytes_per_s = (double)m->group_bytes(BENCH_K) / group_s;
    r->ops_per_s = 2.0 * GROUP_ROWS * BENCH_K * b->n / group_s;
    r->seconds = (double)(1 << 30) / r->bytes_per_s;
    r->bandwidth_share = r->bytes_per_s / b->limits->memory_bytes_per_s;
    r->peak_share = r->ops_per_s / peak;
    b->visit(b->user, r);
}

/* Sets the rows, and claims of as many groups as a pass of so many rows takes. */
static void take_rows(bench *b, int32_t n)
{
    const matmul_kernel *m = &b->kernels->matmul[b->type->type];
    act_kind act = m->act;
    int64_t claim = CLAIM_BYTES / (int64_t)m->group_bytes(BENCH_K);
    claim = claim < 1 ? 1 : claim > MOST_CLAIM ? MOST_CLAIM : claim;
    int32_t wanted = matmul_groups(m, n);
    b->claim = claim > wanted ? claim : wanted < MOST_GROUPS ? wanted : MOST_GROUPS;
    b->first = 0;
    b->n = n;
    b->kernels->quantise[act](b->acts, b->x, BENCH_K, 0, n, n, BENCH_K);
}

/* The cost of joining blocks in a product, whose planes come from memory in three streams. */
static void bench_planes(bench *b)
{
    static const char *const ways[] = {"unsplit", "joined"};
    double seconds[2][ROUNDS];
    for (size_t i = 0; i < sizeof plane_rows / sizeof *plane_rows; i++) {
        take_rows(b, plane_rows[i]);
        int64_t n_groups = enough_groups(b);
        for (int round = 0; round < ROUNDS; round++)
            for (int way = 0; way < 2; way++) {
                b->in_planes = way == 1;
                seconds[way][round] = type_round(b, &n_groups) / (double)n_groups;
            }
        b->in_planes = false;
        for (int way = 0; way < 2; way++) {
            drey_kernel_report r = {
                .kernel = b->type->name, .what = DREY_KERNEL_PLANES, .shape = ways[way]};
            report_products(b, &r, median(seconds[way], ROUNDS));
        }
    }
}

static void part_rounds(void *user)
{
    bench *b = user;
    b->kernels->dot_part(b->type->type, b->part, PART_ROUNDS, b->per_thread);
}

static void bench_parts(bench *b)
{
    drey_kernel_report r = {.kernel = b->type->name, .what = DREY_KERNEL_PART, .rows = PART_ROWS};
    const double thread_peak = b->limits->int8_ops_per_s / pool_n_threads(b->pool);
    const int32_t k = b->type->block_k == 32 ? 4 * 32 : 256;
    if (!b->kernels->dot_part)
        return;
    for (b->part = 0; (r.shape = b->kernels->dot_part(b->type->type, b->part, 0, b->per_thread));
         b->part++) {
        r.seconds = repeat_seconds(part_rounds, b, 1, call_round_s) / PART_ROUNDS;
        r.ops_per_s = 2.0 * PART_ROWS * GROUP_ROWS * k / r.seconds;
        r.peak_share = r.ops_per_s / thread_peak;
        b->visit(b->user, &r);
    }
}

static void bench_type(bench *b, const type_entry *t)
{
    const matmul_kernel *m = &b->kernels->matmul[t->type];
    double group_bytes = (double)m->group_bytes(BENCH_K);
    b->type = t;
    b->n_all = (int64_t)((double)block_bytes / group_bytes);
    take_rows(b, 1);
    b->packing = true;
    drey_kernel_report r = {.kernel = t->name, .what = DREY_KERNEL_PACK, .shape = "", .rows = 1};
    r.bytes_per_s = group_bytes / group_seconds(b);
    b->visit(b->user, &r);
    r.what = DREY_KERNEL_QUANTISE;
    r.bytes_per_s = QUANTISE_ROWS * BENCH_K * (double)sizeof(float) /
                    repeat_seconds(quantise_once, b, 1, call_round_s);
    b->visit(b->user, &r);
    b->packing = false;
    r.what = DREY_KERNEL_DOT;
    for (size_t i = 0; i < sizeof row_counts / sizeof *row_counts; i++) {
        take_rows(b, row_counts[i]);
        report_products(b, &r, group_seconds(b));
    }
    if (plane_layout_find(t->type))
        bench_planes(b);
    bench_parts(b);
}

/* ---- Row operations ---- */

enum { ROW_D = 1536, ROW_FF = 8960, ROW_HEADS = 12, ROW_HEAD_DIM = 128 };

typedef struct row_entry {
    const char *name, *shape;
    int64_t n_bytes; /* read and written */
    void (*run)(void *user);
} row_entry;

#define DEFINE_ROW(op, shape, n_bytes, ...)                                                        \
    static void run_##op(void *user)                                                               \
    {                                                                                              \
        bench *b = user;                                                                           \
        b->kernels->op(__VA_ARGS__);                                                               \
    }                                                                                              \
    static const row_entry row_##op = {#op, shape, n_bytes, run_##op};

DEFINE_ROW(rmsnorm, "1536", ROW_D * 12, b->y, b->x, b->z, ROW_D, 1e-6f)
DEFINE_ROW(layernorm, "1536", ROW_D * 16, b->y, b->x, b->z, b->z, ROW_D, 1e-5f)
DEFINE_ROW(rope, "12 heads of 128", ROW_HEADS *ROW_HEAD_DIM * 8, b->y, b->x, ROW_HEADS,
           ROW_HEAD_DIM, ROW_HEAD_DIM / 2, true)
DEFINE_ROW(swiglu, "8960", ROW_FF * 12, b->y, b->x, b->z, ROW_FF)
DEFINE_ROW(geglu, "8960", ROW_FF * 12, b->y, b->x, b->z, ROW_FF)
DEFINE_ROW(gelu, "8960", ROW_FF * 8, b->y, b->x, ROW_FF)
DEFINE_ROW(gate, "8960", ROW_FF * 12, b->y, b->x, b->z, ROW_FF)
DEFINE_ROW(softcap, "151936", N_NUMBERS * 8, b->y, N_NUMBERS, 30.0f)
DEFINE_ROW(add, "1536", ROW_D * 12, b->y, b->x, ROW_D)
DEFINE_ROW(to_f16, "1536", ROW_D * 6, b->half, b->x, ROW_D)
DEFINE_ROW(from_f16, "1536", ROW_D * 6, b->y, b->half, ROW_D)
DEFINE_ROW(arg_max, "151936", N_NUMBERS * 4, b->x, N_NUMBERS)
DEFINE_ROW(sum_exp, "151936", N_NUMBERS * 4, b->x, N_NUMBERS, 1.0f, 1.0f)

/* One head of a running state, or one part of a row: operands are in z, the state in x. */
enum { STATE_DIM = 128, STATE_BYTES = STATE_DIM * STATE_DIM * 4 };

static const float exponents[DELTA_BLOCK + 1]; /* zeros */

/* Places of DELTA_BLOCK rows. */
static const float *const *state_rows(const bench *b)
{
    static const float *row[DELTA_BLOCK];
    for (int i = 0; i < DELTA_BLOCK; i++)
        row[i] = b->z + (i + 1) * STATE_DIM;
    return row;
}

static void join_once(bench *b, void (*of)(const delta_row *row))
{
    const delta_row row = {.u = b->z,
                           .w = b->z,
                           .v = b->z,
                           .exponent = exponents,
                           .kk = b->z,
                           .qk = b->z,
                           .past = state_rows(b),
                           .n = DELTA_BLOCK / 2,
                           .v_dim = STATE_DIM,
                           .d = b->y,
                           .out = b->y + STATE_DIM};
    of(&row);
}

static void end_once(bench *b)
{
    const delta_records block = {.k = state_rows(b),
                                 .d = state_rows(b),
                                 .exponent = exponents,
                                 .n = DELTA_BLOCK,
                                 .k_dim = STATE_DIM,
                                 .v_dim = STATE_DIM};
    b->kernels->delta->end(b->y, b->x, &block);
}

static void conv_once(bench *b)
{
    const float *const x[] = {b->x, b->x, b->x, b->x};
    b->kernels->delta->conv(
        b->y, &(conv_taps){.x = x, .w = b->z, .ld = ROW_FF, .n_taps = 4, .silu = true}, ROW_FF);
}

#define DEFINE_DELTA(op, shape, n_bytes, statement)                                                \
    static void run_delta_##op(void *user)                                                         \
    {                                                                                              \
        bench *b = user;                                                                           \
        statement;                                                                                 \
    }                                                                                              \
    static const row_entry row_delta_##op = {"delta_" #op, shape, n_bytes, run_delta_##op};

DEFINE_DELTA(conv, "8960", ROW_FF * 36, conv_once(b))
DEFINE_DELTA(unit, "128", STATE_DIM * 8, b->kernels->delta->unit(b->y, b->z, STATE_DIM, 1e-6f, 1))
DEFINE_DELTA(gated_norm, "128", STATE_DIM * 16,
             b->kernels->delta->gated_norm(b->y, b->z, b->z, b->z, STATE_DIM, 1e-6f))
DEFINE_DELTA(rows, "2 times 128 x 128", STATE_BYTES,
             b->kernels->delta->rows(b->y, STATE_DIM, b->z, STATE_DIM, 2, b->x, STATE_DIM,
                                     STATE_DIM))
DEFINE_DELTA(dots, "16 of 128", DELTA_BLOCK *STATE_DIM * 4,
             b->kernels->delta->dots(b->y, b->z, state_rows(b), DELTA_BLOCK, STATE_DIM))
DEFINE_DELTA(join, "8 of 128", DELTA_BLOCK / 2 * STATE_DIM * 4,
             join_once(b, b->kernels->delta->join))
DEFINE_DELTA(scan, "8 of 128", DELTA_BLOCK / 2 * STATE_DIM * 4,
             join_once(b, b->kernels->delta->scan))
DEFINE_DELTA(end, "16 of 128 x 128", STATE_BYTES * 2, end_once(b))

#define ENTRY(op)       &row_##op,
#define DELTA_ENTRY(op) &row_delta_##op,
static const row_entry *const rows[] = {KERNEL_ROWS(ENTRY) KERNEL_DELTA(DELTA_ENTRY)};
#undef DELTA_ENTRY
#undef ENTRY
enum { N_ROW_OPS = sizeof rows / sizeof *rows };

static void bench_row(bench *b, const row_entry *e)
{
    for (int i = 0; i < N_NUMBERS; i++) {
        b->x[i] = (float)(i * 37 % 1001) * 1e-3f;
        b->y[i] = b->z[i] = 1.0f;
    }
    double each = repeat_seconds(e->run, b, 8, call_round_s);
    b->visit(b->user, &(drey_kernel_report){.kernel = e->name,
                                            .what = DREY_KERNEL_ROW,
                                            .shape = e->shape,
                                            .rows = 1,
                                            .seconds = each,
                                            .bytes_per_s = (double)e->n_bytes / each});
}

/* ---- All of it ---- */

static size_t arena_bytes(int32_t n_threads)
{
    return block_bytes + 3 * arena_size(sizeof(float) * MOST_ROWS * BENCH_K) +
           arena_size(sizeof(uint16_t) * ROW_FF) + act_bytes(ACT_F32, MOST_ROWS, BENCH_K) +
           (size_t)n_threads * (thread_bytes() + arena_size(sizeof(thread_share))) +
           9 * ARENA_ALIGN;
}

/* Every byte is 0x22: scales of 0.012 and quants in the middle, no denormal numbers in any type. */
static void take_operands(bench *b, int32_t n_threads)
{
    b->block = arena_take(&b->memory, block_bytes);
    memset(b->block, 0x22, block_bytes);
    float **each[] = {&b->x, &b->y, &b->z};
    for (int i = 0; i < 3; i++)
        *each[i] = arena_take(&b->memory, sizeof(float) * MOST_ROWS * BENCH_K);
    b->half = arena_take(&b->memory, sizeof(uint16_t) * ROW_FF);
    b->acts = arena_take(&b->memory, act_bytes(ACT_F32, MOST_ROWS, BENCH_K));
    b->per_thread = arena_take(&b->memory, (size_t)n_threads * thread_bytes());
    b->shares = arena_take(&b->memory, (size_t)n_threads * sizeof *b->shares);
    for (int64_t i = 0; i < (int64_t)MOST_ROWS * BENCH_K; i++)
        b->x[i] = (float)(i * 37 % 1001 - 500) * 1e-2f;
}

static bool asked_for(const char *kernel, const char *name)
{
    return !kernel || strcasecmp(kernel, name) == 0;
}

static bool exists(const char *kernel)
{
    bool found = asked_for(kernel, "attend") || asked_for(kernel, "tree");
    for (int i = 0; i < N_TYPES; i++)
        found |= asked_for(kernel, types[i].name);
    for (int i = 0; i < N_ROW_OPS; i++)
        found |= asked_for(kernel, rows[i]->name);
    return found;
}

drey_status drey_bench_kernels(int32_t n_threads, const char *cpu_tier, const char *kernel,
                               drey_limits *limits, drey_kernel_fn *visit, void *user,
                               drey_error *err)
{
    *limits = (drey_limits){0};
    n_threads = n_threads ? n_threads : pool_default_threads();
    if (n_threads < 1 || n_threads > MOST_THREADS)
        FAIL(err, DREY_ERR_USAGE, "%d threads are not possible (1 to %d)", n_threads, MOST_THREADS);
    if (!exists(kernel))
        FAIL(err, DREY_ERR_USAGE,
             "no kernel is called \"%.40s\"; name a tensor type such as Q4_K, or a row operation "
             "such as rmsnorm",
             kernel);
    bench b = {.kernels = kernel_select(cpu_tier), .limits = limits, .visit = visit, .user = user};
    if (!b.kernels)
        FAIL(err, DREY_ERR_UNSUPPORTED,
             "the CPU tier \"%s\" does not run on this machine; the best that does is %s", cpu_tier,
             kernel_tiers()[0]);
    drey_status status = arena_init(&b.memory, arena_bytes(n_threads), true, err);
    if (status == DREY_OK)
        status = pool_open(&b.pool, n_threads, err);
    if (status == DREY_OK) {
        take_operands(&b, n_threads);
        *limits = limits_measure(b.pool, b.kernels, b.block, block_bytes);
        for (int i = 0; i < N_TYPES; i++)
            if (asked_for(kernel, types[i].name))
                bench_type(&b, &types[i]);
        for (int i = 0; i < N_ROW_OPS; i++)
            if (asked_for(kernel, rows[i]->name))
                bench_row(&b, rows[i]);
        if (asked_for(kernel, "attend"))
            status =
                bench_attention(b.pool, b.kernels, b.block, block_bytes, limits, visit, user, err);
        if (status == DREY_OK && asked_for(kernel, "tree"))
            status = bench_tree_attention(b.kernels, visit, user, err);
    }
    pool_close(&b.pool);
    arena_free(&b.memory);
    return status;
}

const char *drey_kernel_figure_name(drey_kernel_figure what)
{
    static const char *const names[] = {"pack", "quantise", "dot", "row", "planes", "part"};
    return (unsigned)what < sizeof names / sizeof *names ? names[what] : NULL;
}

void drey_kernel_list(drey_kernel_list_fn *visit, void *user)
{
    for (int i = 0; i < N_TYPES; i++)
        for (const char *const *tier = kernel_all_tiers(); *tier; tier++)
            visit(user, types[i].name, *tier, kernel_owner(*tier, types[i].type));
}
