/* Attention over dense blocks of the KV cache on a device: kernel.h's order of arithmetic, to the
 * bit, on the layout of kernel/attend.h.
 *
 * Pieces, each some blocks of 64 positions for some pairs (row, query head) of one key head, are
 * computed together in four steps: scores of all pairs and positions; of each pair and block the
 * maximum m, the exponentials and their sum l; their weighted sums a of the values; and, of pieces
 * that begin with the first block, all blocks folded in order. In the steps that read the cache a
 * work item has LANES positions (dimensions) of one block and PAIRS pairs. Heads are of whole
 * vectors: dimensions come in 16s. */

/* Words of a piece (opencl_attend.c); what begins is counted in numbers of its buffer, or in bytes
 * of keys and values. */
#define PIECE_KEYS   0  /* its first block's */
#define PIECE_VALUES 1
#define PIECE_Q      2  /* [pairs][head_dim] */
#define PIECE_PAIRS  3
#define PIECE_BLOCKS 4
#define PIECE_SCORES 5  /* [blocks][pairs][64] */
#define PIECE_PARTS  6  /* [blocks]: m and l, padded to 16s, and a [pairs][head_dim] */
#define PIECE_FOLDS  7  /* flag that says whether it is folded: */
#define PIECE_FIRST  8  /* from its first block on, or later */
#define PIECE_FROM   9  /* the old m and l */
#define PIECE_TO     10 /* and the new ones */
#define PIECE_SUMS   11 /* [pairs][head_dim]: a */
#define PIECE_WORDS  12

#define PAIRS     4u
#define EACH_PAIR for (uint i = 0u; i < PAIRS; i++)
/* After the last pair, that pair is computed again and not stored. */
#define PAIR (tile + i < n ? tile + i : n - 1u)

/* exp_f32 of base/fmath.h for what is not above 0, and NaN. */
DEVICE lanes_f exp_lanes(lanes_f x)
{
    const lanes_f least = (lanes_f)-87.3f, y = x < least ? least : x;
    const lanes_f n = rint(y * 0x1.715476p+0f);
    lanes_f r = fma(n, (lanes_f)-0x1.62e43p-1f, y), p = (lanes_f)0x1.6a23dp-10f;
    r = fma(n, (lanes_f)0x1.05c61p-29f, r);
    p = fma(p, r, (lanes_f)0x1.123a2p-7f);
    p = fma(p, r, (lanes_f)0x1.5558f2p-5f);
    p = fma(p, r, (lanes_f)0x1.555492p-3f);
    p = fma(p, r, (lanes_f)0x1.fffffcp-2f);
    p = fma(p, r, (lanes_f)1.0f);
    p = fma(p, r, (lanes_f)1.0f);
    p *= AS_F((TO_I(n) + 127) << 23);
    return x < least ? (lanes_f)0.0f : x != x ? x : p;
}

/* Any half, exact. */
DEVICE lanes_f any_half(lanes_u h)
{
    const lanes_u infinite = (h & 0x7fffu) << 13u | 0x7f800000u | (h & 0x8000u) << 16u;
    return (h & 0x7c00u) == 0x7c00u ? AS_F(infinite) : half_to_float(h);
}

/* Number `at` of an array, and the next ones; d: where the scales' halves begin (q8_0). */
#define NUMBER_F16(array, at)  any_half(LOAD_U16((array) + 2ul * (at)))
#define NUMBER_F32(array, at)  AS_F(LOAD_U32((array) + 4ul * (at)))
#define NUMBER_Q8_0(array, at) TO_F(LOAD_I8((array) + (at)))

/* A key's and a value's scale: 32 dimensions have one. */
#define HALF_AT(p) (*(__global const ushort *)(p))
#define KEY_D      half_to_float(LOAD_U16(group + 16u * head_dim + (step / 2u * 16u + slot) * 2u))
#define VALUE_D                                                                                    \
    half_to_float((lanes_u)((uint)HALF_AT(group + 16u * head_dim +                                 \
                                          (slot * (head_dim / 32u) + x / 32u) * 2u)))

/* s = scale * q.k: 16 sums, each over every 16th dimension, in the order in which the tree of sums
 * takes them: position o is the sum of dimension o, its four bits turned round. */
