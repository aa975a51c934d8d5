/* Tile kernels of the types with blocks of 256, AVX2. The 16-bit sums of a sub-block are multiplied
 * by its scale as they are widened (vpmaddwd), which is exact. */
#include "kernel/x86/tile_avx2.h"

/* Byte s % 4 of each 32-bit lane of words. */
INLINE __m256i byte_of(__m256i words, int s)
{
    __m256i v = _mm256_srl_epi32(words, _mm_cvtsi32_si128(8 * (s % 4)));
    return _mm256_and_si256(v, _mm256_set1_epi32(255));
}

INLINE __m256i signed_byte_of(__m256i words, int s)
{
    __m256i v = _mm256_sll_epi32(words, _mm_cvtsi32_si128(24 - 8 * (s % 4)));
    return _mm256_srai_epi32(v, 24);
}

/* ---- Sub-blocks of 32 ---- */

/* Scales of sub-blocks 0..3 and 4..7, a byte each; minima likewise (Q4_K and Q5_K). */
typedef struct scales_32 {
    __m256i scale[2], min[2];
} scales_32;

INLINE scales_32 scales_k4(const uint8_t *scales, int slice)
{
    __m256i a = load_slice(scales, slice), b = load_slice(scales + WORD_BYTES, slice);
    __m256i c = load_slice(scales + 2 * WORD_BYTES, slice);
    scales_32 k;
    k.scale[0] = field(a, 0, 6);
    k.scale[1] = _mm256_or_si256(field(c, 0, 4), _mm256_slli_epi16(field(a, 6, 2), 4));
    k.min[0] = field(b, 0, 6);
    k.min[1] = _mm256_or_si256(field(c, 4, 4), _mm256_slli_epi16(field(b, 6, 2), 4));
    return k;
}

INLINE scales_32 scales_q4_k(const uint8_t *block, int slice)
{
    return scales_k4(block + Q4_K_SCALES, slice);
}

INLINE scales_32 scales_q5_k(const uint8_t *block, int slice)
{
    return scales_k4(block + Q5_K_SCALES, slice);
}

INLINE scales_32 scales_iq4_xs(const uint8_t *block, int slice)
{
    __m256i low = load_slice(block + IQ4_XS_SCALES_L, slice);
    __m256i high = _mm256_cvtepu16_epi32(_mm_loadu_si128(
        (const __m128i *)(const void *)(block + IQ4_XS_SCALES_H + slice * SLICE_ROWS * 2)));
    scales_32 k;
    UNROLL
    for (int w = 0; w < 2; w++) {
        __m256i bytes = _mm256_setzero_si256();
        UNROLL
        for (int s = 0; s < 4; s++) {
            __m256i l =
                _mm256_and_si256(_mm256_srli_epi32(low, 16 * w + 4 * s), _mm256_set1_epi32(15));
            __m256i h =
                _mm256_and_si256(_mm256_srli_epi32(high, 8 * w + 2 * s), _mm256_set1_epi32(3));
            __m256i v = _mm256_or_si256(l, _mm256_slli_epi32(h, 4));
            bytes = _mm256_or_si256(bytes, _mm256_slli_epi32(v, 8 * s));
        }
        k.scale[w] = _mm256_sub_epi8(bytes, _mm256_set1_epi8(32));
        k.min[w] = _mm256_setzero_si256();
    }
    return k;
}

/* Word c of sub-block s. */
INLINE __m256i word_q4_k(const uint8_t *block, int s, int c, int slice)
{
    __m256i v = load_slice(block + Q4_K_QS + (s / 2 * 8 + c) * WORD_BYTES, slice);
    v = _mm256_srl_epi16(v, _mm_cvtsi32_si128(s % 2 * 4));
    return field(v, 0, 4);
}

INLINE __m256i word_q5_k(const uint8_t *block, int s, int c, int slice)
{
    __m256i v = load_slice(block + Q5_K_QS + (s / 2 * 8 + c) * WORD_BYTES, slice);
    v = _mm256_srl_epi16(v, _mm_cvtsi32_si128(s % 2 * 4));
    __m256i h = load_slice(block + Q5_K_QH + c * WORD_BYTES, slice);
    h = _mm256_srl_epi16(h, _mm_cvtsi32_si128(s));
    return _mm256_or_si256(field(v, 0, 4), bit_at(h, 0, 4));
}

INLINE __m256i word_iq4_xs(const uint8_t *block, int s, int c, int slice)
{
    __m256i v = load_slice(block + IQ4_XS_QS + (s * 4 + c % 4) * WORD_BYTES, slice);
    return _mm256_shuffle_epi8(iq4_table(), field(v, c / 4 * 4, 4));
}

