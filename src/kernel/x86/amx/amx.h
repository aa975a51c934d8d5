/* Declarations that the parts of the amx tier share: the form in which weights and activations meet
 * in tiles.
 *
 * A tile product (TDPB..D) multiplies A [16 tokens][64 k] of signed bytes with B [16][16 rows][4 k]
 * and adds to C [16 tokens][16 rows] of int32: 16384 products in 16 cycles, eight times AVX-512's
 * rate. 64 bytes of a packed word are 16 rows x 4 k, a row of B; activations are rearranged.
 *
 * Types in blocks of 256. A super-block's integer sum is sum over k of (scale * w) * x. Were the
 * scale left out, C would have to be emptied for each sub-block: as many vector multiplications as
 * AVX-512 needs. So the scale goes into the weights, as two planes of bytes whose sums of products
 * stay in C over the whole super-block:
 *
 *   Q4_K, Q5_K   scale = 8 * a + b, a and b in 0..7: planes b * w and a * w, at most 7 * 31 = 217,
 *                unsigned; i = C0 + 8 * C1. One 16-bit multiplication makes two bytes, as none
 *                carries into its neighbour.
 *   Q6_K, IQ4_XS scale * w is within +-4096 (128 * 32; 32 * 127): its low byte, unsigned, and its
 *                high byte, signed, within +-17; i = C0 + 256 * C1. So do all coded types.
 *   Q3_K         -scale * w is within -128..124: one plane, signed; i = -C
 *   Q2_K         scale * w is at most 45: one plane; i = C
 *
 * C stays within int32: 256 * 255 * 127 a plane, and |i| < 256 * 4096 * 127. Every sum is exact, so
 * the bits are those of every other tier.
 *
 * Minima times the activations' sums are one more tile product a half, j = C: a sum has 13 bits, so
 * it is a few bytes' sum, which B multiplies with the minimum or a multiple of it:
 *
 *   Q4_K, Q5_K   sums over 32, at most 2183 (ACT_Q8_256's rule for d), times minima of 6 bits:
 *                sum = 4 * (6 * a + b) + c, bytes a a a a a a b c; B has 4 * min seven times, min
 *   Q2_K         sums over 16 times minima of 4 bits: sum = 16 * a + b, bytes a b 0 0; B has
 *                16 * min, min, 0, 0
 *
 * Types in blocks of 32 have one plane, the signed weights, and empty C each 32 k. */
#pragma once

#include <immintrin.h>

#include "kernel/packing.h"
#include "kernel/unroll.h"
#include "kernel/x86/amx/amx_tile.h"
#include "kernel/x86/x86.h"

enum {
    TILE_TOKENS = 16,  /* rows of A and C */
    PART_TOKENS = 4,   /* finished after a part of the next job */
    STEP_PARTS = 4,    /* a step: four parts of 64 k (a super-block), or up to four blocks of 32 */
    TILE_BYTES = 1024, /* bytes of a whole tile */
    STEP_C = STEP_PARTS * 2 * TILE_TOKENS * HALF_ROWS, /* int32 of C in a step */
    C_MINIMA = 4 * TILE_TOKENS * HALF_ROWS, /* offset of minima in a job's C, after the planes */
    /* Rows from which tiles are faster than vectors: with 16 as fast, with 24 slower, with 32 1.4
     * times as fast. With SHAPE_EARLY they are used for all that vectors need two tiles of
     * activations for. */
    TILES_FROM = 25,
    EARLY_FROM = TOKEN_TILE + 1,
    /* groups from which a call pays: rearranging its activations costs about as much as multiplying
     * one group. */
    MANY_GROUPS = 16
};

/* The weights of a step, 32 rows. */
typedef struct step_weights {
    /* B tiles. Blocks of 256: [part][plane][half][16 words][64]; of 32: [part][half][8][64]. */
    uint8_t planes[STEP_PARTS * 2 * 2 * TILE_BYTES];
    float d[STEP_PARTS][2][HALF_ROWS]; /* scales as floats; blocks of 256 use the first */
    float m[STEP_PARTS][2][HALF_ROWS]; /* dmin, or the minima of blocks of 32 */
    uint8_t minima[2][TILE_BYTES];     /* B tiles: see above */
} step_weights;

/* The activations of 16 tokens, a block. */
typedef struct tokens_256 {
    uint8_t x[STEP_PARTS][TILE_TOKENS][64]; /* A tiles */
    float d[TILE_TOKENS];
    uint8_t sums[TILE_TOKENS][64]; /* sums of x, as the A tile of minima */
} tokens_256;

typedef struct tokens_32 {
    uint8_t x[TILE_TOKENS][32];
    float d[TILE_TOKENS];
    int32_t sum[TILE_TOKENS]; /* sums of x */
} tokens_32;

/* A step of 16 tokens and 32 rows whose products are in c. Rows without a token are computed with
 * the others: zeros, whose sums nobody reads. */
typedef struct tile_job {
    float *sums; /* [16][32], added to */
    /* Blocks of 256: [plane][half][16][16], at C_MINIMA [half][16][16]; of 32:
     * [part][half][16][16]. */
    int32_t *c;
    const void *acts; /* tokens_256, or [n_parts] tokens_32 */
    const step_weights *weights;
    int32_t n_parts;
} tile_job;

/* Packed weights to be fetched, n_lines at a time. */
typedef struct line_fetch {
    const uint8_t *next;
    int32_t n_lines;
} line_fetch;

typedef void tile_multiply(int32_t *c, const void *acts, const step_weights *w, int32_t part);
/* Finishes tokens first .. first + PART_TOKENS - 1. */
typedef void tile_finish(const tile_job *job, int32_t first);

/* Functions that take a type through the tiles. */
typedef struct amx_type {
    tensor_type type;
    const tile_config *config;
    void (*arrange)(void *acts, const uint8_t *tile, int32_t first, int32_t m);
    void (*build)(step_weights *w, const uint8_t *block, int32_t n_parts);
    tile_multiply *multiply;
    tile_finish *finish;
    /* All of a job's products, with the finish of the one before (NULL: none) between them. */
    void (*job)(const tile_job *job, const tile_job *before, line_fetch *fetch);
} amx_type;

/* matmul_kernel's dot for any n. scratch: AMX_SCRATCH_BYTES, 64-byte aligned. */
void dot_amx(const amx_type *type, float *y, int64_t ldy, const void *groups, int32_t n_groups,
             const void *acts, int32_t n, int64_t k, void *scratch);

/* kernel_table's dot_part of a type. scratch: as dot_amx's. */
const char *dot_part_amx(const amx_type *type, int32_t part, int64_t rounds, void *scratch);

/* build for each type: weights of n_parts blocks of 32, or of one of 256, into tiles. */
#define DECLARE_BUILD(TYPE, name, act, block_k, block_bytes)                                       \
    void build_##name##_amx(step_weights *w, const uint8_t *block, int32_t n_parts);
KERNEL_INTEGER_TYPES(DECLARE_BUILD)
#undef DECLARE_BUILD
/* The same of a coded type in blocks of 256. */
void build_coded_amx(step_weights *w, tensor_type type, int32_t sub_k, const uint8_t *block);

INLINE __m512i load_line(const void *p)
{
    return _mm512_loadu_si512(p);
}

INLINE void store_line(void *p, __m512i v)
{
    _mm512_storeu_si512(p, v);
}
