/* The members of a text's memory, for those that contain one; what is done with it is in cache.h,
 * and only files of this folder name members. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct state_store state_store;
typedef struct text_cache text_cache;

enum { CACHE_STORES = 2 };

/* Rows that a cache committed last, for others that have the same rows in other layers, and forget
 * them when they have done so (n = 0). */
typedef struct cache_trail {
    int32_t *path; /* [max]: pending indices, in the order of positions */
    int32_t n, max;
} cache_trail;

struct text_cache {
    int32_t n_committed, n_pending, max_pending;
    int32_t n_certain; /* multiple of STORE_BLOCK: states may have come to it, and not further */
    bool in_blocks;
    int32_t *parent, *depth; /* [max_pending] */
    bool is_view;
    const text_cache *cross;
    cache_trail *trail;
    state_store *store[CACHE_STORES];
    int32_t n_stores;
};

/* Committed positions. */
static inline int32_t cache_end(const text_cache *c)
{
    return c->n_committed;
}
static inline int32_t cache_pending(const text_cache *c)
{
    return c->n_pending;
}
static inline bool cache_is_view(const text_cache *c)
{
    return c->is_view;
}
static inline const text_cache *cache_cross(const text_cache *c)
{
    return c->cross;
}
/* The stores, in the order of the spec, for those who know a class of them. */
static inline int32_t cache_n_stores(const text_cache *c)
{
    return c->n_stores;
}
static inline state_store *cache_store(const text_cache *c, int32_t i)
{
    return c->store[i];
}
/* Parent of a pending row. */
static inline int32_t cache_parent(const text_cache *c, int32_t row)
{
    return c->parent[row];
}
static inline int32_t cache_depth(const text_cache *c, int32_t row)
{
    return c->depth[row];
}
/* Positions that no layer computes again: a multiple of STORE_BLOCK. */
static inline int32_t cache_certain(const text_cache *c)
{
    return c->n_certain;
}
