/* Rows of numbers as blocks of a tensor type, in the file's layout: what the kernels decode. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "gguf/types.h"

/* x: [k], finite, k a multiple of the type's block. importance: [k], not negative, how much an
 * error in each column counts; NULL: all the same. out: type_row_bytes. */
void block_encode_row(tensor_type type, uint8_t *out, const float *x, const float *importance,
                      int64_t k);

/* ---- For the files of this folder ---- */

enum { SUPER_BLOCK = 256 };

/* One block of 32, of 256. w: the weight of each number's squared error. */
typedef void block_encoder(uint8_t *out, const float *x, const float *w);
block_encoder encode_q2_k, encode_q3_k, encode_q4_k, encode_q5_k, encode_q6_k, encode_iq4_xs;
block_encoder encode_iq2_xxs, encode_iq2_xs, encode_iq2_s, encode_iq3_xxs, encode_iq3_s;

void block_put_f16(uint8_t *out, float value);
/* A number as an f16 holds it; what is too large for one is the largest. */
float block_f16(float value);
