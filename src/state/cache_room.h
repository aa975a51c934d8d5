/* Memory of caches: what a model keeps of each text, how many bytes that is, and a cache in memory
 * of that size. What becomes of its rows is in cache.h. */
#pragma once

#include "state/state_store.h"
#include "state/text_cache.h"

/* State that the layers of a model keep of each text. */
typedef struct cache_spec {
    struct {
        const store_class *class;
        store_shape shape;
    } store[CACHE_STORES];
    int32_t n_stores;
    bool in_blocks;       /* one of the model's stores is; on all ranks alike */
    int32_t stride;       /* states are kept at its multiples; on all ranks alike */
    int32_t max_deferred; /* committed rows that may lack layers (model/deferred.h) */
    int32_t max_tree;     /* pending rows that are no prompt's; 0: all may be */
} cache_spec;

/* Memory of a cache for n_slots rows, of which max_pending at most are pending. */
size_t cache_bytes(const cache_spec *spec, int32_t n_slots, int32_t max_pending);
/* Takes its memory from `a`, whose owner checks it. */
void cache_init(text_cache *c, const cache_spec *spec, int32_t n_slots, int32_t max_pending,
                arena *a);
/* A view of a cache that was made for n_slots slots more than its owner uses: those are the view's.
 * The owner's n_slots are taken back by them. */
void cache_view_init(text_cache *view, text_cache *of, int32_t n_slots, int32_t max_pending,
                     arena *a);
size_t cache_view_bytes(const cache_spec *spec, int32_t max_pending);
/* The cache's rows attend to all positions of `cross` as well: an encoder's output. Borrowed. */
void cache_set_cross(text_cache *c, const text_cache *cross);
/* Each commit is noted in a trail, which is borrowed; NULL: no longer. */
void cache_set_trail(text_cache *c, cache_trail *trail);
/* The part of that for stores in blocks: their states, and what came after the newest. */
size_t cache_states_bytes(const cache_spec *spec, int32_t n_slots, int32_t max_pending);
/* Bytes of a state, in all layers. */
size_t cache_state_bytes(const cache_spec *spec);
/* Bytes of n positions as pieces (kept_positions.h). */
size_t cache_positions_bytes(const cache_spec *spec, int32_t n_positions);
