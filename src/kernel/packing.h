/* The layout of packed weights and quantised activations in memory. It is the same for every tier,
 * so that a file prepared on one machine serves another and tests can compare tiers byte by byte.
 *
 * Weights. A group is GROUP_ROWS = 32 rows, block of k after block of k. A packed block holds the
 * 32 file blocks of that column, the same number of bytes, with the rows interleaved word by word,
 * so that a vector lane is a row:
 *
 *   8-bit parts (MXFP4's scales)   [32 rows] u8                              32 bytes each
 *   16-bit parts (scales)   [32 rows] u16                                     64 bytes each
 *   32-bit parts (the rest) [word of the file's block][2 halves][16 rows] u32   64 bytes per half
 *
 *   Q4_K:   d 64 | dmin 64 | scales 3 x 128 | quants 32 x 128     = 4608 = 32 x 144
 *
 * 64 bytes of quants are thus 16 rows x 4 bytes, which is what the byte dot product instructions of
 * x86 (vpdpbusd) and Arm (sdot, on quarters) take; with 4-bit weights the low nibbles are one such
 * operand and the high nibbles another. Four things are stored differently from the file: Q8_0's
 * quants have their sign bit flipped (unsigned with an offset of 128), the fifth bits of Q5_0 and
 * Q5_1 are regrouped so that bit c of byte j belongs to weight 4 c + j, and the words of Q6_K stand
 * in the order of use (16 columns of four sub-blocks 32 weights apart: high bits, then nibbles), so
 * that a block is read from front to back. Of IQ1_M, d is put together (scales_gather).
 *
 * Activations are in tiles of up to TOKEN_TILE = 8 rows, m rows in this one (act_tiling below), in
 * the order in which a dot product uses them:
 *
 *   ACT_F32     [k][m] float
 *   ACT_Q8_32   per 32:   q [8][m][4] int8 | d [m] float | sum of q [m] int32        40 m bytes
 *   ACT_Q8_256  per 256:  q [64][m][4] int8 | pair sums [4][m][2] int16 | d [m] float
 *                         | -32 * (sum of q over 16) [16][m] int32                  340 m bytes
 *
 * The pair sums are the sums of q over 32 weights, (0, 2), (1, 3), (4, 6), (5, 7): the pairs that
 * fall out of a 32-bit word of four sub-block minima by masking every other byte. */
#pragma once

#include <string.h>

#include "kernel/kernel.h"

enum { HALF_ROWS = 16, HALF_BYTES = 64, WORD_BYTES = 128 };

/* Every type: name, name in functions, activations, weights per block, bytes per block of
 * the file. */
#define KERNEL_TYPES(X)                                                                            \
    KERNEL_FLOAT_TYPES(X)                                                                          \
    KERNEL_INTEGER_TYPES(X)                                                                        \
    KERNEL_CODED_TYPES(X)

/* Types that devices have kernels for. */
#define KERNEL_DEVICE_TYPES(X)                                                                     \
    KERNEL_FLOAT_TYPES(X)                                                                          \
    KERNEL_INTEGER_TYPES(X)

#define KERNEL_FLOAT_TYPES(X)                                                                      \
    X(F32, f32, ACT_F32, 1, 4)                                                                     \
    X(F16, f16, ACT_F32, 1, 2)                                                                     \
    X(BF16, bf16, ACT_F32, 1, 2)

/* Types whose products are integers, of which each tier has kernels. */
#define KERNEL_INTEGER_TYPES(X)                                                                    \
    KERNEL_TYPES_32(X)                                                                             \
    KERNEL_TYPES_256(X)

/* Types, by the length of their blocks. */
#define KERNEL_TYPES_32(X)                                                                         \
    X(Q4_0, q4_0, ACT_Q8_32, 32, 18)                                                               \
    X(Q4_1, q4_1, ACT_Q8_32, 32, 20)                                                               \
    X(Q5_0, q5_0, ACT_Q8_32, 32, 22)                                                               \
    X(Q5_1, q5_1, ACT_Q8_32, 32, 24)                                                               \
    X(Q8_0, q8_0, ACT_Q8_32, 32, 34)                                                               \
    X(IQ4_NL, iq4_nl, ACT_Q8_32, 32, 18)                                                           \
    X(MXFP4, mxfp4, ACT_Q8_32, 32, 17)

