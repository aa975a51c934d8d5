/* Tile kernels of the quantised types for Arm, as templates over what the including file defines
 * before, for its instruction set:
 *
 *   enum { PAIRS = 0 or 1, STEP_TOKENS_32, STEP_TOKENS_256 = the most tokens of a step over blocks
 *          of 32 and of 256, 4 or 8, MOST_ROWS_256 = the most registers of rows of the latter,
 *          ROW_WORDS = words of a row that one_dot takes at a time, ROW_SUMS = registers of sums
 *          for it };
 *   static inline void words_dot(int32x4_t (*acc)[TOKEN_TILE], int8x16_t (*w)[4], int32_t n_rows,
 *                                int32_t n_words, const uint8_t *x, int32_t m, int32_t n_tokens,
 *                                int32_t fitting);
 *   static inline void one_dot(int32x4_t *acc, int8x16_t (*w)[4], const uint8_t *x, int32_t j,
 *                              int32_t fitting);
 *
 * words_dot adds the products of n_words words (2 or 4) of n_rows registers of weights, w[register]
 * [word], and of n_tokens tokens (x: see tokens_at). fitting: words_fitting of unpack.h. one_dot
 * does so for one register and a token that is alone in its tile, words j to j + ROW_WORDS - 1 of
 * the four at x.
 *
 * A step takes so many registers of rows that its sums fit the processor's registers: acc[r][t] are
 * those of register r and token t, a lane a row. With PAIRS, more than one token's are 2 x 2
 * matrices instead: acc[r][t] and acc[r][t + 1], t even, hold both tokens (lanes 0, 1 and 2, 3) of
 * rows 0, 1 and of rows 2, 3.
 *
 * A token alone goes over the weights in the order of memory where its sums leave room for all 32
 * rows. scripts/count-arm.py counts instructions per product. */
#pragma once

#include <arm_neon.h>

#include "kernel/arm/unpack.h"
#include "kernel/dot.h"

enum {
    SPAN_BLOCKS = 8, /* blocks of 32 over which sums stay in registers */
    SUM_WORDS = 4,   /* words of the low and of the high bits of sums of activations */
    ACT_WORDS = 64 + 2 * SUM_WORDS
};

typedef int32x4_t tile_sums[GROUP_REGISTERS][TOKEN_TILE];

/* Activations of a tile, a block of 256 or some of 32: as they are and, with PAIRS, also with two
 * words of two tokens side by side: [n words / 2][m / 2][2 tokens][8 bytes]. After the 64 words of
 * a block of 256 come those of its sums, [4 words][m] of each the low and the high bits. */
typedef struct tile_acts {
    const uint8_t *block, *sums, *pairs;
    int32_t m;
} tile_acts;

/* Memory for these. */
typedef struct act_space {
    uint8_t pairs[TOKEN_TILE * ACT_WORDS * 4], sums[TOKEN_TILE * 2 * SUM_WORDS * 4];
} act_space;

INLINE void words_pair(uint8_t *pairs, const uint8_t *words, int32_t n_words, int32_t m)
{
    for (int32_t j = 0; j < n_words; j += 2, words += 2 * m * 4) {
        int32_t t = 0;
        for (; t + 4 <= m; t += 4, pairs += 32) {
            const uint32_t *first = (const uint32_t *)(const void *)(words + t * 4);
            uint32x4x2_t two = {{vld1q_u32(first), vld1q_u32(first + m)}};
            vst2q_u32((uint32_t *)(void *)pairs, two);
        }
        if (t + 2 <= m) {
            const uint32_t *first = (const uint32_t *)(const void *)(words + t * 4);
            uint32x2x2_t two = {{vld1_u32(first), vld1_u32(first + m)}};
            vst2_u32((uint32_t *)(void *)pairs, two);
            pairs += 16;
        }
    }
}

INLINE void pairs_make(uint8_t *pairs, const uint8_t *words, int32_t n_words, int32_t m)
{
    if (!PAIRS)
        return;
    if (m == TOKEN_TILE)
        words_pair(pairs, words, n_words, TOKEN_TILE);
    else
        words_pair(pairs, words, n_words, m);
}

INLINE void words_store(uint8_t *to, int32x4_t words, int32_t n_tokens)
{
    if (n_tokens >= 4)
        vst1q_s32((int32_t *)(void *)to, words);
    else if (n_tokens == 2)
        vst1_s32((int32_t *)(void *)to, vget_low_s32(words));
    else
        vst1q_lane_s32((int32_t *)(void *)to, words, 0);
}

/* The sums of sub-blocks as bytes, 64 * high + low, four sub-blocks per word as scales are, of
 * n_tokens tokens (1, 2 or 4). from: -32 * sums of 16. */
