/* Seeded random numbers for tests: the same on every machine, and not the library's. */
#pragma once

#include <math.h>
#include <stdint.h>

typedef struct rng {
    uint64_t state; /* any value but 0 */
} rng;

/* Begins from any seed, 0 and small ones too (the last step of SplitMix64). */
static inline rng rng_from(uint64_t seed)
{
    uint64_t z = seed + UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return (rng){z ? z : 1};
}

static inline uint64_t rng_next(rng *r) /* xorshift64* */
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return r->state * UINT64_C(0x2545F4914F6CDD1D);
}

/* Returns a number in [0, n). */
static inline int32_t rng_below(rng *r, int32_t n)
{
    return (int32_t)((rng_next(r) >> 32) % (uint64_t)n);
}

/* Returns a number in (0, 1). */
static inline double rng_unit(rng *r)
{
    return ((double)(rng_next(r) >> 12) + 0.5) / 4503599627370496.0;
}

static inline double rng_normal(rng *r)
{
    double radius = sqrt(-2 * log(rng_unit(r)));
    return radius * cos(6.283185307179586 * rng_unit(r));
}
