/* Moving rows of the cache: see kv.h. */
#include "model/kv.h"

#include <assert.h>
#include <string.h>

static size_t side_bytes(const model_shape *s, int32_t n_slots, int32_t number_bytes)
{
    return (size_t)s->n_layers * (size_t)s->n_heads_kv * (size_t)n_slots * (size_t)s->head_dim *
           (size_t)number_bytes;
}

size_t kv_bytes(const model_shape *s, int32_t n_slots, int32_t max_pending, int32_t number_bytes)
{
    return 2 * arena_size(side_bytes(s, n_slots, number_bytes)) +
           2 * arena_size((size_t)max_pending * sizeof(int32_t));
}

void kv_init(kv_cache *kv, const model_shape *s, int32_t n_slots, int32_t max_pending,
             int32_t number_bytes, arena *a)
{
    *kv = (kv_cache){.n_layers = s->n_layers,
                     .n_heads_kv = s->n_heads_kv,
                     .head_dim = s->head_dim,
                     .n_slots = n_slots,
                     .max_pending = max_pending,
                     .number_bytes = number_bytes};
    kv->keys = arena_take(a, side_bytes(s, n_slots, number_bytes));
    kv->values = arena_take(a, side_bytes(s, n_slots, number_bytes));
    kv->parent = arena_take(a, (size_t)max_pending * sizeof(int32_t));
    kv->depth = arena_take(a, (size_t)max_pending * sizeof(int32_t));
}

static void move_row(kv_cache *kv, int32_t layer, int32_t head, int32_t to, int32_t from)
{
    size_t bytes = (size_t)kv->head_dim * (size_t)kv->number_bytes;
    size_t target = kv_at(kv, layer, head, to), source = kv_at(kv, layer, head, from);
    memcpy(kv->keys + target, kv->keys + source, bytes);
    memcpy(kv->values + target, kv->values + source, bytes);
}

void kv_commit(kv_cache *kv, const int32_t *path, int32_t n)
{
    /* path[i] >= i, so a row never overwrites one that is still to be moved. */
    for (int32_t layer = 0; path && layer < kv->n_layers; layer++)
        for (int32_t head = 0; head < kv->n_heads_kv; head++)
            for (int32_t i = 0; i < n; i++)
                if (path[i] != i)
                    move_row(kv, layer, head, kv->n_committed + i, kv->n_committed + path[i]);
    for (int32_t i = 0; path && i < n; i++)
        assert(kv->parent[path[i]] == (i ? path[i - 1] : -1));
    kv->n_committed += n;
    kv->n_pending = 0;
}

void kv_make_up(kv_cache *kv, int32_t n)
{
    enum { SMALL = 0x2c }; /* as every byte: 0.065 as f16, 2.4e-12 as float */
    assert(n <= kv->n_slots);
    size_t bytes = (size_t)n * (size_t)kv->head_dim * (size_t)kv->number_bytes;
    for (int32_t layer = 0; layer < kv->n_layers; layer++)
        for (int32_t head = 0; head < kv->n_heads_kv; head++) {
            memset(kv->keys + kv_at(kv, layer, head, 0), SMALL, bytes);
            memset(kv->values + kv_at(kv, layer, head, 0), SMALL, bytes);
        }
    kv->n_committed = n;
    kv->n_pending = 0;
}

void kv_truncate(kv_cache *kv, int32_t n_committed)
{
    assert(n_committed <= kv->n_committed);
    kv->n_committed = n_committed;
    kv->n_pending = 0;
}
