/* The loops around a tile kernel: which weights meet which activations, and when.
 *
 * A tile kernel multiplies some blocks of one packed group with one tile of activations and adds
 * to [m][32] float sums. For n <= 8 it walks a whole group at once, so that the weights stream past
 * as fast as memory gives them. For more rows the weights of a step (a few KB) stay in the L1 cache
 * while all tiles pass, and k is cut into spans whose activations fit into the L2 cache. The sums
 * of a row are added in the order of k either way, so its bits do not depend on n.
 *
 * With 16 registers a tile kernel can hold the sums of few rows, so unpacking is a large part of
 * its work. There a step is decoded first (decode_kernel), into scratch in the L1 cache. */
#pragma once

#include "kernel/packing.h"

/* matmul_kernel's dot for a type, by its tile kernel. even: how the activations are tiled. */
void dot_tiles(tensor_type type, act_kind act, tile_kernel kernel, bool even, float *y, int64_t ldy,
               const void *groups, int32_t n_groups, const void *acts, int32_t n, int64_t k,
               void *scratch);

/* The same where the tile kernel gets, in the place of packed blocks, what decode made of a step of
 * them, once for all rows. */
void dot_decoded(tensor_type type, act_kind act, decode_kernel decode, tile_kernel kernel,
                 bool even, float *y, int64_t ldy, const void *groups, int32_t n_groups,
                 const void *acts, int32_t n, int64_t k, void *scratch);

/* After the sums in dot's scratch: blocks of a step of k, joined for a tile kernel, and the same
 * decoded; room for the longest. */
enum { DOT_SUM_BYTES = 32 << 10, DOT_JOIN_BYTES = 8 << 10, DOT_DECODED_BYTES = 16 << 10 };

/* Defines dot_<name>_<variant> on a tile kernel. */
#define DEFINE_DOT_SHAPE(TYPE, name, act, variant, kernel, even)                                   \
    static void dot_##name##_##variant(float *y, int64_t ldy, const void *groups,                  \
                                       int32_t n_groups, const void *acts, int32_t n, int64_t k,   \
                                       void *scratch)                                              \
    {                                                                                              \
        dot_tiles(TYPE_##TYPE, act, kernel, even, y, ldy, groups, n_groups, acts, n, k, scratch);  \
    }

/* Defines dot_<name>_<tier> on tile_<name>_<tier>, full tiles. */
#define DEFINE_DOT(TYPE, name, act, tier)                                                          \
    DEFINE_DOT_SHAPE(TYPE, name, act, tier, tile_##name##_##tier, false)
