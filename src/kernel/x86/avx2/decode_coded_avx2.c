/* Decoding of coded types for the x86 tiers, 8 rows at a time: what decode_coded makes (decoded.h).
 * books_ymm.h has the IQ2 and IQ3 types. */
#include "kernel/code_books.h"
#include "kernel/decoded.h"
#include "kernel/x86/words_k_ymm.h"
#include "kernel/x86/x86.h"

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

/* Takes words and their scales into a slice of a decoded step. */
typedef struct book_sink {
    decoded_step *to;
    int slice;
} book_sink;

INLINE void sink_scale(book_sink *sink, int s, __m256i bits)
{
    put_odd_scale(sink->to, s, sink->slice, bits);
}

INLINE void sink_word(book_sink *sink, int first, const int c, __m256i magnitudes, __m256i signs,
                      const int i);

#include "kernel/x86/books_ymm.h"

INLINE void sink_word(book_sink *sink, int first, const int c, __m256i magnitudes, __m256i signs,
                      const int i)
{
    put_word(sink->to, first + c, sink->slice, _mm256_sign_epi8(magnitudes, ones_of(signs, i)));
}

#define DEFINE_SLICE(name, unit)                                                                   \
    INLINE void slice_##name(decoded_step *to, const uint8_t *block, int slice)                    \
    {                                                                                              \
        put_d(to, block, slice, unit);                                                             \
        walk_##name(&(book_sink){to, slice}, block, slice);                                        \
    }
DEFINE_SLICE(iq2_xxs, 0.125f)
DEFINE_SLICE(iq2_xs, 0.125f)
DEFINE_SLICE(iq2_s, 0.125f)
DEFINE_SLICE(iq3_xxs, 0.25f)
DEFINE_SLICE(iq3_s, 1.0f)

/* Byte i of a word of indices with n high bits, from bit `at` of another. */
INLINE __m256i index_of(__m256i low, int i, __m256i high, int at, int n)
{
    return _mm256_or_si256(bits_of(low, 8 * i, 255),
                           _mm256_slli_epi32(bits_of(high, at, (1 << n) - 1), 8));
}

/* Weights 8 i .. 8 i + 7 of IQ1; minus: all bits of lanes whose delta is. */
INLINE void put_shifted(decoded_step *to, int i, int slice, __m256i index, __m256i minus)
{
    _Alignas(32) uint32_t indices[8];
    __m256i w[2], delta = _mm256_or_si256(minus, _mm256_set1_epi8(1));
    delta = _mm256_sub_epi8(delta, _mm256_set1_epi8(8));
    indices_store(indices, index);
    look_8(w, books.iq1, indices, WHOLE, 0);
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
