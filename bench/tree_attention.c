/* See tree_attention.h. */
#include "bench/bench.h"
#include "bench/repeat.h"
#include "bench/tree_attention.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/fmath.h"

enum { SHARED = 6, MOST_DIM = 128, MOST_DEPTH = 8, MOST_RANK = 8 };
static const double round_s = 0.01;

/* ---- The tree ---- */

/* Probability that the guess of this rank (from 0) is right at a depth (from 0). */
static float guess_chance(int32_t depth, int32_t rank)
{
    float at_rank = 0.65f / (float)((rank + 1) * (rank + 1));
    return at_rank * (1 - 0.06f * (float)depth);
}

void tree_pairs_make(tree_pairs *t, int32_t n)
{
    float chance[TREE_NODES] = {1};
    int32_t n_children[TREE_NODES] = {0};
    t->n_nodes = n;
    t->n_path[0] = 1;
    t->path[0] = 0;
    for (int32_t i = 1; i < n; i++) {
        int32_t parent = 0;
        float best = 0;
        for (int32_t j = 0; j < i; j++) {
            float next = chance[j] * guess_chance(t->n_path[j] - 1, n_children[j]);
            if (t->n_path[j] <= MOST_DEPTH && n_children[j] < MOST_RANK && next > best) {
                best = next;
                parent = j;
            }
        }
        chance[i] = best;
        n_children[parent]++;
        memcpy(t->path + i * TREE_NODES, t->path + parent * TREE_NODES,
               (size_t)t->n_path[parent] * sizeof *t->path);
        t->n_path[i] = t->n_path[parent] + 1;
        t->path[i * TREE_NODES + t->n_path[i] - 1] = i;
    }
}

/* ---- The naive way ---- */

static void naive_row(const tree_pairs *t, const tree_operands *o, int32_t row, float *scores)
{
    const int32_t *path = t->path + row * TREE_NODES, n = t->n_path[row];
    for (int32_t e = 0; e < n; e++)
        for (int32_t h = 0; h < o->n_q; h++) {
            float sum = 0;
            for (int32_t i = 0; i < o->head_dim; i++)
                sum +=
                    o->q[(row * o->n_q + h) * o->head_dim + i] * o->keys[path[e] * o->head_dim + i];
            scores[h * TREE_NODES + e] = o->scale * sum;
        }
    for (int32_t h = 0; h < o->n_q; h++) {
        float *s = scores + h * TREE_NODES, max = -INFINITY, sum = 0;
        for (int32_t e = 0; e < n; e++)
            max = s[e] > max ? s[e] : max;
        for (int32_t e = 0; e < n; e++)
            sum += s[e] = exp_f32(s[e] - max);
        for (int32_t i = 0; i < o->head_dim; i++) {
            float a = 0;
            for (int32_t e = 0; e < n; e++)
                a += s[e] * o->values[path[e] * o->head_dim + i];
            o->out[(row * o->n_q + h) * o->head_dim + i] = a / sum;
        }
    }
}

void tree_attend_naive(const tree_pairs *t, const tree_operands *o, float *scores)
{
    for (int32_t row = 0; row < t->n_nodes; row++)
        naive_row(t, o, row, scores);
}

/* ---- Timing ---- */

typedef struct bench {
    tree_pairs tree;
    tree_operands plain;
    attention sparse, dense;
    void *scratch;
    float *scores;
    int32_t zeros[TREE_NODES];
} bench;

static void run_ours(void *user)
{
    const bench *b = user;
    attend(&b->sparse, 0, b->sparse.n_rows * b->sparse.n_q, b->scratch);
}

static void run_naive(void *user)
{
    const bench *b = user;
    tree_attend_naive(&b->tree, &b->plain, b->scores);
}

static void run_dense(void *user)
{
    const bench *b = user;
    attend(&b->dense, 0, b->dense.n_rows * b->dense.n_q, b->scratch);
}

static const struct {
    const char *name;
    void (*run)(void *user);
} ways[] = {{"tree", run_ours}, {"tree-naive", run_naive}, {"tree-dense", run_dense}};

static float *take_numbers(arena *a, int32_t n)
{
    float *x = arena_take(a, (size_t)n * sizeof *x);
    for (int32_t i = 0; i < n; i++)
        x[i] = (float)(i * 37 % 101 - 50) * 0.02f;
    return x;
}

