/* Attention after contexts of 4096 and 16384 positions, for one row and for 16, with the shape of a
 * model of 1.5 billion parameters: 12 query heads that share 2 key heads of 128. Each call uses the
 * next layer of a KV cache that is larger than any processor cache, so keys and values come from
 * memory. */
#include "bench/bench.h"
#include "bench/attention_speed.h"
#include "bench/repeat.h"

#include "base/arena.h"

enum { HEADS = 2, SHARED = 6, HEAD_DIM = 128, MOST_ROWS = 16, MOST_THREADS = 256 };
static const double round_s = 0.02;

typedef struct bench {
    pool *pool;
    attend_layer layer;
    void *scratch[MOST_THREADS];
    uint8_t *keys, *values;
    size_t layer_bytes;
    int32_t n_layers, at;
} bench;

static void attend_thread(void *arg, int32_t thread, int32_t n_threads)
{
    (void)n_threads;
    bench *b = arg;
    attend_work(&b->layer, b->scratch[thread]);
}

static void call_once(void *user)
{
    bench *b = user;
    b->at = (b->at + 1) % b->n_layers;
    b->layer.head.keys = b->keys + (size_t)b->at * b->layer_bytes;
    b->layer.head.values = b->values + (size_t)b->at * b->layer_bytes;
    attend_cut(&b->layer);
    pool_run(b->pool, attend_thread, b);
}

/* The operands besides keys and values, for both contexts. */
static drey_status take_operands(bench *b, arena *a, int32_t n_threads, int32_t longest,
                                 drey_error *err)
{
    size_t rows = sizeof(float) * MOST_ROWS * HEADS * SHARED * HEAD_DIM;
    size_t n_partials = attend_partials_wanted(SHARED, HEAD_DIM, longest, n_threads);
    size_t scratch = arena_size(attend_scratch_bytes(HEAD_DIM, HEAD_DIM, false));
    TRY(arena_init(a,
                   2 * arena_size(rows) + arena_size(n_partials * sizeof(float)) +
                       (size_t)n_threads * scratch + ARENA_ALIGN,
                   false, err));
    float *q = arena_take(a, rows);
    for (int32_t i = 0; i < MOST_ROWS * HEADS * SHARED * HEAD_DIM; i++)
        q[i] = (float)(i % 17 - 8) * 0.1f;
    b->layer.head.q = q;
    b->layer.head.out = arena_take(a, rows);
    b->layer.partials = arena_take(a, n_partials * sizeof(float));
    b->layer.n_partials = n_partials;
    for (int32_t i = 0; i < n_threads; i++)
        b->scratch[i] = arena_take(a, attend_scratch_bytes(HEAD_DIM, HEAD_DIM, false));
    return DREY_OK;
}

drey_status bench_attention(pool *p, const kernel_table *kernels, uint8_t *block,
                            size_t block_bytes, const drey_limits *limits, drey_kernel_fn *visit,
                            void *user, drey_error *err)
{
    static const struct {
        int32_t positions, rows;
        const char *name;
    } shapes[] = {{4096, 1, "4096, 1 row"},
                  {4096, 16, "4096, 16 rows"},
                  {16384, 1, "16384, 1 row"},
                  {16384, 16, "16384, 16 rows"}};
    int32_t n_prefix[MOST_ROWS], n_path[MOST_ROWS] = {0}, n_threads = pool_n_threads(p);
    bench b = {.pool = p, .keys = block, .values = block + block_bytes / 2};
    arena a = {0};
    drey_status status = take_operands(&b, &a, n_threads, shapes[3].positions, err);
    for (size_t i = 0; status == DREY_OK && i < sizeof shapes / sizeof *shapes; i++) {
        int32_t n = shapes[i].positions, n_rows = shapes[i].rows;
        for (int32_t r = 0; r < n_rows; r++)
            n_prefix[r] = n - n_rows + 1 + r;
        attend_layer *l = &b.layer;
        l->key_bytes = l->value_bytes = kv_head_bytes(kernels->kv_plain, n, HEAD_DIM);
        l->n_heads = HEADS;
        l->n_threads = n_threads;
        l->head.kernels = kernels;
        l->head.format = kernels->kv_plain;
        l->head.k_dim = l->head.v_dim = HEAD_DIM;
        l->head.n_q = SHARED;
        l->head.n_rows = n_rows;
        l->head.scale = 0.1f;
        l->head.n_prefix = n_prefix;
        l->head.n_path = n_path;
        l->head.q_ld = l->head.out_ld = SHARED * HEADS * HEAD_DIM;
        b.layer_bytes = l->key_bytes * HEADS;
        b.n_layers = (int32_t)(block_bytes / 2 / b.layer_bytes);
        drey_kernel_report r = {
            .kernel = "attend", .what = DREY_KERNEL_ROW, .shape = shapes[i].name};
        r.rows = n_rows;
        r.seconds = repeat_seconds(call_once, &b, 1, round_s);
        r.bytes_per_s = 2 * (double)b.layer_bytes / r.seconds;
        r.ops_per_s = 4.0 * n * n_rows * HEADS * SHARED * HEAD_DIM / r.seconds;
        r.bandwidth_share = r.bytes_per_s / limits->memory_bytes_per_s;
        r.peak_share = r.ops_per_s / limits->float_ops_per_s;
        visit(user, &r);
    }
    arena_free(&a);
    return status;
}
