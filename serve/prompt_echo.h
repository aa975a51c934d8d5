/* Prompt of an answer that echoes it: its text, and with log-probabilities how likely
 * each of its tokens was. */
#pragma once

#include "serve/requests.h"

/* Its passes are its own, between steps of the others. */
static inline bool echo_computes(const request *t)
{
    return t->prompts.echo && t->tokens.logprobs;
}

/* Writes the records, as those of a text that is written: of each token its log-probability (NAN
 * without likely ones: nothing comes before it), if they are wanted, and the text that it
 * completes. The session then has the prompt's tokens, if they were computed. Fails as
 * drey_session_score_top. */
drey_status echo_prompt(shared *s, sequence *j, drey_session *session, drey_error *err);
