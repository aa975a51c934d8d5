/* Products of packed groups of weights on a device: kernel.h's order of arithmetic, to the bit.
 *
 * A work item has LANES neighbouring rows of a group (lanes.cl) and up to TOKENS activation rows of
 * a tile, whose m >= 1 rows lie as kernel/packing.h draws them; where m is less than TOKENS the
 * last one is computed again and not stored.
 *
 * On hardware with many lanes WORKERS items share each row, all of a work group: a row's sum is a
 * chain, but its integers are not. Each worker computes those of a part of a block; then worker j
 * continues the chain of activation row j with what all have left in local memory.
 *
 *   worker   0   1   2   3 ..             0         1
 *   block    0   0   1   1 ..  | barrier | row 0 += blocks 0, 1, .. | row 1 += .. | next ones */

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
/* Half of the scale of an exponent; 0 is 2^-127. */
#define EXPONENT(part) (AS_F(max(LOAD_U8((part) + lane) << 23u, 0x00400000u)) * 0.5f)
/* Byte i of the rows, as a number. */
#define BYTE(part, i)  ((WORD(part, (i) / 4u) >> (8u * ((i) % 4u))) & 255u)

/* Words of the block of activations: word i of all rows, of row t, and the numbers after the
 * words. */
#define ACT_AT(at, i) (acts + ((at) + (uint)(i)*4u) * m)
#define ACT(at, i, t) (*(__global const int *)(ACT_AT(at, i) + (t)*4u))
#define ACT_D(at, t)  as_float(ACT(at, 0u, t))

#define EACH_TOKEN for (uint j = 0u; j < TOKENS; j++)
#define TOKEN      (j < m ? j : m - 1u)

/* x[j] = the word of row j: they lie next to each other. */
DEVICE void act_words(int *x, __global const uchar *at, uint m)
{
#if TOKENS >= 4
    if (m == TOKENS) { /* in whole vectors */
        for (uint j = 0u; j < TOKENS; j += 4u) {
            const int4 v = vload4(j / 4u, (__global const int *)at);
            x[j] = v.x, x[j + 1u] = v.y, x[j + 2u] = v.z, x[j + 3u] = v.w;
        }
        return;
    }
#endif
    EACH_TOKEN x[j] = *(__global const int *)(at + TOKEN * 4u);
}

