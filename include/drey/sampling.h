/* Choice of a token. */
#ifndef DREY_SAMPLING_H
#define DREY_SAMPLING_H

#include "drey/drey_error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Makes tokens less likely because of the text before them, prompt included, as llama.cpp's server
 * does. It is computed before all filters, also at temperature 0, and does not depend on what is
 * drafted. Initialise it with drey_penalties_init, which changes nothing. */
typedef struct drey_penalties {
    /* Penalties of each token among the last last_n (-1: of all the text): its logit is divided by
     * `repeat` if it is above 0, and multiplied with it otherwise (1, or 0: off); then `presence`
     * is subtracted, and `frequency` as often as the token occurs. */
    float repeat, frequency, presence;
    int32_t last_n; /* 64 */
    /* DRY ("don't repeat yourself"): from the token that would continue a repetition of n >=
     * dry_allowed_length (2) tokens among the last dry_last_n (-1), dry_multiplier (0: off) *
     * dry_base (1.75) ^ (n - dry_allowed_length) is subtracted. Tokens whose text holds a breaker
     * are in no repetition: "\n", ":", "\"" and "*", unless others are given. */
    float dry_multiplier, dry_base;
    int32_t dry_allowed_length, dry_last_n;
    const char *const *dry_breakers; /* [n_dry_breakers], borrowed for the call */
    size_t n_dry_breakers;
    uint64_t reserved[4]; /* zero */
} drey_penalties;
DREY_API void drey_penalties_init(drey_penalties *penalties);

typedef struct drey_sampling {
    float temperature; /* 0: the most likely token, always */
    int32_t top_k;     /* 0: off */
    float top_p;       /* 1: off */
    float min_p;       /* 0: off */
    uint64_t seed;     /* the same seed gives the same text, with or without a draft */
    /* NULL: there are none. Copied when a text begins; not allowed if passes may end early
     * (drey_exit) */
    const drey_penalties *penalties;
    uint64_t reserved[3]; /* zero */
} drey_sampling;

/* A token and the target's natural log probability of it: over all tokens, at temperature 1 and
 * before any filter or bias, if nothing else is asked for (after_filters). */
typedef struct drey_logprob {
    int32_t id;
    float logprob;
} drey_logprob;
/* Added to a token's logit before one is chosen. -INFINITY: never this one. */
typedef struct drey_bias {
    int32_t id;
    float bias;
} drey_bias;

#ifdef __cplusplus
}
#endif
#endif
