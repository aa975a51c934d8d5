/* Products of packed groups of weights on a device: kernel.h's order of arithmetic, to the bit.
 *
 * A work item has LANES neighbouring rows of a group (lanes.cl) and up to TOKENS activation rows of
 * a tile, whose m >= 1 rows lie as kernel/packing.h draws them; where m is less than TOKENS the
 * last one is computed again and not stored. */

/* Numbers that weights of 4 bits stand for (kernel/packing.h). */
#define IQ4_LEVELS   -127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113
#define MXFP4_LEVELS 0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12
#if LANES == 1
typedef struct level_table {
    int at[16];
} level_table;
#define LEVEL_AT(index) levels.at[index]
#else
typedef union level_table {
    int at[16];
    int16 all;
} level_table;
#define LEVEL_AT(index) shuffle(levels.all, index)
#endif

/* Words and halves of the work item's rows in a part of a packed block. */
#define WORD(part, i)  LOAD_U32((part) + (uint)(i)*128u + lane * 4u)
#define HALF(part)     half_to_float(LOAD_U16((part) + lane * 2u))
/* Half of the scale that an exponent stands for; 0 is 2^-127. */
#define EXPONENT(part) (AS_F(max(LOAD_U8((part) + lane) << 23u, 0x00400000u)) * 0.5f)
/* Byte i of the rows, as a number. */
#define BYTE(part, i)  ((WORD(part, (i) / 4u) >> (8u * ((i) % 4u))) & 255u)

/* Of the block of activations: word i of row t, and the numbers after the words. */
#define ACT(at, i, t) (*(__global const int *)(acts + ((at) + (uint)(i)*4u) * m + (t)*4u))
#define ACT_D(at, t)  as_float(ACT(at, 0u, t))

#define EACH_TOKEN for (uint j = 0u; j < TOKENS; j++)
#define TOKEN      (j < m ? j : m - 1u)

/* acc + four unsigned bytes of each lane times four signed bytes. */
DEVICE lanes_i dot_bytes(lanes_i acc, lanes_u w, int x)
{
    char4 c = as_char4(x);
    acc += AS_I(w & 255u) * (int)c.x;
    acc += AS_I((w >> 8u) & 255u) * (int)c.y;
    acc += AS_I((w >> 16u) & 255u) * (int)c.z;
    return acc + AS_I(w >> 24u) * (int)c.w;
}

/* The same with four indices below 16 of a table of levels. */
#define DOT_LEVELS(name, LEVELS)                                                                   \
    DEVICE lanes_i name(lanes_i acc, lanes_u w, int x)                                             \
    {                                                                                              \
        const level_table levels = {{LEVELS}};                                                     \
        char4 c = as_char4(x);                                                                     \
        acc += LEVEL_AT(w & 255u) * (int)c.x;                                                      \
        acc += LEVEL_AT((w >> 8u) & 255u) * (int)c.y;                                              \
        acc += LEVEL_AT((w >> 16u) & 255u) * (int)c.z;                                             \
        return acc + LEVEL_AT(w >> 24u) * (int)c.w;                                                \
    }
DOT_LEVELS(dot_iq4, IQ4_LEVELS)
DOT_LEVELS(dot_mxfp4_words, MXFP4_LEVELS)

/* groups: the first group at byte groups_at. acts: the first tile's at byte acts_at, a row of all
 * blocks being act_row_bytes. y: the first tile's first row at number y_at, rows ldy apart. */
