/* Weights into tiles, 16 rows by 4 k at a time: blocks of 32 as they are, super-blocks with their
 * sub-blocks' scales multiplied in (amx.h says how and why it is exact).
 *
 * Vector operations a word of 16 rows: Q4_K about 4 (half a shift, a mask, two multiplications) and
 * two stores, Q6_K and IQ4_XS about 11; the 128 words of 32 rows take 700 cycles and 1,000. */
#include "kernel/decoded.h"
#include "kernel/x86/amx/amx.h"

/* Field of `bits` bits from bit `shift` of each byte. */
INLINE __m512i field(__m512i v, int shift, int bits)
{
    __m512i moved = _mm512_srl_epi16(v, _mm_cvtsi32_si128(shift));
    return _mm512_and_si512(moved, _mm512_set1_epi8((char)((1 << bits) - 1)));
}

/* Bit `bit` of each byte moved to bit `to`. */
INLINE __m512i bit_at(__m512i v, int bit, int to)
{
    v = bit > to ? _mm512_srl_epi16(v, _mm_cvtsi32_si128(bit - to))
                 : _mm512_sll_epi16(v, _mm_cvtsi32_si128(to - bit));
    return _mm512_and_si512(v, _mm512_set1_epi8((char)(1 << to)));
}

/* 16 halves of both halves of the rows to floats. */
INLINE void halves_store(float out[2][HALF_ROWS], const uint8_t *p)
{
    for (int half = 0; half < 2; half++)
        _mm512_storeu_ps(out[half], _mm512_cvtph_ps(_mm256_loadu_si256(
                                        (const __m256i *)(const void *)(p + half * 32))));
}

/* The same of exponents: e8m0_half of packing.h. */
INLINE void exponents_store(float out[2][HALF_ROWS], const uint8_t *p)
{
    for (int half = 0; half < 2; half++) {
        __m512i e = _mm512_cvtepu8_epi32(
            _mm_loadu_si128((const __m128i *)(const void *)(p + half * HALF_ROWS)));
        e = _mm512_max_epu32(_mm512_slli_epi32(e, 23), _mm512_set1_epi32(E8M0_LEAST));
        _mm512_storeu_ps(out[half], _mm512_mul_ps(_mm512_castsi512_ps(e), _mm512_set1_ps(0.5f)));
    }
}

INLINE __m512i lookup(const int8_t levels[16], __m512i indices)
{
    __m512i table = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(const void *)levels));
    return _mm512_shuffle_epi8(table, indices);
}

/* ---- Blocks of 32: signed weights ---- */

/* Word c (weights 4 c .. 4 c + 3) of 16 rows. */
INLINE __m512i nibbles_word(const uint8_t *qs, int c, int half)
{
    return field(load_line(qs + (c % 4) * WORD_BYTES + half * HALF_BYTES), c / 4 * 4, 4);
}

/* The same with the fifth bit, bit c of the plane's bytes. */
INLINE __m512i five_bit_word(const uint8_t *qs, const uint8_t *plane, int c, int half)
{
    return _mm512_or_si512(nibbles_word(qs, c, half),
                           bit_at(load_line(plane + half * HALF_BYTES), c, 4));
}

INLINE __m512i word_q4_0(const uint8_t *block, int c, int half)
{
    return _mm512_sub_epi8(nibbles_word(block + Q4_0_QS, c, half), _mm512_set1_epi8(8));
}

INLINE __m512i word_q4_1(const uint8_t *block, int c, int half)
{
    return nibbles_word(block + Q4_1_QS, c, half);
}

INLINE __m512i word_q5_0(const uint8_t *block, int c, int half)
{
    return _mm512_sub_epi8(five_bit_word(block + Q5_0_QS, block + Q5_0_QH, c, half),
                           _mm512_set1_epi8(16));
}

INLINE __m512i word_q5_1(const uint8_t *block, int c, int half)
{
    return five_bit_word(block + Q5_1_QS, block + Q5_1_QH, c, half);
}

