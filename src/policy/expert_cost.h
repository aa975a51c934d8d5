/* What passes over a mixture of experts take, learnt while texts are written.
 *
 *   seconds(n rows) = one + more * further(n) + miss * missing(n)
 *
 * one: what one row computes. further(n): what n rows compute beyond that, in rows, as assumed
 * (cost.c). missing(n): experts that have to be read. A row misses what neither the rows before it
 * nor earlier passes have used, so n rows miss n times what one does: 79 each in passes over one
 * and over nine rows of Qwen3-30B's shape, a fifth of the experts kept. Accepted rows read nothing
 * that the next tokens would not have read; rejected ones read in vain.
 *
 * The three times are fitted to the latest passes. What those leave open, the assumptions decide:
 * from passes over one row nothing is learnt about more. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { EXPERT_COSTS = 3 }; /* one, more, miss */

typedef struct expert_cost {
    double most;    /* experts of a layer, in those that a row uses */
    double share;   /* of what a row computes, of experts */
    double used;    /* experts that a row uses, of all layers */
    double missing; /* of those, the ones that were read lately */
    double kept;    /* share of all experts that is in memory */
    double spread;  /* n rows choose like n^spread that have nothing to do with each other */
    double usual_s[EXPERT_COSTS], s[EXPERT_COSTS]; /* seconds: as assumed, as fitted */
    double sum[EXPERT_COSTS][EXPERT_COSTS + 1];    /* of passes; old ones fade */
    bool measured;
} expert_cost;

/* The experts that n rows use together, in those of one. */
double expert_union(const expert_cost *e, int32_t n_rows);
/* Those that they have to read: no more than if each expert were in memory equally often. */
double expert_missing(const expert_cost *e, int32_t n_rows);
/* most, share, used, missing and kept are set, the rest is zero. one_s: of a row's computing;
 * miss_s: of a read. */
void expert_cost_begin(expert_cost *e, double one_s, double miss_s);
/* A row's computing takes that long, if nothing is measured. */
void expert_cost_assume(expert_cost *e, double one_s);
/* A pass over n_rows used and read so many experts. */
void expert_cost_saw(expert_cost *e, int32_t n_rows, double further, double n_used, double n_read,
                     double seconds);
/* The prediction, in seconds. */
double expert_cost_pass(const expert_cost *e, int32_t n_rows, double further);
