/* Weights in four and a half bits: the numbers of a row become blocks of 32, each a scale times
 * levels of IQ4_NL (kernel/packing.h), which are densest around 0, where most trained weights are.
 * The measured heads guess as well with them as with eight bits. */
#pragma once

#include <stdint.h>

/* The smallest type whose block length divides n: IQ4_XS, IQ4_NL, else F16. */
uint32_t encode_type(int64_t n);

/* Makes the blocks of a row of n numbers, which become the blocks' values. */
void encode_row(uint32_t type, uint8_t *out, float *row, int64_t n);
