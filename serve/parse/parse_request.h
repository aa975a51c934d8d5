/* A request's JSON becomes a request. */
#pragma once

#include "serve/requests.h"
#include "serve/net/events.h"
#include "serve/text_out.h"

/* The error that the client receives. */
typedef struct refusal {
    int status;       /* status of HTTP; 0: it is not refused */
    const char *type; /* OpenAI's word for it, as llama.cpp's server uses them */
    const char *code; /* another word, which programs look for; NULL: the status */
    char message[700];
    char fixed[SERVE_WHY_BYTES];    /* the same without what may be the client's words */
    int64_t n_prompt_tokens, n_ctx; /* sizes for a prompt that is too long; else 0 */
    int32_t retry_s;                /* 0: there is no use in that */
} refusal;

/* Sets it; false. type follows from the status. In "fixed" each %s is "...", but for names of
 * fields, "Field '%s'", which are the server's. */
bool refuse_with(refusal *r, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Does the same with a sentence that is constant. */
bool refuse_fixed(refusal *r, int status, const char *sentence);
/* An error of the library's. */
bool refuse_error(refusal *r, const drey_error *err);

/* Number of completions requested; request_take needs it. */
bool parse_choices(const json_value *body, request_kind kind, const serve_options *o, int32_t *n,
                   refusal *r);
/* Fills the request but for its sequences. body may be changed: texts of a message are put
 * together. scratch is used for the time of the call. */
bool parse_request(request *t, request_kind kind, json_value *body, const serve_options *o,
                   text_out *scratch, refusal *r);
/* Counts the tokens of a chat's prompt, however many they are; ids: [capacity], used for the time
 * of the call. */
bool parse_prompt_tokens(json_value *body, const serve_options *o, text_out *scratch, int32_t *ids,
                         size_t capacity, size_t *n, refusal *r);
/* The prompt that a chat's messages make: *text, which the caller frees with drey_free. */
bool parse_template(json_value *body, const serve_options *o, text_out *scratch, char **text,
                    size_t *n_bytes, refusal *r);
/* A member that is true or false; *out stays where there is none. */
bool parse_flag(const json_value *body, const char *key, bool *out, refusal *r);
