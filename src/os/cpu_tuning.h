/* Tuning for a family of processors: choices between ways of computing that differ only in speed.
 * No result depends on them. A table of families gives the defaults (cpu_tuning.c); measurements on
 * one machine may replace them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Variants of the matrix kernels, for processors with different bottlenecks. Tiers without variants
 * ignore them.
 *
 *  SHAPE_LINES  For 5 rows and more a tile covers whole lines of 32 weight rows, so that one
 *               broadcast of activations feeds two products, and passes of more than 8 rows are cut
 *               into even tiles. For processors with two products a cycle, where loads are the
 *               limit (Zen 5). Without it a tile takes 16 weight rows at a time.
 *  SHAPE_CHAINS For 5 rows and more a tile has as many independent sums as there are registers. For
 *               processors whose products take five cycles and share two ports with all other
 *               operations on vectors of 512 bits (Golden Cove).
 *  SHAPE_NEAR   For few rows every line of weights is fetched into the first cache, a few KB ahead.
 *  SHAPE_FAR    For few rows every line is fetched into the second cache, further ahead. With
 *               neither of these two every eighth line is, and the hardware fetches the others.
 *  SHAPE_EARLY  The amx tier uses its tiles from 9 rows on, and not from 25 on. */
enum {
    SHAPE_LINES = 1,
    SHAPE_NEAR = 2,
    SHAPE_FAR = 4,
    SHAPE_CHAINS = 8,
    SHAPE_EARLY = 16,
    N_KERNEL_SHAPES = 32
};

typedef struct cpu_tuning {
    /* bits, or-ed: LINES or CHAINS, NEAR or FAR, EARLY. What a tier does not have is ignored. */
    int32_t shape;
    /* Products: bytes of packed weights per claim when there is one row (with more rows a claim
     * takes longer, so that threads would wait for each other at the end), and bytes of the next
     * product that a thread prefetches when it has nothing left to do. */
    size_t claim_bytes, ahead_bytes;
    /* Passes: from how many numbers on all threads share a tile's step, and up to how many
     * multiplications one thread computes a layer's attention alone, because it ends before the
     * others have started. */
    int64_t shared_numbers, attend_alone;
    /* Nanoseconds that a thread spins before it sleeps: for the pool's next job (longer than the
     * gap between two steps of a pass), for a piece of the stream that is about to arrive, and, in
     * a product with nothing left to claim, for news before it yields its core. */
    int64_t pool_spin_ns, stream_spin_ns, product_spin_ns;
} cpu_tuning;

/* The defaults of this machine's family. Constant after the first call. */
const cpu_tuning *cpu_tuning_default(void);
