/* Log-probabilities of tokens. */
#pragma once

#include "drey/drey.h"

/* Gives the caller the log-probabilities of the timeline's last token and of the best ones, by
 * these logits[n_vocab]. */
void logprobs_report(const drey_session *s, const float *logits);