INLINE __m512i word_q8_0(const uint8_t *block, int c, int half)
{
    return _mm512_xor_si512(load_line(block + Q8_0_QS + c * WORD_BYTES + half * HALF_BYTES),
                            _mm512_set1_epi8(-128));
}

INLINE __m512i word_iq4_nl(const uint8_t *block, int c, int half)
{
    return lookup(iq4_levels, nibbles_word(block + IQ4_NL_QS, c, half));
}

INLINE __m512i word_mxfp4(const uint8_t *block, int c, int half)
{
    return lookup(mxfp4_levels, nibbles_word(block + MXFP4_QS, c, half));
}

/* scales_store: halves_store or exponents_store. min: byte offset of the minima, 0: none. */
#define DEFINE_BUILD_32(name, block_bytes, scales_store, min)                                      \
    void build_##name##_amx(step_weights *w, const uint8_t *block, int32_t n_parts)                \
    {                                                                                              \
        for (int32_t part = 0; part < n_parts; part++) {                                           \
            uint8_t *out = w->planes + part * TILE_BYTES;                                          \
            scales_store(w->d[part], block);                                                       \
            if (min)                                                                               \
                halves_store(w->m[part], block + (min));                                           \
            for (int half = 0; half < 2; half++)                                                   \
                for (int c = 0; c < 8; c++)                                                        \
                    store_line(out + (half * 8 + c) * 64, word_##name(block, c, half));            \
            block += (block_bytes)*GROUP_ROWS;                                                     \
        }                                                                                          \
    }

DEFINE_BUILD_32(q4_0, 18, halves_store, 0)
DEFINE_BUILD_32(q4_1, 20, halves_store, Q4_1_M)
DEFINE_BUILD_32(q5_0, 22, halves_store, 0)
DEFINE_BUILD_32(q5_1, 24, halves_store, Q5_1_M)
DEFINE_BUILD_32(q8_0, 34, halves_store, 0)
DEFINE_BUILD_32(iq4_nl, 18, halves_store, 0)
DEFINE_BUILD_32(mxfp4, 17, exponents_store, 0)

/* ---- Super-blocks ---- */

/* Address of word kw (weights 4 kw .. 4 kw + 3) of a plane goes. */
INLINE uint8_t *plane_word(step_weights *w, int kw, int plane, int half)
{
    return w->planes + ((kw / 16 * 2 + plane) * 2 + half) * TILE_BYTES + kw % 16 * 64;
}

/* Byte s of each 32-bit lane as bytes (s, 0, s, 0). */
INLINE __m512i even_bytes(__m512i words, int s)
{
    __m512i first = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, -128, 0, -128, 4, -128, 4, -128, 8, -128, 8, -128, 12, -128, 12, -128));
    return _mm512_shuffle_epi8(words, _mm512_add_epi8(first, _mm512_set1_epi16((int16_t)s)));
}

/* Stores a pair of scaled bytes' planes: the products, minus the scale times an offset of w, are
 * 16 bits; their low bytes are plane 0, their high bytes plane 1 (if there are two). s: the scale
 * as bytes (s, 0, s, 0). w: unsigned. */
INLINE void product_planes(step_weights *out, int kw, int half, __m512i w, __m512i s,
                           const int offset_shift, const bool two)
{
    const __mmask64 odd = 0xaaaaaaaaaaaaaaaau;
    __m512i s_odd = _mm512_slli_epi16(s, 8);
    __m512i offset = _mm512_sll_epi16(_mm512_srai_epi16(s_odd, 8), _mm_cvtsi32_si128(offset_shift));
    __m512i even_product = _mm512_sub_epi16(_mm512_maddubs_epi16(w, s), offset);
    __m512i odd_product = _mm512_sub_epi16(_mm512_maddubs_epi16(w, s_odd), offset);
    store_line(plane_word(out, kw, 0, half),
               _mm512_mask_blend_epi8(odd, even_product, _mm512_slli_epi16(odd_product, 8)));
    if (two)
        store_line(plane_word(out, kw, 1, half),
                   _mm512_mask_blend_epi8(odd, _mm512_srli_epi16(even_product, 8), odd_product));
}