#define KERNEL_TYPES_256(X)                                                                        \
    X(Q2_K, q2_k, ACT_Q8_256, 256, 84)                                                             \
    X(Q3_K, q3_k, ACT_Q8_256, 256, 110)                                                            \
    X(Q4_K, q4_k, ACT_Q8_256, 256, 144)                                                            \
    X(Q5_K, q5_k, ACT_Q8_256, 256, 176)                                                            \
    X(Q6_K, q6_k, ACT_Q8_256, 256, 210)                                                            \
    X(IQ4_XS, iq4_xs, ACT_Q8_256, 256, 136)

/* Types that are rare, or whose weights are looked up in code books: each tier has one kernel for
 * all of them, which takes decoded weights (decoded.h). Besides the above: weights per scale
 * (FLOAT_SUBS: 16, whose scale is a float), and the parts of a packed block, in the words of
 * packing.c. */
enum { FLOAT_SUBS = 64 };
#define CODED_TYPES(Y, X)                                                                          \
    CODED_TYPES_256(Y, X)                                                                          \
    CODED_TYPES_64(Y, X)
#define CODED_TYPES_256(Y, X)                                                                      \
    Y(X, IQ2_XXS, iq2_xxs, ACT_Q8_256, 256, 66, 32, U16(0), WORDS(2, 16))                          \
    Y(X, IQ2_XS, iq2_xs, ACT_Q8_256, 256, 74, 16, U16(0), WORDS(66, 1), WORDS(70, 1),              \
      WORDS(2, 16))                                                                                \
    Y(X, IQ2_S, iq2_s, ACT_Q8_256, 256, 82, 16, U16(0), WORDS(74, 1), WORDS(78, 1), WORDS(66, 1),  \
      WORDS(70, 1), WORDS(2, 8), WORDS(34, 8))                                                     \
    Y(X, IQ3_XXS, iq3_xxs, ACT_Q8_256, 256, 98, 32, U16(0), WORDS(66, 8), WORDS(2, 16))            \
    Y(X, IQ3_S, iq3_s, ACT_Q8_256, 256, 110, 32, U16(0), WORDS(106, 1), WORDS(66, 1),              \
      WORDS(70, 1), WORDS(2, 16), WORDS(74, 8))                                                    \
    Y(X, IQ1_S, iq1_s, ACT_Q8_256, 256, 50, 32, U16(0), WORDS(34, 4), WORDS(2, 8))                 \
    Y(X, IQ1_M, iq1_m, ACT_Q8_256, 256, 56, 16, SPREAD(48), WORDS(32, 4), WORDS(0, 8))             \
    Y(X, TQ1_0, tq1_0, ACT_Q8_256, 256, 54, 32, U16(52), WORDS(48, 1), WORDS(0, 12))               \
    Y(X, TQ2_0, tq2_0, ACT_Q8_256, 256, 66, 32, U16(64), WORDS(0, 16))
#define CODED_TYPES_64(Y, X)                                                                       \
    Y(X, NVFP4, nvfp4, ACT_Q8_32, 64, 36, FLOAT_SUBS, WORDS(0, 1), WORDS(4, 8))
#define CODED_COLUMNS(X, TYPE, name, act, block_k, block_bytes, sub_k, ...)                        \
    X(TYPE, name, act, block_k, block_bytes)
#define KERNEL_CODED_TYPES(X) CODED_TYPES(CODED_COLUMNS, X)

/* Ways to pack a run of a file's block. */
typedef enum part_kind {
    PART_U8,    /* 8-bit exponents, rows interleaved */
    PART_U16,   /* 16-bit numbers, rows interleaved */
    PART_WORDS, /* 32-bit words, rows interleaved */
    PART_FLIP,  /* the same, the sign bit of each byte flipped */
    PART_PLANE, /* the same, bits regrouped by plane_from_bits */
    PART_SPREAD /* four 16-bit numbers: what scales_gather makes of those in the file */
} part_kind;

typedef struct packed_field {
    uint8_t kind;
    uint8_t file_offset;
    uint8_t n_words; /* 1 for PART_U8 and PART_U16 */
} packed_field;

typedef struct type_layout {
    int32_t block_k;
    int32_t file_block_bytes; /* the packed block of 32 rows has 32 times as many */
    int32_t n_scales;         /* leading parts that are scales: scales and minima */
    int32_t n_parts;
    packed_field parts[14]; /* in packed order, one after another without gaps */
} type_layout;

