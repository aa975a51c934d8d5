/* The IQ2 and IQ3 types, 8 rows at a time: walks over a slice of a block, which look up rows of the
 * code books and hand their words on.
 *
 * Every instruction counts: two threads of a core share what it can begin with. Rows of books with
 * 4 weights are blended from loads that have them in the right place. Indices of more than 8 bits
 * are put together for 8 rows at once, kept in the first cache, and loaded one by one.
 *
 * Included after book_sink and what it does:
 *   sink_scale(sink, s, bits)   sub-block s has the scale 2 bits + 1; its words follow
 *   sink_word(sink, first, c, magnitudes, signs, i)   word first + c, c a constant below 8; signs:
 *                               bits 4 i .. 4 i + 3 of each byte of a lane are those of its weights
 */
#pragma once

#include "kernel/code_books.h"
#include "kernel/packing.h"
#include "kernel/x86/ymm.h"

INLINE __m256i word_at(const uint8_t *part, int word, int slice)
{
    return load_slice(part + word * WORD_BYTES, slice);
}

/* Bits from `shift` on of each lane. */
INLINE __m256i bits_of(__m256i v, int shift, int mask)
{
    return _mm256_and_si256(_mm256_srl_epi32(v, _mm_cvtsi32_si128(shift)), _mm256_set1_epi32(mask));
}

/* Byte b of each lane four times. */
INLINE __m256i four_times(__m256i v, int b)
{
    const __m256i at =
        _mm256_broadcastsi128_si256(_mm_setr_epi32(0, 0x04040404, 0x08080808, 0x0c0c0c0c));
    return _mm256_shuffle_epi8(v, _mm256_add_epi8(at, _mm256_set1_epi8((char)b)));
}

INLINE __m256i same_words(uint32_t word)
{
    return _mm256_set1_epi32((int32_t)word);
}

/* -1 where the signs' bits 4 i .. 4 i + 3 are set, else 1. */
INLINE __m256i ones_of(__m256i signs, const int i)
{
    const __m256i ones = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(1, -1, -1, 0, -1, 0, 0, 0, -1, 0, 0, 0, 0, 0, 0, 0));
    if (i)
        signs = _mm256_srli_epi16(signs, 4);
    return _mm256_shuffle_epi8(ones, _mm256_and_si256(signs, same_words(0x08040201)));
}

/* Bytes of 7 bits with their parity above them. */
INLINE __m256i even_signs(__m256i n)
{
    const __m256i odd = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, -128, -128, 0, -128, 0, 0, -128, -128, 0, 0, -128, 0, -128, -128, 0));
    __m256i folded = _mm256_xor_si256(n, _mm256_srli_epi16(n, 4));
    folded = _mm256_and_si256(folded, _mm256_set1_epi8(15));
    return _mm256_xor_si256(n, _mm256_shuffle_epi8(odd, folded));
}

/* Four numbers of 7 bits of each lane, from bit 0 on. */
INLINE __m256i four_signs(__m256i word)
{
    __m256i two = _mm256_blend_epi16(word, _mm256_slli_epi32(word, 2), 0xaa); /* of 14 bits */
    __m256i low = _mm256_and_si256(two, _mm256_set1_epi16(127));
    __m256i high = _mm256_and_si256(_mm256_slli_epi16(two, 1), _mm256_set1_epi16(127 << 8));
    return even_signs(_mm256_or_si256(low, high));
}

/* ---- Indices ---- */

/* Places of index i of row r: a byte of the packed word; what indices_join wrote; 16 bits of a
 * word; a word. */
typedef enum index_kind { BYTES, JOINED, HALVES, WHOLE } index_kind;

INLINE size_t index_at(const void *p, const index_kind kind, int r, int i)
{
    const uint16_t *halves = p;
    switch (kind) {
    case BYTES:
        return ((const uint8_t *)p)[r * 4 + i];
    case JOINED:
        return halves[r / 2 % 2 * 16 + r / 4 * 8 + r % 2 * 4 + i];
    case HALVES:
        return halves[r * 2 + i];
    default:
        return ((const uint32_t *)p)[r];
    }
}

/* Settled here: compilers would rather take indices from the register one by one, which takes a
 * unit that shuffles and one more instruction each. */
INLINE void indices_store(void *out, __m256i v)
{
    _mm256_store_si256((__m256i *)out, v);
    __asm__("" : "+m"(*(uint8_t(*)[32])out));
}

INLINE void indices_join(uint16_t out[32], __m256i low, __m256i high)
{
    indices_store(out, _mm256_unpacklo_epi8(low, high));
    indices_store(out + 16, _mm256_unpackhi_epi8(low, high));
}

/* ---- Rows of books ---- */

