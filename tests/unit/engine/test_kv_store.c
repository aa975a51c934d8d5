/* A store whose values are the fronts of its keys: what a cache of it commits, moves, copies, cuts
 * and hands out in pieces is attended to as softmax in double precision says; and the sides of a
 * store of unlike widths are as wide as they should be. */

#include "base/arena.h"
#include "state/cache.h"
#include "state/cache_room.h"
#include "state/kept_positions.h"
#include "state/kv.h"
#include "support/scene.h"

enum {
    LAYERS = 2,
    Q_HEADS = 40,
    K_DIM = 96,
    V_DIM = 64,
    SLOTS = 160,
    PENDING = 24,
    COMMITTED = 83
};
enum { ROWS = 8 }; /* rows of a tree */

typedef struct bench {
    arena a;
    text_cache cache;
    float key[SLOTS][LAYERS][K_DIM]; /* keys of a slot, as f16 has them */
    void *scratch;
} bench;

static cache_spec spec_of(int32_t v_dim, bool latent)
{
    const store_shape shape = {.n_layers = LAYERS,
                               .n_heads = 1,
                               .k_dim = K_DIM,
                               .v_dim = v_dim,
                               .format = KV_F16,
                               .latent = latent};
    return (cache_spec){.store = {{&kv_class, shape}}, .n_stores = 1};
}

static void open_cache(bench *b, const cache_spec *spec)
{
    MUST(arena_init, &b->a, cache_bytes(spec, SLOTS, PENDING) + ARENA_ALIGN, false);
    cache_init(&b->cache, spec, SLOTS, PENDING, &b->a);
    MUST(arena_check, &b->a);
    b->scratch = aligned_alloc(64, attend_scratch_bytes(K_DIM, V_DIM, true));
    assert_non_null(b->scratch);
}

static void close_cache(bench *b)
{
    free(b->scratch);
    arena_free(&b->a);
}

/* Numbers that f16 has. */
static void store_row(bench *b, rng *r, int32_t slot)
{
    const kv_store *kv = kv_of(&b->cache);
    for (int32_t layer = 0; layer < LAYERS; layer++) {
        float *key = b->key[slot][layer];
        for (int32_t i = 0; i < K_DIM; i++)
            key[i] = (float)(rng_below(r, 513) - 256) / 128;
        kv_store_key(kernel_select(NULL), KV_F16, kv_at(kv, KV_KEYS, layer, 0), slot, key, K_DIM,
                     b->scratch);
    }
}

static void add_rows(bench *b, rng *r, const int32_t *parent, int32_t n)
{
    int32_t first = kv_pending_slot(kv_of(&b->cache), &b->cache) + cache_pending(&b->cache);
    for (int32_t i = 0; i < n; i++) {
        cache_place_row(&b->cache, cache_pending(&b->cache) + i, parent ? parent[i] : i - 1);
        store_row(b, r, first + i);
    }
    cache_add(&b->cache, n);
}

/* Queries of one row that sees positions 0 .. n - 1 of the committed part, and `path` of pending
 * rows, against softmax in double. Values are near 1. */
static void check_row(bench *b, rng *r, int32_t layer, int32_t n_path, const int32_t *path)
{
    const kv_store *kv = kv_of(&b->cache);
    const int32_t n = cache_end(&b->cache), first = kv_pending_slot(kv, &b->cache);
    static float q[Q_HEADS * K_DIM], out[Q_HEADS * V_DIM];
    int32_t slots[PENDING];
    for (int32_t i = 0; i < Q_HEADS * K_DIM; i++)
        q[i] = (float)(2 * rng_unit(r) - 1);
    for (int32_t i = 0; i < n_path; i++)
        slots[i] = first + path[i];
    attend_layer l = {.head = {.kernels = kernel_select(NULL),
                               .format = KV_F16,
                               .k_dim = K_DIM,
                               .v_dim = V_DIM,
                               .n_q = Q_HEADS,
                               .n_rows = 1,
                               .scale = 0.1f,
                               .keys = kv_at(kv, KV_KEYS, layer, 0),
                               .values = kv_at(kv, KV_VALUES, layer, 0),
                               .n_prefix = &n,
                               .n_path = &n_path,
                               .path = slots,
                               .q = q,
                               .out = out},
                      .n_heads = 1,
                      .n_threads = 2};
    attend_cut(&l);
    assert_int_equal(l.n_groups, 4); /* of ten */
    attend_work(&l, b->scratch);
    for (int32_t h = 0; h < Q_HEADS; h++) {
        double sum = 0, want[V_DIM] = {0};
        for (int32_t p = 0; p < n + n_path; p++) {
            const float *key = b->key[p < n ? p : slots[p - n]][layer];
            double score = 0;
            for (int32_t i = 0; i < K_DIM; i++)
                score += (double)q[h * K_DIM + i] * (double)key[i];
            double weight = exp(score * (double)l.head.scale);
            sum += weight;
            for (int32_t i = 0; i < V_DIM; i++)
                want[i] += weight * (double)key[i];
        }
        for (int32_t i = 0; i < V_DIM; i++)
            assert_true(fabs((double)out[h * V_DIM + i] - want[i] / sum) < 1e-5);
    }
}