INLINE void sums_split(uint8_t *to, const uint8_t *from, int32_t n_sub, int32_t m, int32_t n_tokens)
{
    for (int32_t word = 0; word < n_sub / 4; word++, to += m * 4) {
        int32x4_t low = vdupq_n_s32(0), high = low;
        UNROLL
        for (int32_t i = 0; i < 4; i++) {
            const uint8_t *at = from + (word * 4 + i) * (16 / n_sub) * m * 4;
            int32x4_t sum = vreinterpretq_s32_s8(tokens_load(at, n_tokens));
            if (n_sub == 8)
                sum = vaddq_s32(sum, vreinterpretq_s32_s8(tokens_load(at + m * 4, n_tokens)));
            sum = vnegq_s32(vshrq_n_s32(sum, 5));
            int32x4_t bits = vandq_s32(sum, vdupq_n_s32(63));
            low = i ? vorrq_s32(low, bits << (8 * i)) : bits;
            bits = vshrq_n_s32(sum, 6);
            high = i == 0   ? bits
                   : i == 1 ? vsliq_n_s32(high, bits, 8)
                   : i == 2 ? vsliq_n_s32(high, bits, 16)
                            : vsliq_n_s32(high, bits, 24);
        }
        words_store(to, low, n_tokens);
        words_store(to + SUM_WORDS * m * 4, high, n_tokens);
    }
}

/* The same of a token alone, whose sums are next to each other. */
INLINE void sums_split_one(uint8_t *to, const uint8_t *from, int32_t n_sub)
{
    int32x4_t sum[4];
    UNROLL
    for (int32_t i = 0; i < 4; i++)
        sum[i] = vld1q_s32((const int32_t *)(const void *)from + 4 * i);
    if (n_sub == 8) {
        sum[0] = vpaddq_s32(sum[0], sum[1]);
        sum[1] = vpaddq_s32(sum[2], sum[3]);
        sum[2] = sum[3] = vdupq_n_s32(0);
    }
    int16x8_t part[2];
    UNROLL
    for (int32_t i = 0; i < 2; i++)
        part[i] =
            vnegq_s16(vcombine_s16(vshrn_n_s32(sum[2 * i], 5), vshrn_n_s32(sum[2 * i + 1], 5)));
    int8x16_t low = vuzp1q_s8(vreinterpretq_s8_s16(part[0]), vreinterpretq_s8_s16(part[1]));
    int8x8_t high = vshrn_n_s16(part[0], 6);
    vst1q_s8((int8_t *)to, vandq_s8(low, vdupq_n_s8(63)));
    vst1q_s8((int8_t *)to + 16, vcombine_s8(high, vshrn_n_s16(part[1], 6)));
}

INLINE void act_sums_make(uint8_t *to, const uint8_t *from, int32_t n_sub, int32_t m)
{
#define BODY(t, n, rows) sums_split(to + (t)*4, from + (t)*4, n_sub, m, n)
    if (m == 1)
        sums_split_one(to, from, n_sub);
    else
        FOR_TOKENS(m, 4, 8, BODY);
#undef BODY
}

/* Product of a part of a group with some tokens: n_rows registers from r on, n_tokens tokens from t
 * on. The counts are constants. */
typedef struct step {
    int32_t r, n_rows, t, n_tokens;
} step;

/* The tile's m, a constant where the step takes all of a full tile. */
INLINE int32_t tile_m(const tile_acts *a, step s)
{
    return s.n_tokens == TOKEN_TILE ? TOKEN_TILE : a->m;
}

INLINE bool in_pairs(step s)
{
    return PAIRS && s.n_tokens > 1;
}

/* Number of words that are unpacked before they are multiplied. */
INLINE int32_t step_words(step s)
{
    return s.n_rows < 4 ? 4 : 2;
}

/* Words j and on of the step's tokens: words m apart, or pairs. */
INLINE const uint8_t *tokens_at(const tile_acts *a, int64_t j, step s)
{
    if (in_pairs(s)) /* j is even */
        return a->pairs + j * (tile_m(a, s) / 2) * 8 + s.t * 8;
    if (j >= 64)
        return a->sums + ((j - 64) * tile_m(a, s) + s.t) * 4;
    return a->block + (j * tile_m(a, s) + s.t) * 4;
}

INLINE void sums_zero(tile_sums acc, step s)
{
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++)
            acc[r][t] = vdupq_n_s32(0);
    }
}

INLINE void pair_swap(int32x4_t *a, int32x4_t *b)
{
    int64x2_t first = vreinterpretq_s64_s32(*a), second = vreinterpretq_s64_s32(*b);
    *a = vreinterpretq_s32_s64(vzip1q_s64(first, second));
    *b = vreinterpretq_s32_s64(vzip2q_s64(first, second));
}

/* Turns pairs into one token's rows per register. */
INLINE void pairs_part(tile_sums acc, step s)
{
    if (!in_pairs(s))
        return;
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t += 2)
            pair_swap(&acc[r][t], &acc[r][t + 1]);
    }
}

/* A number of each row in the places of acc[r][t]: all are in v. */
INLINE int32x4_t row_factor(int32x4_t v, int32_t t, step s)
{
    int64x2_t two = vreinterpretq_s64_s32(v);
    if (!in_pairs(s))
        return v;
    return vreinterpretq_s32_s64(t % 2 ? vdupq_laneq_s64(two, 1) : vdupq_laneq_s64(two, 0));
}