/* Sum over the sub-blocks of min * sum(x) of token t. */
INLINE __m256i minima_sum(const __m256i min[2], const uint8_t *acts, int m, int t)
{
    __m256i sum = _mm256_setzero_si256();
    UNROLL
    for (int p = 0; p < 4; p++) {
        __m256i x = broadcast_word(acts + ACT_256_PAIRS * m + (p * m + t) * 4);
        __m256i pair = p % 2 ? _mm256_srli_epi16(min[p / 2], 8)
                             : _mm256_and_si256(min[p / 2], _mm256_set1_epi16(255));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pair, x));
    }
    return sum;
}

/* words: how many words' products fit 16 bits. IQ4_XS alone is signed and has no minima. */
#define DEFINE_TILE_K32(name, block_bytes, words, is_signed)                                       \
    INLINE void name##_chunk(const int mt, float *sums, const uint8_t *block, const uint8_t *acts, \
                             int m, int slice)                                                     \
    {                                                                                              \
        scales_32 k = scales_##name(block, slice);                                                 \
        __m256i products[CHUNK_ROWS], part[CHUNK_ROWS];                                            \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++)                                                               \
            products[t] = _mm256_setzero_si256();                                                  \
        for (int s = 0; s < 8; s++) {                                                              \
            __m256i scale =                                                                        \
                (is_signed) ? signed_byte_of(k.scale[s / 4], s) : byte_of(k.scale[s / 4], s);      \
            scale = both_halves(scale);                                                            \
            UNROLL                                                                                 \
            for (int c = 0; c < 8; c++) {                                                          \
                __m256i w = word_##name(block, s, c, slice);                                       \
                UNROLL                                                                             \
                for (int t = 0; t < mt; t++) {                                                     \
                    __m256i x = broadcast_word(acts + ((s * 8 + c) * m + t) * 4);                  \
                    __m256i p = products_16(w, x, is_signed);                                      \
                    part[t] = c % (words) ? _mm256_add_epi16(part[t], p) : p;                      \
                    if (c % (words) == (words)-1)                                                  \
                        products[t] =                                                              \
                            _mm256_add_epi32(products[t], _mm256_madd_epi16(part[t], scale));      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        __m256 dw = load_halves(block, slice), mw = load_halves(block + 64, slice);                \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++) {                                                             \
            __m256 dx = broadcast_float(acts + ACT_256_D * m + t * 4);                             \
            __m256 sum = add_scaled(_mm256_loadu_ps(sums + t * GROUP_ROWS), dw, dx, products[t]);  \
            if (!(is_signed))                                                                      \
                sum = _mm256_fnmadd_ps(_mm256_mul_ps(mw, dx),                                      \
                                       _mm256_cvtepi32_ps(minima_sum(k.min, acts, m, t)), sum);    \
            _mm256_storeu_ps(sums + t * GROUP_ROWS, sum);                                          \
        }                                                                                          \
    }                                                                                              \
    DEFINE_TILE(name, block_bytes, ACT_Q8_256_BYTES)

DEFINE_TILE_K32(q4_k, 144, 8, false)
DEFINE_TILE_K32(q5_k, 176, 4, false)
DEFINE_TILE_K32(iq4_xs, 136, 1, true)

/* ---- Sub-blocks of 16 ---- */

/* Scale bytes of four sub-blocks a word; minima likewise (Q2_K). */
typedef struct scales_16 {
    __m256i scale[4], min[4];
} scales_16;

INLINE scales_16 scales_q6_k(const uint8_t *block, int slice)
{
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        k.scale[w] = load_slice(block + Q6_K_SCALES + w * WORD_BYTES, slice);
        k.min[w] = _mm256_setzero_si256();
    }
    return k;
}

INLINE scales_16 scales_q3_k(const uint8_t *block, int slice)
{
    const uint8_t *at = block + Q3_K_SCALES;
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        __m256i low = field(load_slice(at + w % 2 * WORD_BYTES, slice), w / 2 * 4, 4);
        __m256i high = field(load_slice(at + 2 * WORD_BYTES, slice), 2 * w, 2);
        __m256i scale = _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
        k.scale[w] = _mm256_sub_epi8(scale, _mm256_set1_epi8(32));
        k.min[w] = _mm256_setzero_si256();
    }
    return k;
}

INLINE scales_16 scales_q2_k(const uint8_t *block, int slice)
{
    scales_16 k;
    UNROLL
    for (int w = 0; w < 4; w++) {
        __m256i v = load_slice(block + Q2_K_SCALES + w * WORD_BYTES, slice);
        k.scale[w] = field(v, 0, 4);
        k.min[w] = field(v, 4, 4);
    }
    return k;
}

/* Word c of sub-block j of four, 32 weights apart, in quarter p (as in tile_sub16_avx512.c). */
INLINE __m256i word_q6_k(const uint8_t *block, int p, int j, int c, int slice)
{
    const uint8_t *qh = block + Q6_K_QUANTS + p * Q6_K_QUARTER_BYTES + c * WORD_BYTES;
    __m256i low = field(load_slice(qh + (4 + j % 2 * 4) * WORD_BYTES, slice), j / 2 * 4, 4);
    __m256i high = field(load_slice(qh, slice), 2 * j, 2);
    return _mm256_or_si256(low, _mm256_slli_epi16(high, 4));
}