static void check_chain(bench *b, rng *r)
{
    for (int32_t layer = 0; layer < LAYERS; layer++)
        check_row(b, r, layer, 0, NULL);
}

/* Slot `to` has what `from` had. */
static void expect_moved(bench *b, int32_t to, int32_t from)
{
    memcpy(b->key[to], b->key[from], sizeof b->key[to]);
}

TEST(test_a_latent_store)
{
    static bench b, other;
    static const int32_t parent[ROWS] = {-1, 0, 0, 1, 2, 2, 4, 6};
    static const int32_t path[] = {0, 2, 4}, kept[] = {6, 7};
    const cache_spec spec = spec_of(V_DIM, true);
    rng r = rng_from(3);
    open_cache(&b, &spec);
    assert_null(kv_at(kv_of(&b.cache), KV_VALUES, 1, 0));
    while (cache_end(&b.cache) < COMMITTED) {
        int32_t n = COMMITTED - cache_end(&b.cache);
        add_rows(&b, &r, NULL, n < PENDING ? n : PENDING);
        cache_commit(&b.cache, NULL, cache_pending(&b.cache));
    }
    check_chain(&b, &r);
    add_rows(&b, &r, parent, ROWS);
    for (int32_t layer = 0; layer < LAYERS; layer++)
        check_row(&b, &r, layer, 5, (const int32_t[]){0, 2, 4, 6, 7});
    /* A path is committed, and what is below it stays. */
    cache_reroot(&b.cache, path, 3, kept, 2);
    for (int32_t i = 0; i < 3; i++)
        expect_moved(&b, COMMITTED + i, COMMITTED + path[i]);
    for (int32_t i = 0; i < 2; i++)
        expect_moved(&b, COMMITTED + 3 + i, COMMITTED + kept[i]);
    check_chain(&b, &r);
    check_row(&b, &r, 1, 2, (const int32_t[]){0, 1});
    /* Another cache has them by their pieces, and after a cut fewer. */
    open_cache(&other, &spec);
    cache_copy(&other.cache, &b.cache, cache_end(&b.cache));
    memcpy(other.key, b.key, sizeof b.key);
    check_chain(&other, &r);
    assert_int_equal(cache_cut(&other.cache, 21), 21);
    check_chain(&other, &r);
    close_cache(&other);
    close_cache(&b);
}

/* Bytes of so many positions. */
TEST(test_sides)
{
    const cache_spec alike = spec_of(K_DIM, false), narrow = spec_of(32, false),
                     latent = spec_of(32, true);
    const size_t keys = (size_t)LAYERS * 64 * K_DIM * 2, values = (size_t)LAYERS * 64 * 32 * 2;
    assert_int_equal(cache_positions_bytes(&alike, 64), 2 * keys);
    assert_int_equal(cache_positions_bytes(&narrow, 64), keys + values);
    assert_int_equal(cache_positions_bytes(&latent, 64), keys);
    bench b;
    open_cache(&b, &narrow);
    assert_int_equal(cache_n_pieces(&b.cache), 2 * LAYERS);
    for (int32_t i = 0; i < 2 * LAYERS; i++) {
        assert_int_equal(cache_piece_bytes(&b.cache, i, 64), 64 * 2 * (i % 2 ? 32 : K_DIM));
        assert_ptr_equal(cache_piece(&b.cache, i, 16),
                         kv_at(kv_of(&b.cache), i % 2, i / 2, 0) + 16 * 2 * (i % 2 ? 32 : K_DIM));
    }
    close_cache(&b);
}
