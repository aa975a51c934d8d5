/* Decoding of coded types for the x86 tiers, 8 rows at a time: what decode_coded makes (decoded.h).
 * Rows of books are loaded one by one, which is as fast as gathering them or faster (Zen 5); of
 * those with 8 weights the two words are then sorted apart. */
#include "kernel/code_books.h"
#include "kernel/decoded.h"
#include "kernel/x86/words_k_ymm.h"
#include "kernel/x86/x86.h"

INLINE __m256i word_at(const uint8_t *part, int word, int slice)
{
    return load_slice(part + word * WORD_BYTES, slice);
}

/* Bits from `shift` on of each lane. */
INLINE __m256i bits_of(__m256i v, int shift, int mask)
{
    return _mm256_and_si256(_mm256_srl_epi32(v, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(mask));
}

INLINE void put_word(decoded_step *to, int word, int slice, __m256i v)
{
    uint8_t *at = to->words[slice / 2][word] + slice % 2 * SLICE_BYTES;
    _mm256_storeu_si256((__m256i *)(void *)at, v);
}

INLINE void put_scale(decoded_step *to, int s, int slice, __m256i v)
{
    _mm256_storeu_si256((__m256i *)(void *)(to->scale[s] + slice * SLICE_ROWS), v);
}

/* 2 bits + 1 */
INLINE void put_odd_scale(decoded_step *to, int s, int slice, __m256i bits)
{
    put_scale(to, s, slice, _mm256_add_epi32(_mm256_add_epi32(bits, bits), _mm256_set1_epi32(1)));
}

INLINE void put_d(decoded_step *to, const uint8_t *block, int slice, float unit)
{
    _mm256_storeu_ps(to->d[0] + slice * SLICE_ROWS,
                     _mm256_mul_ps(load_halves(block, slice), _mm256_set1_ps(unit)));
}

/* n scales of 4 bits, eight in a word. */
INLINE void nibble_scales(decoded_step *to, const uint8_t *scales, int n, int slice)
{
    for (int s = 0; s < n; s++)
        put_odd_scale(to, s, slice, bits_of(word_at(scales, s / 8, slice), s % 8 * 4, 15));
}

/* Byte b of each lane four times. */
INLINE __m256i four_times(__m256i v, int b)
{
    const __m256i at =
        _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    return _mm256_shuffle_epi8(v, _mm256_add_epi8(at, _mm256_set1_epi8((char)b)));
}

/* Minus where bits 4 i .. 4 i + 3 of the signs, which are in each byte of a lane, are set. */
INLINE __m256i with_signs(__m256i w, __m256i signs, int i)
{
    const __m256i bits = _mm256_set1_epi32(i ? (int)0x80402010 : 0x08040201);
    __m256i minus = _mm256_cmpeq_epi8(_mm256_and_si256(signs, bits), bits);
    return _mm256_sub_epi8(_mm256_xor_si256(w, minus), minus);
}

/* Bytes of 7 bits with their parity above them. */
INLINE __m256i even_signs(__m256i n)
{
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
    __m256i low = _mm256_shuffle_epi8(odd, field(n, 0, 4));
    __m256i high = _mm256_shuffle_epi8(odd, field(n, 4, 3));
    return _mm256_xor_si256(n, _mm256_xor_si256(low, high));
}

/* Four numbers of 7 bits of each lane, from bit 0 on. */
INLINE __m256i four_signs(__m256i word)
{
    __m256i n = _mm256_and_si256(word, _mm256_set1_epi32(127));
    UNROLL
    for (int i = 1; i < 4; i++)
        n = _mm256_or_si256(
            n, _mm256_and_si256(_mm256_slli_epi32(word, i), _mm256_set1_epi32(127 << (8 * i))));
    return even_signs(n);
}

/* Two rows of a book with 8 weights. */
INLINE __m128i two_rows(const uint64_t *book, uint32_t a, uint32_t b)
{
    __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)(book + a));
    return _mm_castpd_si128(
        _mm_loadh_pd(_mm_castsi128_pd(low), (const double *)(const void *)(book + b)));
}