/* Two rows of a book with 8 weights. */
INLINE __m128i two_rows(const uint64_t *book, size_t a, size_t b)
{
    __m128i low = _mm_loadl_epi64((const __m128i *)(const void *)(book + a));
    return _mm_castpd_si128(
        _mm_loadh_pd(_mm_castsi128_pd(low), (const double *)(const void *)(book + b)));
}

INLINE __m256 four_rows(const uint64_t *book, size_t a, size_t b, size_t c, size_t d)
{
    return _mm256_castsi256_ps(_mm256_set_m128i(two_rows(book, c, d), two_rows(book, a, b)));
}

/* Two words each of 8 rows of a book: index i of the rows of weights. */
INLINE void look_8(__m256i out[2], const uint64_t *book, const void *p, const index_kind kind,
                   int i)
{
    size_t n[8];
    UNROLL
    for (int r = 0; r < 8; r++)
        n[r] = index_at(p, kind, r, i);
    __m256 a = four_rows(book, n[0], n[1], n[4], n[5]), b = four_rows(book, n[2], n[3], n[6], n[7]);
    out[0] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0x88));
    out[1] = _mm256_castps_si256(_mm256_shuffle_ps(a, b, 0xdd));
}

/* The 16 bytes whose word `lane` is a row of a book with 4 weights; they are in `books`. */
INLINE __m128i row_at(const uint32_t *book, size_t row, const int lane)
{
    const uint8_t *at = (const uint8_t *)&books + ((const uint8_t *)book - (const uint8_t *)&books);
    return _mm_loadu_si128((const __m128i *)(const void *)(at + row * 4 - lane * 4));
}

INLINE __m128i four_words(const uint32_t *book, const void *p, const index_kind kind, int r, int i)
{
    __m128i w = row_at(book, index_at(p, kind, r, i), 0);
    w = _mm_blend_epi32(w, row_at(book, index_at(p, kind, r + 1, i), 1), 2);
    w = _mm_blend_epi32(w, row_at(book, index_at(p, kind, r + 2, i), 2), 4);
    return _mm_blend_epi32(w, row_at(book, index_at(p, kind, r + 3, i), 3), 8);
}

/* A word each of 8 rows of a book. */
INLINE __m256i look_4(const uint32_t *book, const void *p, const index_kind kind, int i)
{
    return _mm256_set_m128i(four_words(book, p, kind, 4, i), four_words(book, p, kind, 0, i));
}

/* ---- Walks ---- */

/* The 32 weights whose indices are made while those of s are used, as a load waits for what was
 * stored a moment ago. */
INLINE int next_of(int s)
{
    return s < 7 ? s + 1 : s;
}

/* Weights 8 i .. 8 i + 7 of 32, of which word 8 s is the first. */
INLINE void walk_8(book_sink *to, int s, const int i, const uint64_t *book, const void *indices,
                   const index_kind kind, int at, __m256i signs)
{
    __m256i w[2];
    look_8(w, book, indices, kind, at);
    signs = four_times(signs, i);
    sink_word(to, 8 * s, 2 * i, w[0], signs, 0);
    sink_word(to, 8 * s, 2 * i + 1, w[1], signs, 1);
}

INLINE void walk_iq2_xxs(book_sink *to, const uint8_t *block, int slice)
{
    ROLLED
    for (int s = 0; s < 8; s++) {
        const uint8_t *indices = block + IQ2_XXS_QS + 2 * s * WORD_BYTES + slice * SLICE_BYTES;
        __m256i word = word_at(block + IQ2_XXS_QS, 2 * s + 1, slice), signs = four_signs(word);
        sink_scale(to, s, _mm256_srli_epi32(word, 28));
        UNROLL
        for (int i = 0; i < 4; i++)
            walk_8(to, s, i, books.iq2_xxs, indices, BYTES, i, signs);
    }
}

INLINE void index_iq2_xs(uint16_t out[64], const uint8_t *block, int slice, int s)
{
    UNROLL
    for (int i = 0; i < 2; i++)
        indices_store(out + 16 * i, _mm256_and_si256(word_at(block + IQ2_XS_QS, 2 * s + i, slice),
                                                     _mm256_set1_epi16(511)));
}

