/* Moving rows of the cache: see kv.h. */
#include "model/kv.h"

#include <assert.h>
#include <string.h>

static size_t side_bytes(const model_shape *s, int32_t n_slots, kv_format format)
{
    return (size_t)s->n_layers * (size_t)s->n_heads_kv *
           kv_head_bytes(format, n_slots, s->head_dim);
}

size_t kv_bytes(const model_shape *s, int32_t n_slots, int32_t max_pending, kv_format format)
{
    return 2 * arena_size(side_bytes(s, n_slots, format)) +
           2 * arena_size((size_t)max_pending * sizeof(int32_t));
}

void kv_init(kv_cache *kv, const model_shape *s, int32_t n_slots, int32_t max_pending,
             kv_format format, arena *a)
{
    *kv = (kv_cache){.n_layers = s->n_layers,
                     .n_heads_kv = s->n_heads_kv,
                     .head_dim = s->head_dim,
                     .n_slots = n_slots,
                     .max_pending = max_pending,
                     .format = format,
                     .head_bytes = kv_head_bytes(format, n_slots, s->head_dim)};
    kv->keys = arena_take(a, side_bytes(s, n_slots, format));
    kv->values = arena_take(a, side_bytes(s, n_slots, format));
    kv->parent = arena_take(a, (size_t)max_pending * sizeof(int32_t));
    kv->depth = arena_take(a, (size_t)max_pending * sizeof(int32_t));
}

static void move_row(kv_cache *kv, int32_t layer, int32_t head, int32_t to, int32_t from)
{
    size_t at = kv_at(kv, layer, head);
    kv_move_key(kv->format, kv->keys + at, to, from, kv->head_dim);
    kv_move_value(kv->format, kv->values + at, to, from, kv->head_dim);
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
    enum { SMALL = 0x2c }; /* as every byte: 0.065 as f16, 2.9 as q8_0, 2.4e-12 as float */
    assert(n <= kv->n_slots);
    size_t bytes = kv_head_bytes(kv->format, n, kv->head_dim);
    for (int32_t layer = 0; layer < kv->n_layers; layer++)
        for (int32_t head = 0; head < kv->n_heads_kv; head++) {
            memset(kv->keys + kv_at(kv, layer, head), SMALL, bytes);
            memset(kv->values + kv_at(kv, layer, head), SMALL, bytes);
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