#define SCORES(name, NUMBER, SCALED)                                                               \
    __kernel void scores_##name(__global const ulong *restrict pieces,                             \
                                __global const uchar *restrict keys, __global float *restrict y,   \
                                uint tiles, uint head_dim, uint group_bytes, float scale)          \
    {                                                                                              \
        __global const ulong *piece = pieces + (uint)get_global_id(1) / tiles * PIECE_WORDS;       \
        const uint tile = (uint)get_global_id(1) % tiles * PAIRS, n = (uint)piece[PIECE_PAIRS];    \
        const uint x = (uint)get_global_id(0) * LANES, slot = x % 16u, steps = head_dim / 16u;     \
        if (x / 64u >= piece[PIECE_BLOCKS] || tile >= n)                                           \
            return;                                                                                \
        __global const float *q = (__global const float *)pieces + piece[PIECE_Q];                 \
        __global const uchar *group = keys + piece[PIECE_KEYS] + (ulong)(x / 16u) * group_bytes;   \
        lanes_f of_2[PAIRS], of_4[PAIRS], of_8[PAIRS], of_16[PAIRS];                               \
        for (uint o = 0u; o < 16u; o++) {                                                          \
            const uint lane = (o & 1u) << 3u | (o & 2u) << 1u | (o & 4u) >> 1u | o >> 3u;          \
            lanes_f sum[PAIRS];                                                                    \
            EACH_PAIR sum[i] = (lanes_f)0.0f;                                                      \
            for (uint step = 0u; step < steps; step++) {                                           \
                const lanes_f k = SCALED(KEY_D, NUMBER(group, (o * steps + step) * 16u + slot));   \
                EACH_PAIR sum[i] =                                                                 \
                    fma((lanes_f)q[PAIR * head_dim + lane + 16u * step], k, sum[i]);               \
            }                                                                                      \
            EACH_PAIR                                                                              \
            {                                                                                      \
                if ((o & 1u) == 0u) {                                                              \
                    of_2[i] = sum[i];                                                              \
                    continue;                                                                      \
                }                                                                                  \
                of_2[i] += sum[i];                                                                 \
                of_4[i] = (o & 2u) == 0u ? of_2[i] : of_4[i] + of_2[i];                            \
                if ((o & 3u) == 3u)                                                                \
                    of_8[i] = (o & 4u) == 0u ? of_4[i] : of_8[i] + of_4[i];                        \
                if ((o & 7u) == 7u)                                                                \
                    of_16[i] = (o & 8u) == 0u ? of_8[i] : of_16[i] + of_8[i];                      \
            }                                                                                      \
        }                                                                                          \
        y += piece[PIECE_SCORES] + (ulong)(x / 64u) * n * 64u + x % 64u;                           \
        EACH_PAIR if (tile + i < n)                                                                \
            STORE_F(y + (tile + i) * 64u, scale * of_16[i]);                                       \
    }

#define AS_IT_IS(d, number) (number)
#define TIMES_D(d, number)  ((d) * (number))
SCORES(f16, NUMBER_F16, AS_IT_IS)
SCORES(q8_0, NUMBER_Q8_0, TIMES_D)
SCORES(f32, NUMBER_F32, AS_IT_IS)

/* Position of a block's part, and of its a. */
#define PADDED           ((n + 15u) / 16u * 16u)
#define PART(at)         (y + piece[PIECE_PARTS] + (ulong)(at) * (2u * PADDED + n * head_dim))
#define SCORES_OF(at, i) (y + piece[PIECE_SCORES] + ((ulong)(at) * n + (i)) * 64u)

/* m, p = exp(s - m), l: of a pair and a block. */
__kernel void weigh(__global const ulong *restrict pieces, __global float *restrict y, uint blocks,
                    uint head_dim)
{
    __global const ulong *piece = pieces + (uint)get_global_id(1) / blocks * PIECE_WORDS;
    const uint block = (uint)get_global_id(1) % blocks, n = (uint)piece[PIECE_PAIRS];
    const uint pair = (uint)get_global_id(0);
    if (block >= piece[PIECE_BLOCKS] || pair >= n)
        return;
    __global float *p = SCORES_OF(block, pair), *part = PART(block);
    float m = -INFINITY, l = 0.0f;
    for (uint j = 0u; j < 64u; j++)
        m = p[j] > m ? p[j] : m;
    for (uint j = 0u; j < 64u; j += LANES)
        STORE_F(p + j, exp_lanes(LOAD_F(p + j) - m));
    for (uint j = 0u; j < 64u; j++)
        l += p[j];
    part[pair] = m;
    part[PADDED + pair] = l;
}

