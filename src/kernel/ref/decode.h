/* One row of a packed block as integers: what every scalar path (dot products, dequantising) is
 * made from, so that each type's bit layout is spelled out once. */
#pragma once

#include "kernel/packing.h"

/* weight i = d * scale[i / sub_k] * q[i] + m, or - dmin * min[i / sub_k] where there are minima. */
typedef struct row_block {
    float d;
    float m;           /* Q4_1, Q5_1: added to each weight; K types with minima: dmin */
    int32_t scale[16]; /* types in blocks of 256 only */
    int32_t min[16];   /* Q2_K, Q4_K, Q5_K */
    int8_t q[256];     /* offset applied */
    float fine[4];     /* NVFP4: in place of d, scales of 16 weights each */
} row_block;

/* A quantised type: how a row of a packed block is decoded, and what its weights are made of. */
typedef struct type_decoder {
    void (*decode)(row_block *out, const uint8_t *block, int32_t row);
    int32_t sub_k; /* weights of a sub-block; 0: a block of 32; FLOAT_SUBS: one of 64 */
    bool has_m;    /* it has an m, or a dmin with minima */
} type_decoder;
extern const type_decoder decoders_ref[TYPE_LIMIT];

/* Finds a row's number in a part of 16-bit numbers of a packed block. */
static inline uint32_t row_u16(const uint8_t *part, int32_t row)
{
    return load_u16(part + row * 2);
}

/* Word i of a row in a part of 32-bit words. */
static inline uint32_t row_word(const uint8_t *part, int32_t i, int32_t row)
{
    return load_u32(part + i * WORD_BYTES + (row / HALF_ROWS) * HALF_BYTES + (row % HALF_ROWS) * 4);
}

/* Byte i of a row in a part of 32-bit words. */
static inline uint32_t row_byte(const uint8_t *part, int32_t i, int32_t row)
{
    return (row_word(part, i / 4, row) >> (8 * (i % 4))) & 0xff;
}

/* Decoders of the coded types: decode_coded_ref.c. */
#define DECLARE_DECODER(TYPE, name, act, block_k, block_bytes)                                     \
    void decode_##name##_ref(row_block *out, const uint8_t *block, int32_t row);
KERNEL_CODED_TYPES(DECLARE_DECODER)
#undef DECLARE_DECODER

#define QUANTISED_TYPES(X) /* type, name, sub_k, has_m */                                          \
    X(Q4_0, q4_0, 0, false)                                                                        \
    X(Q4_1, q4_1, 0, true)                                                                         \
    X(Q5_0, q5_0, 0, false)                                                                        \
    X(Q5_1, q5_1, 0, true)                                                                         \
    X(Q8_0, q8_0, 0, false)                                                                        \
    X(IQ4_NL, iq4_nl, 0, false)                                                                    \
    X(MXFP4, mxfp4, 0, false)                                                                      \
    X(Q2_K, q2_k, 16, true)                                                                        \
    X(Q3_K, q3_k, 16, false)                                                                       \
    X(Q4_K, q4_k, 32, true)                                                                        \
    X(Q5_K, q5_k, 32, true)                                                                        \
    X(Q6_K, q6_k, 16, false)                                                                       \
    X(IQ4_XS, iq4_xs, 32, false)

/* One weight of a float type, exact. */
float decode_f32_ref(const uint8_t *block, int32_t row);
float decode_f16_ref(const uint8_t *block, int32_t row);
float decode_bf16_ref(const uint8_t *block, int32_t row);
