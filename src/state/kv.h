/* Keys and values of attention layers: a store (state_store.h) with a slot for each row. It has two
 * sides; a latent one (store_shape.latent) has keys alone.
 *
 *   slots | 0 .. n_committed - 1     | pending rows in the order  | free |
 *         | position p is in slot p  | in which they were computed |      |
 *
 * A view's pending rows have slots that no other cache uses:
 *
 * slots | 0 .. n_committed - 1 | the owner's pending rows | free | the view's pending rows | free |
 *
 * Where there is a file (kv_file.h), the first n_disk positions may be there: slots then begin with
 * position n_disk.
 *
 * Invariants, which cache_is_valid checks:
 *   (1) committed and pending rows have slots;
 *   (2) what is away is committed, and is whole chunks. */
#pragma once

#include <assert.h>
#include <stddef.h>

#include "kernel/kernel.h"
#include "state/state_store.h"
#include "state/text_cache.h"

typedef struct kv_file kv_file; /* kv_file.h */

extern const store_class kv_class;

enum { KV_KEYS, KV_VALUES, KV_SIDES };

/* Keys or values of all layers. */
typedef struct kv_side {
    uint8_t *numbers; /* [n_layers][n_heads], head_bytes each: kernel/attend.h; NULL: a latent
                       * store's values */
    size_t head_bytes;
} kv_side;

typedef struct kv_store {
    state_store store;
    /* a view's first pending slot: of its first pending row; 0: the store is of none */
    int32_t view_slot;
    kv_side side[KV_SIDES];
    /* File of the first n_disk positions, whole chunks of it; borrowed; NULL: there is none. Of
     * positions n_disk .. n_back - 1 only the file has the numbers: make_room reads them. */
    kv_file *file;
    int32_t place, chunk, n_disk, n_back;
} kv_store;

/* Keys and values in the i-th store of a cache, if that has some. */
static inline kv_store *kv_in(const text_cache *c, int32_t i)
{
    return c->store[i]->class == &kv_class ? (kv_store *)(void *)c->store[i] : NULL;
}
/* The first keys and values of a cache, which has some; all others are in the same slots. */
static inline kv_store *kv_of(const text_cache *c)
{
    assert(kv_in(c, 0));
    return kv_in(c, 0);
}

/* The slot of the first pending row. */
static inline int32_t kv_pending_slot(const kv_store *kv, const text_cache *c)
{
    return kv->view_slot ? kv->view_slot : cache_end(c) - kv->n_disk;
}

static inline int32_t kv_n_sides(const store_shape *s)
{
    return s->latent ? 1 : KV_SIDES;
}

/* Bytes of n positions of one head on a side. */
static inline size_t kv_bytes(const store_shape *s, int32_t side, int32_t n)
{
    return kv_head_bytes(s->format, n, side == KV_KEYS ? s->k_dim : s->v_dim);
}

/* Returns where a head's keys (or values) begin; NULL: a latent store's values. */
static inline uint8_t *kv_at(const kv_store *kv, int32_t side, int32_t layer, int32_t head)
{
    const kv_side *of = &kv->side[side];
    size_t before = (size_t)layer * (size_t)kv->store.shape.n_heads + (size_t)head;
    return of->numbers ? of->numbers + before * of->head_bytes : NULL;
}

/* Bytes of a layer's keys (or values). */
static inline size_t kv_layer_bytes(const kv_store *kv, int32_t side)
{
    return (size_t)kv->store.shape.n_heads * kv->side[side].head_bytes;
}
