/* v16, a vector of 16 floats in as many registers as a vector unit needs: what the row operations
 * (rows_v16.h) and attention (attend_tile.h) of the vector tiers are written in. A tier's v16_*.h
 * comes before this file and has
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
