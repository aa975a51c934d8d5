/* Log-probabilities of tokens. */
#pragma once

#include <stdint.h>

#include "drey/drey_session.h"

typedef struct drey_exit_score drey_exit_score;
typedef struct drey_session drey_session;
typedef struct pass_group pass_group;

/* The natural logarithm of a token's probability by logits[n_vocab]. */
float logprob_of(const drey_session *s, const float *logits, int32_t id);

/* Gives the caller the log-probabilities of the timeline's last token and of the best ones, by
 * these logits[n_vocab]. */
void logprobs_report(drey_session *s, const float *logits);

/* A text that is given: whatever the target would have chosen, the given token follows. One row per
 * pass, because trees would be of another text. */
typedef struct forced_text {
    const int32_t *ids;     /* the timeline's */
    drey_exit_score *score; /* score[i]: of ids[i + 1] */
} forced_text;

/* The target has chosen the token after the root: scores the given one, which takes its place. */
void forced_take(drey_session *s, const pass_group *group);
