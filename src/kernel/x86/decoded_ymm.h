/* Products of decoded weights, for the 8-lane x86 tiers: types with blocks of 256, and those with
 * blocks of 32 for many rows.
 *
 * A step of weights (32 rows, 256 of k) is decoded once, into bytes in the order of use with their
 * scales as the products want them: 13 KB, which stay in the first cache while all tiles of
 * activations pass. So a product costs what the instruction itself costs, and next to nothing
 * depends on the type. A tile goes in chunks of 16 weight rows by 4 tokens: 8 sums, two registers
 * of weights and a broadcast that feeds two products leave 5 of the 16 registers for the rest.
 *
 * Included after a tier's header and its way of forming products:
 *   part_add(part, w, x, full)    part += a word's product; full: weights of 8 bits
 *   part_total(total, part, more) a block's integer: total, where `more`, + the sum of the part
 *   part_scaled(sum, part, scale, wide)   sum += part * scale, of the lanes that
 *   scale_lanes(scale, wide)      made; wide: the part may exceed int16
 *   pairs_add(sum, a, b)          sum += the two int16 of a times the two of b
 *   start_32(acts, m, offset)     what pays a block's offset, of all tokens of a tile
 *   start_k(acts, m, s, n_subs, offset)   the same of sub-block s
 *   start_fine(words, m)          the same of 16 weights of blocks of 64
 *   CODED_OFFSET, CODED_PARTS     of coded types: the offset, and how many words a part holds */
#pragma once

#include "kernel/decoded.h"
#include "kernel/x86/words_8_ymm.h"
#include "kernel/x86/words_k_ymm.h"

enum { CHUNK_TOKENS = 4 };

_Static_assert(sizeof(decoded_step) <= DOT_DECODED_BYTES, "dot's scratch holds a step");

/* Data of a tile's tokens that products need besides the words, once for all 32 rows. */
typedef struct tile_terms {
    int32_t start[STEP_SUBS][TOKEN_TILE];     /* beginnings of blocks or sub-blocks */
    int32_t pairs[STEP_SUBS / 2][TOKEN_TILE]; /* sums of sub-blocks of 16, two int16 */
} tile_terms;

/* The first m of 8 lanes, which a tile's rows are. */
INLINE __m256i token_lanes(int m)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(m), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}

INLINE __m256i load_tokens(const uint8_t *p, int m)
{
    return _mm256_maskload_epi32((const int *)(const void *)p, token_lanes(m));
}

/* p + n, settled here: compilers would rather keep all multiples of n of an unrolled loop in
 * registers that they do not have. */
INLINE const uint8_t *stepped(const uint8_t *p, int n)
{
    p += n;
    __asm__("" : "+r"(p));
    return p;
}

INLINE void store_lanes(void *p, __m256i v)
{
    _mm256_storeu_si256((__m256i *)p, v);
}

INLINE void store_word(decoded_step *to, int word, int slice, __m256i v)
{
    store_lanes(to->words[slice / 2][word] + slice % 2 * SLICE_BYTES, v);
}

/* ---- Blocks of 32 ---- */

