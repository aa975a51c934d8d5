/* Moving rows of the cache: see kv.h. */
#include "model/kv.h"

#include <assert.h>
#include <string.h>

static size_t side_bytes(const model_shape *s, int32_t n_slots)
{
    return (size_t)s->n_layers * (size_t)s->n_heads_kv * (size_t)n_slots * (size_t)s->head_dim *
           sizeof(uint16_t);
}

size_t kv_bytes(const model_shape *s, int32_t n_slots, int32_t max_pending)
{
    return 2 * arena_size(side_bytes(s, n_slots)) +
           2 * arena_size((size_t)max_pending * sizeof(int32_t));
}

void kv_init(kv_cache *kv, const model_shape *s, int32_t n_slots, int32_t max_pending, arena *a)
{
    *kv = (kv_cache){.n_layers = s->n_layers,
                     .n_heads_kv = s->n_heads_kv,
                     .head_dim = s->head_dim,
                     .n_slots = n_slots,
                     .max_pending = max_pending};
    kv->keys = arena_take(a, side_bytes(s, n_slots));
    kv->values = arena_take(a, side_bytes(s, n_slots));
    kv->parent = arena_take(a, (size_t)max_pending * sizeof(int32_t));
    kv->depth = arena_take(a, (size_t)max_pending * sizeof(int32_t));
}

void kv_commit(kv_cache *kv, const int32_t *path, int32_t n)
{
    size_t row = (size_t)kv->head_dim * sizeof(uint16_t);
    for (int32_t layer = 0; layer < kv->n_layers; layer++) {
        for (int32_t head = 0; head < kv->n_heads_kv; head++) {
            size_t base =
                kv_offset(kv, layer, head) + (size_t)kv->n_committed * (size_t)kv->head_dim;
            /* path[i] >= i, so a row never overwrites one that is still to be moved. */
            for (int32_t i = 0; path && i < n; i++) {
                if (path[i] == i)
                    continue;
                size_t to = base + (size_t)i * (size_t)kv->head_dim;
                size_t from = base + (size_t)path[i] * (size_t)kv->head_dim;
                memcpy(kv->keys + to, kv->keys + from, row);
                memcpy(kv->values + to, kv->values + from, row);
            }
        }
    }
    for (int32_t i = 0; path && i < n; i++)
        assert(kv->parent[path[i]] == (i ? path[i - 1] : -1));
    kv->n_committed += n;
    kv->n_pending = 0;
}

void kv_truncate(kv_cache *kv, int32_t n_committed)
{
    assert(n_committed <= kv->n_committed);
    kv->n_committed = n_committed;
    kv->n_pending = 0;
}
