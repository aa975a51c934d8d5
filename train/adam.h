/* Adam (Kingma and Ba, arXiv 1412.6980): the optimiser of everything that drey trains. */
#ifndef DREY_TRAIN_ADAM_H
#define DREY_TRAIN_ADAM_H

#include "base/arena.h"

typedef struct adam_options {
    float rate;         /* of learning */
    float beta1, beta2; /* how slowly the two moments forget */
    float epsilon;
    float decay; /* of the weights, apart from the gradient (AdamW): rate * decay of each a step */
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

/* Of an arena, for n numbers. */
size_t adam_bytes(int64_t n);
/* Takes adam_bytes from `a`, whose owner checks it; moments begin at 0. */
void adam_init(adam *o, int64_t n, const adam_options *options, arena *a);
/* Begins the next step. */
void adam_begin(adam *o);
/* Numbers [from, to) of the step: ranges that do not overlap may be done by several threads at the
 * same time, and in any order. w, gradient: [n], of all numbers. In float:
 *   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g g,
 *   w -= step m / (sqrt(v scale2) + epsilon) + rate decay w */
void adam_apply(const adam *o, float *w, const float *gradient, int64_t from, int64_t to);

#endif
