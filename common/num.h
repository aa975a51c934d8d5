/* The least, the greatest, and division rounded up, once for every type that needs them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define NUM_PAIR(name, type)                                                                       \
    static inline type min_##name(type a, type b)                                                  \
    {                                                                                              \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    static inline type max_##name(type a, type b)                                                  \
    {                                                                                              \
        return a > b ? a : b;                                                                      \
    }
NUM_PAIR(i32, int32_t)
NUM_PAIR(i64, int64_t)
NUM_PAIR(u64, uint64_t)
NUM_PAIR(size, size_t)
NUM_PAIR(f32, float)
NUM_PAIR(f64, double)
#undef NUM_PAIR

/* a >= 0, b > 0. */
static inline int32_t ceil_div_i32(int32_t a, int32_t b)
{
    return a / b + (a % b != 0);
}

static inline int64_t ceil_div_i64(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}
