/* The target's choice at a position, and a drafter's guess at that choice. Pure functions of
 * (logits, settings, position): one seed gives one text, whatever was drafted.
 *
 * Temperature 0: arg-max, the lowest id among equals. Otherwise top-k, top-p, min-p, temperature,
 * in this order (ties by id: the lower stays), then arg-max over the remaining ids of log p +
 * Gumbel noise, which is a function of (seed, position, token id) only. Floating-point work is done
 * in a fixed order with fmath.h: the same on every machine.
 *
 * top-k keeps the k most likely; top-p keeps the fewest of those, most likely first, that have
 * together a share top_p of their probability; min-p keeps those with at least min_p times the best
 * one's probability. A bias is added to its token's logit before all of that.
 *
 * NaN logits count as -inf, and those are never chosen; if all are, the token is 0. */
#pragma once

#include "base/arena.h"
#include "grammar/grammar.h"
#include "kernel/kernel.h"

typedef struct candidate { /* what a drafter guesses */
    int32_t token;
    float confidence;
} candidate;

typedef struct sampler {
    drey_sampling settings;
    const kernel_table *kernels;
    int32_t n_vocab;
    struct sampler_entry *work; /* [n_vocab] */
    const drey_bias *biases;    /* [n_biases], borrowed; the ids must exist; set them after init */
    float *unbiased;            /* [n_biases], as long */
    int32_t n_biases;
} sampler;

/* Checks the settings (DREY_ERR_USAGE says which is out of range). Takes its memory from `a`. */
drey_status sampler_init(sampler *s, const drey_sampling *settings, int32_t n_vocab,
                         const kernel_table *kernels, arena *a, drey_error *err);
size_t sampler_bytes(int32_t n_vocab);

/* The token at `position` given logits[n_vocab]. Biases are added to them during the call, here and
 * below. */
int32_t sampler_choose(sampler *s, const float *logits, int64_t position);

/* The same among the tokens that a grammar allows at a place: all others count as -inf, before all
 * filters. */
int32_t sampler_choose_allowed(sampler *s, const float *logits, int64_t position, grammar_place at);

/* The `max` (up to 8) ids with the largest logits, best first; returns how many are possible. Uses
 * no sampler: several threads may call it. */
int32_t sampler_top(const sampler *s, const float *logits, int32_t *out, int32_t max);

/* Logits that need not be in the order of the ids: the first n_first are, the following n_more are
 * those of the ids more[]. Ids from n_first on that are not there do not exist (a padded
 * vocabulary). */
typedef struct logit_ids {
    int32_t n_first, n_more;
    const int32_t *more; /* [n_more] */
} logit_ids;
/* The `max` (up to 8) best guesses of what sampler_choose would take, best first (ties by place),
 * with confidence: softmax probability at temperature 0, the same of the noisy scores otherwise
 * (scores more than 7 below the best may be left out of its sum). Returns how many (1 .. max; ids
 * that the filters drop or that are impossible, -inf, are not guessed). */
int32_t sampler_guess(sampler *s, const float *logits, int64_t position, const logit_ids *ids,
                      candidate *out, int32_t max);
/* The same among the allowed tokens: those of the best 8 of all, or if none of them is allowed, the
 * best of the allowed ones. 0: none has a logit. out[8]. */
int32_t sampler_guess_allowed(sampler *s, const float *logits, int64_t position,
                              const logit_ids *ids, grammar_place at, candidate *out, int32_t max);
