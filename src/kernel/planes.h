/* Nested planes: the bits of packed blocks, the high ones apart from the low ones, so that they can
 * are in different places and the high ones alone stand for the weight.
 *
 * Every type whose quants are lines (64 bytes: 16 rows x 4) of two 4-bit numbers per byte can be
 * split. A number's two high bits go to the first plane, with all that is no such line (scales,
 * minima, fifth bits, the upper two bits of Q6_K); the other two to a plane each:
 *
 *   block    | front | kept | lines A B C D ... | kept | lines ... |
 *   plane 0  | front | kept | AB CD ...         | kept | ...       |   a line holds 2 lines' bits
 *   plane 1  |              | ABCD ...          |      | ...       |   bit 1 of 4 lines
 *   plane 2  |              | ABCD ...          |      | ...       |   bit 0 of 4 lines
 *
 * Where planes are missing, their bits count as about their mean for the bits that are there: of
 * both, round(mean) by the two high bits; of bit 0 alone, which is as often 0 as 1, in turns by the
 * weight. So products of what is there are products of ordinary blocks. */
#pragma once

#include "kernel/packing.h"

enum { N_PLANES = 3, PLANE_LINE = 64 };

/* Planes of a packed block, in lines. */
struct plane_layout {
    int32_t front;    /* in front of the first chunk, kept as they are */
    int32_t n_chunks; /* each of: */
    int32_t kept;     /* lines that are kept as they are, */
    int32_t split;    /* then lines of 4-bit numbers, a multiple of 4 */
    int32_t bits;     /* bits of a weight that are in plane 0 */
};

/* Values for missing bits: a number of 2 bits for each value of the two high ones. */
typedef struct plane_means {
    uint8_t low[4];
} plane_means;

/* Blocks of a group in planes, plane[i] NULL: missing; only the last ones may be. */
struct plane_blocks {
    const uint8_t *plane[N_PLANES];
    plane_means means; /* used where one is missing */
};

/* NULL: this type is not split. Static storage. */
const plane_layout *plane_layout_find(tensor_type type);
size_t plane_block_bytes(const plane_layout *l, int plane);

/* Splits n_blocks packed blocks; each plane's blocks follow one after another. */
void plane_split(const plane_layout *l, uint8_t *const plane[N_PLANES], const uint8_t *blocks,
                 int32_t n_blocks);

/* Counts of the values of the two low bits, for each value of the two high ones: adds those of
 * n_blocks packed blocks, the rows of a group that do not exist included. */
typedef struct plane_counts {
    uint64_t n[4][4]; /* [high][low] */
} plane_counts;
void plane_count(const plane_layout *l, plane_counts *c, const uint8_t *blocks, int32_t n_blocks);
/* round(sum of low * n / sum of n), halves away from zero; 1 or 2 where nothing was counted. */
plane_means plane_means_of(const plane_counts *c);

/* Multiplies with one group in planes, otherwise as matmul_kernel.dot of the type: the bits of a
 * product of the joined blocks. group: scratch of group_bytes(k). */
void dot_planes(const kernel_table *kernels, tensor_type type, float *y, int64_t ldy,
                const plane_blocks *blocks, const void *acts, int32_t n, int64_t k, void *scratch,
                void *group);
