/* Decoders of types with code books where AVX512-VBMI is there. */
#pragma once

#include "kernel/kernel.h"

/* Orders of the weights of 16 k in a decoded step's words: decode_books_avx512.c. */
typedef enum word_order { ORDER_PLAIN, ORDER_IQ3, ORDER_IQ2, WORD_ORDERS } word_order;

/* type, name, weights per scale, order, d's unit */
#define VBMI_TYPES(X)                                                                              \
    X(IQ2_XXS, iq2_xxs, 32, ORDER_IQ2, 0.125f)                                                     \
    X(IQ2_XS, iq2_xs, 16, ORDER_IQ2, 0.125f)                                                       \
    X(IQ2_S, iq2_s, 16, ORDER_IQ2, 0.125f)                                                         \
    X(IQ3_XXS, iq3_xxs, 32, ORDER_IQ3, 0.25f)                                                      \
    X(IQ3_S, iq3_s, 32, ORDER_IQ3, 1.0f)

/* Makes the tables, after code_books_make. */
void book_planes_make(void);

/* decode_kernel of each: words unsigned, plus 128. Tile kernel of packed blocks, for one row: words
 * meet it as they are made, and none is stored. */
#define DECLARE_DECODER(TYPE, name, sub_k, order, unit)                                            \
    void decode_##name##_vbmi(void *decoded, const uint8_t *block, int32_t n_blocks);              \
    void tile_##name##_row(float *sums, const uint8_t *block, const uint8_t *acts,                 \
                           int32_t n_blocks, int32_t m);
VBMI_TYPES(DECLARE_DECODER)
#undef DECLARE_DECODER
