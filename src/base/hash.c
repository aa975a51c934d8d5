/* XXH64: four lanes over stripes of 32 bytes, then the rest and a final mix. See hash.h. */
#include "base/hash.h"

#include <string.h>

static const uint64_t prime1 = 0x9E3779B185EBCA87, prime2 = 0xC2B2AE3D27D4EB4F,
                      prime3 = 0x165667B19E3779F9, prime4 = 0x85EBCA77C2B2AE63,
                      prime5 = 0x27D4EB2F165667C5;

static uint64_t rotate(uint64_t x, int n)
{
    return x << n | x >> (64 - n);
}

static uint32_t read32(const uint8_t *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t read64(const uint8_t *p)
{
    return read32(p) | (uint64_t)read32(p + 4) << 32;
}

static uint64_t mix(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * prime2, 31) * prime1;
}

static void take_stripe(hash64 *h, const uint8_t *p)
{
    for (int i = 0; i < 4; i++)
        h->lane[i] = mix(h->lane[i], read64(p + 8 * i));
}

void hash64_init(hash64 *h)
{
    *h = (hash64){.lane = {prime1 + prime2, prime2, 0, 0 - prime1}};
}

void hash64_add(hash64 *h, const void *bytes, size_t n)
{
    const uint8_t *p = bytes;
    size_t held = (size_t)(h->n_bytes % HASH_STRIPE);
    h->n_bytes += n;
    if (held + n < HASH_STRIPE) {
        if (n > 0)
            memcpy(h->stripe + held, p, n);
        return;
    }
    if (held > 0) {
        memcpy(h->stripe + held, p, HASH_STRIPE - held);
        take_stripe(h, h->stripe);
        p += HASH_STRIPE - held;
        n -= HASH_STRIPE - held;
    }
    for (; n >= HASH_STRIPE; p += HASH_STRIPE, n -= HASH_STRIPE)
        take_stripe(h, p);
    if (n > 0)
        memcpy(h->stripe, p, n);
}

static uint64_t fold_lanes(const uint64_t lane[static 4])
{
    uint64_t x =
        rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < 4; i++)
        x = (x ^ mix(0, lane[i])) * prime1 + prime4;
    return x;
}

uint64_t hash64_get(const hash64 *h)
{
    uint64_t x = (h->n_bytes < HASH_STRIPE ? prime5 : fold_lanes(h->lane)) + h->n_bytes;
    const uint8_t *p = h->stripe, *end = p + h->n_bytes % HASH_STRIPE;
    for (; end - p >= 8; p += 8)
        x = rotate(x ^ mix(0, read64(p)), 27) * prime1 + prime4;
    if (end - p >= 4) {
        x = rotate(x ^ read32(p) * prime1, 23) * prime2 + prime3;
        p += 4;
    }
    for (; p < end; p++)
        x = rotate(x ^ *p * prime5, 11) * prime1;
    x = (x ^ x >> 33) * prime2;
    x = (x ^ x >> 29) * prime3;
    return x ^ x >> 32;
}

uint64_t hash64_of(const void *bytes, size_t n)
{
    hash64 h;
    hash64_init(&h);
    hash64_add(&h, bytes, n);
    return hash64_get(&h);
}
