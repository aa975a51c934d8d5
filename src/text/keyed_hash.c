/* Keys and polynomials: see keyed_hash.h. */
#include "text/keyed_hash.h"

#include <sys/random.h>
#include <time.h>

static const uint64_t prime = ((uint64_t)1 << 61) - 1;

void hash_key_draw(hash_key *key)
{
    uint64_t words[4];
    if (getrandom(words, sizeof words, GRND_NONBLOCK) != sizeof words) {
        /* No such call, or too early after the machine's start: use the time and the stack's
         * address. */
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        uint64_t seed = (uint64_t)now.tv_nsec ^ (uint64_t)(uintptr_t)words << 13;
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            seed = seed * 0x5851F42D4C957F2Du + 0x14057B7EF767814Fu;
            words[i] = seed ^ seed >> 29;
        }
    }
    *key = (hash_key){words[0] % prime, words[1] | 1, words[2] | 1, words[3]};
}

uint32_t hash_slots(size_t n)
{
    uint32_t slots = 16;
    while (slots / 4 * 3 < n)
        slots *= 2;
    return slots;
}

uint64_t text_hash(const hash_key *key, uint64_t hash, const char *text, size_t n_bytes)
{
    for (size_t i = 0; i < n_bytes; i++) {
        /* Bytes count from 1, or leading zero bytes would be ignored. */
        unsigned __int128 x = (unsigned __int128)hash * key->point + (uint8_t)text[i] + 1;
        hash = ((uint64_t)x & prime) + (uint64_t)(x >> 61);
        hash = hash >= prime ? hash - prime : hash;
    }
    return hash;
}
