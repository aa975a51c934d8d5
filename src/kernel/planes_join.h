/* Joining planes, a line at a time, for every tier: bits move within their bytes alone, so the same
 * words of C are a vector's operations wherever a file is compiled for one. Defines
 * plane_join_<tier>. */
#pragma once

#include "kernel/planes.h"
#include "kernel/unroll.h"

/* A line as words; anywhere in memory. */
typedef uint32_t plane_line __attribute__((vector_size(PLANE_LINE), aligned(4), may_alias));

/* Planes are read in as many places at once; how far ahead each is requested. */
enum { PLANE_AHEAD = 4096 };

#define LINE_AT(p, i)  (((const plane_line *)(const void *)(p))[i])
#define PUT_LINE(p, i) (((plane_line *)(void *)(p))[i])
#define EACH(byte)     (0x01010101u * (byte))

/* A boolean function of the two high bits h1, h0 in its algebraic normal form: of the four sums, as
 * masks of all bits or none. */
typedef struct fill_bit {
    uint32_t one, by_h0, by_h1, by_both;
} fill_bit;

static inline fill_bit fill_bit_of(const plane_means *m, int bit)
{
    uint32_t f[4];
    for (int h = 0; h < 4; h++)
        f[h] = (m->low[h] >> bit & 1) ? EACH(0x55) : 0;
    return (fill_bit){f[0], f[0] ^ f[1], f[0] ^ f[2], f[0] ^ f[1] ^ f[2] ^ f[3]};
}

#define FILL_BIT(f, h1, h0)                                                                        \
    ((f).one ^ ((h0) & (f).by_h0) ^ ((h1) & (f).by_h1) ^ ((h1) & (h0) & (f).by_both))

/* Four lines of which n_there planes are there. */
INLINE void join_four(const int n_there, uint8_t *out, const uint8_t *high, const uint8_t *middle,
                      const uint8_t *low, const fill_bit fill[2])
{
    const uint32_t top = EACH(0xcc), second = EACH(0x22), first = EACH(0x11);
    plane_line ab = LINE_AT(high, 0), cd = LINE_AT(high, 1);
    __builtin_prefetch(high + PLANE_AHEAD);
    __builtin_prefetch(high + PLANE_AHEAD + PLANE_LINE);
    if (n_there == 1) {
        UNROLL
        for (int i = 0; i < 2; i++) {
            plane_line h = i ? cd : ab, h1 = h >> 1 & EACH(0x55), h0 = h & EACH(0x55);
            plane_line f = FILL_BIT(fill[1], h1, h0) << 1 | FILL_BIT(fill[0], h1, h0);
            PUT_LINE(out, 2 * i) = (h & top) | (f >> 2 & EACH(0x33));
            PUT_LINE(out, 2 * i + 1) = (h << 2 & top) | (f & EACH(0x33));
        }
        return;
    }
    plane_line m = LINE_AT(middle, 0), l = {0};
    __builtin_prefetch(middle + PLANE_AHEAD);
    if (n_there == N_PLANES) {
        l = LINE_AT(low, 0);
        __builtin_prefetch(low + PLANE_AHEAD);
    } else {
        l += 0x00ff00ffu; /* every other byte */
    }
    PUT_LINE(out, 0) = (ab & top) | (m << 1 & second) | (l & first);
    PUT_LINE(out, 1) = (ab << 2 & top) | (m & second) | (l >> 1 & first);
    PUT_LINE(out, 2) = (cd & top) | (m >> 1 & second) | (l >> 2 & first);
    PUT_LINE(out, 3) = (cd << 2 & top) | (m >> 2 & second) | (l >> 3 & first);
}

INLINE void keep_lines(uint8_t **out, const uint8_t **in, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        PUT_LINE(*out, i) = LINE_AT(*in, i);
        __builtin_prefetch(*in + i * PLANE_LINE + PLANE_AHEAD);
    }
    *out += n * PLANE_LINE;
    *in += n * PLANE_LINE;
}

INLINE void join_blocks(const int n_there, uint8_t *out, const plane_layout *l,
                        const plane_blocks *blocks, int32_t n_blocks)
{
    const uint8_t *high = blocks->plane[0], *middle = blocks->plane[1], *low = blocks->plane[2];
    const fill_bit fill[2] = {fill_bit_of(&blocks->means, 0), fill_bit_of(&blocks->means, 1)};
    for (int32_t b = 0; b < n_blocks; b++) {
        keep_lines(&out, &high, l->front);
        for (int32_t c = 0; c < l->n_chunks; c++) {
            keep_lines(&out, &high, l->kept);
            for (int32_t line = 0; line < l->split; line += 4) {
                join_four(n_there, out, high, middle, low, fill);
                out += 4 * PLANE_LINE;
                high += 2 * PLANE_LINE;
                if (n_there > 1)
                    middle += PLANE_LINE;
                if (n_there > 2)
                    low += PLANE_LINE;
            }
        }
    }
}

#define DEFINE_PLANE_JOIN(tier)                                                                    \
    static void plane_join_##tier(uint8_t *out, const plane_layout *l, const plane_blocks *blocks, \
                                  int32_t n_blocks)                                                \
    {                                                                                              \
        if (!blocks->plane[1])                                                                     \
            join_blocks(1, out, l, blocks, n_blocks);                                              \
        else if (!blocks->plane[2])                                                                \
            join_blocks(2, out, l, blocks, n_blocks);                                              \
        else                                                                                       \
            join_blocks(N_PLANES, out, l, blocks, n_blocks);                                       \
    }