#define KERNEL(name, BLOCK_BYTES, ACT_BLOCK_BYTES, BLOCK)                                          \
    __kernel void dot_##name(__global const uchar *restrict groups, ulong groups_at,               \
                             __global const uchar *restrict acts, ulong acts_at,                   \
                             __global float *restrict y, uint y_at, uint ldy, uint n_blocks,       \
                             uint m)                                                               \
    {                                                                                              \
        const uint row = (uint)get_global_id(0) * LANES, tile = (uint)get_global_id(1);            \
        const uint lane = row % 32u;                                                               \
        __global const uchar *block =                                                              \
            groups + groups_at + (ulong)(row / 32u) * n_blocks * ((BLOCK_BYTES)*32u);              \
        acts += acts_at + (ulong)tile * m * n_blocks * (ACT_BLOCK_BYTES);                          \
        lanes_f sum[TOKENS];                                                                       \
        EACH_TOKEN sum[j] = (lanes_f)0.0f;                                                         \
        for (uint b = 0u; b < n_blocks; b++) {                                                     \
            BLOCK block += (BLOCK_BYTES)*32u;                                                      \
            acts += (ACT_BLOCK_BYTES)*m;                                                           \
        }                                                                                          \
        EACH_TOKEN if (j < m)                                                                      \
            STORE_F(y + y_at + (ulong)(tile * m + j) * ldy + row, sum[j]);                         \
    }

/* ---- Blocks of 32: words of four weights, c = 0 .. 7 ---- */

/* OFFSET is subtracted from each weight, by means of the sum of the activations. */
#define BLOCK_32(DOT, WORD_C, OFFSET, SCALE, MINIMUM)                                              \
    lanes_i dot[TOKENS];                                                                           \
    EACH_TOKEN dot[j] = (lanes_i)(-(OFFSET)*ACT(36u, 0u, TOKEN));                                  \
    for (uint c = 0u; c < 8u; c++) {                                                               \
        const lanes_u w = WORD_C;                                                                  \
        EACH_TOKEN dot[j] = DOT(dot[j], w, ACT(0u, c, TOKEN));                                     \
    }                                                                                              \
    const lanes_f d = SCALE(block);                                                                \
    EACH_TOKEN sum[j] = fma(d * ACT_D(32u, TOKEN), TO_F(dot[j]), sum[j]);                          \
    MINIMUM

/* Q4_1, Q5_1: a number added to each weight. */
#define ADD_MINIMUM                                                                                \
    const lanes_f least = HALF(block + 64);                                                        \
    EACH_TOKEN sum[j] = fma(least * ACT_D(32u, TOKEN),                                             \
                            (lanes_f)convert_float_rte(ACT(36u, 0u, TOKEN)), sum[j]);

#define NIBBLES(QS)        ((WORD(QS, c % 4u) >> (c / 4u * 4u)) & 0x0f0f0f0fu)
#define FIFTH_BITS(QH)     (((WORD(QH, 0u) >> c) & 0x01010101u) << 4u)

KERNEL(q4_0, 18u, 40u, BLOCK_32(dot_bytes, NIBBLES(block + 64), 8, HALF, ))
KERNEL(q4_1, 20u, 40u, BLOCK_32(dot_bytes, NIBBLES(block + 128), 0, HALF, ADD_MINIMUM))
KERNEL(q5_0, 22u, 40u,
       BLOCK_32(dot_bytes, NIBBLES(block + 192) | FIFTH_BITS(block + 64), 16, HALF, ))
KERNEL(q5_1, 24u, 40u,
       BLOCK_32(dot_bytes, NIBBLES(block + 256) | FIFTH_BITS(block + 128), 0, HALF, ADD_MINIMUM))
KERNEL(q8_0, 34u, 40u, BLOCK_32(dot_bytes, WORD(block + 64, c), 128, HALF, ))
KERNEL(iq4_nl, 18u, 40u, BLOCK_32(dot_iq4, NIBBLES(block + 64), 0, HALF, ))
KERNEL(mxfp4, 17u, 40u, BLOCK_32(dot_mxfp4_words, NIBBLES(block + 32), 0, EXPONENT, ))

/* ---- Blocks of 256: sub-blocks s of 4 or 8 words g, 64 in all ---- */

/* WORDS words of a sub-block, whose scale is SCALE_S; FROM begins the dot product. The last three
 * are empty, or begin the minima, add a sub-block to them, and fold them into the sums. */