INLINE __m256i word_q3_k(const uint8_t *block, int p, int j, int c, int slice)
{
    __m256i v = load_slice(block + Q3_K_QS + (p * 4 + c) * WORD_BYTES, slice);
    __m256i h = load_slice(block + Q3_K_HMASK + (p % 2 * 4 + c) * WORD_BYTES, slice);
    h = _mm256_srl_epi16(h, _mm_cvtsi32_si128(p / 2 * 4));
    return _mm256_or_si256(field(v, 2 * j, 2), bit_at(h, j, 2));
}

INLINE __m256i word_q2_k(const uint8_t *block, int p, int j, int c, int slice)
{
    return field(load_slice(block + Q2_K_QS + (p * 4 + c) * WORD_BYTES, slice), 2 * j, 2);
}

/* words: how many words' products fit 16 bits. offset: 0, 4 or 32, paid through the sums of x (the
 * activations carry -32 times those). */
#define DEFINE_TILE_K16(name, block_bytes, words, offset, has_min)                                 \
    INLINE void name##_chunk(const int mt, float *sums, const uint8_t *block, const uint8_t *acts, \
                             int m, int slice)                                                     \
    {                                                                                              \
        scales_16 k = scales_##name(block, slice);                                                 \
        __m256i products[CHUNK_ROWS], minima[CHUNK_ROWS], part[CHUNK_ROWS];                        \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++)                                                               \
            products[t] = minima[t] = _mm256_setzero_si256();                                      \
        for (int p = 0; p < 4; p++) {                                                              \
            UNROLL                                                                                 \
            for (int j = 0; j < 4; j++) {                                                          \
                int s = p / 2 * 8 + j * 2 + p % 2;                                                 \
                const uint8_t *x = acts + (p / 2 * 32 + j * 8 + p % 2 * 4) * m * 4;                \
                const uint8_t *sum16 = acts + (ACT_256_SUM16 + s * 4) * m;                         \
                __m256i scale = signed_byte_of(k.scale[s / 4], s);                                 \
                __m256i min = signed_byte_of(k.min[s / 4], s);                                     \
                __m256i scale16 = both_halves(scale);                                              \
                UNROLL                                                                             \
                for (int c = 0; c < 4; c++) {                                                      \
                    __m256i w = word_##name(block, p, j, c, slice);                                \
                    UNROLL                                                                         \
                    for (int t = 0; t < mt; t++) {                                                 \
                        __m256i v = products_16(w, broadcast_word(x + (c * m + t) * 4), false);    \
                        part[t] = c % (words) ? _mm256_add_epi16(part[t], v) : v;                  \
                        if (c % (words) == (words)-1)                                              \
                            products[t] = _mm256_add_epi32(products[t],                            \
                                                           _mm256_madd_epi16(part[t], scale16));   \
                    }                                                                              \
                }                                                                                  \
                UNROLL                                                                             \
                for (int t = 0; t < mt; t++) {                                                     \
                    __m256i v = broadcast_word(sum16 + t * 4);                                     \
                    if (offset)                                                                    \
                        products[t] = _mm256_add_epi32(                                            \
                            products[t],                                                           \
                            _mm256_mullo_epi32(scale,                                              \
                                               (offset) == 32 ? v : _mm256_srai_epi32(v, 3)));     \
                    if (has_min)                                                                   \
                        minima[t] = _mm256_add_epi32(minima[t], _mm256_mullo_epi32(min, v));       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        __m256 dw = load_halves(block, slice), mw = load_halves(block + 64, slice);                \
        UNROLL                                                                                     \
        for (int t = 0; t < mt; t++) {                                                             \
            __m256 dx = broadcast_float(acts + ACT_256_D * m + t * 4);                             \
            __m256 sum = add_scaled(_mm256_loadu_ps(sums + t * GROUP_ROWS), dw, dx, products[t]);  \
            if (has_min) { /* minima is -32 times what it should be */                             \
                __m256i v =                                                                        \
                    _mm256_sub_epi32(_mm256_setzero_si256(), _mm256_srai_epi32(minima[t], 5));     \
                sum = _mm256_fnmadd_ps(_mm256_mul_ps(mw, dx), _mm256_cvtepi32_ps(v), sum);         \
            }                                                                                      \
            _mm256_storeu_ps(sums + t * GROUP_ROWS, sum);                                          \
        }                                                                                          \
    }                                                                                              \
    DEFINE_TILE(name, block_bytes, ACT_Q8_256_BYTES)

DEFINE_TILE_K16(q2_k, 84, 4, 0, true)
DEFINE_TILE_K16(q3_k, 110, 4, 4, false)
DEFINE_TILE_K16(q6_k, 210, 2, 32, false)
