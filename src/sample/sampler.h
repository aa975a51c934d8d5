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
 * one's probability. Before all of that a bias is added to its token's logit, and penalties are
 * taken off (penalties.h).
 *
 * NaN logits count as -inf, and those are never chosen; if all are, the token is 0. */
#pragma once

#include "base/arena.h"
#include "drey/drey_session.h"
#include "grammar/grammar.h"

typedef struct kernel_table kernel_table;
typedef struct logit_ids logit_ids;
typedef struct penalties penalties;

typedef struct candidate { /* A drafter's guess. */
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
    penalties *penalties; /* NULL: there are none; borrowed; set after init */
} sampler;

/* A place of a text, whose next token is wanted. */
typedef struct sampler_context {
    int64_t position;  /* number of tokens before it */
    grammar_cursor at; /* other tokens than the grammar allows count as -inf, before all filters */
    /* [n_drafted]: the last of the tokens before it; those before them are the penalties' timeline.
     * They matter to penalties alone. */
    const int32_t *drafted;
    int32_t n_drafted;
} sampler_context;

/* Checks the settings (DREY_ERR_USAGE says which is out of range). Takes its memory from `a`. */
drey_status sampler_init(sampler *s, const drey_sampling *settings, int32_t n_vocab,
                         const kernel_table *kernels, arena *a, drey_error *err);
size_t sampler_bytes(int32_t n_vocab);

/* The token at `position` given logits[n_vocab]. They are changed during the call and then as
 * before, here and below. */
int32_t sampler_choose(sampler *s, const float *logits, int64_t position);
int32_t sampler_choose_at(sampler *s, const float *logits, const sampler_context *context);

/* Gives the tokens among which sampler_choose_at would choose, and natural logarithms of their
 * probabilities: the most likely ones, best first; returns how many (0 .. max). written->id is
 * given; -INFINITY: it is not among them. */
int32_t sampler_shares_at(sampler *s, const float *logits, const sampler_context *context,
                          drey_logprob *written, drey_logprob *top, int32_t max);

/* Prepares, before there are logits, what the choice at a position needs: with filters, the
 * grammar's mask. False: there was nothing to do. */
bool sampler_prepare_at(sampler *s, grammar_cursor at);

/* The `max` (up to 8) ids with the largest logits, best first; returns how many are possible. Uses
 * no sampler: several threads may call it. */
int32_t sampler_top(const sampler *s, const float *logits, int32_t *out, int32_t max);

/* The `max` (up to 8) best guesses of what sampler_choose would take, best first (ties by place),
 * with confidence: softmax probability at temperature 0, the same of the noisy scores otherwise
 * (scores more than 7 below the best may be left out of its sum). Returns how many (1 .. max; ids
 * that the filters drop or that are impossible, -inf, are not guessed). */
int32_t sampler_guess(sampler *s, const float *logits, int64_t position, const logit_ids *ids,
                      candidate *out, int32_t max);
/* The same at a place with a grammar: those of the best 8 of all that are allowed, or if none of
 * them is, the best of the allowed ones. 0: none has a logit. out[8]. */
int32_t sampler_guess_at(sampler *s, const float *logits, const sampler_context *context,
                         const logit_ids *ids, candidate *out, int32_t max);
