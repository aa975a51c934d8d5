/* Parts that the answers of all endpoints have. */
#pragma once

#include "serve/jobs.h"
#include "serve/api/text_out.h"

/* "usage": {...}, "timings": {...} and "drey": {...} of all the task's jobs, which are done. */
void part_usage(const task *t, text_out *out);
void part_timings(const task *t, text_out *out);
void part_drey(const task *t, text_out *out);
/* Timings of a text that is being written. */
void part_timings_now(const job *j, text_out *out);
/* "stop", "length" */
const char *part_finish(const job *j);

/* A token's text as JSON string. */
void part_token_text(const drey_model *m, int32_t id, text_out *out);
/* A token with its log-probability and those of the most likely ones, as chats have it (key_top
 * "top_logprobs"): [0] was written. */
void part_token(const drey_model *m, const drey_logprob *all, int32_t n, text_out *out);
