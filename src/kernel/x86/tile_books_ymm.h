/* One row of activations by the IQ2 and IQ3 types, for the 8-lane x86 tiers: words meet the row as
 * they are looked up, so that none is stored. Signs go to the activations, as byte products take
 * unsigned weights.
 *
 * Included after a tier's header and its way of forming products:
 *   book_scale(bits)            the scale 2 bits + 1, as book_part takes it
 *   book_add(part, w, x)        part += the products of a word
 *   book_part(sum, part, scale) sum += part * scale
 *   BOOK_WORDS(whole, short)    how many words a part holds: those of a sub-block, or as many as
 *                               stay within 16 bits */
#pragma once

typedef struct book_sink {
    const uint8_t *x;
    int distance; /* bytes from one word of x to the next */
    int part_words;
    __m256i scale, part, sum;
} book_sink;

INLINE void sink_scale(book_sink *to, int s, __m256i bits)
{
    (void)s;
    to->scale = book_scale(bits);
}

INLINE void sink_word(book_sink *to, int first, const int c, __m256i magnitudes, __m256i signs,
                      const int i);

#include "kernel/x86/books_ymm.h"

INLINE void sink_word(book_sink *to, int first, const int c, __m256i magnitudes, __m256i signs,
                      const int i)
{
    __m256i x = broadcast_word(to->x + (first + c) * to->distance);
    if (c % to->part_words == 0)
        to->part = _mm256_setzero_si256();
    to->part = book_add(to->part, magnitudes, _mm256_sign_epi8(x, ones_of(signs, i)));
    if (c % to->part_words == to->part_words - 1)
        to->sum = book_part(to->sum, to->part, to->scale);
}

/* Types: d's unit, words of a sub-block, words whose sums of two products stay within 16 bits. */
#define BOOK_TYPES(X)                                                                              \
    X(IQ2_XXS, iq2_xxs, 66, 0.125f, 8, 2)                                                          \
    X(IQ2_XS, iq2_xs, 74, 0.125f, 4, 2)                                                            \
    X(IQ2_S, iq2_s, 82, 0.125f, 4, 2)                                                              \
    X(IQ3_XXS, iq3_xxs, 98, 0.25f, 8, 2)                                                           \
    X(IQ3_S, iq3_s, 110, 1.0f, 8, 8)

/* Rows from which on a step that is decoded once is faster. */
enum { BOOKS_MANY = 2 };

#define DEFINE_TILE_BOOK(TYPE, name, block_bytes, unit, whole, short)                              \
    static void tile_##name##_book(float *sums, const uint8_t *block, const uint8_t *acts,         \
                                   int32_t n_blocks, int32_t m)                                    \
    {                                                                                              \
        for (; n_blocks > 0; n_blocks--) {                                                         \
            ROLLED                                                                                 \
            for (int slice = 0; slice < SLICES; slice++) {                                         \
                const int lines = (block_bytes)*GROUP_ROWS / 64;                                   \
                fetch_lines(block, lines *slice / SLICES, lines * (slice + 1) / SLICES);           \
                __m256 d = _mm256_mul_ps(load_halves(block, slice), _mm256_set1_ps(unit));         \
                for (int t = 0; t < m; t++) {                                                      \
                    float *to = sums + t * GROUP_ROWS + slice * SLICE_ROWS;                        \
                    book_sink sink = {.x = acts + t * 4,                                           \
                                      .distance = m * 4,                                           \
                                      .part_words = BOOK_WORDS(whole, short),                      \
                                      .sum = _mm256_setzero_si256()};                              \
                    walk_##name(&sink, block, slice);                                              \
                    __m256 dx = broadcast_float(acts + ACT_256_D * m + t * 4);                     \
                    _mm256_storeu_ps(to, add_scaled(_mm256_loadu_ps(to), d, dx, sink.sum));        \
                }                                                                                  \
            }                                                                                      \
            block += (block_bytes)*GROUP_ROWS;                                                     \
            acts += ACT_Q8_256_BYTES * m;                                                          \
        }                                                                                          \
    }                                                                                              \
    DEFINE_DOT_SHAPE(TYPE, name, ACT_Q8_256, book, tile_##name##_book, false)

#define SET_BOOK(TYPE, name, block_bytes, unit, whole, short)                                      \
    table->matmul[TYPE_##TYPE].dot_many = table->matmul[TYPE_##TYPE].dot;                          \
    table->matmul[TYPE_##TYPE].many_from = BOOKS_MANY;                                             \
    table->matmul[TYPE_##TYPE].dot = dot_##name##_book;                                            \
    table->matmul[TYPE_##TYPE].tile = tile_##name##_book;                                          \
    table->matmul[TYPE_##TYPE].decode = NULL;

/* Defines books_<tier>_set, which comes after decoded_<tier>_set. */
#define DEFINE_BOOKS_SET(tier)                                                                     \
    BOOK_TYPES(DEFINE_TILE_BOOK)                                                                   \
    void books_##tier##_set(kernel_table *table)                                                   \
    {                                                                                              \
        BOOK_TYPES(SET_BOOK)                                                                       \
    }