INLINE __m256 four_rows(const uint64_t *book, uint32_t a, uint32_t b, uint32_t c, uint32_t d)
{
    return _mm256_castsi256_ps(_mm256_set_m128i(two_rows(book, c, d), two_rows(book, a, b)));
}

/* The two words of rows of a book. */
INLINE void look_8(__m256i out[2], const uint64_t *book, __m256i index)
{
    _Alignas(32) uint32_t i[8];
    _mm256_store_si256((__m256i *)(void *)i, index);
    __m256 a = four_rows(book, i[0], i[1], i[4], i[5]), b = four_rows(book, i[2], i[3], i[6], i[7]);
    out[0] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    out[1] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
}

INLINE __m128i four_words(const uint32_t *book, const uint32_t i[4])
{
    __m128i w = _mm_cvtsi32_si128((int)book[i[0]]);
    w = _mm_insert_epi32(w, (int)book[i[1]], 1);
    w = _mm_insert_epi32(w, (int)book[i[2]], 2);
    return _mm_insert_epi32(w, (int)book[i[3]], 3);
}

INLINE __m256i look_4(const uint32_t *book, __m256i index)
{
    _Alignas(32) uint32_t i[8];
    _mm256_store_si256((__m256i *)(void *)i, index);
    return _mm256_set_m128i(four_words(book, i + 4), four_words(book, i));
}

/* Weights 8 i .. 8 i + 7; signs: byte b of each lane. */
INLINE void put_8(decoded_step *to, int i, int slice, const uint64_t *book, __m256i index,
                  __m256i signs, int b)
{
    __m256i w[2];
    look_8(w, book, index);
    signs = four_times(signs, b);
    put_word(to, 2 * i, slice, with_signs(w[0], signs, 0));
    put_word(to, 2 * i + 1, slice, with_signs(w[1], signs, 1));
}

INLINE void slice_iq2_xxs(decoded_step *to, const uint8_t *block, int slice)
{
    put_d(to, block, slice, 0.125f);
    ROLLED
    for (int s = 0; s < 8; s++) {
        __m256i index = word_at(block + IQ2_XXS_QS, 2 * s, slice);
        __m256i word = word_at(block + IQ2_XXS_QS, 2 * s + 1, slice), signs = four_signs(word);
        put_odd_scale(to, s, slice, _mm256_srli_epi32(word, 28));
        UNROLL
        for (int i = 0; i < 4; i++)
            put_8(to, 4 * s + i, slice, books.iq2_xxs, bits_of(index, 8 * i, 255), signs, i);
    }
}

INLINE void slice_iq2_xs(decoded_step *to, const uint8_t *block, int slice)
{
    put_d(to, block, slice, 0.125f);
    nibble_scales(to, block + IQ2_XS_SCALES, 16, slice);
    ROLLED
    for (int i = 0; i < 16; i++) {
        __m256i word = word_at(block + IQ2_XS_QS, i, slice);
        __m256i signs = even_signs(
            _mm256_or_si256(bits_of(word, 9, 127), _mm256_and_si256(_mm256_srli_epi32(word, 17),
                                                                    _mm256_set1_epi32(127 << 8))));
        put_8(to, 2 * i, slice, books.iq2_xs, bits_of(word, 0, 511), signs, 0);
        put_8(to, 2 * i + 1, slice, books.iq2_xs, bits_of(word, 16, 511), signs, 1);
    }
}

/* Byte i of a word of indices with n high bits, from bit `at` of another. */
INLINE __m256i index_of(__m256i low, int i, __m256i high, int at, int n)
{
    return _mm256_or_si256(bits_of(low, 8 * i, 255),
                           _mm256_slli_epi32(bits_of(high, at, (1 << n) - 1), 8));
}

INLINE void slice_iq2_s(decoded_step *to, const uint8_t *block, int slice)
{
    put_d(to, block, slice, 0.125f);
    nibble_scales(to, block + IQ2_S_SCALES, 16, slice);
    ROLLED
    for (int s = 0; s < 8; s++) {
        __m256i low = word_at(block + IQ2_S_QS, s, slice);
        __m256i high = word_at(block + IQ2_S_QH, s / 4, slice);
        __m256i signs = word_at(block + IQ2_S_SIGNS, s, slice);
        UNROLL
        for (int i = 0; i < 4; i++)
            put_8(to, 4 * s + i, slice, books.iq2_s, index_of(low, i, high, s % 4 * 8 + 2 * i, 2),
                  signs, i);
    }
}