#define BLOCK_256(WORDS, DOT, WORD_G, SCALE_S, FROM, MINIMA, MINIMUM, FOLD)                        \
    lanes_i products[TOKENS];                                                                      \
    EACH_TOKEN products[j] = (lanes_i)0;                                                           \
    MINIMA                                                                                         \
    for (uint s = 0u; s < 64u / (WORDS); s++) {                                                    \
        lanes_i dot[TOKENS];                                                                       \
        EACH_TOKEN dot[j] = (lanes_i)(FROM);                                                       \
        for (uint g = s * (WORDS); g < (s + 1u) * (WORDS); g++) {                                  \
            const lanes_u w = WORD_G;                                                              \
            EACH_TOKEN dot[j] = DOT(dot[j], w, ACT(0u, g, TOKEN));                                 \
        }                                                                                          \
        const lanes_i scale = SCALE_S;                                                             \
        EACH_TOKEN products[j] += scale * dot[j];                                                  \
        MINIMUM                                                                                    \
    }                                                                                              \
    const lanes_f d = HALF(block);                                                                 \
    EACH_TOKEN sum[j] = fma(d * ACT_D(272u, TOKEN), TO_F(products[j]), sum[j]);                    \
    FOLD

/* -32 times the sum of 16 activations. */
#define SUM16(i)           ACT(276u, i, TOKEN)
#define ZERO_MINIMA                                                                                \
    lanes_i minima[TOKENS];                                                                        \
    EACH_TOKEN minima[j] = (lanes_i)0;
#define SUB_MINIMUM(MIN_S, SUM_S)                                                                  \
    const lanes_i least = AS_I(MIN_S);                                                             \
    EACH_TOKEN minima[j] += least * ((SUM_S) / -32);
#define FOLD_MINIMA                                                                                \
    const lanes_f d_min = HALF(block + 64);                                                        \
    EACH_TOKEN sum[j] = fma(-(d_min * ACT_D(272u, TOKEN)), TO_F(minima[j]), sum[j]);

/* Q4_K, Q5_K: eight scales and minima of 6 bits in three words. */
#define K4_BYTE(i, s)      ((WORD(block + 128, i) >> (8u * ((s) % 4u))) & 255u)
#define K4_SCALE                                                                                   \
    AS_I(s < 4u ? K4_BYTE(0u, s) & 63u : (K4_BYTE(2u, s) & 15u) | (K4_BYTE(0u, s) >> 6u) << 4u)
#define K4_MIN                                                                                     \
    (s < 4u ? K4_BYTE(1u, s) & 63u : K4_BYTE(2u, s) >> 4u | (K4_BYTE(1u, s) >> 6u) << 4u)
#define K4_NIBBLES(QS)     ((WORD(QS, g / 16u * 8u + g % 8u) >> (g / 8u % 2u * 4u)) & 0x0f0f0f0fu)
#define K4_MINIMUM         SUB_MINIMUM(K4_MIN, SUM16(2u * s) + SUM16(2u * s + 1u))
#define Q5_K_HIGH          (((WORD(block + 512, g % 8u) >> (g / 8u)) & 0x01010101u) << 4u)

KERNEL(q4_k, 144u, 340u,
       BLOCK_256(8u, dot_bytes, K4_NIBBLES(block + 512), K4_SCALE, 0, ZERO_MINIMA,
                 K4_MINIMUM, FOLD_MINIMA))
KERNEL(q5_k, 176u, 340u,
       BLOCK_256(8u, dot_bytes, K4_NIBBLES(block + 1536) | Q5_K_HIGH, K4_SCALE, 0, ZERO_MINIMA,
                 K4_MINIMUM, FOLD_MINIMA))

/* Two bits of 4 words; a byte has bits of weights that are 32 apart. */
#define TWO_BITS(QS)       ((WORD(QS, g / 32u * 8u + g % 8u) >> (g % 32u / 8u * 2u)) & 0x03030303u)
#define Q2_K_SCALES        BYTE(block + 128, s)