INLINE float32x4_t row_factor_f32(float32x4_t v, int32_t t, step s)
{
    return vreinterpretq_f32_s32(row_factor(vreinterpretq_s32_f32(v), t, s));
}

/* A number of each token: words of 32 bits, four tokens per register. The compiler would load one
 * by one what it knows to be used by lanes. */
INLINE void token_words(int32x4_t out[2], const uint8_t *from, step s)
{
    UNROLL
    for (int32_t t = 0; t < s.n_tokens; t += 4) {
        out[t / 4] = vreinterpretq_s32_s8(tokens_load(from + t * 4, s.n_tokens));
        __asm__("" : "+w"(out[t / 4]));
    }
}

/* Factors of acc[r][t], in the order of its lanes. */
INLINE int32x4_t token_factor(const int32x4_t v[2], int32_t t, step s)
{
    int32x4_t four = v[t / 4];
    if (in_pairs(s))
        return t % 4 < 2 ? vzip1q_s32(four, four) : vzip2q_s32(four, four);
    return vdupq_n_s32(four[t % 4]);
}

INLINE float32x4_t token_factor_f32(const int32x4_t v[2], int32_t t, step s)
{
    return vreinterpretq_f32_s32(token_factor(v, t, s));
}

INLINE void float_pair_swap(float32x4_t *a, float32x4_t *b)
{
    float64x2_t first = vreinterpretq_f64_f32(*a), second = vreinterpretq_f64_f32(*b);
    *a = vreinterpretq_f32_f64(vzip1q_f64(first, second));
    *b = vreinterpretq_f32_f64(vzip2q_f64(first, second));
}

/* The float sums in the places of acc[r][t], and back. */
INLINE void sums_load(float32x4_t (*to)[TOKEN_TILE], const float *sums, step s)
{
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++) {
            to[r][t] = vld1q_f32(sums + (s.t + t) * GROUP_ROWS + (s.r + r) * 4);
            if (in_pairs(s) && t % 2)
                float_pair_swap(&to[r][t - 1], &to[r][t]);
        }
    }
}

INLINE void sums_store(float *sums, float32x4_t (*from)[TOKEN_TILE], step s)
{
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++) {
            if (in_pairs(s) && t % 2 == 0)
                float_pair_swap(&from[r][t], &from[r][t + 1]);
            vst1q_f32(sums + (s.t + t) * GROUP_ROWS + (s.r + r) * 4, from[r][t]);
        }
    }
}

/* ---- Blocks of 32 ---- */

typedef struct type_32 {
    tensor_type type;
    int32_t block_bytes; /* bytes of the group's blocks */
    int32_t d, m_part;   /* offsets of the scale and of what is added (negative: nothing) */
} type_32;

INLINE float32x4_t scale_32(type_32 k, const uint8_t *block, int32_t r)
{
    if (is_decoded(k.type)) /* block: a row of scales */
        return vld1q_f32((const float *)(const void *)block + r * 4);
    return k.type == TYPE_MXFP4 ? exponents_at(block, k.d, r) : scale_at(block, k.d, r);
}

/* Adds what the offset of the weights makes of the sums of x. */
INLINE void offset_sums(tile_sums acc, tensor_type type, const tile_acts *a, step s)
{
    const int32_t offset = weights_offset(type);
    int32x4_t x[2];
    if (!offset) {
        sums_zero(acc, s);
        return;
    }
    token_words(x, a->block + ACT_32_SUM * tile_m(a, s) + s.t * 4, s);
    UNROLL
    for (int32_t t = 0; t < s.n_tokens; t += 4)
        x[t / 4] = vmulq_n_s32(x[t / 4], -offset);
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++)
            acc[r][t] = token_factor(x, t, s);
    }
}

/* The end of a block of 32: the float sums. */
INLINE void end_32(float32x4_t (*sum)[TOKEN_TILE], tile_sums acc, type_32 k, const uint8_t *block,
                   const tile_acts *a, step s)
{
    const int32_t m = tile_m(a, s);
    int32x4_t d_x[2], sum_x[2];
    token_words(d_x, a->block + ACT_32_D * m + s.t * 4, s);
    token_words(sum_x, a->block + ACT_32_SUM * m + s.t * 4, s);
    UNROLL
    for (int32_t t = 0; t < s.n_tokens; t += 4)
        sum_x[t / 4] = vreinterpretq_s32_f32(vcvtq_f32_s32(sum_x[t / 4]));
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        float32x4_t d = scale_32(k, block, s.r + r), least = d;
        if (k.m_part >= 0)
            least = scale_at(block, k.m_part, s.r + r);
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++) {
            float32x4_t factor = token_factor_f32(d_x, t, s);
            sum[r][t] = vfmaq_f32(sum[r][t], vmulq_f32(row_factor_f32(d, t, s), factor),
                                  vcvtq_f32_s32(acc[r][t]));
            if (k.m_part >= 0)
                sum[r][t] = vfmaq_f32(sum[r][t], vmulq_f32(row_factor_f32(least, t, s), factor),
                                      token_factor_f32(sum_x, t, s));
        }
    }
}

