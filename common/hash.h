/* XXH64, a fast 64-bit hash that detects damage and changes. It does not protect against forgery.
 * libxxhash's header has all of the code; nothing is linked. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

/* The state of a hash: bytes may come in pieces of any size. */
typedef struct hash64 {
    XXH64_state_t state;
} hash64;

static inline void hash64_init(hash64 *h)
{
    XXH64_reset(&h->state, 0);
}

static inline void hash64_add(hash64 *h, const void *bytes, size_t n)
{
    if (n > 0) /* bytes may be NULL otherwise */
        XXH64_update(&h->state, bytes, n);
}

/* Returns the hash of all that was added; more may follow. */
static inline uint64_t hash64_get(const hash64 *h)
{
    return XXH64_digest(&h->state);
}

static inline uint64_t hash64_of(const void *bytes, size_t n)
{
    return XXH64(bytes, n, 0);
}
