/* Reads requests: members of the right kind, and refusals that name them. A key that is null is
 * absent. */
#pragma once

#include "serve/parse/parse_request.h"

typedef struct parsing {
    const json_value *body;
    const serve_options *options;
    refusal *refusal;
} parsing;
#define BAD(a, ...) refuse_with((a)->refusal, 400, __VA_ARGS__)

/* Returns whether a member's key is in a list, with blanks around each. */
bool parse_lists(const char *keys, const json_value *member);

/* Each leaves *out as it is where there is no such member, and refuses one that is something
 * else. */
bool parse_real(const parsing *a, const char *key, double least, double most, float *out);
bool parse_count(const parsing *a, const char *key, int64_t least, int64_t most, int32_t *out);
bool parse_bool(const parsing *a, const char *key, bool *out);

/* A list of short texts in memory of fixed size. */
typedef struct text_list {
    char *text;      /* [n_bytes] */
    const char **of; /* [most]: the first n are there */
    size_t n_bytes, most, n, n_used;
} text_list;
#define TEXT_LIST(bytes, texts)                                                                    \
    {                                                                                              \
        .text = bytes, .of = texts, .n_bytes = sizeof bytes, .most = sizeof texts / sizeof *texts  \
    }
/* Adds the texts of an array, or one text, but for empty ones. */
bool parse_texts(const parsing *a, const char *key, text_list *out);

/* The prompt has more tokens than there are positions; false. */
bool refuse_too_long(refusal *r, size_t n_ids, int32_t n_context);

/* Refuses what is known and would change the text, but is not computed here. */
bool parse_supported(const parsing *a);

/* Temperature, filters, penalties, and the order that is asked for. */
bool parse_sampling(const parsing *a, request *t);

/* Adds a text, or an array of texts and token ids, to the request's ids. */
bool parse_tokens(const parsing *a, request *t, const json_value *v);
/* Texts and ids of field 'prompt', or what an editor wants to be filled in. */
bool parse_prompts(const parsing *a, request *t);
/* Number of prompts that the field holds. */
int32_t parse_n_prompts(const json_value *body);

/* Reads what the text is expected to repeat; after the prompt was taken. */
bool parse_prediction(const parsing *a, request *t);

/* The prompt of a chat. scratch is used for the time of the call. */
bool parse_chat(const parsing *a, request *t, text_out *scratch);
