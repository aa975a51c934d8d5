/* XXH64, a fast 64-bit hash that tells damage and change apart from the original (its format:
 * xxHash specification, "XXH64 algorithm description"). It is no protection against a forger. */
#ifndef DREY_BASE_HASH_H
#define DREY_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

enum { HASH_STRIPE = 32 };

/* A hash under way: bytes may come in pieces of any size. */
typedef struct hash64 {
    uint64_t lane[4];
    uint64_t n_bytes;            /* so far */
    uint8_t stripe[HASH_STRIPE]; /* the n_bytes % HASH_STRIPE bytes that fill no stripe yet */
} hash64;

void hash64_init(hash64 *h);
void hash64_add(hash64 *h, const void *bytes, size_t n);
/* Of all that was added; more may follow. */
uint64_t hash64_get(const hash64 *h);

uint64_t hash64_of(const void *bytes, size_t n);

#endif
