/* What this machine can do at most, measured: the yardsticks of every other figure. */
#ifndef DREY_PROFILE_LIMITS_H
#define DREY_PROFILE_LIMITS_H

#include "drey/drey.h"
#include "kernel/kernel.h"
#include "os/pool.h"

enum { LIMITS_ROUNDS = 7 };

/* Reads n_bytes at p, which should be far more than the caches hold and have been written to, in
 * several ways in turn, `rounds` times over; the median of the fastest way. */
double limits_read(pool *p, const kernel_table *kernels, const void *from, size_t n_bytes,
                   int rounds);
/* The medians of a few short runs. */
double limits_int8(pool *p, const kernel_table *kernels);
double limits_float(pool *p, const kernel_table *kernels);
double limits_barrier(pool *p);

/* All of them. */
drey_limits limits_measure(pool *p, const kernel_table *kernels, const void *from, size_t n_bytes);

/* x[0..n) in place; n at least 1. */
double median(double *x, int n);

#endif