/* A 16-bit lane's two bytes times a scale, where no product exceeds a byte. */
INLINE void digit_planes(step_weights *out, int kw, int half, __m512i w, __m512i low, __m512i high)
{
    store_line(plane_word(out, kw, 0, half), _mm512_mullo_epi16(w, low));
    store_line(plane_word(out, kw, 1, half), _mm512_mullo_epi16(w, high));
}

/* Byte s of each 32-bit lane four times. */
INLINE __m512i byte_copies(__m512i words, int s)
{
    __m512i first =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 0, 0, 0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12, 12, 12));
    return _mm512_shuffle_epi8(words, _mm512_add_epi8(first, _mm512_set1_epi8((char)s)));
}

/* Four minima of 6 bits a row, sub-blocks 4 word .. 4 word + 3, into B's words: as amx.h says, in
 * the order of the activations' pairs of sums, (0, 2), (1, 3), (4, 6), (5, 7). */
INLINE void minima_32_store(step_weights *w, int half, int word, __m512i min)
{
    static const int place[4] = {0, 2, 1, 3};
    UNROLL
    for (int j = 0; j < 4; j++) {
        uint8_t *out = w->minima[half] + (word * 4 + place[j]) * 2 * 64;
        __m512i once = byte_copies(min, j), four = _mm512_slli_epi32(once, 2);
        store_line(out, four);
        store_line(out + 64, _mm512_mask_blend_epi8(0x8888888888888888u, four, once));
    }
}

/* Four minima of 4 bits a row, in order. */
INLINE void minima_16_store(step_weights *w, int half, int word, __m512i min)
{
    UNROLL
    for (int j = 0; j < 4; j++) {
        __m512i v =
            _mm512_and_si512(_mm512_srli_epi32(min, (unsigned)(8 * j)), _mm512_set1_epi32(15));
        v = _mm512_or_si512(_mm512_slli_epi32(v, 4), _mm512_slli_epi32(v, 8));
        store_line(w->minima[half] + (word * 4 + j) * 64, v);
    }
}

/* Scales of sub-blocks 0..3 and 4..7 of Q4_K and Q5_K; stores the minima. */
INLINE void scales_k4(__m512i scale[2], step_weights *w, const uint8_t *scales, int half)
{
    __m512i a = load_line(scales + half * HALF_BYTES);
    __m512i b = load_line(scales + WORD_BYTES + half * HALF_BYTES);
    __m512i c = load_line(scales + 2 * WORD_BYTES + half * HALF_BYTES);
    scale[0] = field(a, 0, 6);
    scale[1] = _mm512_or_si512(field(c, 0, 4), _mm512_slli_epi16(field(a, 6, 2), 4));
    minima_32_store(w, half, 0, field(b, 0, 6));
    minima_32_store(w, half, 1,
                    _mm512_or_si512(field(c, 4, 4), _mm512_slli_epi16(field(b, 6, 2), 4)));
}

/* Word c of sub-block s. */
INLINE __m512i word_q4_k(const uint8_t *block, int s, int c, int half)
{
    return field(load_line(block + Q4_K_QS + (s / 2 * 8 + c) * WORD_BYTES + half * HALF_BYTES),
                 s % 2 * 4, 4);
}

INLINE __m512i word_q5_k(const uint8_t *block, int s, int c, int half)
{
    const uint8_t *qs = block + Q5_K_QS + (s / 2 * 8 + c) * WORD_BYTES;
    __m512i high = load_line(block + Q5_K_QH + c * WORD_BYTES + half * HALF_BYTES);
    high = _mm512_srl_epi16(high, _mm_cvtsi32_si128(s));
    return _mm512_or_si512(field(load_line(qs + half * HALF_BYTES), s % 2 * 4, 4),
                           bit_at(high, 0, 4));
}

