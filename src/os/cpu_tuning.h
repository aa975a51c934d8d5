/* What is known to suit a family of processors: choices between ways of computing that differ in
 * speed alone. No result depends on them. A table of families gives the defaults (cpu_tuning.c);
 * what was measured on one machine may replace them. */
#ifndef DREY_OS_CPU_TUNING_H
#define DREY_OS_CPU_TUNING_H

#include <stddef.h>
#include <stdint.h>

/* Variants of the matrix kernels, for processors that differ in what binds them. Tiers that have
 * no variants ignore them.
 *
 *  SHAPE_LINES  For 5 rows and more a tile goes over whole lines of 32 weight rows, so that one
 *               broadcast of activations feeds two products, and passes of more than 8 rows are cut
 *               into even tiles. For processors with two products a cycle, where loads bind
 *               (Zen 5). Without it a tile takes 16 weight rows at a time.
 *  SHAPE_NEAR   For few rows every line of weights is fetched into the first cache, a few KB
 *               ahead. Without it one line in eight, further ahead, into the second. */
enum { SHAPE_LINES = 1, SHAPE_NEAR = 2, N_KERNEL_SHAPES = 4 };

typedef struct cpu_tuning {
    int32_t shape; /* SHAPE_..., or-ed */
    /* Products: bytes of packed weights that one claim takes when there is one row (with more rows
     * a claim takes longer, and what one thread waits for another at the end would tell), and bytes
     * of the next product that a thread asks for when it has nothing left to do. */
    size_t claim_bytes, ahead_bytes;
    /* Passes: numbers of a tile whose step all threads share, and multiplications of a layer's
     * attention that are over sooner than the other threads are there. */
    int64_t shared_numbers, attend_alone;
    /* How long a thread looks on before it sleeps: for the pool's next job (longer than the gap
     * between two steps of a pass), for a piece of the stream that is about to arrive, and, in a
     * product with nothing left to claim, for news before it lets others use its core. */
    int64_t pool_spin_ns, stream_spin_ns, product_spin_ns;
} cpu_tuning;

/* The defaults of this machine's family. Constant after the first call. */
const cpu_tuning *cpu_tuning_default(void);

#endif