static drey_status take_all(bench *b, arena *a, drey_error *err)
{
    const int32_t n_kv = TREE_NODES * MOST_DIM, n_q = n_kv * SHARED;
    const size_t cache = kv_head_bytes(KV_F32, TREE_NODES, MOST_DIM);
    TRY(arena_init(a,
                   2 * arena_size((size_t)n_q * sizeof(float)) +
                       2 * arena_size((size_t)n_kv * sizeof(float)) + 2 * arena_size(cache) +
                       arena_size(sizeof(float) * SHARED * TREE_NODES) +
                       arena_size(attend_scratch_bytes(MOST_DIM, MOST_DIM, false)) + ARENA_ALIGN,
                   false, err));
    b->plain.q = take_numbers(a, n_q);
    b->plain.keys = take_numbers(a, n_kv);
    b->plain.values = take_numbers(a, n_kv);
    b->plain.out = take_numbers(a, n_q);
    b->plain.n_q = SHARED;
    b->scores = arena_take(a, sizeof(float) * SHARED * TREE_NODES);
    b->sparse.keys = arena_take(a, cache);
    b->sparse.values = arena_take(a, cache);
    b->scratch = arena_take(a, attend_scratch_bytes(MOST_DIM, MOST_DIM, false));
    return arena_check(a, err);
}

/* Stores the tree's keys and values, and sets what both of our ways see of them. */
static void set_cache(bench *b, const kernel_table *kernels, kv_format format, int32_t dim)
{
    b->plain.head_dim = dim;
    b->plain.scale = 1.0f / sqrtf((float)dim);
    for (int32_t i = 0; i < TREE_NODES; i++) {
        kv_store_key(kernels, format, (uint8_t *)b->sparse.keys, i, b->plain.keys + i * dim, dim,
                     b->scratch);
        kv_store_value(kernels, format, (uint8_t *)b->sparse.values, i, b->plain.values + i * dim,
                       dim, b->scratch);
    }
    b->sparse = (attention){.kernels = kernels,
                            .format = format,
                            .k_dim = dim,
                            .v_dim = dim,
                            .n_q = SHARED,
                            .n_rows = b->tree.n_nodes,
                            .scale = b->plain.scale,
                            .keys = b->sparse.keys,
                            .values = b->sparse.values,
                            .n_prefix = b->zeros,
                            .n_path = b->tree.n_path,
                            .path = b->tree.path,
                            .path_ld = TREE_NODES,
                            .q = b->plain.q,
                            .out = b->plain.out,
                            .q_ld = SHARED * dim,
                            .out_ld = SHARED * dim};
    /* Heads of one row, so that as many as there is room for use a block together. */
    b->dense = b->sparse;
    b->dense.n_rows = 1;
    b->dense.n_q = SHARED * b->tree.n_nodes;
    b->dense.n_prefix = &b->tree.n_nodes;
    b->dense.n_path = b->zeros;
}

static void bench_tree(bench *b, kv_format format, drey_kernel_fn *visit, void *user)
{
    static const char *const formats[] = {"f16", "q8_0", "f32"};
    char shape[32];
    int32_t n_pairs = 0;
    for (int32_t i = 0; i < b->tree.n_nodes; i++)
        n_pairs += b->tree.n_path[i];
    snprintf(shape, sizeof shape, "%d of %d, %s", b->tree.n_nodes, b->sparse.k_dim,
             formats[format]);
    for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
        drey_kernel_report r = {.kernel = ways[way].name,
                                .what = DREY_KERNEL_ROW,
                                .shape = shape,
                                .rows = b->tree.n_nodes};
        double row_bytes = (double)kv_head_bytes(format, KV_GROUP, b->sparse.k_dim) / KV_GROUP;
        r.seconds = repeat_seconds(ways[way].run, b, 8, round_s);
        r.bytes_per_s = 2 * b->tree.n_nodes * row_bytes / r.seconds;
        r.ops_per_s = 4.0 * n_pairs * SHARED * b->sparse.k_dim / r.seconds;
        visit(user, &r);
    }
}

drey_status bench_tree_attention(const kernel_table *kernels, drey_kernel_fn *visit, void *user,
                                 drey_error *err)
{
    const kv_format formats[] = {kernels->kv_plain, KV_Q8_0};
    bench b = {0};
    arena a = {0};
    drey_status status = take_all(&b, &a, err);
    for (int f = 0; status == DREY_OK && f < 2; f++)
        for (int32_t dim = 64; dim <= MOST_DIM; dim *= 2)
            for (int32_t n = 16; n <= TREE_NODES; n *= 2) {
                tree_pairs_make(&b.tree, n);
                set_cache(&b, kernels, formats[f], dim);
                bench_tree(&b, formats[f], visit, user);
            }
    arena_free(&a);
    return status;
}
