/* Example of what a new kind of layer takes: sum_block.c and a row of an architecture. In every
 * other layer of "sum" a state takes the place of attention:
 *
 *     s = s * decay(k) + v      of each number of the heads of keys
 *     out = q * s
 *
 * with the tensors that attention has in those files. */
#pragma once

#include "model/arch.h"

extern const arch sum_arch;
