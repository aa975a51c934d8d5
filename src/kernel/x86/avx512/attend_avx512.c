/* Attention, AVX-512. See attend_tile.h. */
#include "kernel/x86/avx512/v16_avx512.h"

enum { TILE = 12, MOST_SPAN = 4, SUMS = 24, SUMS_WITH_VALUES = 1, ROW_TILE = 6, ROW_SPAN = 4 };

/* A product takes its broadcast number from memory where no other one shares it. Then, and only
 * then, conversions from f16 cost Zen 4 no products: 16 % of them otherwise, with 6 pairs and a
 * span of 2, which 4 brings back too. Few pairs need the span for their sums' latency. */
INLINE int32_t key_span(int32_t n)
{
    return n >= 5 ? 1 : 2;
}

INLINE int32_t value_span(int32_t n)
{
    return n <= 6 ? 4 : 1;
}

#include "kernel/attend_tile.h"

const attend_kernel attend_avx512 = ATTEND_KERNEL;