/* The layout of a runnable type, static storage. */
const type_layout *layout_find(tensor_type type);

/* Byte offsets of the parts in a packed block. */
enum {
    Q4_0_D = 0,
    Q4_0_QS = 64,
    Q4_1_D = 0,
    Q4_1_M = 64,
    Q4_1_QS = 128,
    Q5_0_D = 0,
    Q5_0_QH = 64,
    Q5_0_QS = 192,
    Q5_1_D = 0,
    Q5_1_M = 64,
    Q5_1_QH = 128,
    Q5_1_QS = 256,
    Q8_0_D = 0,
    Q8_0_QS = 64,
    IQ4_NL_D = 0,
    IQ4_NL_QS = 64,
    MXFP4_E = 0,
    MXFP4_QS = 32,
    Q2_K_D = 0,
    Q2_K_DMIN = 64,
    Q2_K_SCALES = 128,
    Q2_K_QS = 640,
    Q3_K_D = 0,
    Q3_K_SCALES = 64,
    Q3_K_HMASK = 448,
    Q3_K_QS = 1472,
    Q4_K_D = 0,
    Q4_K_DMIN = 64,
    Q4_K_SCALES = 128,
    Q4_K_QS = 512,
    Q5_K_D = 0,
    Q5_K_DMIN = 64,
    Q5_K_SCALES = 128,
    Q5_K_QH = 512,
    Q5_K_QS = 1536,
    Q6_K_D = 0,
    Q6_K_SCALES = 64,
    Q6_K_QUANTS = 576, /* four quarters, each qh 4 words | ql 4 words | ql 4 words */
    Q6_K_QUARTER_BYTES = 12 * WORD_BYTES,
    IQ4_XS_D = 0,
    IQ4_XS_SCALES_H = 64,
    IQ4_XS_SCALES_L = 128,
    IQ4_XS_QS = 256,
    IQ2_XXS_QS = 64, /* pairs of a word of indices and one of signs and a scale */
    IQ2_XS_SCALES = 64,
    IQ2_XS_QS = 320,
    IQ2_S_SCALES = 64,
    IQ2_S_QH = 320,
    IQ2_S_QS = 576,
    IQ2_S_SIGNS = 1600,
    IQ3_XXS_SIGNS = 64,
    IQ3_XXS_QS = 1088,
    IQ3_S_SCALES = 64,
    IQ3_S_QH = 192,
    IQ3_S_QS = 448,
    IQ3_S_SIGNS = 2496,
    IQ1_S_QH = 64,
    IQ1_S_QS = 576,
    IQ1_M_SCALES = 64, /* three parts of 16 bits: 16 scales of 3 bits */
    IQ1_M_QH = 256,
    IQ1_M_QS = 768,
    TQ1_0_QH = 64,
    TQ1_0_QS = 192,
    TQ2_0_QS = 64,
    NVFP4_D = 0, /* four bytes a row */
    NVFP4_QS = 128
};

/* The 16 levels of MXFP4, doubled: 0, 0.5, 1, 1.5, 2, 3, 4, 6, and the same negative. */
extern const int8_t mxfp4_levels[16];

/* Bytes of one activation row's share of a block (32, 256 or 1 of k), d and sums included. */
enum { ACT_F32_BYTES = 4, ACT_Q8_32_BYTES = 40, ACT_Q8_256_BYTES = 340 };

/* Offsets in a tile's block, in bytes per row of the tile: times m. */
enum { ACT_32_D = 32, ACT_32_SUM = 36, ACT_256_PAIRS = 256, ACT_256_D = 272, ACT_256_SUM16 = 276 };

static inline int32_t act_block_k(act_kind kind)
{
    return kind == ACT_F32 ? 1 : kind == ACT_Q8_32 ? 32 : 256;
}

static inline int32_t act_block_bytes(act_kind kind)
{
    return kind == ACT_F32 ? ACT_F32_BYTES : kind == ACT_Q8_32 ? ACT_Q8_32_BYTES : ACT_Q8_256_BYTES;
}

/* Bytes of one activation row of k. */
static inline size_t act_row_bytes(act_kind kind, int64_t k)
{
    return (size_t)(k / act_block_k(kind)) * (size_t)act_block_bytes(kind);
}

