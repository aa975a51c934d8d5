/* The hash of token texts and of pairs of tokens. The key is not known in advance, so that no file
 * can be made whose tokens collide.
 *
 * A text is the value of a polynomial at a random point, modulo the prime 2^61 - 1: two texts of up
 * to n bytes agree for at most n of the 2^61 points (Carter and Wegman 1979). A pair is a sum of
 * products with random odd numbers. A mix spreads both over the low bits, which choose a slot. The
 * slot of an entry is never visible outside: ids and ranks do not depend on it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct hash_key {
    uint64_t point;       /* below 2^61 - 1 */
    uint64_t left, right; /* odd */
    uint64_t slot;        /* mixed in last */
} hash_key;

/* Draws a key from the system's randomness. */
void hash_key_draw(hash_key *key);

enum {
    /* Open addressing that is three quarters full walks past 1,000 slots less than once in 10^9
     * tables of a million entries. */
    HASH_MOST_PROBES = 1000
};

/* Smallest power of two that keeps a hash table of n entries under three quarters full. */
uint32_t hash_slots(size_t n);

/* Continues from `hash`, 0 at the start: a text may come in two pieces. */
uint64_t text_hash(const hash_key *key, uint64_t hash, const char *text, size_t n_bytes);

static inline uint32_t hash_mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0x9E3779B97F4A7C15u;
    x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9u;
    return (uint32_t)(x >> 32);
}

static inline uint32_t text_hash_slot(const hash_key *key, uint64_t hash)
{
    return hash_mix(hash ^ key->slot);
}

static inline uint32_t pair_hash_slot(const hash_key *key, uint32_t left, uint32_t right)
{
    return hash_mix((left * key->left + right * key->right) ^ key->slot);
}