/* At most SPAN_BLOCKS blocks. */
INLINE void step_32(float *sums, type_32 k, const uint8_t *block, const uint8_t *acts,
                    const uint8_t *pairs, int32_t n_blocks, int32_t m, step s)
{
    float32x4_t sum[GROUP_REGISTERS][TOKEN_TILE];
    int32x4_t acc[GROUP_REGISTERS][TOKEN_TILE];
    sums_load(sum, sums, s);
    ROLLED
    for (int32_t i = 0; i < n_blocks; i++) {
        const tile_acts a = {acts, NULL, pairs, m};
        m = tile_m(&a, s);
        offset_sums(acc, k.type, &a, s);
        UNROLL
        for (int32_t j = 0; j < 8; j += step_words(s)) {
            int8x16_t w[GROUP_REGISTERS][4];
            UNROLL
            for (int32_t r = 0; r < s.n_rows; r++)
                run_32(w[r], k.type, block, j / 4, j % 4, step_words(s), s.r + r, in_pairs(s));
            words_dot(acc, w, s.n_rows, step_words(s), tokens_at(&a, j, s), m, s.n_tokens,
                      words_fitting(k.type));
        }
        end_32(sum, acc, k, block, &a, s);
        block += k.block_bytes;
        acts += ACT_Q8_32_BYTES * m;
        pairs += m / 2 * 2 * 32;
    }
    sums_store(sums, sum, s);
}

/* The products of a token alone with registers r to r + n_rows - 1 and the two runs of a block. */
INLINE void row_32(float *sums, type_32 k, const uint8_t *block, const uint8_t *acts,
                   int32_t n_blocks, int32_t r0, int32_t n_rows)
{
    const step s = {r0, n_rows, 0, 1};
    float32x4_t sum[GROUP_REGISTERS][TOKEN_TILE];
    int32x4_t acc[GROUP_REGISTERS][TOKEN_TILE];
    const int32_t offset = weights_offset(k.type);
    const int32_t uses = k.type == TYPE_Q8_0 ? 1 : 2; /* of a word: runs with its weights */
    sums_load(sum, sums, s);
    ROLLED
    for (int32_t i = 0; i < n_blocks; i++) {
        int32x4_t first =
            offset ? vdupq_n_s32((int32_t)load_u32(acts + ACT_32_SUM) * -offset) : vdupq_n_s32(0);
        UNROLL
        for (int32_t r = 0; r < n_rows; r++)
            acc[r][0] = first;
        UNROLL
        for (int32_t first_run = 0; first_run < 2; first_run += uses) {
            UNROLL
            for (int32_t j = 0; j < 4; j += ROW_WORDS) {
                UNROLL
                for (int32_t r = 0; r < n_rows; r++) {
                    UNROLL
                    for (int32_t run = first_run; run < first_run + uses; run++) {
                        int8x16_t w[1][4];
                        run_32(w[0], k.type, block, run, j, ROW_WORDS, r0 + r, false);
                        one_dot(acc[r], w, acts + run * 16, j, words_fitting(k.type));
                    }
                }
            }
        }
        float d_x = load_f32(acts + ACT_32_D), sum_x = (float)(int32_t)load_u32(acts + ACT_32_SUM);
        UNROLL
        for (int32_t r = 0; r < n_rows; r++) {
            float32x4_t d = vmulq_n_f32(scale_32(k, block, r0 + r), d_x);
            sum[r][0] = vfmaq_f32(sum[r][0], d, vcvtq_f32_s32(acc[r][0]));
            if (k.m_part >= 0)
                sum[r][0] = vfmaq_n_f32(sum[r][0],
                                        vmulq_n_f32(scale_at(block, k.m_part, r0 + r), d_x), sum_x);
        }
        block += k.block_bytes;
        acts += ACT_Q8_32_BYTES;
    }
    sums_store(sums, sum, s);
}

INLINE void tile_32(float *sums, type_32 k, const uint8_t *weights, const uint8_t *acts,
                    int32_t n_blocks, int32_t m)
{
    uint8_t pairs[PAIRS ? SPAN_BLOCKS * TOKEN_TILE * 32 : 1];
    if (m == 1) {
        for (int32_t r = 0; r < GROUP_REGISTERS; r += ROW_SUMS / 2)
            row_32(sums, k, weights, acts, n_blocks, r, ROW_SUMS / 2);
        return;
    }
    for (int32_t i = 0, n; i < n_blocks; i += n) {
        n = n_blocks - i < SPAN_BLOCKS ? n_blocks - i : SPAN_BLOCKS;
        for (int32_t b = 0; b < n; b++)
            pairs_make(pairs + b * (m / 2 * 2 * 32), acts + b * ACT_Q8_32_BYTES * m, 8, m);
#define BODY(t, n_tokens, rows)                                                                    \
    ROLLED                                                                                         \
    for (int32_t r = 0; r < GROUP_REGISTERS; r += rows)                                            \
    step_32(sums, k, weights, acts, pairs, n, m, (step){r, rows, t, n_tokens})
        FOR_TOKENS(m, STEP_TOKENS_32, 8, BODY);
#undef BODY
        weights += n * k.block_bytes;
        acts += n * ACT_Q8_32_BYTES * m;
    }
}