INLINE void slice_iq3_xxs(decoded_step *to, const uint8_t *block, int slice)
{
    put_d(to, block, slice, 0.25f);
    ROLLED
    for (int s = 0; s < 8; s++) {
        __m256i word = word_at(block + IQ3_XXS_SIGNS, s, slice), signs = four_signs(word);
        put_odd_scale(to, s, slice, _mm256_srli_epi32(word, 28));
        UNROLL
        for (int i = 0; i < 8; i++) {
            __m256i low = word_at(block + IQ3_XXS_QS, 2 * s + i / 4, slice);
            __m256i w = look_4(books.iq3_xxs, bits_of(low, i % 4 * 8, 255));
            put_word(to, 8 * s + i, slice, with_signs(w, four_times(signs, i / 2), i % 2));
        }
    }
}

INLINE void slice_iq3_s(decoded_step *to, const uint8_t *block, int slice)
{
    put_d(to, block, slice, 1.0f);
    nibble_scales(to, block + IQ3_S_SCALES, 8, slice);
    ROLLED
    for (int s = 0; s < 8; s++) {
        __m256i high = word_at(block + IQ3_S_QH, s / 4, slice);
        __m256i signs = word_at(block + IQ3_S_SIGNS, s, slice);
        UNROLL
        for (int i = 0; i < 8; i++) {
            __m256i low = word_at(block + IQ3_S_QS, 2 * s + i / 4, slice);
            __m256i w = look_4(books.iq3_s, index_of(low, i % 4, high, s % 4 * 8 + i, 1));
            put_word(to, 8 * s + i, slice, with_signs(w, four_times(signs, i / 2), i % 2));
        }
    }
}

/* Weights 8 i .. 8 i + 7 of IQ1; minus: all bits of lanes whose delta is. */
INLINE void put_shifted(decoded_step *to, int i, int slice, __m256i index, __m256i minus)
{
    __m256i w[2], delta = _mm256_or_si256(minus, _mm256_set1_epi8(1));
    delta = _mm256_sub_epi8(delta, _mm256_set1_epi8(8));
    look_8(w, books.iq1, index);
    put_word(to, 2 * i, slice, _mm256_add_epi8(w[0], delta));
    put_word(to, 2 * i + 1, slice, _mm256_add_epi8(w[1], delta));
}

/* All bits where a lane has the bit. */
INLINE __m256i bit_mask(__m256i v, int bit)
{
    return _mm256_srai_epi32(_mm256_sll_epi32(v, _mm_cvtsi32_si128(31 - bit)), 31);
}

INLINE void slice_iq1_s(decoded_step *to, const uint8_t *block, int slice)
{
    put_d(to, block, slice, 0.125f);
    ROLLED
    for (int s = 0; s < 8; s++) {
        const int at = s % 2 * 16;
        __m256i low = word_at(block + IQ1_S_QS, s, slice);
        __m256i high = word_at(block + IQ1_S_QH, s / 2, slice);
        put_odd_scale(to, s, slice, bits_of(high, at + 12, 7));
        UNROLL
        for (int i = 0; i < 4; i++)
            put_shifted(to, 4 * s + i, slice, index_of(low, i, high, at + 3 * i, 3),
                        bit_mask(high, at + 15));
    }
}

