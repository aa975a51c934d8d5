/* Adam (Kingma and Ba, arXiv 1412.6980): the optimiser of all of drey's training. */
#pragma once

#include "base/arena.h"

typedef struct adam_options {
    float rate;         /* learning rate */
    float beta1, beta2; /* decay of the two moments */
    float epsilon;
    float decay; /* per step rate * decay of each weight, without the gradient (AdamW) */
} adam_options;
/* 0.001, 0.9, 0.999, 1e-8, 0. */
void adam_options_init(adam_options *o);

typedef struct adam {
    adam_options options; /* the rate may be changed between steps */
    int64_t n;
    float *first, *second; /* [n]: the moments */
    double power1, power2; /* beta1^t, beta2^t */
    float step, scale2;    /* rate / (1 - beta1^t), 1 / (1 - beta2^t) */
} adam;

/* Bytes of an arena for n numbers. */
size_t adam_bytes(int64_t n);
/* Takes adam_bytes from `a`, whose owner checks it. Moments begin at 0. */
void adam_init(adam *o, int64_t n, const adam_options *options, arena *a);
/* Begins the next step. */
void adam_begin(adam *o);
/* Does numbers [from, to) of the step. Several threads may do ranges that do not overlap at the
 * same time, in any order. w, gradient: [n], all numbers. In float:
 *   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g g,
 *   w -= step m / (sqrt(v scale2) + epsilon) + rate decay w */
void adam_apply(const adam *o, float *w, const float *gradient, int64_t from, int64_t to);