/* ---- Blocks of 256 ---- */

typedef struct type_256 {
    tensor_type type;
    int32_t block_bytes; /* bytes of the group's blocks */
    int32_t d, dmin;     /* offsets of the scales (negative: none) */
} type_256;

/* total += scale * acc, sub-block n of those that runs end. What chains add up to fits 32 bits; on
 * the way there it need not: modulo 2^32. */
INLINE void scale_add(tile_sums total, tile_sums acc, const block_scales *scales, int64_t n, step s)
{
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        int32x4_t scale = scales->scale[n][s.r + r];
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++) {
            uint32x4_t sum = vreinterpretq_u32_s32(total[r][t]);
            sum = vmlaq_u32(sum, vreinterpretq_u32_s32(acc[r][t]),
                            vreinterpretq_u32_s32(row_factor(scale, t, s)));
            total[r][t] = vreinterpretq_s32_u32(sum);
        }
    }
}

INLINE void sums_scale(tile_sums acc, int32_t factor, step s)
{
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++)
            acc[r][t] = vmulq_n_s32(acc[r][t], factor);
    }
}

INLINE void sums_less(tile_sums acc, tile_sums less, int32_t factor, step s)
{
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++) {
            uint32x4_t sum = vreinterpretq_u32_s32(acc[r][t]);
            sum = vmlsq_n_u32(sum, vreinterpretq_u32_s32(less[r][t]), (uint32_t)factor);
            acc[r][t] = vreinterpretq_s32_u32(sum);
        }
    }
}

/* out = the sum over sub-blocks of block_scales.bytes * sum of x. */
INLINE void bytes_dot(tile_sums out, const block_scales *scales, type_256 k, const tile_acts *a,
                      step s)
{
    const int32_t n_words = subs_of(k.type) / 4;
    const int32_t fitting = k.type == TYPE_Q6_K ? 1 : 4;
    sums_zero(out, s);
    UNROLL
    for (int32_t i = 0; i < 2; i++) { /* high bits, then low ones */
        UNROLL
        for (int32_t j = 0; j < n_words; j += 2) {
            int8x16_t w[GROUP_REGISTERS][4];
            UNROLL
            for (int32_t r = 0; r < s.n_rows; r++) {
                uint8x16_t two[2] = {vreinterpretq_u8_s8(scales->bytes[j][s.r + r]),
                                     vreinterpretq_u8_s8(scales->bytes[j + 1][s.r + r])};
                if (in_pairs(s))
                    words_zip(two);
                w[r][0] = vreinterpretq_s8_u8(two[0]);
                w[r][1] = vreinterpretq_s8_u8(two[1]);
            }
            words_dot(out, w, s.n_rows, 2, tokens_at(a, 64 + SUM_WORDS * (1 - i) + j, s),
                      tile_m(a, s), s.n_tokens, fitting);
        }
        if (i == 0)
            sums_scale(out, 64, s);
    }
}

/* The end of a block of 256: what sums of activations give, and the float sums. */
INLINE void end_256(float *sums, tile_sums total, type_256 k, const uint8_t *block,
                    const block_scales *scales, const tile_acts *a, step s)
{
    const int32_t offset = weights_offset(k.type);
    int32x4_t more[GROUP_REGISTERS][TOKEN_TILE], d_x[2];
    if (k.dmin >= 0 || offset)
        bytes_dot(more, scales, k, a, s);
    if (offset)
        sums_less(total, more, offset, s);
    pairs_part(total, s);
    if (k.dmin >= 0)
        pairs_part(more, s);
    token_words(d_x, a->block + ACT_256_D * tile_m(a, s) + s.t * 4, s);
    UNROLL
    for (int32_t r = 0; r < s.n_rows; r++) {
        float32x4_t d =
            is_decoded(k.type)
                ? vld1q_f32(((const decoded_step *)(const void *)block)->d[0] + (s.r + r) * 4)
                : scale_at(block, k.d, s.r + r);
        float32x4_t least = d;
        if (k.dmin >= 0)
            least = scale_at(block, k.dmin, s.r + r);
        UNROLL
        for (int32_t t = 0; t < s.n_tokens; t++) {
            float *out = sums + (s.t + t) * GROUP_ROWS + (s.r + r) * 4;
            float factor = vreinterpretq_f32_s32(d_x[t / 4])[t % 4];
            float32x4_t sum = vld1q_f32(out);
            sum = vfmaq_f32(sum, vmulq_n_f32(d, factor), vcvtq_f32_s32(total[r][t]));
            if (k.dmin >= 0)
                sum = vfmsq_f32(sum, vmulq_n_f32(least, factor), vcvtq_f32_s32(more[r][t]));
            vst1q_f32(out, sum);
        }
    }
}

