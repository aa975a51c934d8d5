/* Tools that the kernel tests share: seeded numbers, memory as kernels want it, the walk over
 * tiers. */
#pragma once

#include "kernel/emulated/emulated_tiers.h"
#include "support/faults/guard.h"
#include "support/rng.h"
#include "support/test.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

static rng numbers = {UINT64_C(88172645463325252)};

static inline uint32_t random_bits(void)
{
    return (uint32_t)(rng_next(&numbers) >> 32);
}

static inline float uniform(float low, float high)
{
    return low + (high - low) * (float)(random_bits() >> 8) * 0x1p-24f;
}

/* Zeros, 64-byte aligned. */
static inline void *must_alloc(size_t bytes)
{
    size_t whole = (bytes + 63) / 64 * 64;
    void *p = aligned_alloc(64, whole ? whole : 64);
    assert_non_null(p);
    return memset(p, 0, whole);
}

/* A tier that is listed has a table. */
static inline const kernel_table *must_table(const kernel_table *t)
{
    assert_non_null(t);
    return t;
}

/* Runs body for the reference and every vector tier; `t` is the tier's table. */
#define FOR_EACH_TIER(t)                                                                           \
    for (const char *const *tier_name = kernel_tiers(); *tier_name; tier_name++)                   \
        for (const kernel_table *t = must_table(kernel_select(*tier_name)); t; t = NULL)

/* The same with the test-only builds. */
#define FOR_EACH_TEST_TIER(t)                                                                      \
    for (const char *const *tier_name = test_tiers(); *tier_name; tier_name++)                     \
        for (const kernel_table *t = must_table(test_table(*tier_name)); t; t = NULL)
