/* The members of a text's memory, for those that contain one; what is done with it is in cache.h,
 * and only files of this folder name members. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

typedef struct state_store state_store;
typedef struct text_cache text_cache;

enum {
    CACHE_STORES = 6,
    CACHE_MARKS = 2 /* states that are kept where prompts ended */
};

/* Rows that a cache committed last, for others that have the same rows in other layers, and forget
 * them when they have done so (n = 0). */
typedef struct cache_trail {
    int32_t *path; /* [max]: pending indices, in the order of positions */
    int32_t n, max;
} cache_trail;

/* Positions, multiples of STORE_BLOCK, at which stores in blocks have states. */
typedef struct cache_states {
    int32_t n_certain; /* states may have come to it, and not further */
    bool has_previous; /* there are states a block before that as well */
    bool after_prompt; /* the last rows that were committed were a prompt's */
    int32_t n_whole;   /* rows under way, or pending, of a prompt: all of them stay or none */
    int32_t stride;    /* and states are kept at its multiples */
    int32_t *kept;     /* [n_kept]: positions of the older ones; 0: there is none. CACHE_MARKS of
                          prompts' ends, then those of multiples of stride */
    int32_t n_kept;
} cache_states;

struct text_cache {
    int32_t n_committed, n_pending, max_pending;
    cache_states states;
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
    return c->states.n_certain;
}
static inline bool cache_has_previous(const text_cache *c)
{
    return c->states.has_previous;
}
static inline int32_t cache_n_whole(const text_cache *c)
{
    return c->states.n_whole;
}
/* The slot of an older state; -1: there is none. */
static inline int32_t cache_kept_at(const text_cache *c, int32_t position)
{
    for (int32_t i = 0; position > 0 && i < c->states.n_kept; i++)
        if (c->states.kept[i] == position)
            return i;
    return -1;
}
/* The slot for the state at a position, where it is one of those at which states are kept. */
static inline int32_t cache_regular_slot(const text_cache *c, int32_t position)
{
    const cache_states *s = &c->states;
    const bool is = s->stride > 0 && position > 0 && position % s->stride == 0;
    const int32_t slot = is ? CACHE_MARKS + position / s->stride - 1 : -1;
    return slot < s->n_kept ? slot : -1;
}