INLINE void walk_iq2_xs(book_sink *to, const uint8_t *block, int slice)
{
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
    _Alignas(32) uint16_t indices[2][64];
    index_iq2_xs(indices[0], block, slice, 0);
    ROLLED
    for (int s = 0; s < 8; s++) {
        const uint16_t *at = indices[s % 2];
        __m256i nibbles = word_at(block + IQ2_XS_SCALES, s / 4, slice);
        __m256i a = _mm256_srli_epi16(word_at(block + IQ2_XS_QS, 2 * s, slice), 9);
        __m256i b = _mm256_srli_epi16(word_at(block + IQ2_XS_QS, 2 * s + 1, slice), 9);
        a = _mm256_or_si256(a, _mm256_slli_epi16(b, 8)); /* bytes 0, 2, 1, 3 */
        __m256i signs = even_signs(_mm256_shuffle_epi8(a, order));
        index_iq2_xs(indices[(s + 1) % 2], block, slice, next_of(s));
        UNROLL
        for (int i = 0; i < 4; i++) {
            if (i % 2 == 0)
                sink_scale(to, 2 * s + i / 2, bits_of(nibbles, s % 4 * 8 + 2 * i, 15));
            walk_8(to, s, i, books.iq2_xs, at + i / 2 * 16, HALVES, i % 2, signs);
        }
    }
}

/* Two bits for each byte, the first of a word's byte b the lowest. */
INLINE __m256i two_bits(__m256i words, int b)
{
    const __m256i low =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 2, 3, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0));
    __m256i v = four_times(words, b);
    v = _mm256_blend_epi16(v, _mm256_srli_epi16(v, 4), 0xaa);
    return _mm256_shuffle_epi8(low, _mm256_and_si256(v, same_words(0x0c030c03)));
}

INLINE void index_iq2_s(uint16_t out[64], const uint8_t *block, int slice, int s)
{
    indices_join(out, word_at(block + IQ2_S_QS, s, slice),
                 two_bits(word_at(block + IQ2_S_QH, s / 4, slice), s % 4));
}

INLINE void walk_iq2_s(book_sink *to, const uint8_t *block, int slice)
{
    _Alignas(32) uint16_t indices[2][64];
    index_iq2_s(indices[0], block, slice, 0);
    ROLLED
    for (int s = 0; s < 8; s++) {
        __m256i signs = word_at(block + IQ2_S_SIGNS, s, slice);
        __m256i nibbles = word_at(block + IQ2_S_SCALES, s / 4, slice);
        index_iq2_s(indices[(s + 1) % 2], block, slice, next_of(s));
        UNROLL
        for (int i = 0; i < 4; i++) {
            if (i % 2 == 0)
                sink_scale(to, 2 * s + i / 2, bits_of(nibbles, s % 4 * 8 + 2 * i, 15));
            walk_8(to, s, i, books.iq2_s, indices[s % 2], JOINED, i, signs);
        }
    }
}

INLINE void walk_iq3_xxs(book_sink *to, const uint8_t *block, int slice)
{
    ROLLED
    for (int s = 0; s < 8; s++) {
        const uint8_t *indices = block + IQ3_XXS_QS + 2 * s * WORD_BYTES + slice * SLICE_BYTES;
        __m256i word = word_at(block + IQ3_XXS_SIGNS, s, slice), signs = four_signs(word);
        sink_scale(to, s, _mm256_srli_epi32(word, 28));
        UNROLL
        for (int i = 0; i < 8; i++) {
            __m256i w = look_4(books.iq3_xxs, indices + i / 4 * WORD_BYTES, BYTES, i % 4);
            sink_word(to, 8 * s, i, w, four_times(signs, i / 2), i % 2);
        }
    }
}

INLINE void index_iq3_s(uint16_t out[64], const uint8_t *block, int slice, int s)
{
    __m256i high = four_times(word_at(block + IQ3_S_QH, s / 4, slice), s % 4);
    UNROLL
    for (int i = 0; i < 2; i++) {
        __m256i bits = _mm256_and_si256(high, same_words(i ? 0x80402010 : 0x08040201));
        indices_join(out + 32 * i, word_at(block + IQ3_S_QS, 2 * s + i, slice),
                     _mm256_min_epu8(bits, _mm256_set1_epi8(1)));
    }
}

INLINE void walk_iq3_s(book_sink *to, const uint8_t *block, int slice)
{
    _Alignas(32) uint16_t indices[2][64];
    index_iq3_s(indices[0], block, slice, 0);
    ROLLED
    for (int s = 0; s < 8; s++) {
        const uint16_t *at = indices[s % 2];
        __m256i signs = word_at(block + IQ3_S_SIGNS, s, slice);
        sink_scale(to, s, bits_of(word_at(block + IQ3_S_SCALES, 0, slice), s * 4, 15));
        index_iq3_s(indices[(s + 1) % 2], block, slice, next_of(s));
        UNROLL
        for (int i = 0; i < 8; i++) {
            __m256i w = look_4(books.iq3_s, at + i / 4 * 32, JOINED, i % 4);
            sink_word(to, 8 * s, i, w, four_times(signs, i / 2), i % 2);
        }
    }
}
