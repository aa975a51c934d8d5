/* v16, a vector of 16 floats in as many registers as a vector unit needs: what the row operations
 * (rows_v16.h), attention (attend_tile.h) and running states (delta_v16.h) of the vector tiers are
 * written in. A tier's v16_*.h comes before this file and has
 *
 *   _zero, _set1, _load, _store; _load_first (zeros after), _store_first, _keep (lanes from n on
 *   become 0): the first n < 16 lanes
 *   _add, _sub, _mul, _div, _neg, _fma (a * b + c), _max (b where either is NaN), _exp
 *   _sum (sum16), _max_of (over the lanes), _equal (a bit for each lane that is equal)
 *   _f16, _f16_first, _to_f16, _to_f16_first: halves in memory; _q8 (int8 to float)
 *   _sums4 (to[i] = scale * sum16 of v[i], i < 4), _turn (16 of them into rows ld floats apart,
 *   lane j of number i to number i of row j) */
#pragma once

#include "kernel/unroll.h"

/* The first n of up to 16 numbers. */
INLINE v16 load_some(const float *x, int32_t n)
{
    return n == 16 ? v16_load(x) : v16_load_first(x, n);
}

INLINE void store_some(float *x, v16 v, int32_t n)
{
    if (n == 16)
        v16_store(x, v);
    else
        v16_store_first(x, v, n);
}

/* The statement for 16 numbers from i on, of which m are there: a constant but at the end. */
#define EACH_16(n_numbers, statement)                                                              \
    do {                                                                                           \
        int64_t i = 0;                                                                             \
        for (; i + 16 <= (n_numbers); i += 16) {                                                   \
            const int32_t m = 16;                                                                  \
            statement;                                                                             \
        }                                                                                          \
        if (i < (n_numbers)) {                                                                     \
            const int32_t m = (int32_t)((n_numbers)-i);                                            \
            statement;                                                                             \
        }                                                                                          \
    } while (0)

INLINE v16 keep_some(v16 v, int32_t n)
{
    return n == 16 ? v : v16_keep(v, n);
}

/* x / (1 + exp(-v)) */
INLINE v16 gated(v16 x, v16 v)
{
    return v16_div(x, v16_add(v16_set1(1.0f), v16_exp(v16_neg(v))));
}