/* acc + four unsigned bytes of each lane times four signed bytes. */
DEVICE lanes_i dot_bytes(lanes_i acc, lanes_u w, int x)
{
#ifdef DOT_4 /* an instruction of the hardware */
    return DOT_4(acc, w, x);
#else
    char4 c = as_char4(x);
    acc += AS_I(w & 255u) * (int)c.x;
    acc += AS_I((w >> 8u) & 255u) * (int)c.y;
    acc += AS_I((w >> 16u) & 255u) * (int)c.z;
    return acc + AS_I(w >> 24u) * (int)c.w;
#endif
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
#define DOT_ARGUMENTS                                                                              \
    __global const uchar *restrict groups, ulong groups_at, __global const uchar *restrict acts,   \
        ulong acts_at, __global float *restrict y, uint y_at, uint ldy, uint n_blocks, uint m
#define DOT_PLACES(BLOCK_BYTES, ACT_BLOCK_BYTES)                                                   \
    const uint row = (uint)get_global_id(0) * LANES, tile = (uint)get_group_id(1);                 \
    const uint lane = row % 32u;                                                                   \
    __global const uchar *block =                                                                  \
        groups + groups_at + (ulong)(row / 32u) * n_blocks * ((BLOCK_BYTES)*32u);                  \
    acts += acts_at + (ulong)tile * m * n_blocks * (ACT_BLOCK_BYTES);
#define DOT_STORE(j, sum) STORE_F(y + y_at + (ulong)(tile * m + (j)) * ldy + row, sum)

/* INTS makes first[] of sub-blocks [s_from, s_end) of SUBS in the block and, with SECOND, second[];
 * FOLD adds their sums over the whole block to a row's sum, with the block's d and `least`. */
#if WORKERS == 1
#define KERNEL(name, BLOCK_BYTES, ACT_BLOCK_BYTES, SUBS, SECOND, INTS, D, LEAST, FOLD)             \
    DOT_KERNEL void dot_##name(DOT_ARGUMENTS)                                                      \
    {                                                                                              \
        DOT_PLACES(BLOCK_BYTES, ACT_BLOCK_BYTES)                                                   \
        const uint s_from = 0u, s_end = SUBS;                                                      \
        lanes_f sum[TOKENS];                                                                       \
        EACH_TOKEN sum[j] = (lanes_f)0.0f;                                                         \
        for (uint b = 0u; b < n_blocks; b++) {                                                     \
            lanes_i first[TOKENS], second[TOKENS];                                                 \
            INTS const lanes_f d = D, least = LEAST;                                               \
            EACH_TOKEN sum[j] = FOLD(sum[j], TOKEN, first[j], second[j]);                          \
            block += (BLOCK_BYTES)*32u;                                                            \
            acts += (ACT_BLOCK_BYTES)*m;                                                           \
        }                                                                                          \
        EACH_TOKEN if (j < m) DOT_STORE(j, sum[j]);                                                \
    }
#else
/* Number of buffers: with two the chain continues while the next integers are computed; local
 * memory has room for one of many rows. */
#define BUFFERS         (TOKENS > 4u ? 1u : 2u)
#define PARTS_OF(SUBS)  ((SUBS) > 1u ? PARTS : 1u)
#define AT_ONCE(SUBS)   (WORKERS / PARTS_OF(SUBS))
#define KERNEL(name, BLOCK_BYTES, ACT_BLOCK_BYTES, SUBS, SECOND, INTS, D, LEAST, FOLD)             \
    DOT_KERNEL void dot_##name(DOT_ARGUMENTS)                                                      \
    {                                                                                              \
        SHARED lanes_i firsts[BUFFERS][WORKERS][TOKENS][32];                                       \
        SHARED lanes_i seconds[BUFFERS][WORKERS][(SECOND) ? TOKENS : 1u][32];                      \
        SHARED lanes_f ds[BUFFERS][AT_ONCE(SUBS)][32], leasts[BUFFERS][AT_ONCE(SUBS)][32];         \
        DOT_PLACES(BLOCK_BYTES, ACT_BLOCK_BYTES)                                                   \
        __global const uchar *const group = block, *const all_acts = acts;                         \
        const uint worker = (uint)get_local_id(1), part = worker % PARTS_OF(SUBS);                 \
        const uint s_from = part * (SUBS) / PARTS_OF(SUBS);                                        \
        const uint s_end = (part + 1u) * (SUBS) / PARTS_OF(SUBS);                                  \
        lanes_f sum = (lanes_f)0.0f;                                                               \
        for (uint from = 0u, to = 0u; from < n_blocks; from += AT_ONCE(SUBS)) {                    \
            const uint mine = worker / PARTS_OF(SUBS);                                             \
            if (from + mine < n_blocks) {                                                          \
                lanes_i first[TOKENS], second[TOKENS];                                             \
                block = group + (from + mine) * ((BLOCK_BYTES)*32u);                               \
                acts = all_acts + (from + mine) * ((ACT_BLOCK_BYTES)*m);                           \
                INTS EACH_TOKEN firsts[to][worker][j][lane] = first[j];                            \
                if (SECOND)                                                                        \
                    EACH_TOKEN seconds[to][worker][j][lane] = second[j];                           \
                if (part == 0u) {                                                                  \
                    ds[to][mine][lane] = D;                                                        \
                    leasts[to][mine][lane] = LEAST;                                                \
                }                                                                                  \
            }                                                                                      \
            BARRIER;                                                                               \
            const uint n = min(n_blocks - from, AT_ONCE(SUBS));                                    \
            for (uint b = 0u; worker < m && b < n; b++) {                                          \
                lanes_i first = (lanes_i)0, second = (lanes_i)0;                                   \
                for (uint p = b * PARTS_OF(SUBS); p < (b + 1u) * PARTS_OF(SUBS); p++) {            \
                    first += firsts[to][p][worker][lane];                                          \
                    second += (SECOND) ? seconds[to][p][worker][lane] : (lanes_i)0;                \
                }                                                                                  \
                const lanes_f d = ds[to][b][lane], least = leasts[to][b][lane];                    \
                acts = all_acts + (from + b) * ((ACT_BLOCK_BYTES)*m);                              \
                sum = FOLD(sum, worker, first, second);                                            \
            }                                                                                      \
            if (BUFFERS == 1u)                                                                     \
                BARRIER;                                                                           \
            to = (to + 1u) % BUFFERS;                                                              \
        }                                                                                          \
        if (worker < m)                                                                            \
            DOT_STORE(worker, sum);                                                                \
    }
#endif
#define NO_LEAST ((lanes_f)0.0f)

/* ---- Blocks of 32: words of four weights, c = 0 .. 7 ---- */

/* OFFSET is subtracted from each weight, by means of the sum of the activations. */
#define INTS_32(DOT, WORD_C, OFFSET)                                                               \
    int x[TOKENS];                                                                                 \
    act_words(x, ACT_AT(36u, 0u), m);                                                              \
    EACH_TOKEN first[j] = (lanes_i)(-(OFFSET)*x[j]);                                               \
    for (uint c = 0u; c < 8u; c++) {                                                               \
        const lanes_u w = WORD_C;                                                                  \
        act_words(x, ACT_AT(0u, c), m);                                                            \
        EACH_TOKEN first[j] = DOT(first[j], w, x[j]);                                              \
    }
#define FOLD_32(sum, t, first, second) fma(d * ACT_D(32u, t), TO_F(first), sum)
/* Q4_1, Q5_1: a number added to each weight. */
#define FOLD_32_LEAST(sum, t, first, second)                                                       \
    fma(least * ACT_D(32u, t), (lanes_f)convert_float_rte(ACT(36u, 0u, t)),                        \
        FOLD_32(sum, t, first, second))
#define KERNEL_32(name, BYTES, DOT, WORD_C, OFFSET, D)                                             \
    KERNEL(name, BYTES, 40u, 1u, 0, INTS_32(DOT, WORD_C, OFFSET), D, NO_LEAST, FOLD_32)
#define KERNEL_32_LEAST(name, BYTES, WORD_C)                                                       \
    KERNEL(name, BYTES, 40u, 1u, 0, INTS_32(dot_bytes, WORD_C, 0), HALF(block), HALF(block + 64),  \
           FOLD_32_LEAST)

#define NIBBLES(QS)        ((WORD(QS, c % 4u) >> (c / 4u * 4u)) & 0x0f0f0f0fu)
#define FIFTH_BITS(QH)     (((WORD(QH, 0u) >> c) & 0x01010101u) << 4u)

KERNEL_32(q4_0, 18u, dot_bytes, NIBBLES(block + 64), 8, HALF(block))
KERNEL_32_LEAST(q4_1, 20u, NIBBLES(block + 128))
KERNEL_32(q5_0, 22u, dot_bytes, NIBBLES(block + 192) | FIFTH_BITS(block + 64), 16, HALF(block))
KERNEL_32_LEAST(q5_1, 24u, NIBBLES(block + 256) | FIFTH_BITS(block + 128))
KERNEL_32(q8_0, 34u, dot_bytes, WORD(block + 64, c), 128, HALF(block))
KERNEL_32(iq4_nl, 18u, dot_iq4, NIBBLES(block + 64), 0, HALF(block))
KERNEL_32(mxfp4, 17u, dot_mxfp4_words, NIBBLES(block + 32), 0, EXPONENT(block))

/* ---- Blocks of 256: sub-blocks s of 4 or 8 words g, 64 in all ---- */

/* WORDS words of a sub-block, whose scale is SCALE_S; FROM begins the dot product, of the sum of 16
 * activations that x is -32 times of. MINIMUM is empty or adds the sub-block's to second[]. */
#define FROM_ZERO(x)   0
#define FROM_SUM(x)    (x)
#define FROM_EIGHTH(x) ((x) / 8)
#define INTS_256(WORDS, DOT, WORD_G, SCALE_S, FROM, MINIMUM)                                       \
    EACH_TOKEN first[j] = second[j] = (lanes_i)0;                                                  \
    for (uint s = s_from; s < s_end; s++) {                                                        \
        lanes_i dot[TOKENS];                                                                       \
        int x[TOKENS];                                                                             \
        act_words(x, ACT_AT(276u, s), m);                                                          \
        EACH_TOKEN dot[j] = (lanes_i)FROM(x[j]);                                                   \
        for (uint g = s * (WORDS); g < (s + 1u) * (WORDS); g++) {                                  \
            const lanes_u w = WORD_G;                                                              \
            act_words(x, ACT_AT(0u, g), m);                                                        \
            EACH_TOKEN dot[j] = DOT(dot[j], w, x[j]);                                              \
        }                                                                                          \
        const lanes_i scale = SCALE_S;                                                             \
        EACH_TOKEN first[j] += scale * dot[j];                                                     \
        MINIMUM                                                                                    \
    }
#define FOLD_256(sum, t, first, second) fma(d * ACT_D(272u, t), TO_F(first), sum)
#define FOLD_256_LEAST(sum, t, first, second)                                                      \
    fma(-(least * ACT_D(272u, t)), TO_F(second), FOLD_256(sum, t, first, second))
#define KERNEL_256(name, BYTES, WORDS, DOT, WORD_G, SCALE_S, FROM)                                 \
    KERNEL(name, BYTES, 340u, 64u / (WORDS), 0, INTS_256(WORDS, DOT, WORD_G, SCALE_S, FROM, ),     \
           HALF(block), NO_LEAST, FOLD_256)
#define KERNEL_256_LEAST(name, BYTES, WORDS, WORD_G, SCALE_S, MINIMUM)                             \
    KERNEL(name, BYTES, 340u, 64u / (WORDS), 1,                                                    \
           INTS_256(WORDS, dot_bytes, WORD_G, SCALE_S, FROM_ZERO, MINIMUM), HALF(block), HALF(block + 64), \
           FOLD_256_LEAST)

/* Minima for the activations whose sums of 16 are i .. i + 1, or only i: one is -32 times the
 * sum. */
#define SUB_MINIMUM(MIN_S, i, TWO)                                                                 \
    const lanes_i minimum = AS_I(MIN_S);                                                           \
    int z[TOKENS];                                                                                 \
    act_words(x, ACT_AT(276u, i), m);                                                              \
    act_words(z, ACT_AT(276u, (i) + 1u * (TWO)), m);                                               \
    EACH_TOKEN second[j] += minimum * ((x[j] + (TWO) * z[j]) / -32);

/* Q4_K, Q5_K: eight scales and minima of 6 bits in three words. */
#define K4_BYTE(i, s)      ((WORD(block + 128, i) >> (8u * ((s) % 4u))) & 255u)
#define K4_SCALE                                                                                   \
    AS_I(s < 4u ? K4_BYTE(0u, s) & 63u : (K4_BYTE(2u, s) & 15u) | (K4_BYTE(0u, s) >> 6u) << 4u)
#define K4_MIN                                                                                     \
    (s < 4u ? K4_BYTE(1u, s) & 63u : K4_BYTE(2u, s) >> 4u | (K4_BYTE(1u, s) >> 6u) << 4u)
#define K4_NIBBLES(QS)     ((WORD(QS, g / 16u * 8u + g % 8u) >> (g / 8u % 2u * 4u)) & 0x0f0f0f0fu)
#define K4_MINIMUM         SUB_MINIMUM(K4_MIN, 2u * s, 1)
#define Q5_K_HIGH          (((WORD(block + 512, g % 8u) >> (g / 8u)) & 0x01010101u) << 4u)

KERNEL_256_LEAST(q4_k, 144u, 8u, K4_NIBBLES(block + 512), K4_SCALE, K4_MINIMUM)
KERNEL_256_LEAST(q5_k, 176u, 8u, K4_NIBBLES(block + 1536) | Q5_K_HIGH, K4_SCALE, K4_MINIMUM)

/* Two bits of 4 words; a byte has bits of weights that are 32 apart. */
#define TWO_BITS(QS)       ((WORD(QS, g / 32u * 8u + g % 8u) >> (g % 32u / 8u * 2u)) & 0x03030303u)
#define Q2_K_SCALES        BYTE(block + 128, s)

KERNEL_256_LEAST(q2_k, 84u, 4u, TWO_BITS(block + 640), AS_I(Q2_K_SCALES & 15u),
                 SUB_MINIMUM(Q2_K_SCALES >> 4u, s, 0))

#define Q3_K_HIGH          (((WORD(block + 448, g % 8u) >> (g / 8u)) & 0x01010101u) << 2u)
#define Q3_K_SCALE                                                                                 \
    (AS_I(((BYTE(block + 64, s % 8u) >> (s / 8u * 4u)) & 15u) |                                    \
          ((BYTE(block + 64, 8u + s % 4u) >> (s / 4u * 2u)) & 3u) << 4u) -                         \
     32)

KERNEL_256(q3_k, 110u, 4u, dot_bytes, TWO_BITS(block + 1472) | Q3_K_HIGH, Q3_K_SCALE,
           FROM_EIGHTH)

/* Q6_K: quarters of 12 words, each 16 columns of four sub-blocks that are 32 weights apart. */
#define Q6_K_QUARTER       (block + 576 + (g / 32u * 2u + g / 4u % 2u) * 1536u)
#define Q6_K_LOW                                                                                   \
    ((WORD(Q6_K_QUARTER, 4u + g / 8u % 2u * 4u + g % 4u) >> (g / 16u % 2u * 4u)) & 0x0f0f0f0fu)
#define Q6_K_HIGH                                                                                  \
    (((WORD(Q6_K_QUARTER, g % 4u) >> (g / 8u % 4u * 2u)) & 0x03030303u) << 4u)
#define Q6_K_SCALE         (AS_I(BYTE(block + 64, s) << 24u) >> 24)

KERNEL_256(q6_k, 210u, 4u, dot_bytes, Q6_K_LOW | Q6_K_HIGH, Q6_K_SCALE, FROM_SUM)

#define IQ4_XS_SCALE                                                                               \
    (AS_I(((WORD(block + 128, 0u) >> (4u * s)) & 15u) |                                            \
          ((LOAD_U16(block + 64 + lane * 2u) >> (2u * s)) & 3u) << 4u) -                           \
     32)
#define IQ4_XS_NIBBLES                                                                             \
    ((WORD(block + 256, g / 8u * 4u + g % 4u) >> (g / 4u % 2u * 4u)) & 0x0f0f0f0fu)

KERNEL_256(iq4_xs, 136u, 8u, dot_iq4, IQ4_XS_NIBBLES, IQ4_XS_SCALE, FROM_ZERO)

/* ---- Floats: a block is one k ---- */

#if WORKERS == 1
#define KERNEL_FLOAT(name, BYTES, VALUE)                                                           \
    DOT_KERNEL void dot_##name(DOT_ARGUMENTS)                                                      \
    {                                                                                              \
        DOT_PLACES(BYTES, 4u)                                                                      \
        lanes_f sum[TOKENS];                                                                       \
        EACH_TOKEN sum[j] = (lanes_f)0.0f;                                                         \
        for (uint b = 0u; b < n_blocks; b++) {                                                     \
            const lanes_f w = VALUE;                                                               \
            EACH_TOKEN sum[j] = fma(w, (lanes_f)ACT_D(0u, TOKEN), sum[j]);                         \
            block += (BYTES)*32u;                                                                  \
            acts += 4u * m;                                                                        \
        }                                                                                          \
        EACH_TOKEN if (j < m) DOT_STORE(j, sum[j]);                                                \
    }
#else
/* The workers fetch the weights, each every WORKERS-th. */
#define FLOATS_AT_ONCE (WORKERS * 8u)
#define KERNEL_FLOAT(name, BYTES, VALUE)                                                           \
    DOT_KERNEL void dot_##name(DOT_ARGUMENTS)                                                      \
    {                                                                                              \
        SHARED lanes_f weights[2][FLOATS_AT_ONCE][32];                                             \
        DOT_PLACES(BYTES, 4u)                                                                      \
        __global const uchar *const group = block;                                                 \
        const uint worker = (uint)get_local_id(1);                                                 \
        lanes_f sum = (lanes_f)0.0f;                                                               \
        for (uint from = 0u, to = 0u; from < n_blocks; from += FLOATS_AT_ONCE) {                   \
            const uint n = min(n_blocks - from, FLOATS_AT_ONCE);                                   \
            for (uint i = worker; i < n; i += WORKERS) {                                           \
                block = group + (from + i) * ((BYTES)*32u);                                        \
                weights[to][i][lane] = VALUE;                                                      \
            }                                                                                      \
            BARRIER;                                                                               \
            UNROLL_8                                                                               \
            for (uint i = 0u; i < (worker < m ? n : 0u); i++)                                      \
                sum = fma(weights[to][i][lane], as_float(ACT(i * 4u, 0u, worker)), sum);           \
            acts += 4u * m * n;                                                                    \
            to = 1u - to;                                                                          \
        }                                                                                          \
        if (worker < m)                                                                            \
            DOT_STORE(worker, sum);                                                                \
    }
#endif

KERNEL_FLOAT(f32, 4u, AS_F(WORD(block, 0u)))
KERNEL_FLOAT(f16, 2u, HALF(block))
KERNEL_FLOAT(bf16, 2u, AS_F(LOAD_U16(block + lane * 2u) << 16u))

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
