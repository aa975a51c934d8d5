/* Parts that the answers of all endpoints have. */
#pragma once

#include "serve/answer/serializer.h"

/* "usage": {...}, "timings": {...} and "drey": {...} of all the request's sequences, which are
 * done. */
void part_usage(const request *t, text_out *out);
void part_timings(const request *t, text_out *out);
void part_drey(const request *t, text_out *out);
/* Timings of a text that is being written. */
void part_timings_now(const sequence *j, text_out *out);
/* A call's id, which is the same each time: nine letters and digits, as some templates want. */
enum { CALL_ID_BYTES = 10 };
void part_call_id(const request *t, int32_t choice, int32_t call, char out[static CALL_ID_BYTES]);
/* "stop", "length" */
const char *part_finish(const sequence *j);
/* The one of the request's stop texts that ended the text; NULL: none of them. */
const char *part_stop_text(const sequence *j);

/* Sampling and penalties as members. */
void part_settings(const drey_sampling *p, const drey_penalties *e, text_out *out);

/* A token's text as JSON string. Where it has parts of characters, "bytes:\\xe2\\x80", as OpenAI's
 * completions write it: so the texts of two tokens differ. */
void part_token_text(const drey_model *m, int32_t id, text_out *out);
/* Its bytes as an array. */
void part_token_bytes(const drey_model *m, int32_t id, text_out *out);
/* A token with its log-probability and those of the most likely ones, as chats have it: [0] was
 * written. shares: probabilities instead, by llama.cpp's names for them. */
void part_token(const drey_model *m, const drey_logprob *all, int32_t n, bool shares,
                text_out *out);

/* ---- What OpenAI's two forms share ---- */

/* The value's first members, up to its choices. */
void part_front(const request *t, const char *object, text_out *out);
/* Its last ones, after the usage. */
void part_end(const request *t, text_out *out);
/* The same of one text. */
void part_job_end(const sequence *j, text_out *out);
/* Its "__verbose": what /completion says of such a text. */
void part_verbose(const sequence *j, text_out *out);
void part_tail(const answer *a, text_out *out);
/* A text as a JSON string; NULL: an empty one. */
void part_text(const record *text, text_out *out);

/* Begins an event, up to its value; with a type, up to that member of the value. */
void part_open_event(const char *type, text_out *out);
/* Ends the value and the event. */
void part_close_event(text_out *out);
/* Puts out what a piece brings besides its text: timings, progress, provisional text. */
void part_piece(const sequence *j, const piece *p, text_out *out);
/* Ends the last event of a choice. */
void part_close_last(const answer *a, text_out *out);
/* The events after the choices: see `last` of serializer. */
bool part_last(const answer *a, const char *object, text_out *out);
