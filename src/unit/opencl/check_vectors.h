/* Test vectors of products, which a device must compute with the same bits before it is used. */
#pragma once

#include "common/error.h"
#include "kernel/kernel.h"

/* Packed groups times activation rows in tiles of TOKEN_TILE, to y[t * ldy + 32 * group + row]. */
typedef struct check_product {
    tensor_type type;
    act_kind act;
    int64_t k;
    const uint8_t *packed; /* [n_groups][group_bytes] */
    size_t group_bytes;
    int32_t n_groups;
    const void *acts;
    size_t act_bytes;
    int32_t n;
    float *y;
    int64_t ldy;
} check_product;
typedef drey_status check_run_fn(void *user, const check_product *p, drey_error *err);

/* Computes products of one type with `run`, for 1 to 11 rows, and compares them with the plain C
 * kernels: scales, weights and activations of all sizes, so that some results are denormal.
 * DREY_ERR_UNSUPPORTED: a bit differs. device: its name, for the sentence. */
drey_status check_vectors(tensor_type type, check_run_fn *run, void *user, const char *device,
                          drey_error *err);

/* For tests of attention as well: seeded numbers from -1 to 1, and memory that
 * is 64-byte aligned (free it; NULL when there is none). */
float check_float(uint64_t *seed);
void *check_take(size_t bytes);

/* The tests of a device's arithmetic: in[CHECK_NUMBERS] to out[CHECK_NUMBERS]
 *   out[0] = in[0] * in[1] + in[2], rounded twice      out[1] = fma(in[0], in[1], in[2])
 *   out[2] = in[3] * in[4], a denormal number          out[3] = in[5] + in[6], of denormal numbers
 *   out[4] = (float)16777219, a tie                    out[5] = in[7] * in[7], a denormal number */
enum { CHECK_NUMBERS = 8 };
extern const float check_numbers_in[CHECK_NUMBERS];
/* DREY_ERR_UNSUPPORTED with the reason: it contracts, it flushes, ... */
drey_status check_numbers(const float out[CHECK_NUMBERS], const char *device, drey_error *err);