INLINE void slice_iq1_m(decoded_step *to, const uint8_t *block, int slice)
{
    put_d(to, block, slice, 0.125f);
    for (int s = 0; s < 16; s++) { /* of 3 bits, in a row through three numbers of 16 */
        const uint8_t *at = block + IQ1_M_SCALES + 3 * s / 16 * GROUP_ROWS * 2;
        const uint8_t *after = at + (3 * s / 16 < 2 ? GROUP_ROWS * 2 : 0);
        __m256i first = _mm256_cvtepu16_epi32(
            _mm_loadu_si128((const __m128i *)(const void *)(at + slice * SLICE_ROWS * 2)));
        __m256i next = _mm256_cvtepu16_epi32(
            _mm_loadu_si128((const __m128i *)(const void *)(after + slice * SLICE_ROWS * 2)));
        first = _mm256_or_si256(first, _mm256_slli_epi32(next, 16));
        put_odd_scale(to, s, slice, bits_of(first, 3 * s % 16, 7));
    }
    ROLLED
    for (int s = 0; s < 8; s++) {
        __m256i low = word_at(block + IQ1_M_QS, s, slice);
        __m256i high = word_at(block + IQ1_M_QH, s / 2, slice);
        UNROLL
        for (int i = 0; i < 4; i++) {
            const int at = s % 2 * 16 + 4 * i;
            put_shifted(to, 4 * s + i, slice, index_of(low, i, high, at, 3),
                        bit_mask(high, at + 3));
        }
    }
}

INLINE void slice_tq2_0(decoded_step *to, const uint8_t *block, int slice)
{
    put_d(to, block, slice, 1.0f);
    for (int s = 0; s < 8; s++)
        put_scale(to, s, slice, _mm256_set1_epi32(1));
    ROLLED
    for (int i = 0; i < 16; i++) {
        __m256i v = word_at(block + TQ2_0_QS, i, slice);
        UNROLL
        for (int n = 0; n < 4; n++)
            put_word(to, i / 8 * 32 + n * 8 + i % 8, slice,
                     _mm256_sub_epi8(field(v, 2 * n, 2), _mm256_set1_epi8(1)));
    }
}

/* Block b of four. */
INLINE void slice_nvfp4(decoded_step *to, const uint8_t *block, int b, int slice)
{
    const __m256i levels =
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)mxfp4_levels));
    const __m256i none = _mm256_set1_epi32(UE4M3_NONE);
    __m256i scales = word_at(block + NVFP4_D, 0, slice);
    UNROLL
    for (int s = 0; s < 4; s++) {
        __m256i e = bits_of(scales, 8 * s, 255);
        e = _mm256_andnot_si256(_mm256_cmpeq_epi32(e, none), e);
        e = _mm256_slli_epi32(_mm256_and_si256(e, _mm256_set1_epi32(127)), 20);
        _mm256_storeu_ps(to->fine[b * 4 + s] + slice * SLICE_ROWS,
                         _mm256_mul_ps(_mm256_castsi256_ps(e), _mm256_set1_ps(UE4M3_HALF_UNIT)));
        UNROLL
        for (int c = 0; c < 4; c++) {
            __m256i v = word_at(block + NVFP4_QS, 2 * s + c % 2, slice);
            put_word(to, b * 16 + s * 4 + c, slice,
                     _mm256_shuffle_epi8(levels, field(v, c / 2 * 4, 4)));
        }
    }
}

#define DECODE_CASE(TYPE, name)                                                                    \
    case TYPE_##TYPE:                                                                              \
        for (int slice = 0; slice < SLICES; slice++)                                               \
            slice_##name(to, block, slice);                                                        \
        return;

void decode_coded_avx2(decoded_step *to, tensor_type type, const uint8_t *block, int32_t n_blocks)
{
    fetch_lines(block, 0, layout_find(type)->file_block_bytes * n_blocks / 2);
    switch (type) {
        DECODE_CASE(IQ2_XXS, iq2_xxs)
        DECODE_CASE(IQ2_XS, iq2_xs)
        DECODE_CASE(IQ2_S, iq2_s)
        DECODE_CASE(IQ3_XXS, iq3_xxs)
        DECODE_CASE(IQ3_S, iq3_s)
        DECODE_CASE(IQ1_S, iq1_s)
        DECODE_CASE(IQ1_M, iq1_m)
        DECODE_CASE(TQ2_0, tq2_0)
    case TYPE_NVFP4:
        for (int b = 0; b < n_blocks; b++, block += 36 * GROUP_ROWS)
            for (int slice = 0; slice < SLICES; slice++)
                slice_nvfp4(to, block, b, slice);
        return;
    default:
        decode_coded(to, type, block, n_blocks);
    }
}
