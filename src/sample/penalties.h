/* Penalties: logits made smaller because of the tokens before a place. Pure functions of those
 * tokens and of the settings, so that a node of a drafted tree is judged by its own path, by target
 * and drafter alike: what is drafted cannot change a text.
 *
 * In this order, after biases and before all filters, as in llama.cpp's server:
 *
 *   1. A token that occurs n > 0 times among the last `last_n`: a logit above 0 is divided by
 *      `repeat`, another one multiplied with it; then n * frequency + presence is subtracted.
 *   2. DRY: of a token that would continue a repetition, with n the length of what it repeats, and
 *      n >= dry_allowed_length: dry_multiplier * dry_base ^ (n - dry_allowed_length) is subtracted.
 *      A repetition ends at a token whose text holds a breaker. */
#pragma once

#include "base/arena.h"
#include "drey/drey_session.h"
#include "drey/sampling.h"

/* The tokens before a place of a text: timeline[0 .. n - n_drafted), then drafted[n_drafted]. */
typedef struct text_past {
    const int32_t *timeline, *drafted;
    int64_t n;
    int32_t n_drafted;
} text_past;

/* Counts of a token; a sampler has room for one of each. */
typedef struct penalty_count {
    int32_t n, repeats; /* occurrences; the longest repetition that it would continue */
} penalty_count;

typedef struct penalised {
    int32_t place;
    float logit; /* the logit before it was changed */
} penalised;

typedef struct penalties {
    drey_penalties settings; /* without its breakers */
    const int32_t *timeline; /* borrowed */
    uint64_t *breaks;        /* [n_vocab] bits: the token ends a repetition */
    int32_t *same;           /* [n_context] */
    penalised *kept;         /* [n_context]: the first n_kept have been changed */
    int32_t n_kept, n_context;
} penalties;

/* NULL, or such as change nothing: there are none. */
bool penalties_are_there(const drey_penalties *p);
/* DREY_ERR_USAGE says which is out of range. */
drey_status penalties_check(const drey_penalties *p, drey_error *err);
size_t penalties_bytes(int32_t n_vocab, int32_t n_context);
/* Takes its memory from `a`; the settings have been checked. No token breaks: the caller sets
 * those that do. timeline[n_context] is borrowed. */
void penalties_init(penalties *p, const drey_penalties *settings, const int32_t *timeline,
                    int32_t n_vocab, int32_t n_context, arena *a);
static inline void penalties_set_break(penalties *p, int32_t id)
{
    p->breaks[id / 64] |= UINT64_C(1) << (id % 64);
}

/* Logits that need not be in the order of the ids: the first n_first are, the following n_more are
 * those of the ids more[]. Ids from n_first on that are not there do not exist (a padded
 * vocabulary). */
typedef struct logit_ids {
    int32_t n_first, n_more;
    const int32_t *more; /* [n_more] */
} logit_ids;

/* Changes the logits for what may follow `past`; penalties_take_back makes them what they were.
 * count[n_vocab] is used in between. */
void penalties_apply(penalties *p, float *logits, const logit_ids *ids, const text_past *past,
                     penalty_count *count, int32_t n_vocab);
void penalties_take_back(penalties *p, float *logits);