INLINE void step_256(float *sums, type_256 k, const uint8_t *block, const block_scales *scales,
                     const tile_acts *a, step s)
{
    int32x4_t total[GROUP_REGISTERS][TOKEN_TILE], acc[GROUP_REGISTERS][TOKEN_TILE];
    const int32_t n_sub = subs_of(k.type);
    sums_zero(total, s);
    sums_zero(acc, s);
    ROLLED
    for (int64_t quarter = 0; quarter < 4; quarter++) {
        UNROLL
        for (int32_t run = 0; run < 4; run++) {
            const run_place at = run_at(k.type, quarter, run);
            UNROLL
            for (int32_t j = 0; j < 4; j += step_words(s)) {
                int8x16_t w[GROUP_REGISTERS][4];
                UNROLL
                for (int32_t r = 0; r < s.n_rows; r++)
                    run_256(w[r], k.type, block, quarter, run, j, step_words(s), s.r + r,
                            in_pairs(s));
                words_dot(acc, w, s.n_rows, step_words(s), tokens_at(a, at.c * 8 + at.j + j, s),
                          tile_m(a, s), s.n_tokens, words_fitting(k.type));
            }
            if (n_sub == 16 || run % 2)
                scale_add(total, acc, scales, n_sub == 16 ? quarter * 4 + run : at.c, s);
        }
    }
    end_256(sums, total, k, block, scales, a, s);
}

/* Runs that are unpacked from the same words have sums of their own, so that these words are read
 * once: how many. */
INLINE int32_t row_chains(tensor_type type)
{
    return type == TYPE_IQ4_XS || is_decoded(type) ? 1 : subs_of_16(type) ? 4 : 2;
}

/* Number of registers that a token alone takes: what its sums and the unpacking leave room for. */
INLINE int32_t row_registers(tensor_type type)
{
    if (type == TYPE_Q3_K || type == TYPE_Q5_K || type == TYPE_Q6_K)
        return 2;
    return row_chains(type) == 1 ? ROW_SUMS / 2 : ROW_SUMS / row_chains(type);
}

/* A token alone and registers r0 to r0 + n_rows - 1. */
INLINE void row_256(float *sums, type_256 k, const uint8_t *block, const block_scales *scales,
                    const tile_acts *a, int32_t r0, int32_t n_rows)
{
    const step s = {r0, n_rows, 0, 1};
    const int32_t chains = row_chains(k.type);
    const int32_t uses = chains == 4 ? 4 : (int)k.type == DECODED_16 ? 1 : 2;
    int32x4_t total[GROUP_REGISTERS][TOKEN_TILE], acc[4][GROUP_REGISTERS][TOKEN_TILE];
    sums_zero(total, s);
    UNROLL
    for (int32_t i = 0; i < chains; i++)
        sums_zero(acc[i], s);
    ROLLED
    for (int64_t quarter = 0; quarter < 4; quarter++) {
        UNROLL
        for (int32_t part = 0; part < 4 / uses; part++) {
            UNROLL
            for (int32_t j = 0; j < 4; j += ROW_WORDS) {
                UNROLL
                for (int32_t r = 0; r < n_rows; r++) {
                    UNROLL
                    for (int32_t i = 0; i < uses; i++) {
                        const int32_t run = chains == 2 ? i * 2 + part : part * uses + i;
                        const run_place at = run_at(k.type, quarter, run);
                        int8x16_t w[1][4];
                        run_256(w[0], k.type, block, quarter, run, j, ROW_WORDS, r0 + r, false);
                        one_dot(acc[chains == 1 ? 0 : i][r], w, a->block + (at.c * 8 + at.j) * 4, j,
                                words_fitting(k.type));
                    }
                }
            }
            if (chains == 2 && part == 0)
                continue;
            UNROLL
            for (int32_t i = 0; i < chains; i++)
                scale_add(total, acc[i], scales,
                          chains == 1 ? quarter * (4 / uses) + part : quarter * chains + i, s);
        }
    }
    end_256(sums, total, k, block, scales, a, s);
}

INLINE void tile_256(float *sums, type_256 k, const uint8_t *weights, const uint8_t *acts,
                     int32_t n_blocks, int32_t m)
{
    const bool sums_serve = k.dmin >= 0 || weights_offset(k.type);
    const int32_t chains = row_chains(k.type);
    const int32_t n_rows = row_registers(k.type);
    act_space space;
    block_scales scales;
    for (int32_t i = 0; i < n_blocks; i++) {
        const tile_acts a = {acts, space.sums, space.pairs, m};
        if (sums_serve)
            act_sums_make(space.sums, acts + ACT_256_SUM16 * m, subs_of(k.type), m);
        if (m == 1) {
            scales_read(&scales, k.type, weights, chains);
            for (int32_t r = 0; r < GROUP_REGISTERS; r += n_rows)
                row_256(sums, k, weights, &scales, &a, r, n_rows);
        } else {
            pairs_make(space.pairs, acts, 64, m);
            if (sums_serve)
                pairs_make(space.pairs + 64 * (m / 2 * 2) * 4, space.sums, 2 * SUM_WORDS, m);
            scales_read(&scales, k.type, weights, 1);
#define ROWS(rows) ((rows) < MOST_ROWS_256 ? (rows) : MOST_ROWS_256)
#define BODY(t, n, rows)                                                                           \
    ROLLED                                                                                         \
    for (int32_t r = 0; r < GROUP_REGISTERS; r += ROWS(rows))                                      \
    step_256(sums, k, weights, &scales, &a, (step){r, ROWS(rows), t, n})
            FOR_TOKENS(m, STEP_TOKENS_256, 8, BODY);
#undef ROWS
#undef BODY
        }
        weights += k.block_bytes;
        acts += ACT_Q8_256_BYTES * m;
    }
}

