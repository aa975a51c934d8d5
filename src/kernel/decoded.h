/* Decoded weights: a step of 32 rows and 256 of k as bytes in the order of use, with scales that
 * are integers or floats. A tier whose products take these has every type, and next to nothing in
 * it depends on one. */
#pragma once

#include "kernel/packing.h"

enum { STEP_WORDS = 64, STEP_BLOCKS = 8, STEP_SUBS = 16 };

/* A decoded step: eight blocks of 32, one of 256, whose d and m are the first, or four of 64. */
typedef struct decoded_step {
    uint8_t words[2][STEP_WORDS][HALF_BYTES]; /* [half of the rows][4 k][16 rows][4 weights] */
    float d[STEP_BLOCKS][GROUP_ROWS], m[STEP_BLOCKS][GROUP_ROWS];
    union {
        int32_t scale[STEP_SUBS][GROUP_ROWS];
        float fine[STEP_SUBS][GROUP_ROWS]; /* FLOAT_SUBS: scales of 16 weights */
    };
    int32_t min[STEP_SUBS / 2][GROUP_ROWS]; /* pairs of int16 */
} decoded_step;

/* Decodes blocks of a coded type: signed words, 256 / sub_k scales, and d. */
void decode_coded(decoded_step *to, tensor_type type, const uint8_t *block, int32_t n_blocks);
