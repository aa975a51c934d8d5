/* Super-blocks of 256: steps and minima of sub-blocks are small integers times a number of the
 * super-block.
 *
 * Each sub-block is fitted alone first. Then the super-block's two numbers and the sub-blocks'
 * integers are chosen together: integers around what the fits ask for, whichever gives the least
 * error; with those integers and codes the best two numbers, by least squares; and again, as long
 * as that helps. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "quantise/block_encode.h"
#include "quantise/level_fit.h"

enum { MOST_SUBS = 16 };

typedef struct super_form {
    int32_t sub_n; /* numbers of a sub-block: 16, 32 */
    fit_levels levels;
    int32_t least_scale, most_scale, most_min; /* most_min 0: there are no minima */
    bool odd;                                  /* a scale i stands for 2 i + 1 */
} super_form;

/* x[i] ~ d * scale[s] * q[i] - dmin * min[s], s the sub-block of i */
typedef struct super_block {
    float d, dmin; /* as an f16 has them */
    int32_t scale[MOST_SUBS], min[MOST_SUBS];
    float q[SUPER_BLOCK];
    float error; /* below 0: nothing is chosen yet */
} super_block;

/* x, w: [SUPER_BLOCK]. */
void super_fit(const super_form *f, super_block *best, const float *x, const float *w);