/* ---- Decoded blocks of 64 ---- */

INLINE void step_fine(float *sums, const decoded_step *w, const uint8_t *acts, const uint8_t *pairs,
                      int32_t n_blocks, int32_t m, step s)
{
    const type_32 k = {(tensor_type)DECODED_FINE, 0, 0, -1};
    float32x4_t sum[GROUP_REGISTERS][TOKEN_TILE];
    int32x4_t acc[GROUP_REGISTERS][TOKEN_TILE];
    sums_load(sum, sums, s);
    ROLLED
    for (int32_t i = 0; i < n_blocks * 4; i++) {
        const tile_acts a = {acts, NULL, pairs, m};
        m = tile_m(&a, s);
        sums_zero(acc, s);
        UNROLL
        for (int32_t j = 0; j < 4; j += step_words(s)) {
            int8x16_t q[GROUP_REGISTERS][4];
            UNROLL
            for (int32_t r = 0; r < s.n_rows; r++)
                run_decoded(q[r], w->words[0][0], i * 4 + j, step_words(s), s.r + r, in_pairs(s));
            words_dot(acc, q, s.n_rows, step_words(s), tokens_at(&a, i % 2 * 4 + j, s), m,
                      s.n_tokens, words_fitting(k.type));
        }
        end_32(sum, acc, k, (const uint8_t *)w->fine[i], &a, s);
        acts += i % 2 ? ACT_Q8_32_BYTES * m : 0;
        pairs += i % 2 ? m / 2 * 2 * 32 : 0;
    }
    sums_store(sums, sum, s);
}

INLINE void tile_fine(float *sums, const uint8_t *weights, const uint8_t *acts, int32_t n_blocks,
                      int32_t m)
{
    uint8_t pairs[PAIRS ? SPAN_BLOCKS * TOKEN_TILE * 32 : 1];
    for (int32_t b = 0; b < 2 * n_blocks; b++)
        pairs_make(pairs + b * (m / 2 * 2 * 32), acts + b * ACT_Q8_32_BYTES * m, 8, m);
#define BODY(t, n_tokens, rows)                                                                    \
    ROLLED                                                                                         \
    for (int32_t r = 0; r < GROUP_REGISTERS; r += rows)                                            \
    step_fine(sums, (const void *)weights, acts, pairs, n_blocks, m, (step){r, rows, t, n_tokens})
    FOR_TOKENS(m, STEP_TOKENS_32, 8, BODY);
#undef BODY
}

/* Tiles of decoded steps, of all coded types. */
#define DEFINE_TILE_DECODED(tier)                                                                  \
    static void tile_16_##tier(float *sums, const uint8_t *weights, const uint8_t *acts,           \
                               int32_t n_blocks, int32_t m)                                        \
    {                                                                                              \
        tile_256(sums, (type_256){(tensor_type)DECODED_16, 0, 0, -1}, weights, acts, n_blocks, m); \
    }                                                                                              \
    static void tile_32_##tier(float *sums, const uint8_t *weights, const uint8_t *acts,           \
                               int32_t n_blocks, int32_t m)                                        \
    {                                                                                              \
        tile_256(sums, (type_256){(tensor_type)DECODED_32, 0, 0, -1}, weights, acts, n_blocks, m); \
    }                                                                                              \
    static void tile_FLOAT_SUBS_##tier(float *sums, const uint8_t *weights, const uint8_t *acts,   \
                                       int32_t n_blocks, int32_t m)                                \
    {                                                                                              \
        tile_fine(sums, weights, acts, n_blocks, m);                                               \
    }
#define DEFINE_DOT_CODED(tier, TYPE, name, act, block_k, block_bytes, sub_k, ...)                  \
    static void decode_##name##_##tier(void *decoded, const uint8_t *block, int32_t n_blocks)      \
    {                                                                                              \
        decode_coded(decoded, TYPE_##TYPE, block, n_blocks);                                       \
    }                                                                                              \
    static void dot_##name##_##tier(float *y, int64_t ldy, const void *groups, int32_t n_groups,   \
                                    const void *acts, int32_t n, int64_t k, void *scratch)         \
    {                                                                                              \
        dot_decoded(TYPE_##TYPE, act, decode_##name##_##tier, tile_##sub_k##_##tier, false, y,     \
                    ldy, groups, n_groups, acts, n, k, scratch);                                   \
    }