KERNEL(q2_k, 84u, 340u,
       BLOCK_256(4u, dot_bytes, TWO_BITS(block + 640), AS_I(Q2_K_SCALES & 15u), 0,
                 ZERO_MINIMA, SUB_MINIMUM(Q2_K_SCALES >> 4u, SUM16(s)), FOLD_MINIMA))

#define Q3_K_HIGH          (((WORD(block + 448, g % 8u) >> (g / 8u)) & 0x01010101u) << 2u)
#define Q3_K_SCALE                                                                                 \
    (AS_I(((BYTE(block + 64, s % 8u) >> (s / 8u * 4u)) & 15u) |                                    \
          ((BYTE(block + 64, 8u + s % 4u) >> (s / 4u * 2u)) & 3u) << 4u) -                         \
     32)

KERNEL(q3_k, 110u, 340u,
       BLOCK_256(4u, dot_bytes, TWO_BITS(block + 1472) | Q3_K_HIGH, Q3_K_SCALE, SUM16(s) / 8, , , ))

/* Q6_K: quarters of 12 words, each 16 columns of four sub-blocks that are 32 weights apart. */
#define Q6_K_QUARTER       (block + 576 + (g / 32u * 2u + g / 4u % 2u) * 1536u)
#define Q6_K_LOW                                                                                   \
    ((WORD(Q6_K_QUARTER, 4u + g / 8u % 2u * 4u + g % 4u) >> (g / 16u % 2u * 4u)) & 0x0f0f0f0fu)
#define Q6_K_HIGH                                                                                  \
    (((WORD(Q6_K_QUARTER, g % 4u) >> (g / 8u % 4u * 2u)) & 0x03030303u) << 4u)
#define Q6_K_SCALE         (AS_I(BYTE(block + 64, s) << 24u) >> 24)

KERNEL(q6_k, 210u, 340u,
       BLOCK_256(4u, dot_bytes, Q6_K_LOW | Q6_K_HIGH, Q6_K_SCALE, SUM16(s), , , ))

#define IQ4_XS_SCALE                                                                               \
    (AS_I(((WORD(block + 128, 0u) >> (4u * s)) & 15u) |                                            \
          ((LOAD_U16(block + 64 + lane * 2u) >> (2u * s)) & 3u) << 4u) -                           \
     32)
#define IQ4_XS_NIBBLES                                                                             \
    ((WORD(block + 256, g / 8u * 4u + g % 4u) >> (g / 4u % 2u * 4u)) & 0x0f0f0f0fu)

KERNEL(iq4_xs, 136u, 340u, BLOCK_256(8u, dot_iq4, IQ4_XS_NIBBLES, IQ4_XS_SCALE, 0, , , ))

/* ---- Floats: a block is one k ---- */

#define BLOCK_FLOAT(VALUE)                                                                         \
    const lanes_f w = VALUE;                                                                       \
    EACH_TOKEN sum[j] = fma(w, (lanes_f)ACT_D(0u, TOKEN), sum[j]);

KERNEL(f32, 4u, 4u, BLOCK_FLOAT(AS_F(WORD(block, 0u))))
KERNEL(f16, 2u, 4u, BLOCK_FLOAT(HALF(block)))
KERNEL(bf16, 2u, 4u, BLOCK_FLOAT(AS_F(LOAD_U16(block + lane * 2u) << 16u)))

/* check_vectors.h: the results for the test numbers. */
__kernel void numbers(__global const float *restrict in, __global float *restrict out)
{
    out[0] = in[0] * in[1] + in[2];
    out[1] = fma(in[0], in[1], in[2]);
    out[2] = in[3] * in[4];
    out[3] = in[5] + in[6];
    out[4] = convert_float_rte((int)(in[2] * -16777216.0f) + 3);
    out[5] = in[7] * in[7];
}