#define DEFINE_BUILD_K4(name, block_bytes, scales_at)                                              \
    void build_##name##_amx(step_weights *w, const uint8_t *block, int32_t n_parts)                \
    {                                                                                              \
        (void)n_parts;                                                                             \
        halves_store(w->d[0], block);                                                              \
        halves_store(w->m[0], block + 64);                                                         \
        for (int half = 0; half < 2; half++) {                                                     \
            __m512i scale[2];                                                                      \
            scales_k4(scale, w, block + (scales_at), half);                                        \
            for (int s = 0; s < 8; s++) {                                                          \
                __m512i s16 = even_bytes(scale[s / 4], s % 4);                                     \
                __m512i low = _mm512_and_si512(s16, _mm512_set1_epi16(7));                         \
                __m512i high = _mm512_srli_epi16(s16, 3);                                          \
                UNROLL                                                                             \
                for (int c = 0; c < 8; c++)                                                        \
                    digit_planes(w, s * 8 + c, half, word_##name(block, s, c, half), low, high);   \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_BUILD_K4(q4_k, 144, Q4_K_SCALES)
DEFINE_BUILD_K4(q5_k, 176, Q5_K_SCALES)

void build_iq4_xs_amx(step_weights *w, const uint8_t *block, int32_t n_parts)
{
    (void)n_parts;
    halves_store(w->d[0], block);
    for (int half = 0; half < 2; half++) {
        __m512i low = load_line(block + IQ4_XS_SCALES_L + half * HALF_BYTES);
        __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256(
            (const __m256i *)(const void *)(block + IQ4_XS_SCALES_H + half * 32)));
        for (int s = 0; s < 8; s++) {
            __m512i l = _mm512_and_si512(_mm512_srl_epi32(low, _mm_cvtsi32_si128(4 * s)),
                                         _mm512_set1_epi32(15));
            __m512i h = _mm512_and_si512(_mm512_srl_epi32(high, _mm_cvtsi32_si128(2 * s)),
                                         _mm512_set1_epi32(3));
            __m512i scale =
                _mm512_sub_epi8(_mm512_or_si512(l, _mm512_slli_epi32(h, 4)), _mm512_set1_epi8(32));
            scale = even_bytes(scale, 0);
            const uint8_t *qs = block + IQ4_XS_QS + s * 4 * WORD_BYTES;
            UNROLL
            for (int c = 0; c < 8; c++) {
                __m512i level = lookup(iq4_levels, nibbles_word(qs, c, half));
                level = _mm512_xor_si512(level, _mm512_set1_epi8(-128));
                product_planes(w, s * 8 + c, half, level, scale, 7, true);
            }
        }
    }
}

/* ---- Sub-blocks of 16: word c of sub-block j of four, 32 weights apart, in quarter p (as in
 * tile_sub16_avx512.c) ---- */

INLINE __m512i word_q6_k(const uint8_t *block, int p, int j, int c, int half)
{
    const uint8_t *qh =
        block + Q6_K_QUANTS + p * Q6_K_QUARTER_BYTES + c * WORD_BYTES + half * HALF_BYTES;
    __m512i low = field(load_line(qh + (4 + j % 2 * 4) * WORD_BYTES), j / 2 * 4, 4);
    return _mm512_or_si512(low, _mm512_slli_epi16(field(load_line(qh), 2 * j, 2), 4));
}

INLINE __m512i word_q3_k(const uint8_t *block, int p, int j, int c, int half)
{
    const uint8_t *qs = block + Q3_K_QS + (p * 4 + c) * WORD_BYTES + half * HALF_BYTES;
    const uint8_t *mask = block + Q3_K_HMASK + (p % 2 * 4 + c) * WORD_BYTES + half * HALF_BYTES;
    __m512i high = _mm512_srl_epi16(load_line(mask), _mm_cvtsi32_si128(p / 2 * 4));
    return _mm512_or_si512(field(load_line(qs), 2 * j, 2), bit_at(high, j, 2));
}

INLINE __m512i word_q2_k(const uint8_t *block, int p, int j, int c, int half)
{
    return field(load_line(block + Q2_K_QS + (p * 4 + c) * WORD_BYTES + half * HALF_BYTES), 2 * j,
                 2);
}

/* Scale bytes of four sub-blocks a word. */
INLINE void scales_q6_k(__m512i scale[4], step_weights *w, const uint8_t *block, int half)
{
    (void)w;
    for (int i = 0; i < 4; i++)
        scale[i] = load_line(block + Q6_K_SCALES + i * WORD_BYTES + half * HALF_BYTES);
}

/* Negated: see amx.h. */
INLINE void scales_q3_k(__m512i scale[4], step_weights *w, const uint8_t *block, int half)
{
    (void)w;
    const uint8_t *at = block + Q3_K_SCALES + half * HALF_BYTES;
    for (int i = 0; i < 4; i++) {
        __m512i low = field(load_line(at + i % 2 * WORD_BYTES), i / 2 * 4, 4);
        __m512i high = field(load_line(at + 2 * WORD_BYTES), 2 * i, 2);
        scale[i] =
            _mm512_sub_epi8(_mm512_set1_epi8(32), _mm512_or_si512(low, _mm512_slli_epi16(high, 4)));
    }
}

INLINE void scales_q2_k(__m512i scale[4], step_weights *w, const uint8_t *block, int half)
{
    for (int i = 0; i < 4; i++) {
        __m512i v = load_line(block + Q2_K_SCALES + i * WORD_BYTES + half * HALF_BYTES);
        scale[i] = field(v, 0, 4);
        minima_16_store(w, half, i, field(v, 4, 4));
    }
}

/* offset: log2 of w's. min: byte offset of dmin, 0: none. */
#define DEFINE_BUILD_K16(name, block_bytes, offset, two, min)                                      \
    void build_##name##_amx(step_weights *w, const uint8_t *block, int32_t n_parts)                \
    {                                                                                              \
        (void)n_parts;                                                                             \
        halves_store(w->d[0], block);                                                              \
        if (min)                                                                                   \
            halves_store(w->m[0], block + (min));                                                  \
        for (int half = 0; half < 2; half++) {                                                     \
            __m512i scale[4];                                                                      \
            scales_##name(scale, w, block, half);                                                  \
            for (int p = 0; p < 4; p++) {                                                          \
                UNROLL                                                                             \
                for (int j = 0; j < 4; j++) {                                                      \
                    int s = p / 2 * 8 + j * 2 + p % 2;                                             \
                    __m512i bytes = even_bytes(scale[s / 4], s % 4);                               \
                    UNROLL                                                                         \
                    for (int c = 0; c < 4; c++) {                                                  \
                        __m512i v = word_##name(block, p, j, c, half);                             \
                        if (offset)                                                                \
                            product_planes(w, s * 4 + c, half, v, bytes, offset, two);             \
                        else                                                                       \
                            store_line(plane_word(w, s * 4 + c, 0, half),                          \
                                       _mm512_mullo_epi16(v, bytes));                              \
                    }                                                                              \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

DEFINE_BUILD_K16(q2_k, 84, 0, false, Q2_K_DMIN)
DEFINE_BUILD_K16(q3_k, 110, 2, false, 0)
DEFINE_BUILD_K16(q6_k, 210, 5, true, 0)

/* ---- Coded types ---- */

void build_coded_amx(step_weights *w, tensor_type type, int32_t sub_k, const uint8_t *block)
{
    decoded_step step;
    decode_coded_avx2(&step, type, block, 1);
    for (int half = 0; half < 2; half++) {
        memcpy(w->d[0][half], step.d[0] + half * HALF_ROWS, sizeof w->d[0][half]);
        for (int kw = 0; kw < STEP_WORDS; kw++) {
            __m512i scale = load_line(step.scale[kw * 4 / sub_k] + half * HALF_ROWS);
            __m512i v = load_line(step.words[half][kw]);
            product_planes(w, kw, half, _mm512_xor_si512(v, _mm512_set1_epi8(-128)),
                           even_bytes(scale, 0), 7, true);
        }
    }
}