/* a[i] = fma(p, v[i], a[i]), position by position. */
#define VALUES(name, NUMBER, SCALED)                                                               \
    __kernel void values_##name(__global const ulong *restrict pieces,                             \
                                __global const uchar *restrict values, __global float *restrict y, \
                                uint tiles, uint head_dim, uint group_bytes)                       \
    {                                                                                              \
        __global const ulong *piece = pieces + (uint)get_global_id(1) / tiles * PIECE_WORDS;       \
        const uint tile = (uint)get_global_id(1) % tiles * PAIRS, n = (uint)piece[PIECE_PAIRS];    \
        const uint block = (uint)get_global_id(0) * LANES / head_dim;                              \
        const uint x = (uint)get_global_id(0) * LANES % head_dim;                                  \
        if (block >= piece[PIECE_BLOCKS] || tile >= n)                                             \
            return;                                                                                \
        __global const uchar *group =                                                              \
            values + piece[PIECE_VALUES] + (ulong)block * 4u * group_bytes;                        \
        __global const float *p = SCORES_OF(block, 0u);                                            \
        lanes_f sum[PAIRS];                                                                        \
        EACH_PAIR sum[i] = (lanes_f)0.0f;                                                          \
        for (uint j = 0u; j < 64u; j++) {                                                          \
            const uint slot = j % 16u;                                                             \
            const lanes_f v = SCALED(VALUE_D, NUMBER(group, slot * head_dim + x));                 \
            EACH_PAIR sum[i] = fma((lanes_f)p[PAIR * 64u + j], v, sum[i]);                         \
            group += slot == 15u ? group_bytes : 0u;                                               \
        }                                                                                          \
        __global float *a = PART(block) + 2u * PADDED + x;                                         \
        EACH_PAIR if (tile + i < n)                                                                \
            STORE_F(a + (tile + i) * head_dim, sum[i]);                                            \
    }

VALUES(f16, NUMBER_F16, AS_IT_IS)
VALUES(q8_0, NUMBER_Q8_0, TIMES_D)
VALUES(f32, NUMBER_F32, AS_IT_IS)

/* m' = max(m, m_b), c = exp(m - m'), c_b = exp(m_b - m'), l = fma(l, c, l_b * c_b), a alike. */
__kernel void fold(__global const ulong *restrict pieces, __global float *restrict y, uint pairs,
                   uint head_dim)
{
    __global const ulong *piece = pieces + (uint)get_global_id(1) / pairs * PIECE_WORDS;
    const uint pair = (uint)get_global_id(1) % pairs, n = (uint)piece[PIECE_PAIRS];
    const uint x = (uint)get_global_id(0) * LANES;
    if (!piece[PIECE_FOLDS] || pair >= n)
        return;
    __global float *to = y + piece[PIECE_TO], *sums = y + piece[PIECE_SUMS] + pair * head_dim + x;
    const bool first = piece[PIECE_FIRST] != 0u;
    __global const float *from = first ? PART(0u) : y + piece[PIECE_FROM];
    float m = from[pair], l = from[PADDED + pair];
    lanes_f a = first ? LOAD_F(PART(0u) + 2u * PADDED + pair * head_dim + x) : LOAD_F(sums);
    for (uint block = first ? 1u : 0u; block < piece[PIECE_BLOCKS]; block++) {
        __global const float *part = PART(block);
        const float m_b = part[pair], most = m_b > m ? m_b : m;
        const lanes_f c = exp_lanes((lanes_f)(m - most)), c_b = exp_lanes((lanes_f)(m_b - most));
        const lanes_f l_now = fma((lanes_f)l, c, (lanes_f)part[PADDED + pair] * c_b);
        m = most;
        l = FIRST_LANE(l_now);
        a = fma(a, c, LOAD_F(part + 2u * PADDED + pair * head_dim + x) * c_b);
    }
    STORE_F(sums, a);
    if (x == 0u) {
        to[pair] = m;
        to[PADDED + pair] = l;
    }
}
