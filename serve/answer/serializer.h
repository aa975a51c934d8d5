/* A serializer: how what was written becomes JSON. answer.c decides when something is put out and
 * walks the records; a serializer puts it into words. Each function puts out at most one piece
 * (ANSWER_PIECE_BYTES).
 *
 *   one value:  front; then of each choice: open, record, ..., open, record, ..., close; then tail
 *   events:     of each choice, as they come: begin, piece, ..., finish; then last, last, ...
 */
#pragma once

#include "serve/answer/answer.h"

/* Bytes that a sequence has written, in its memory. */
typedef struct record {
    record_kind kind;
    const char *bytes; /* [n] */
    size_t n;
} record;

/* News of a choice. */
typedef struct piece {
    const record *text, *token; /* NULL: none of it */
    const record *progress;     /* progress of the prompt; alone */
    bool shown;                 /* the provisional text has changed; alone */
    size_t offset;              /* characters before it */
} piece;

struct serializer {
    const char *id_prefix; /* beginning of its requests' ids */
    bool keeps;            /* records of a stream stay, and `last` can read them again */
    bool lines;            /* a stream is values in lines, without events; no pings */

    /* Puts what the answer repeats of the request at the beginning of the first sequence's records
     * (request_keep_own), before that is queued; NULL: nothing. */
    void (*take)(request *t, const json_value *body);

    void (*front)(const answer *a, text_out *out);
    /* Puts out the beginning of pass a->pass over the choice's records, from 0, which it may
     * raise; false: there is none any more. NULL: there is one pass. */
    bool (*open)(answer *a, text_out *out);
    void (*record)(answer *a, const record *r, text_out *out);
    void (*close)(answer *a, text_out *out);
    void (*tail)(const answer *a, text_out *out); /* NULL: there is none */

    /* An event that says nothing, once the stream has begun; NULL: a comment does. */
    void (*ping)(answer *a, text_out *out);
    /* NULL: there is no such event (and no ping). */
    void (*begin)(answer *a, const sequence *j, text_out *out);
    void (*piece)(answer *a, const sequence *j, const piece *p, text_out *out);
    void (*finish)(answer *a, const sequence *j, text_out *out);
    /* The next event after all choices, a->pass from 0; false, or NULL: there is none. */
    bool (*last)(answer *a, text_out *out);

    /* A refusal as a value, and one that ends a stream; NULL: as OpenAI has them. */
    void (*refuse)(const refusal *r, text_out *out);
    void (*fail)(const refusal *r, text_out *out);
};

/* Returns where the choice's records begin. */
size_t answer_first_record(const answer *a);
/* The choice's next record after a->at; false: there is none. */
bool answer_record(answer *a, record *out);
/* A token's record: it, and the most likely ones; how many they are. */
int32_t record_token(const record *r, drey_logprob all[1 + DREY_MAX_TOP]);
/* All choices of a stream have finished. */
bool answer_all_ended(const answer *a);
