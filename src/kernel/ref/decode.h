/* One row of a packed block as integers: what every scalar path (dot products, dequantising) is
 * made from, so that each type's bit layout is spelled out once. */
#ifndef DREY_KERNEL_DECODE_H
#define DREY_KERNEL_DECODE_H

#include "kernel/packing.h"

/* weight i = d * scale[i / sub_k] * q[i] + m, or - dmin * min[i / sub_k] where there are minima. */
typedef struct row_block {
    float d;
    float m;           /* Q4_1, Q5_1: added to each weight; K types with minima: dmin */
    int32_t scale[16]; /* types in blocks of 256 only */
    int32_t min[16];   /* Q2_K, Q4_K, Q5_K */
    int8_t q[256];     /* offset applied */
} row_block;

typedef void (*block_decoder)(row_block *out, const uint8_t *block, int32_t row);

void decode_q4_0_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q4_1_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q5_0_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q5_1_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q8_0_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_iq4_nl_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q2_k_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q3_k_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q4_k_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q5_k_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_q6_k_ref(row_block *out, const uint8_t *block, int32_t row);
void decode_iq4_xs_ref(row_block *out, const uint8_t *block, int32_t row);

/* One weight of a float type, exact. */
float decode_f32_ref(const uint8_t *block, int32_t row);
float decode_f16_ref(const uint8_t *block, int32_t row);
float decode_bf16_ref(const uint8_t *block, int32_t row);

#endif