#define SET_CODED(tier, TYPE, name, act_, block_k, block_bytes, sub_k, ...)                        \
    table->matmul[TYPE_##TYPE].dot = dot_##name##_##tier;                                          \
    table->matmul[TYPE_##TYPE].tile = tile_##sub_k##_##tier;                                       \
    table->matmul[TYPE_##TYPE].decode = decode_##name##_##tier;

/* tile_<name>_<tier> and dot_<name>_<tier> of every quantised type. */
#define DEFINE_TILE_32(tier, TYPE, name, bytes, d, m_part)                                         \
    static void tile_##name##_##tier(float *sums, const uint8_t *weights, const uint8_t *acts,     \
                                     int32_t n_blocks, int32_t m)                                  \
    {                                                                                              \
        const type_32 k = {TYPE_##TYPE, (bytes)*GROUP_ROWS, d, m_part};                            \
        tile_32(sums, k, weights, acts, n_blocks, m);                                              \
    }                                                                                              \
    DEFINE_DOT(TYPE, name, ACT_Q8_32, tier)
#define DEFINE_TILE_256(tier, TYPE, name, bytes, d, dmin)                                          \
    static void tile_##name##_##tier(float *sums, const uint8_t *weights, const uint8_t *acts,     \
                                     int32_t n_blocks, int32_t m)                                  \
    {                                                                                              \
        const type_256 k = {TYPE_##TYPE, (bytes)*GROUP_ROWS, d, dmin};                             \
        tile_256(sums, k, weights, acts, n_blocks, m);                                             \
    }                                                                                              \
    DEFINE_DOT(TYPE, name, ACT_Q8_256, tier)
#define DEFINE_TILES(tier)                                                                         \
    DEFINE_TILE_32(tier, Q4_0, q4_0, 18, Q4_0_D, -1)                                               \
    DEFINE_TILE_32(tier, Q4_1, q4_1, 20, Q4_1_D, Q4_1_M)                                           \
    DEFINE_TILE_32(tier, Q5_0, q5_0, 22, Q5_0_D, -1)                                               \
    DEFINE_TILE_32(tier, Q5_1, q5_1, 24, Q5_1_D, Q5_1_M)                                           \
    DEFINE_TILE_32(tier, Q8_0, q8_0, 34, Q8_0_D, -1)                                               \
    DEFINE_TILE_32(tier, IQ4_NL, iq4_nl, 18, IQ4_NL_D, -1)                                         \
    DEFINE_TILE_32(tier, MXFP4, mxfp4, 17, MXFP4_E, -1)                                            \
    DEFINE_TILE_256(tier, Q2_K, q2_k, 84, Q2_K_D, Q2_K_DMIN)                                       \
    DEFINE_TILE_256(tier, Q3_K, q3_k, 110, Q3_K_D, -1)                                             \
    DEFINE_TILE_256(tier, Q4_K, q4_k, 144, Q4_K_D, Q4_K_DMIN)                                      \
    DEFINE_TILE_256(tier, Q5_K, q5_k, 176, Q5_K_D, Q5_K_DMIN)                                      \
    DEFINE_TILE_256(tier, Q6_K, q6_k, 210, Q6_K_D, -1)                                             \
    DEFINE_TILE_256(tier, IQ4_XS, iq4_xs, 136, IQ4_XS_D, -1)                                       \
    DEFINE_TILE_DECODED(tier)                                                                      \
    CODED_TYPES(DEFINE_DOT_CODED, tier)

/* Sets dot of the quantised types in a table. */
#define SET_TILE(table, TYPE, name, tier)                                                          \
    (table)->matmul[TYPE].dot = dot_##name##_##tier;                                               \
    (table)->matmul[TYPE].tile = tile_##name##_##tier
#define SET_TILES(table, tier)                                                                     \
    do {                                                                                           \
        SET_TILE(table, TYPE_Q4_0, q4_0, tier);                                                    \
        SET_TILE(table, TYPE_Q4_1, q4_1, tier);                                                    \
        SET_TILE(table, TYPE_Q5_0, q5_0, tier);                                                    \
        SET_TILE(table, TYPE_Q5_1, q5_1, tier);                                                    \
        SET_TILE(table, TYPE_Q8_0, q8_0, tier);                                                    \
        SET_TILE(table, TYPE_IQ4_NL, iq4_nl, tier);                                                \
        SET_TILE(table, TYPE_MXFP4, mxfp4, tier);                                                  \
        SET_TILE(table, TYPE_Q2_K, q2_k, tier);                                                    \
        SET_TILE(table, TYPE_Q3_K, q3_k, tier);                                                    \
        SET_TILE(table, TYPE_Q4_K, q4_k, tier);                                                    \
        SET_TILE(table, TYPE_Q5_K, q5_k, tier);                                                    \
        SET_TILE(table, TYPE_Q6_K, q6_k, tier);                                                    \
        SET_TILE(table, TYPE_IQ4_XS, iq4_xs, tier);                                                \
        CODED_TYPES(SET_CODED, tier)                                                               \
    } while (0)
