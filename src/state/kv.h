/* Keys and values of attention layers: a store (state_store.h) with a slot for each row.
 *
 *   slots | 0 .. n_committed - 1     | pending rows in the order  | free |
 *         | position p is in slot p  | in which they were computed |      |
 *
 * A view's pending rows have slots that no other cache uses:
 *
 * slots | 0 .. n_committed - 1 | the owner's pending rows | free | the view's pending rows | free |
 *
 * Where there is a file (kv_file.h), the first n_away positions may be there: slots then begin with
 * position n_away.
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

typedef struct kv_store {
    state_store store;
    int32_t view_slot; /* of a view: of its first pending row; 0: the store is of none */
    size_t head_bytes;
    uint8_t *keys, *values; /* [n_layers][n_heads], head_bytes each: kernel/attend.h */
    /* Where the first n_away positions are, whole chunks of it; borrowed; NULL: there is none. Of
     * positions n_away .. n_back - 1 only the file has the numbers: make_room reads them. */
    kv_file *file;
    int32_t place, chunk, n_away, n_back;
} kv_store;

/* The keys and values of a cache that has some. */
static inline kv_store *kv_of(const text_cache *c)
{
    assert(c->store[0]->class == &kv_class);
    return (kv_store *)(void *)c->store[0];
}

/* The slot of the first pending row. */
static inline int32_t kv_pending_slot(const kv_store *kv, const text_cache *c)
{
    return kv->view_slot ? kv->view_slot : cache_end(c) - kv->n_away;
}

/* Where a head's keys (or values) begin, in bytes from kv->keys (or values). */
static inline size_t kv_at(const kv_store *kv, int32_t layer, int32_t head)
{
    return ((size_t)layer * (size_t)kv->store.shape.n_heads + (size_t)head) * kv->head_bytes;
}

static inline size_t kv_layer_bytes(const kv_store *kv)
{
    return (size_t)kv->store.shape.n_heads * kv->head_bytes;
}

/* Where all keys and all values are, for devices that read them in place. */
typedef struct kv_sides {
    uint8_t *keys, *values;
    size_t layer_bytes; /* of one of the two */
    int32_t n_layers;
} kv_sides;
static inline kv_sides kv_sides_of(const text_cache *c)
{
    const kv_store *kv = kv_of(c);
    return (kv_sides){kv->keys, kv->values, kv_layer_bytes(kv), kv->store.shape.n_layers};
}

/* Bytes of a group of KV_GROUP positions of one head, its keys or its values. */
static inline size_t kv_store_group(const kv_store *kv)
{
    return kv_head_bytes(kv->store.shape.format, KV_GROUP, kv->store.shape.head_dim);
}