/* Decoders read lines in the order of memory. scales: load_halves or load_exponents. */
#define DEFINE_DECODE_32(name, block_bytes, scales, min)                                           \
    static void decode_##name(void *decoded, const uint8_t *block, int32_t n_blocks)               \
    {                                                                                              \
        decoded_step *to = decoded;                                                                \
        for (int b = 0; b < n_blocks; b++, block += (block_bytes)*GROUP_ROWS) {                    \
            UNROLL                                                                                 \
            for (int slice = 0; slice < SLICES; slice++) {                                         \
                _mm256_storeu_ps(to->d[b] + slice * SLICE_ROWS, scales(block, slice));             \
                if (min)                                                                           \
                    _mm256_storeu_ps(to->m[b] + slice * SLICE_ROWS,                                \
                                     load_halves(block + (min), slice));                           \
            }                                                                                      \
            UNROLL                                                                                 \
            for (int c = 0; c < 8; c++) {                                                          \
                UNROLL                                                                             \
                for (int slice = 0; slice < SLICES; slice++)                                       \
                    store_word(to, b * 8 + c, slice, word_##name(block, c, slice));                \
            }                                                                                      \
        }                                                                                          \
    }

/* part_words: how many words a part holds. */
INLINE void chunk_32(const int mt, float *sums, const decoded_step *w, int half,
                     const uint8_t *acts, int m, const tile_terms *terms, int t0, int n_blocks,
                     const int part_words, const bool full, const bool has_start,
                     const bool has_min)
{
    const uint8_t *q = w->words[half][0], *x = acts;
    ROLLED
    for (int b = 0; b < n_blocks; b++) {
        __m256i part[CHUNK_TOKENS][2], total[CHUNK_TOKENS][2];
        UNROLL
        for (int c = 0; c < 8; c++) {
            __m256i w0 = load_slice(q + c * HALF_BYTES, 0), w1 = load_slice(q + c * HALF_BYTES, 1);
            UNROLL
            for (int t = 0; t < mt; t++) {
                __m256i v = broadcast_word(x + t * 4);
                if (c % part_words == 0)
                    part[t][0] = part[t][1] = has_start && c == 0
                                                  ? _mm256_set1_epi32(terms->start[b][t0 + t])
                                                  : _mm256_setzero_si256();
                part[t][0] = part_add(part[t][0], w0, v, full);
                part[t][1] = part_add(part[t][1], w1, v, full);
                if (c % part_words == part_words - 1) {
                    total[t][0] = part_total(total[t][0], part[t][0], c >= part_words);
                    total[t][1] = part_total(total[t][1], part[t][1], c >= part_words);
                }
            }
            x = stepped(x, m * 4);
        }
        UNROLL
        for (int t = 0; t < mt; t++) {
            float *to = sums + t * GROUP_ROWS;
            __m256 dx = broadcast_float(x + t * 4);
            __m256i of_x = has_min ? broadcast_word(x + (m + t) * 4) : total[t][0];
            UNROLL
            for (int i = 0; i < 2; i++) {
                int row = half * HALF_ROWS + i * SLICE_ROWS;
                __m256 sum = add_scaled(_mm256_loadu_ps(to + row), _mm256_loadu_ps(w->d[b] + row),
                                        dx, total[t][i]);
                if (has_min)
                    sum = add_scaled(sum, _mm256_loadu_ps(w->m[b] + row), dx, of_x);
                _mm256_storeu_ps(to + row, sum);
            }
        }
        q += 8 * HALF_BYTES;
        x += m * 8;
    }
}

/* Defines tile_<name>_decoded, a tile kernel, on <name>_chunk: 16 rows by up to 4 tokens; mt is a
 * constant. */
#define CHUNK_CASE(name, count)                                                                    \
    case count:                                                                                    \
        name##_chunk(count, sums + t * GROUP_ROWS, w, half, acts + t * 4, m, &terms, t, n_blocks); \
        break;
#define DEFINE_DECODED(name)                                                                       \
    static void tile_##name##_decoded(float *sums, const uint8_t *weights, const uint8_t *acts,    \
                                      int32_t n_blocks, int32_t m)                                 \
    {                                                                                              \
        const decoded_step *w = (const void *)weights;                                             \
        tile_terms terms;                                                                          \
        name##_terms(&terms, acts, m, n_blocks);                                                   \
        ROLLED                                                                                     \
        for (int half = 0; half < 2; half++)                                                       \
            for (int t = 0; t < m; t += CHUNK_TOKENS)                                              \
                switch (m - t) {                                                                   \
                    CHUNK_CASE(name, 1)                                                            \
                    CHUNK_CASE(name, 2)                                                            \
                    CHUNK_CASE(name, 3)                                                            \
                default:                                                                           \
                    CHUNK_CASE(name, 4)                                                            \
                }                                                                                  \
    }

#define DEFINE_DECODED_32(name, block_bytes, scales, part_words, full, offset, min)                \
    DEFINE_DECODE_32(name, block_bytes, scales, min)                                               \
    INLINE void name##_terms(tile_terms *terms, const uint8_t *acts, int m, int n_blocks)          \
    {                                                                                              \
        for (int b = 0; (offset) && b < n_blocks; b++)                                             \
            store_lanes(terms->start[b], start_32(acts + b * ACT_Q8_32_BYTES * m, m, offset));     \
    }                                                                                              \
    INLINE void name##_chunk(const int mt, float *sums, const decoded_step *w, int half,           \
                             const uint8_t *acts, int m, const tile_terms *terms, int t0,          \
                             int n_blocks)                                                         \
    {                                                                                              \
        chunk_32(mt, sums, w, half, acts, m, terms, t0, n_blocks, part_words, full, (offset) != 0, \
                 (min) != 0);                                                                      \
    }                                                                                              \
    DEFINE_DECODED(name)

