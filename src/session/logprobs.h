/* Log-probabilities of tokens. */
#ifndef DREY_SESSION_LOGPROBS_H
#define DREY_SESSION_LOGPROBS_H

#include "drey/drey.h"

/* The caller gets what these logits[n_vocab] say of the timeline's last token, and of the best
 * ones. */
void logprobs_report(const drey_session *s, const float *logits);

#endif