/* Rows of the tile that begins at row first of n, where tiles are full. */
static inline int32_t tile_rows(int32_t first, int32_t n)
{
    return n - first < TOKEN_TILE ? n - first : TOKEN_TILE;
}

/* Division of n rows into tiles: `covered` rows in tiles of long_rows, the others in tiles of
 * short_rows. Full tiles have TOKEN_TILE rows and leave a shorter last one. Even tiles
 * (SHAPE_LINES) differ by one row at most and have at most EVEN_TILE, so that no tile goes over the
 * weights for a row or two; up to TOKEN_TILE rows are one tile either way. */
enum { EVEN_TILE = 6 };
typedef struct act_tiling {
    int32_t covered, long_rows, short_rows;
} act_tiling;

static inline act_tiling act_tiling_of(int32_t n, bool even)
{
    if (!even || n <= TOKEN_TILE)
        return (act_tiling){n / TOKEN_TILE * TOKEN_TILE, TOKEN_TILE, n % TOKEN_TILE};
    int32_t n_tiles = (n + EVEN_TILE - 1) / EVEN_TILE, rows = n / n_tiles;
    return (act_tiling){n % n_tiles * (rows + 1), rows + 1, rows};
}

/* The tile that a row is in: its first row and how many it has. */
typedef struct act_tile {
    int32_t first, rows;
} act_tile;

static inline act_tile act_tile_at(const act_tiling *t, int32_t row)
{
    if (row < t->covered)
        return (act_tile){row / t->long_rows * t->long_rows, t->long_rows};
    int32_t first = t->covered + (row - t->covered) / t->short_rows * t->short_rows;
    return (act_tile){first, t->short_rows};
}

static inline uint16_t load_u16(const void *p)
{
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t load_u32(const void *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* MXFP4's scale for doubled levels: 2^(e - 128), as vectors compute it. There is no scale with
 * exponent E8M0_NONE; it is infinite. */
enum { E8M0_NONE = 255, E8M0_LEAST = 0x00400000 /* the bits of 2^-127 */ };
static inline float e8m0_half(uint8_t e)
{
    uint32_t bits = e ? (uint32_t)e << 23 : E8M0_LEAST;
    float v;
    memcpy(&v, &bits, sizeof v);
    return 0.5f * v;
}

/* Returns NVFP4's scale for doubled levels: half of an unsigned float of 4 bits of exponent and 3
 * of mantissa. 0x7f, which stands for none, counts as 0. */
#define UE4M3_HALF_UNIT 0x1p+119f /* times its bits where a float of 32 bits has its own */
enum { UE4M3_NONE = 0x7f };
static inline float ue4m3_half(uint8_t e)
{
    uint32_t bits = e == UE4M3_NONE ? 0 : (e & 0x7fu) << 20;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v * UE4M3_HALF_UNIT;
}

/* Returns IQ1_M's d, and above it its 16 scales of 3 bits: in the file they are four numbers of 16
 * bits, of which each has a nibble of d above four scales. */
static inline uint64_t scales_gather(const uint8_t *scales)
{
    uint64_t v, gathered = 0;
    memcpy(&v, scales, sizeof v);
    for (int i = 0; i < 4; i++) {
        uint64_t number = v >> (16 * i) & 0xffff;
        gathered |= number >> 12 << (4 * i) | (number & 0xfff) << (16 + 12 * i);
    }
    return gathered;
}

/* Puts them back. */
static inline void scales_scatter(uint8_t *scales, uint64_t gathered)
{
    for (int i = 0; i < 4; i++) {
        const uint16_t number =
            (uint16_t)((gathered >> (16 + 12 * i) & 0xfff) | (gathered >> (4 * i) & 15) << 12);
        memcpy(scales + 2 * i, &number, sizeof number);
    }
}

/* The magnitude's bits from which on a number is infinite or none. */
enum { F16_INFINITE = 0x7c00, BF16_INFINITE = 0x7f80, F32_INFINITE = 0x7f800000 };

static inline float load_f32(const void *p)
{
    float v;
    memcpy(&v, p, sizeof v);
    return v;
}

/* Bit 4 c + j of the word goes to bit c of byte j. */
static inline uint32_t plane_from_bits(uint32_t x)
{
    uint32_t plane = 0;
    for (int c = 0; c < 8; c++)
        for (int j = 0; j < 4; j++)
            plane |= ((x >> (4 * c + j)) & 1u) << (8 * j + c);
    return plane;
}