/* ---- Blocks of 256 ---- */

INLINE void decode_ends(decoded_step *to, const uint8_t *block, int slice, bool has_min)
{
    _mm256_storeu_ps(to->d[0] + slice * SLICE_ROWS, load_halves(block, slice));
    if (has_min)
        _mm256_storeu_ps(to->m[0] + slice * SLICE_ROWS, load_halves(block + 64, slice));
}

#define DEFINE_DECODE_K32(name, wide, is_signed)                                                   \
    static void decode_##name(void *decoded, const uint8_t *block, int32_t n_blocks)               \
    {                                                                                              \
        decoded_step *to = decoded;                                                                \
        (void)n_blocks; /* one is a step */                                                        \
        ROLLED                                                                                     \
        for (int slice = 0; slice < SLICES; slice++) {                                             \
            scales_32 k = scales_##name(block, slice);                                             \
            decode_ends(to, block, slice, !(is_signed));                                           \
            UNROLL                                                                                 \
            for (int s = 0; s < 8; s++) {                                                          \
                __m256i scale =                                                                    \
                    (is_signed) ? signed_byte_of(k.scale[s / 4], s) : byte_of(k.scale[s / 4], s);  \
                store_lanes(to->scale[s] + slice * SLICE_ROWS, scale_lanes(scale, wide));          \
            }                                                                                      \
            for (int p = 0; !(is_signed) && p < 4; p++)                                            \
                store_lanes(to->min[p] + slice * SLICE_ROWS,                                       \
                            p % 2 ? _mm256_srli_epi16(k.min[p / 2], 8)                             \
                                  : _mm256_and_si256(k.min[p / 2], _mm256_set1_epi16(255)));       \
        }                                                                                          \
        ROLLED                                                                                     \
        for (int s = 0; s < 8; s += 2) {                                                           \
            UNROLL                                                                                 \
            for (int c = 0; c < 8; c++) {                                                          \
                UNROLL                                                                             \
                for (int slice = 0; slice < SLICES; slice++) {                                     \
                    store_word(to, s * 8 + c, slice, word_##name(block, s, c, slice));             \
                    store_word(to, s * 8 + 8 + c, slice, word_##name(block, s + 1, c, slice));     \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

#define DEFINE_DECODE_K16(name, wide, has_min)                                                     \
    static void decode_##name(void *decoded, const uint8_t *block, int32_t n_blocks)               \
    {                                                                                              \
        decoded_step *to = decoded;                                                                \
        (void)n_blocks;                                                                            \
        ROLLED                                                                                     \
        for (int slice = 0; slice < SLICES; slice++) {                                             \
            scales_16 k = scales_##name(block, slice);                                             \
            decode_ends(to, block, slice, has_min);                                                \
            UNROLL                                                                                 \
            for (int s = 0; s < 16; s++) {                                                         \
                store_lanes(to->scale[s] + slice * SLICE_ROWS,                                     \
                            scale_lanes(signed_byte_of(k.scale[s / 4], s), wide));                 \
            }                                                                                      \
            for (int p = 0; (has_min) && p < 8; p++) /* 4 bits each */                             \
                store_lanes(                                                                       \
                    to->min[p] + slice * SLICE_ROWS,                                               \
                    _mm256_or_si256(byte_of(k.min[p / 2], 2 * p),                                  \
                                    _mm256_slli_epi32(byte_of(k.min[p / 2], 2 * p + 1), 16)));     \
        }                                                                                          \
        ROLLED                                                                                     \
        for (int p = 0; p < 4; p++) {                                                              \
            UNROLL                                                                                 \
            for (int c = 0; c < 4; c++) {                                                          \
                UNROLL                                                                             \
                for (int slice = 0; slice < SLICES; slice++) {                                     \
                    UNROLL                                                                         \
                    for (int j = 0; j < 4; j++)                                                    \
                        store_word(to, p / 2 * 32 + j * 8 + p % 2 * 4 + c, slice,                  \
                                   word_##name(block, p, j, c, slice));                            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

/* Sums of sub-blocks 2 p and 2 p + 1 of 16 as int16, of all tokens. */
INLINE __m256i pairs_16(const uint8_t *acts, int m, int p)
{
    const uint8_t *sum16 = acts + (ACT_256_SUM16 + p * 8) * m; /* times -32 */
    const __m256i zero = _mm256_setzero_si256();
    __m256i a = _mm256_sub_epi32(zero, _mm256_srai_epi32(load_tokens(sum16, m), 5));
    __m256i b = _mm256_sub_epi32(zero, _mm256_srai_epi32(load_tokens(sum16 + m * 4, m), 5));
    return _mm256_blend_epi16(a, _mm256_slli_epi32(b, 16), 0xaa);
}

/* The float end of 16 rows by mt tokens; pairs: ld tokens apart. */
INLINE void chunk_finish(const int mt, float *sums, const decoded_step *w, int half,
                         const uint8_t *acts, int m, const uint8_t *pairs, int ld,
                         __m256i (*products)[2], const int n_pairs)
{
    const int row = half * HALF_ROWS;
    UNROLL
    for (int t = 0; t < mt; t++) {
        float *to = sums + t * GROUP_ROWS + row;
        __m256 dx = broadcast_float(acts + ACT_256_D * m + t * 4);
        __m256i minima[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
        UNROLL
        for (int p = 0; p < n_pairs; p++) {
            __m256i x = broadcast_word(pairs + (p * ld + t) * 4);
            UNROLL
            for (int i = 0; i < 2; i++)
                minima[i] =
                    pairs_add(minima[i], x, load_slice((const uint8_t *)(w->min[p] + row), i));
        }
        UNROLL
        for (int i = 0; i < 2; i++) {
            __m256 sum =
                add_scaled(_mm256_loadu_ps(to + i * SLICE_ROWS),
                           _mm256_loadu_ps(w->d[0] + row + i * SLICE_ROWS), dx, products[t][i]);
            if (n_pairs)
                sum = _mm256_fnmadd_ps(
                    _mm256_mul_ps(_mm256_loadu_ps(w->m[0] + row + i * SLICE_ROWS), dx),
                    _mm256_cvtepi32_ps(minima[i]), sum);
            _mm256_storeu_ps(to + i * SLICE_ROWS, sum);
        }
    }
}

INLINE void chunk_k(const int mt, float *sums, const decoded_step *w, int half, const uint8_t *acts,
                    int m, const tile_terms *terms, int t0, const int n_subs, const int part_words,
                    const bool full, const bool wide, const bool has_start, const int n_pairs)
{
    const int n_words = STEP_WORDS / n_subs;
    const uint8_t *q = w->words[half][0], *x = acts;
    __m256i products[CHUNK_TOKENS][2];
    UNROLL
    for (int t = 0; t < mt; t++)
        products[t][0] = products[t][1] = _mm256_setzero_si256();
    ROLLED
    for (int s = 0; s < n_subs; s++) {
        const uint8_t *scales = (const uint8_t *)(w->scale[s] + half * HALF_ROWS);
        __m256i part[CHUNK_TOKENS][2];
        UNROLL
        for (int c = 0; c < n_words; c++) {
            __m256i w0 = load_slice(q + c * HALF_BYTES, 0), w1 = load_slice(q + c * HALF_BYTES, 1);
            UNROLL
            for (int t = 0; t < mt; t++) {
                __m256i v = broadcast_word(x + t * 4);
                if (c % part_words == 0)
                    part[t][0] = part[t][1] = has_start && c == 0
                                                  ? _mm256_set1_epi32(terms->start[s][t0 + t])
                                                  : _mm256_setzero_si256();
                part[t][0] = part_add(part[t][0], w0, v, full);
                part[t][1] = part_add(part[t][1], w1, v, full);
            }
            x = stepped(x, m * 4);
            if (c % part_words != part_words - 1)
                continue;
            UNROLL
            for (int t = 0; t < mt; t++) {
                UNROLL
                for (int i = 0; i < 2; i++)
                    products[t][i] =
                        part_scaled(products[t][i], part[t][i], load_slice(scales, i), wide);
            }
        }
        q += n_words * HALF_BYTES;
    }
    if (n_pairs == 4)
        chunk_finish(mt, sums, w, half, acts, m, acts + ACT_256_PAIRS * m, m, products, n_pairs);
    else
        chunk_finish(mt, sums, w, half, acts, m, (const uint8_t *)&terms->pairs[0][t0], TOKEN_TILE,
                     products, n_pairs);
}

#define DEFINE_DECODED_K(name, n_subs, part_words, full, wide, offset, n_pairs)                    \
    INLINE void name##_terms(tile_terms *terms, const uint8_t *acts, int m, int n_blocks)          \
    {                                                                                              \
        (void)n_blocks;                                                                            \
        for (int s = 0; (offset) && s < (n_subs); s++)                                             \
            store_lanes(terms->start[s], start_k(acts, m, s, n_subs, offset));                     \
        for (int p = 0; (n_subs) == 16 && p < (n_pairs); p++)                                      \
            store_lanes(terms->pairs[p], pairs_16(acts, m, p));                                    \
    }                                                                                              \
    INLINE void name##_chunk(const int mt, float *sums, const decoded_step *w, int half,           \
                             const uint8_t *acts, int m, const tile_terms *terms, int t0,          \
                             int n_blocks)                                                         \
    {                                                                                              \
        (void)n_blocks;                                                                            \
        chunk_k(mt, sums, w, half, acts, m, terms, t0, n_subs, part_words, full, wide,             \
                (offset) != 0, n_pairs);                                                           \
    }                                                                                              \
    DEFINE_DECODED(name)

#define DEFINE_DECODED_K32(name, part_words, wide, offset, is_signed)                              \
    DEFINE_DECODE_K32(name, wide, is_signed)                                                       \
    DEFINE_DECODED_K(name, 8, part_words, is_signed, wide, offset, (is_signed) ? 0 : 4)

#define DEFINE_DECODED_K16(name, part_words, wide, offset, has_min)                                \
    DEFINE_DECODE_K16(name, wide, has_min)                                                         \
    DEFINE_DECODED_K(name, 16, part_words, false, wide, offset, (has_min) ? 8 : 0)

/* ---- Coded types ---- */

/* Makes what decode_coded left what products take. */
INLINE void step_adapt(decoded_step *to, const int sub_k)
{
    const __m256i flip = _mm256_set1_epi8((char)CODED_OFFSET);
    for (int i = 0; CODED_OFFSET > 0 && i < 2 * STEP_WORDS * 2; i++) {
        uint8_t *at = (uint8_t *)to->words + i * SLICE_BYTES;
        store_lanes(at, _mm256_xor_si256(load_slice(at, 0), flip));
    }
    for (int s = 0; sub_k != FLOAT_SUBS && s < 256 / sub_k; s++)
        for (int slice = 0; slice < SLICES; slice++) {
            uint8_t *at = (uint8_t *)to->scale[s];
            store_lanes(at + slice * SLICE_BYTES, scale_lanes(load_slice(at, slice), true));
        }
}

/* Blocks of 64, of two blocks of activations each. */
INLINE void chunk_fine(const int mt, float *sums, const decoded_step *w, int half,
                       const uint8_t *acts, int m, const tile_terms *terms, int t0, int n_blocks)
{
    const uint8_t *q = w->words[half][0], *x = acts;
    ROLLED
    for (int s = 0; s < n_blocks * 4; s++) {
        __m256i total[CHUNK_TOKENS][2], part[CHUNK_TOKENS][2];
        UNROLL
        for (int c = 0; c < 4; c++) {
            __m256i w0 = load_slice(q + c * HALF_BYTES, 0), w1 = load_slice(q + c * HALF_BYTES, 1);
            UNROLL
            for (int t = 0; t < mt; t++) {
                __m256i v = broadcast_word(x + t * 4);
                if (c == 0)
                    part[t][0] = part[t][1] = CODED_OFFSET > 0
                                                  ? _mm256_set1_epi32(terms->start[s][t0 + t])
                                                  : _mm256_setzero_si256();
                part[t][0] = part_add(part[t][0], w0, v, true);
                part[t][1] = part_add(part[t][1], w1, v, true);
            }
            x = stepped(x, m * 4);
        }
        const uint8_t *d = x + (s % 2 ? 0 : 4 * m * 4);
        UNROLL
        for (int t = 0; t < mt; t++) {
            __m256 dx = broadcast_float(d + t * 4);
            UNROLL
            for (int i = 0; i < 2; i++) {
                float *to = sums + t * GROUP_ROWS + half * HALF_ROWS + i * SLICE_ROWS;
                const float *fine = w->fine[s] + half * HALF_ROWS + i * SLICE_ROWS;
                total[t][i] = part_total(part[t][i], part[t][i], false);
                _mm256_storeu_ps(
                    to, add_scaled(_mm256_loadu_ps(to), _mm256_loadu_ps(fine), dx, total[t][i]));
            }
        }
        q += 4 * HALF_BYTES;
        x += s % 2 ? m * 8 : 0;
    }
}

#define DEFINE_DECODED_CODED(X, TYPE, name, act, block_k, block_bytes, sub_k, ...)                 \
    static void decode_##name(void *decoded, const uint8_t *block, int32_t n_blocks)               \
    {                                                                                              \
        decode_coded_avx2(decoded, TYPE_##TYPE, block, n_blocks);                                  \
        step_adapt(decoded, sub_k);                                                                \
    }                                                                                              \
    INLINE void name##_terms(tile_terms *terms, const uint8_t *acts, int m, int n_blocks)          \
    {                                                                                              \
        const int n_subs = 256 / (sub_k);                                                          \
        for (int s = 0; CODED_OFFSET > 0 && (sub_k) == FLOAT_SUBS && s < n_blocks * 4; s++)        \
            store_lanes(terms->start[s],                                                           \
                        start_fine(acts + s / 2 * ACT_Q8_32_BYTES * m + s % 2 * 16 * m, m));       \
        for (int s = 0; CODED_OFFSET > 0 && (sub_k) != FLOAT_SUBS && s < n_subs; s++)              \
            store_lanes(terms->start[s], start_k(acts, m, s, n_subs, CODED_OFFSET));               \
    }                                                                                              \
    INLINE void name##_chunk(const int mt, float *sums, const decoded_step *w, int half,           \
                             const uint8_t *acts, int m, const tile_terms *terms, int t0,          \
                             int n_blocks)                                                         \
    {                                                                                              \
        const int n_subs = 256 / (sub_k);                                                          \
        if ((sub_k) == FLOAT_SUBS)                                                                 \
            chunk_fine(mt, sums, w, half, acts, m, terms, t0, n_blocks);                           \
        else                                                                                       \
            chunk_k(mt, sums, w, half, acts, m, terms, t0, n_subs, CODED_PARTS(n_subs), true,      \
                    true, CODED_OFFSET != 0, 0);                                                   \
    }                                                                                              \
    DEFINE_DECODED(name)

/* ---- The table ---- */

#define DEFINE_DOT_DECODED(TYPE, name, act, block_k, block_bytes)                                  \
    static void dot_##name##_decoded(float *y, int64_t ldy, const void *groups, int32_t n_groups,  \
                                     const void *acts, int32_t n, int64_t k, void *scratch)        \
    {                                                                                              \
        dot_decoded(TYPE_##TYPE, act, decode_##name, tile_##name##_decoded, false, y, ldy, groups, \
                    n_groups, acts, n, k, scratch);                                                \
    }

#define SET_DECODED_32(TYPE, name, act, block_k, block_bytes)                                      \
    table->matmul[TYPE_##TYPE].dot_many = dot_##name##_decoded;                                    \
    table->matmul[TYPE_##TYPE].many_from = MANY_32;
#define SET_DECODED_256(TYPE, name, act, block_k, block_bytes)                                     \
    table->matmul[TYPE_##TYPE].dot = dot_##name##_decoded;                                         \
    table->matmul[TYPE_##TYPE].tile = tile_##name##_decoded;                                       \
    table->matmul[TYPE_##TYPE].decode = decode_##name;

/* Defines decoded_<tier>_set, after the types and MANY_32: blocks of 32 from so many rows. */
#define DEFINE_DECODED_SET(tier)                                                                   \
    KERNEL_INTEGER_TYPES(DEFINE_DOT_DECODED)                                                       \
    KERNEL_CODED_TYPES(DEFINE_DOT_DECODED)                                                         \
    void decoded_##tier##_set(kernel_table *table)                                                 \
    {                                                                                              \
        KERNEL_TYPES_32(SET_DECODED_32)                                                            \
        KERNEL_TYPES_256(SET_DECODED_256)                                                          \
        KERNEL_CODED_TYPES(SET_DECODED_256)                                                        \
    }
